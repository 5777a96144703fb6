"""A TOML file that remembers its text, so that every complaint names file and line."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.errors import UsageError

Step = str | int
TOML_LINE = re.compile(r"\(at line (\d+)")
HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
ENTRY = re.compile(rf"^\s*({KEY}(?:\s*\.\s*{KEY})*)\s*=")
PART = re.compile(KEY)
DEEPEST = 16
LARGEST = 1 << 20
"""Bytes; settings are written by hand, and the parser's time grows with the square."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file and its text."""

    path: Path
    text: str
    data: dict[str, object]

    def line_of(self, steps: tuple[Step, ...]) -> int:
        """Return the line that says ``steps``, or that of its nearest known parent."""
        lines = _index(self.text)
        for length in range(len(steps), 0, -1):
            known = steps[:length]
            line = lines.get(known) or _first_below(known, lines)
            if line is not None:
                return self._within(line, steps[length:])
        return 1

    def _within(self, line: int, rest: tuple[Step, ...]) -> int:
        """Find the last named step of an inline table that spans lines."""
        names = [s for s in rest if isinstance(s, str)]
        if not names:
            return line
        wanted = re.compile(rf"\b{re.escape(names[-1])}\b[\"']?\s*=")
        for number, text in enumerate(self.text.splitlines()[line - 1 :], line):
            if number > line and (ENTRY.match(text) or HEADER.match(text)):
                break
            if wanted.search(text):
                return number
        return line


@dataclass(frozen=True, slots=True)
class Place:
    """A spot in a document: what a complaint points at."""

    document: Document
    steps: tuple[Step, ...] = field(default=())

    def at(self, step: Step) -> Place:
        """Return the place of a key or an element below this one."""
        return Place(self.document, (*self.steps, step))

    @property
    def name(self) -> str:
        """Return the dotted name, e.g. ``source.index[0].sha256``."""
        text = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in self.steps)
        return text.lstrip(".") or "the file"

    def refuse(self, problem: str, *, kind: str, why: str = "", hint: str = "") -> UsageError:
        """Return the error that names file, line and place."""
        line = self.document.line_of(self.steps)
        what = f"{self.document.path}:{line}: {_printable(problem)}"
        return UsageError(what, why=_printable(why), hint=_printable(hint), kind=kind)


def load_document(path: Path) -> Document:
    """Read and parse a TOML file; ``UsageError`` when it is absent or no TOML."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        text = raw.decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read", why=error.strerror or str(error), kind="unreadable-file"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text", why=str(error), kind="bad-toml") from error
    if len(raw) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST} bytes", kind="bad-toml")
    try:
        return Document(path, text, tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        found = TOML_LINE.search(str(error))
        line = found.group(1) if found else str(text.count("\n") + 1)
        raise UsageError(
            f"{path}:{line}: this is not valid TOML",
            why=str(error),
            hint="each key may stand once, text is quoted, true and false are lower case",
            kind="bad-toml",
        ) from error


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, or the whole list when nothing is near."""
    names = sorted(set(known))
    lowered = {n.lower(): n for n in names}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{lowered[near[0]]}'?"
    return f"one of: {', '.join(names)}" if names else ""


def _first_below(steps: tuple[Step, ...], lines: dict[tuple[Step, ...], int]) -> int | None:
    """Return the first line of a table that only its sub-tables name."""
    return min((n for k, n in lines.items() if k[: len(steps)] == steps), default=None)


def _index(text: str) -> dict[tuple[Step, ...], int]:
    """Return the first line of every header and key. Quoted blocks are skipped."""
    found: dict[tuple[Step, ...], int] = {}
    counts: dict[tuple[Step, ...], int] = {}
    header: tuple[Step, ...] = ()
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if fence in line else fence
            continue
        if head := HEADER.match(line):
            header = _header(_parts(head.group(2)), counts, array=head.group(1) == "[[")
            found.setdefault(header, number)
            found.setdefault(tuple(s for s in header if isinstance(s, str)), number)
        elif entry := ENTRY.match(line):
            steps = header
            for part in _parts(entry.group(1)):
                steps = (*steps, part)
                found.setdefault(steps, number)
            fence = _opened(line[entry.end() :])
    return found


def _header(
    parts: tuple[str, ...], counts: dict[tuple[Step, ...], int], *, array: bool
) -> tuple[Step, ...]:
    steps: tuple[Step, ...] = ()
    for position, part in enumerate(parts):
        steps = (*steps, part)
        last = position == len(parts) - 1
        if last and array:
            counts[steps] = counts.get(steps, -1) + 1
        if steps in counts:
            steps = (*steps, counts[steps])
    return steps


def _parts(text: str) -> tuple[str, ...]:
    return tuple(p.strip("\"'") for p in PART.findall(text)[:DEEPEST])


def _printable(text: str) -> str:
    """Show control characters as escapes: a file must not write on the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _opened(value: str) -> str:
    """Return the quotes of a block that starts on this line and ends on a later one."""
    for quotes in ('"""', "'''"):
        if value.lstrip().startswith(quotes) and value.count(quotes) == 1:
            return quotes
    return ""
