"""The files of a source tree that count, their digest, and a clean copy of just them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from llamawright.digest import tree_digest
from llamawright.errors import DownloadError

# Left by editors, Python and version control in local folders; no origin ships them.
_JUNK = frozenset({".git", ".DS_Store", "__pycache__"})


def included_files(root: Path, include: Sequence[str]) -> tuple[str, ...]:
    """Return the files and links of ``root`` that ``include`` names, sorted POSIX paths."""
    return tuple(sorted({name for part in include for name in _below(root, part)}))


def missing_parts(root: Path, include: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of ``include`` that the tree does not have."""
    return tuple(part for part in include if not (root / part).exists())


def digest_included(root: Path, include: Sequence[str]) -> str:
    """Return the tree digest over the included files only."""
    return tree_digest(root, included_files(root, include))


def copy_included(source: Path, dest: Path, include: Sequence[str]) -> None:
    """Copy the included files with their times; ``source`` is only read.

    Raises ``DownloadError`` when a link leads out or something is no file.
    """
    names = included_files(source, include)
    check_links(source, names)
    dest.mkdir(parents=True)
    for folder in sorted({PurePosixPath(n).parent.as_posix() for n in names}):
        (dest / folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy2(source / name, dest / name, follow_symlinks=False)


def check_links(root: Path, names: Sequence[str]) -> None:
    """Refuse links that lead out of the tree, pipes, sockets and devices."""
    inside = root.resolve()
    for name in names:
        path = root / name
        if path.is_symlink():
            target = path.readlink()
            if target.is_absolute() or not path.resolve().is_relative_to(inside):
                raise _unsafe(root, f"the link {name} leads out of it, to {target}")
        elif not path.is_file():
            raise _unsafe(root, f"{name} is no file")


def _below(root: Path, part: str) -> Iterator[str]:
    path = root / part
    if not path.is_dir() or path.is_symlink():
        if os.path.lexists(path):
            yield part
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(f for f in folders if f not in _JUNK)
        base = Path(folder)
        links = [f for f in folders if (base / f).is_symlink()]
        for name in (*files, *links):
            if name not in _JUNK and not name.endswith(".pyc"):
                yield (base / name).relative_to(root).as_posix()


def _unsafe(root: Path, why: str) -> DownloadError:
    return DownloadError(
        f"the source folder {root} cannot be used",
        why=why,
        hint="replace it by the file itself, or name another folder",
        kind="unsafe-source",
    )
