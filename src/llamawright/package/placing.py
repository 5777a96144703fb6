"""Putting packed artifacts where people look for them, and reading them back."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.artifact import Artifact
from llamawright.paths import remove_tree
from llamawright.store import disk_guard
from llamawright.transfer.opened import SIDECAR, open_artifact


def place(artifact: Artifact, dist: Path) -> Artifact:
    """Copy an artifact, its sha256 file and its tests archive into ``dist``.

    Each appears by one rename; nothing is written when the same bytes are there already.
    Returns the artifact as it stands in ``dist``. Raises ``PackageError`` when the stored file is
    not the one that was packed, ``DiskError`` when the disk is full.
    """
    tests = place(artifact.tests, dist) if artifact.tests else None
    final = dist / artifact.path.name
    sidecar = final.with_name(final.name + SIDECAR)
    line = f"{artifact.sha256}  {final.name}\n"
    with disk_guard(dist):
        dist.mkdir(parents=True, exist_ok=True)
        if not _is(final, artifact):
            # The old sum beside the new archive would accuse it: first the old sum goes.
            sidecar.unlink(missing_ok=True)
            _copy(artifact, final)
        if not sidecar.is_file() or sidecar.read_bytes() != line.encode():
            beside = _beside(sidecar)
            beside.write_bytes(line.encode())
            beside.replace(sidecar)
    return replace(artifact, path=final, tests=tests)


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
        path=path, size=path.stat().st_size, sha256=sha256_file(path), manifest=manifest
    )


def _is(final: Path, artifact: Artifact) -> bool:
    known = final.is_file() and not final.is_symlink() and final.stat().st_size == artifact.size
    return known and sha256_file(final) == artifact.sha256


def _copy(artifact: Artifact, final: Path) -> None:
    beside = _beside(final)
    try:
        shutil.copyfile(artifact.path, beside)
        _require_sum(beside, artifact)
        with beside.open("rb+") as stream:
            os.fsync(stream.fileno())
        beside.replace(final)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _require_sum(copy: Path, artifact: Artifact) -> None:
    if sha256_file(copy) != artifact.sha256:
        raise PackageError(
            f"{artifact.path.name} in the store is not what was packed",
            why=f"its sha256 is no longer {artifact.sha256}",
            hint=f"remove {artifact.path} and run the same command: it is packed again",
            kind="store-damaged",
        )


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
