"""A patch file as exact edits: parsed by ``unidiff``, nothing about it taken on trust."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from unidiff.constants import LINE_TYPE_NO_NEWLINE
from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk as ParsedHunk
from unidiff.patch import PatchedFile, PatchSet

from llamawright.errors import PatchError

DEV_NULL = "/dev/null"
REFUSED = ("rename from ", "copy from ", "GIT binary patch", "Binary files ", "old mode ",
           "new mode ", "Submodule ")  # fmt: skip
HEADERS = ("diff --git ", "index ", "new file mode ", "deleted file mode ", "--- ", "+++ ",
           "@@ -", "\\ ")  # fmt: skip
PLAIN_MODES = (None, "100644", "100755")


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


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends one, as in every diff tool."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def parse(data: bytes, name: str) -> tuple[FileEdit, ...]:
    """Return a patch's edits. ``PatchError`` for what is no plain, inward, non-empty patch."""
    try:
        lines = lines_of(data.decode("utf-8"))
        files = PatchSet(lines)
    except (UnicodeDecodeError, UnidiffParseError) as error:
        raise _bad(name, f"it cannot be parsed: {error}", "bad-patch") from error
    odd = next(_strays(lines, files), None)
    if odd is not None:
        raise _bad(name, odd, "bad-patch")
    edits = tuple(_edit(file, name) for file in files)
    if not edits or not all(e.hunks for e in edits):
        raise _bad(name, "it changes nothing", "empty-patch")
    paths = [e.path.casefold() for e in edits]
    if len(paths) != len(set(paths)):
        raise _bad(name, "it names one file twice", "bad-patch")
    return edits


def _strays(lines: list[str], files: PatchSet) -> Iterator[str]:
    """Yield what the parser passed over: a lost line would be a change that is not made."""
    used = {line.diff_line_no for file in files for hunk in file for line in hunk}
    begun = False
    for number, line in enumerate(lines, start=1):
        if number in used:
            continue
        named = line.startswith("--- ") and "".join(lines[number : number + 1]).startswith("+++ ")
        begun = begun or named or line.startswith("diff --git ")
        if begun and line.rstrip("\n") == "-- ":
            return
        if line.startswith(REFUSED):
            yield f"renames, modes and binary files are not taken: line {number}: {line.strip()}"
        elif begun and line.strip() and not line.startswith(HEADERS):
            yield f"line {number} belongs to no hunk: {line.rstrip()}"


def _edit(file: PatchedFile, name: str) -> FileEdit:
    created, deleted = file.source_file == DEV_NULL, file.target_file == DEV_NULL
    path = _inside(file.source_file if deleted else file.target_file, name)
    if not created and not deleted and _inside(file.source_file, name) != path:
        raise _bad(name, f"it renames {file.source_file} to {file.target_file}", "bad-patch")
    if file.source_mode not in PLAIN_MODES or file.target_mode not in PLAIN_MODES:
        raise _bad(name, f"{path} is a link or a submodule in it", "bad-patch")
    hunks = tuple(_hunk(h) for h in file)
    whole = created or deleted
    if whole and any((h.old if created else h.new) or len(hunks) > 1 for h in hunks):
        raise _bad(name, f"{path} is made or removed, but only in part", "bad-patch")
    return FileEdit(path=path, hunks=hunks, created=created, deleted=deleted)


def _hunk(parsed: ParsedHunk) -> Hunk:
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in parsed:
        if line.line_type == LINE_TYPE_NO_NEWLINE:
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        sides = ((old, line.is_context or line.is_removed), (new, line.is_context or line.is_added))
        last = tuple(side for side, concerned in sides if concerned)
        for side in last:
            side.append(line.value)
    return Hunk(line=parsed.source_start, old=tuple(old), new=tuple(new))


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
