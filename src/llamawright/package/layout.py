"""Where every file of the artifact comes from, and under which name it goes in."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.built import BuiltTree

BIN = "bin"
LICENSES = "licenses"
_EXECUTABLE = 0o111


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One file or link of the artifact: ``path`` in it, and the file it is made from.

    A link has its target as written in ``link``; its ``source`` is the link itself.
    """

    path: str
    source: Path
    link: str = ""
    executable: bool = False

    @property
    def name(self) -> str:
        """Return the file name alone."""
        return PurePosixPath(self.path).name

    @property
    def folder(self) -> str:
        """Return the folder in the artifact."""
        return posixpath.dirname(self.path)


def staged(tree: BuiltTree, *, what: str) -> tuple[Placed, ...]:
    """Return the files and links a built tree lists; one that is gone is an error."""
    placed: list[Placed] = []
    for name in sorted(tree.files):
        source = tree.root / name
        if source.is_symlink():
            placed.append(Placed(path=name, source=source, link=source.readlink().as_posix()))
        elif source.is_file():
            runs = bool(source.stat().st_mode & _EXECUTABLE) and name.startswith(f"{BIN}/")
            placed.append(Placed(path=name, source=source, executable=runs))
        else:
            raise PackageError(
                f"{name} of the {what} is gone",
                why=f"it was built, but {source} is not there now; antivirus software removes "
                "files like this",
                hint="run the same command again; if it happens again, look at what removes it",
                kind="staged-file-missing",
            )
    return tuple(placed)


def join(host: Sequence[Placed], module: Sequence[Placed]) -> tuple[Placed, ...]:
    """Return host and module files together; a path in both must be one and the same file.

    A module's tree may bring along the libraries it was linked against.
    """
    merged = {placed.path: placed for placed in host}
    for placed in module:
        known = merged.get(placed.path)
        if known and not _same(known, placed):
            raise PackageError(
                f"host and module disagree about {placed.path}",
                why="both builds made this file, with different content",
                hint="build both again from one tree: `llamawright gc`, then the same command",
                kind="host-module-mismatch",
            )
        merged[placed.path] = known or placed
    return tuple(merged[path] for path in sorted(merged))


def by_soname(placed: Sequence[Placed], sonames: Mapping[str, str]) -> tuple[Placed, ...]:
    """Store every library as the file that others import it by, and links only as extras.

    CMake makes ``libx.so -> libx.so.1 -> libx.so.1.2``, and programs import ``libx.so.1``.
    An unpacker that drops links would leave nothing of that name: so the file itself gets
    it, the plain name leads to it, and the third one goes. ``sonames`` has the import
    name by path.
    """
    files = {f.path for f in placed if not f.link}
    renamed: dict[str, str] = {}
    for file in placed:
        soname = sonames.get(file.path, "")
        path = posixpath.join(file.folder, soname)
        # A copy under that name stays what it is: the audit reports it.
        if not file.link and soname and "/" not in soname and path not in files:
            renamed[file.path] = path
    result = [replace(f, path=renamed.get(f.path, f.path)) for f in placed if not f.link]
    taken = {f.path for f in result}
    targets = {f.path: resolve_link(f, placed) for f in placed if f.link}
    for link in (f for f in placed if f.link and f.path not in taken):
        final = targets[link.path]
        moved = renamed.get(final, final)
        text = posixpath.relpath(moved, link.folder or ".") if final in renamed else link.link
        result.append(replace(link, link=text))
    return tuple(sorted(result, key=lambda f: f.path))


def resolve_link(link: Placed, placed: Iterable[Placed]) -> str:
    """Return the path a link ends at, through any chain; empty when it leads nowhere."""
    known = {f.path: f for f in placed}
    here, seen = link, {link.path}
    while here.link:
        path = posixpath.normpath(posixpath.join(here.folder, here.link))
        if path in seen or path not in known:
            return ""
        seen.add(path)
        here = known[path]
    return here.path


def licence_files(
    texts: Iterable[str], source: Path, staged_texts: Sequence[Placed]
) -> tuple[Placed, ...]:
    """Return the licence texts that the built trees did not stage, from the source tree.

    They are compared by content: under which name a tree keeps them is its own affair.
    """
    there = {sha256_file(f.source) for f in staged_texts if not f.link}
    missing: list[Placed] = []
    for text in texts:
        place = source / text
        if not place.is_file():
            continue
        digest = sha256_file(place)
        if digest not in there:
            there.add(digest)
            name = text.removeprefix(f"{LICENSES}/")
            missing.append(Placed(path=f"{LICENSES}/{name}", source=place))
    return tuple(missing)


def _same(one: Placed, other: Placed) -> bool:
    if one.link or other.link:
        return one.link == other.link
    return sha256_file(one.source) == sha256_file(other.source)
