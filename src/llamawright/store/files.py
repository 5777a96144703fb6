"""Small durable file operations that the rest of the store is made of."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

# What an entry is called while it is made, and what else its maker may put beside it.
MAKING = ".making-"
SCRATCH = "~scratch"
_MANY_FILES = 256
_MOVE_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)


def scratch_beside(making: Path) -> Path:
    """Return where a ``make`` may keep other files while it runs; removed with its end.

    It is on the volume of the entry and belongs to its lock, also after a crash.
    """
    return making.with_name(f"{making.name}{SCRATCH}")


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a small JSON object so that readers see the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as stream:
            json.dump(value, stream, sort_keys=True, indent=1)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def read_json(path: Path) -> dict[str, object] | None:
    """Return a JSON object, or ``None`` when it is absent or not one."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def flush_file(path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    # Windows flushes only handles that may write.
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def flush_folder(path: Path) -> None:
    """Wait until a folder's entries are on the disk; does nothing where that is unknown."""
    # Windows cannot open a folder; some network file systems cannot sync one.
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def flush_tree(root: Path) -> None:
    """Wait until every file below ``root`` is on the disk.

    Thousands of single flushes take seconds on a slow disk, one ``sync`` does not.
    """
    if root.is_file():
        flush_file(root)
        return
    files = [p for p in walk(root) if p.is_file() and not p.is_symlink()]
    if len(files) > _MANY_FILES and hasattr(os, "sync"):
        os.sync()
        return
    for path in files:
        with contextlib.suppress(PermissionError):
            flush_file(path)
    flush_folder(root)


def walk(root: Path) -> Iterator[Path]:
    """Yield every file and link below ``root``."""
    for folder, folders, files in os.walk(root):
        base = Path(folder)
        yield from (base / name for name in files)
        yield from (base / name for name in folders if (base / name).is_symlink())


def size_of(path: Path) -> int:
    """Return the bytes a file or a tree takes, as the sum of its files' sizes."""
    if path.is_symlink() or not path.exists():
        return 0
    if path.is_file():
        return path.stat().st_size
    total = 0
    for item in walk(path):
        with contextlib.suppress(OSError):
            total += item.lstat().st_size
    return total


def move(source: Path, target: Path) -> None:
    """Rename into place; waits up to two seconds for who still looks into it.

    Windows refuses to rename a folder while a virus scanner or indexer has it open.
    """
    for pause in _MOVE_PAUSES_S:
        try:
            source.replace(target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    source.replace(target)


def touch_used(path: Path) -> None:
    """Note that ``path`` was used now: garbage collection goes by this time."""
    with contextlib.suppress(OSError):
        os.utime(path, (time.time(), time.time()))
