"""Putting packed artifacts where people look for them, and reading them back."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.artifact import Artifact, Manifest
from llamawright.paths import remove_tree, write_whole
from llamawright.store import disk_guard
from llamawright.transfer.opened import SIDECAR, open_artifact


def place(artifact: Artifact, dist: Path) -> Artifact:
    """Copy an artifact, its sha256 file, its companion and its tests archive into ``dist``.

    Each appears by one rename, the artifact after its companion; nothing is written when
    the same bytes are there already. Returns the artifact as it stands in ``dist``. Raises
    ``PackageError`` when a stored file is not the one that was packed, ``DiskError`` when
    the disk is full.
    """
    tests = place(artifact.tests, dist) if artifact.tests else None
    with disk_guard(dist):
        dist.mkdir(parents=True, exist_ok=True)
        companion = _place_companion(artifact, dist)
        final = _place(_Stored(artifact.path, artifact.sha256, artifact.size), dist)
    return replace(artifact, path=final, tests=tests, companion=companion)


def read_artifact(path: Path) -> Artifact:
    """Open a packed file strictly and return what it is; nothing unpacked is left.

    Raises ``PackageError``; its ``kind`` tells a cut file from a damaged or foreign one.
    """
    # Beside the file, not in the system's temporary folder: that is often small, in memory.
    folder = path.absolute().parent
    root = folder if os.access(folder, os.W_OK) else None
    scratch = Path(tempfile.mkdtemp(prefix=".opened-", dir=root))
    try:
        with disk_guard(scratch):
            manifest = open_artifact(path, scratch / "artifact")
    finally:
        remove_tree(scratch)
    return Artifact(
        path=path,
        size=path.stat().st_size,
        sha256=sha256_file(path),
        manifest=manifest,
        companion=_companion_beside(folder, manifest),
    )


def _companion_beside(folder: Path, manifest: Manifest) -> Path | None:
    """Return the companion archive that lies where ``place`` put it, unread."""
    facts = manifest.cuda.companion if manifest.cuda else None
    # The name comes from a file that anyone may have made: it is one in this folder or none.
    beside = folder / PurePath(facts.file).name if facts and facts.file else None
    return beside if beside and beside.is_file() else None


@dataclass(frozen=True, slots=True)
class _Stored:
    """A file of the store as it was packed."""

    path: Path
    sha256: str
    size: int


def _place_companion(artifact: Artifact, dist: Path) -> Path | None:
    facts = artifact.manifest.cuda.companion if artifact.manifest.cuda else None
    if artifact.companion is None or facts is None:
        return None
    return _place(_Stored(artifact.companion, facts.sha256, facts.size), dist)


def _place(stored: _Stored, dist: Path) -> Path:
    final = dist / stored.path.name
    sidecar = final.with_name(final.name + SIDECAR)
    line = f"{stored.sha256}  {final.name}\n"
    if not _is(final, stored):
        # The old sum beside the new archive would accuse it: first the old sum goes.
        sidecar.unlink(missing_ok=True)
        _copy(stored, final)
    if not sidecar.is_file() or sidecar.read_bytes() != line.encode():
        write_whole(sidecar, line)
    return final


def _is(final: Path, stored: _Stored) -> bool:
    known = final.is_file() and not final.is_symlink() and final.stat().st_size == stored.size
    return known and sha256_file(final) == stored.sha256


def _copy(stored: _Stored, final: Path) -> None:
    beside = _beside(final)
    try:
        shutil.copyfile(stored.path, beside)
        _require_sum(beside, stored)
        with beside.open("rb+") as stream:
            os.fsync(stream.fileno())
        beside.replace(final)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _require_sum(copy: Path, stored: _Stored) -> None:
    if sha256_file(copy) != stored.sha256:
        raise PackageError(
            f"{stored.path.name} in the store is not what was packed",
            why=f"its sha256 is no longer {stored.sha256}",
            hint=f"remove {stored.path} and run the same command: it is packed again",
            kind="store-damaged",
        )


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
