"""A patch file as exact edits: parsed by ``unidiff``, nothing about it taken on trust."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk as UnidiffHunk
from unidiff.patch import PatchedFile, PatchSet

from llamawright.errors import PatchError

DEV_NULL = "/dev/null"
NO_END = "\\"
REFUSED = ("rename from", "copy from", "GIT binary patch", "Binary files", "old mode", "new mode",
           "Submodule ", "literal ", "delta ")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines that must stand at ``line`` (counted from 1) and what replaces them."""

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """The hunks of one file; ``created`` and ``deleted`` for a whole one."""

    path: str
    hunks: tuple[Hunk, ...]
    created: bool
    deleted: bool


def parse(data: bytes, name: str) -> tuple[FileEdit, ...]:
    """Return a patch's edits. ``PatchError`` for what is no plain, inward, non-empty patch."""
    try:
        text = data.decode("utf-8")
        files = PatchSet(text)
    except (UnicodeDecodeError, UnidiffParseError) as error:
        raise _bad(name, f"it cannot be parsed: {error}", "bad-patch") from error
    odd = [line for line in text.splitlines() if line.startswith(REFUSED)]
    if odd:
        raise _bad(name, f"renames, modes and binary files are not taken: {odd[0]}", "bad-patch")
    edits = tuple(_edit(file, name) for file in files)
    if not edits or not all(e.hunks for e in edits):
        raise _bad(name, "it changes nothing", "empty-patch")
    paths = [e.path for e in edits]
    if len(paths) != len(set(paths)):
        raise _bad(name, "it names one file twice", "bad-patch")
    return edits


def _edit(file: PatchedFile, name: str) -> FileEdit:
    created, deleted = file.source_file == DEV_NULL, file.target_file == DEV_NULL
    path = _inside(file.source_file if deleted else file.target_file, name)
    if not created and not deleted and _inside(file.source_file, name) != path:
        raise _bad(name, f"it renames {file.source_file} to {file.target_file}", "bad-patch")
    hunks = tuple(_hunk(hunk) for hunk in file)
    return FileEdit(path=path, hunks=hunks, created=created, deleted=deleted)


def _hunk(hunk: UnidiffHunk) -> Hunk:
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in hunk:
        if line.line_type == NO_END:
            # The line before it is its file's last one and has no line end.
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        last = ((old,) if not line.is_added else ()) + ((new,) if not line.is_removed else ())
        for side in last:
            side.append(line.value)
    return Hunk(line=hunk.source_start, old=tuple(old), new=tuple(new))


def _inside(path: str, name: str) -> str:
    """Strip git's one-letter prefix and refuse every path that leaves the tree."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if len(parts) > 1 and parts[0] in ("a", "b"):
        parts = parts[1:]
    out = not parts or parts[0] == "/" or ".." in parts or any(":" in p for p in parts)
    if out or ".git" in parts:
        raise PatchError(
            f"{name} reaches outside the source tree",
            why=f"it changes {path}",
            hint="a patch may only change files below the source's own root",
            kind="patch-outside",
        )
    return "/".join(parts)


def _bad(name: str, why: str, kind: str) -> PatchError:
    hint = "make it with `llamawright patch new`: a plain unified diff with a/ and b/ paths"
    return PatchError(f"{name} is no patch that can be applied", why=why, hint=hint, kind=kind)
