"""A packed file as the statements speak of it: archive or wheel, every byte checked."""

from __future__ import annotations

import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.model.artifact import Manifest
from llamawright.paths import remove_tree
from llamawright.store import disk_guard
from llamawright.transfer.opened import open_artifact
from llamawright.transfer.wheel import is_wheel, read_wheel

LICENSES = "licenses/"
# AUTHORS, the largest text there, has 90 KiB; only the beginning names a licence.
_TEXT_LIMIT = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file with what it says of itself; ``licenses`` are the beginnings of those texts."""

    name: str
    size: int
    sha256: str
    manifest: Manifest
    licenses: tuple[tuple[str, str], ...] = ()


def open_subject(path: Path) -> Subject:
    """Open an archive or wheel strictly; raises ``PackageError``."""
    if is_wheel(path):
        contents = read_wheel(path)
        manifest, licenses = contents.manifest, _wheel_licenses(path, contents.dist_info)
    else:
        manifest, licenses = _archive(path)
    return Subject(
        name=path.name,
        size=path.stat().st_size,
        sha256=sha256_file(path),
        manifest=manifest,
        licenses=licenses,
    )


def _archive(path: Path) -> tuple[Manifest, tuple[tuple[str, str], ...]]:
    # Beside the file, not in the system's temporary folder: that is often small, in memory.
    folder = path.absolute().parent
    scratch = Path(
        tempfile.mkdtemp(prefix=".opened-", dir=folder if os.access(folder, os.W_OK) else None)
    )
    try:
        with disk_guard(scratch):
            root = scratch / "artifact"
            manifest = open_artifact(path, root)
            texts = [(name, (root / name).read_bytes()) for name in _license_files(manifest)]
    finally:
        remove_tree(scratch)
    return manifest, tuple((name, _beginning(data)) for name, data in texts)


def _wheel_licenses(path: Path, dist_info: str) -> tuple[tuple[str, str], ...]:
    """Return the licences of a wheel: they are the metadata's, and not in the manifest."""
    start = f"{dist_info}/{LICENSES}"
    found: list[tuple[str, str]] = []
    with zipfile.ZipFile(path) as zipped:
        for name in sorted(n for n in zipped.namelist() if n.startswith(start)):
            with zipped.open(name) as stream:
                beginning = _beginning(stream.read(_TEXT_LIMIT))
            found.append((name.removeprefix(f"{dist_info}/"), beginning))
    return tuple(found)


def _license_files(manifest: Manifest) -> list[str]:
    return [f.path for f in manifest.files if f.path.startswith(LICENSES) and not f.link]


def _beginning(data: bytes) -> str:
    return data[:_TEXT_LIMIT].decode("utf-8", errors="replace")
