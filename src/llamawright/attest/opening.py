"""A packed file as the statements speak of it: archive or wheel, every byte checked."""

from __future__ import annotations

import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.model.artifact import Manifest
from llamawright.model.wheel import WHEEL_PACKAGE
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
        manifest = read_wheel(path).manifest
        licenses = _wheel_licenses(path, manifest)
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


def _wheel_licenses(path: Path, manifest: Manifest) -> tuple[tuple[str, str], ...]:
    with zipfile.ZipFile(path) as zipped:
        known = set(zipped.namelist())
        names = [n for n in _license_files(manifest) if f"{WHEEL_PACKAGE}/{n}" in known]
        return tuple((n, _beginning(zipped.read(f"{WHEEL_PACKAGE}/{n}"))) for n in names)


def _license_files(manifest: Manifest) -> list[str]:
    return [f.path for f in manifest.files if f.path.startswith(LICENSES) and not f.link]


def _beginning(data: bytes) -> str:
    return data[:_TEXT_LIMIT].decode("utf-8", errors="replace")
