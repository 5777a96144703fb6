"""Disk failures told as what they are: full, over quota, read-only, not ours to write."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from llamawright.errors import DiskError
from llamawright.paths import STORE_VARIABLE

_REASONS = {
    errno.ENOSPC: ("disk-full", "no space is left on the device"),
    errno.EDQUOT: ("disk-quota", "the disk quota is used up"),
    errno.EROFS: ("read-only", "the file system is read-only"),
}
DISK_ERRORS = frozenset(_REASONS)
_MIB = 1 << 20


@contextlib.contextmanager
def disk_guard(path: Path) -> Iterator[None]:
    """Turn the system's disk errors into a ``DiskError`` that names the volume of ``path``.

    A permission error counts only when the refused file lies at or below ``path``: others
    are not about the disk.
    """
    try:
        yield
    except OSError as error:
        told = _disk_error(path, error)
        if told is None:
            raise
        raise told from error


def _disk_error(path: Path, error: OSError) -> DiskError | None:
    if error.errno in _REASONS:
        kind, why = _REASONS[error.errno]
    elif isinstance(error, PermissionError) and _refused_below(path, error):
        kind, why = "not-writable", "the folder may not be written by this user"
    else:
        return None
    free = _free_bytes(path)
    room = "" if free is None else f"; {free // _MIB} MiB free"
    return DiskError(
        f"cannot write below {path}",
        why=f"{why} ({error.strerror or error}{room})",
        hint=f"free space with `llamawright gc`, or set {STORE_VARIABLE} to a larger volume",
        kind=kind,
    )


def _refused_below(path: Path, error: PermissionError) -> bool:
    if not isinstance(error.filename, str):
        return False
    refused = Path(error.filename)
    return refused == path or path in refused.parents or refused in path.parents


def _free_bytes(path: Path) -> int | None:
    for folder in (path, *path.parents):
        if folder.is_dir():
            with contextlib.suppress(OSError):
                return shutil.disk_usage(folder).free
    return None
