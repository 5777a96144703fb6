"""Exact application in memory: every context line must match, and nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from llamawright.patching.diff import FileEdit, Hunk, lines_of


class Fit(StrEnum):
    """How one file's hunks relate to a tree."""

    APPLIES = "applies"
    OFFSET = "applies with an offset"
    PRESENT = "already there"
    PARTLY = "partly there"
    MISSING = "the file is missing"
    CRLF = "the file has Windows line ends"
    DIFFERS = "the context differs"
    RESULT = "the result is not the one of the series"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The outcome for one file: ``content`` after the edit (``None``: no file any more)."""

    path: str
    fit: Fit
    content: bytes | None = None
    detail: str = ""

    @property
    def applies(self) -> bool:
        """Whether the edit can be made."""
        return self.fit in (Fit.APPLIES, Fit.OFFSET)


def try_edit(edit: FileEdit, current: bytes | None) -> Application:
    """Try one file's hunks on its content (``None``: there is no such file)."""
    whole = _whole_file(edit, current)
    if whole is not None:
        return whole
    if current is None:
        return Application(path=edit.path, fit=Fit.MISSING)
    if b"\r\n" in current:
        return Application(path=edit.path, fit=Fit.CRLF)
    lines = lines_of(current.decode("utf-8", errors="surrogateescape"))
    forward, detail = _forward(edit, lines)
    if forward is not None:
        fit = Fit.OFFSET if detail else Fit.APPLIES
        data = "".join(forward).encode("utf-8", errors="surrogateescape")
        return Application(path=edit.path, fit=fit, content=data, detail=detail)
    present = [h for h in edit.hunks if _places(lines, h.new) and not _places(lines, h.old)]
    if len(present) == len(edit.hunks):
        return Application(path=edit.path, fit=Fit.PRESENT, content=current)
    fit = Fit.PARTLY if present else Fit.DIFFERS
    return Application(path=edit.path, fit=fit, detail=detail)


def _whole_file(edit: FileEdit, current: bytes | None) -> Application | None:
    text = "".join(edit.hunks[0].new if edit.created else edit.hunks[0].old).encode()
    if edit.created:
        if current is None:
            return Application(path=edit.path, fit=Fit.APPLIES, content=text)
        fit = Fit.PRESENT if current == text else Fit.DIFFERS
        detail = "another file of that name is there" if fit is Fit.DIFFERS else ""
        return Application(path=edit.path, fit=fit, content=current, detail=detail)
    if edit.deleted:
        if current is None:
            return Application(path=edit.path, fit=Fit.PRESENT)
        fit = Fit.APPLIES if current == text else Fit.DIFFERS
        return Application(path=edit.path, fit=fit)
    return None


def _forward(edit: FileEdit, lines: list[str]) -> tuple[list[str] | None, str]:
    """Apply all hunks from the last to the first, so that earlier positions stay right."""
    result = list(lines)
    offsets: list[str] = []
    starts: list[tuple[int, Hunk]] = []
    for hunk in edit.hunks:
        start, fault = _place(lines, hunk)
        if start is None:
            return None, fault
        if start != hunk.line - 1:
            offsets.append(f"line {hunk.line} is now line {start + 1}")
        starts.append((start, hunk))
    ends = [(start, start + len(hunk.old)) for start, hunk in starts]
    if any(a[1] > b[0] for a, b in pairwise(ends)):
        return None, "its hunks overlap in this file"
    for start, hunk in reversed(starts):
        result[start : start + len(hunk.old)] = hunk.new
    return result, "; ".join(offsets)


def _place(lines: list[str], hunk: Hunk) -> tuple[int | None, str]:
    wanted = hunk.line - 1
    places = _places(lines, hunk.old)
    if wanted in places:
        return wanted, ""
    if len(places) == 1:
        return places[0], ""
    if places:
        return None, f"the lines of line {hunk.line} stand at {len(places)} places"
    return None, f"the lines expected at line {hunk.line} are not there"


def _places(lines: list[str], block: tuple[str, ...]) -> list[int]:
    size = len(block)
    if not size:
        return []
    first = block[0]
    return [
        i
        for i in range(len(lines) - size + 1)
        if lines[i] == first and tuple(lines[i : i + size]) == block
    ]
