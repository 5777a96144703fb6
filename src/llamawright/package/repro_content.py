"""Why two versions of one file differ: pure classifiers over sections, lines and bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from llamawright.model.repro import Cause, Differing

if TYPE_CHECKING:
    import lief

BUILD_ID = ".note.gnu.build-id"
# Where a change is made; the tables of names and addresses only follow it.
_MEANT = (".rodata", ".text", ".data", ".nv_fatbin")
_STRING = re.compile(rb"[\x20-\x7e]{8,}")
_FEW = 20
_AROUND = 64
_SHOWN = 120
_TEXT_LIMIT = 8 << 20
_CHUNK = 1 << 20
_PATH = re.compile(r"(?:/[\w.+@~-]+){2,}/?|[A-Za-z]:[\\/][\w.\\/ -]+")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?\S*|\d{1,2}:\d\d:\d\d"
    r"|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s+\d{4}"
)
# A digest in hex or as wheels write it, and the size that stands beside it.
_DIGEST = re.compile(
    r'\b[0-9a-f]{64}\b|sha256=[\w-]{43}(,\d+)?|"size":\s*\d+|\b[0-9a-f]{12}\b(?=\.|")'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of a binary; ``loaded`` says that it is part of the running program."""

    name: str
    loaded: bool
    sha256: str


def classify(path: str, a: Path, b: Path) -> Iterator[Differing]:
    """Yield why the file ``path`` differs, from its two versions on the disk."""
    ours, theirs = _sections(a), _sections(b)
    if ours is not None and theirs is not None:
        yield from _binary(path, a, b, compare_sections(ours, theirs))
        return
    texts = _text(a), _text(b)
    if texts[0] is not None and texts[1] is not None:
        yield text_difference(path, texts[0], texts[1])
        return
    yield byte_difference(path, a.read_bytes(), b.read_bytes())


def compare_sections(a: tuple[Section, ...], b: tuple[Section, ...]) -> tuple[Section, ...]:
    """Return the sections that differ or that one side lacks, those of the first side first."""
    keys = [{(s.name, s.sha256) for s in side} for side in (a, b)]
    differing = [s for s in a if (s.name, s.sha256) not in keys[1]]
    names = {s.name for s in differing}
    more = [s for s in b if (s.name, s.sha256) not in keys[0] and s.name not in names]
    return (*differing, *more)


def text_difference(path: str, a: str, b: str) -> Differing:
    """Return the cause of a text's difference, and the first lines that differ."""
    pairs = zip_longest(a.splitlines(), b.splitlines(), fillvalue="(no line)")
    at, ours, theirs = next(
        ((n, x, y) for n, (x, y) in enumerate(pairs, 1) if x != y), (0, "line ends", "line ends")
    )
    detail = f"line {at}: {ours.strip()[:_SHOWN]} | {theirs.strip()[:_SHOWN]}"
    return Differing(path=path, cause=_worded(a, b), detail=detail)


def byte_difference(path: str, a: bytes, b: bytes, *, part: str = "") -> Differing:
    """Return the cause of a difference in bytes by the text that stands around it."""
    at = first_difference(a, b)
    start = max(0, at - _AROUND)
    words = [_printable(side, at, start) for side in (a, b)]
    cause = _worded(*words)
    if cause in {Cause.CONTENT, Cause.DIGEST}:
        cause = Cause.SECTION if part else Cause.CONTENT
        words = [side[at : at + 8].hex() or "(ended)" for side in (a, b)]
    place = f"{part} at byte {at}" if part else f"byte {at}"
    return Differing(path=path, cause=cause, detail=f"{place}: {words[0]} | {words[1]}")


def strings_difference(path: str, a: bytes, b: bytes, *, part: str) -> Differing | None:
    """Return the path or date that only one side holds, when nothing else is new in either.

    A linker orders strings by their length: one that is longer moves all others, and the
    first byte that differs says nothing.
    """
    ours, theirs = ({m.decode("ascii") for m in _STRING.findall(side)} for side in (a, b))
    only = sorted(ours - theirs), sorted(theirs - ours)
    both = [*only[0], *only[1]]
    if not both or len(both) > _FEW:
        return None
    for cause, pattern in ((Cause.TIMESTAMP, _TIME), (Cause.PATH, _PATH)):
        if all(pattern.search(text) for text in both):
            shown = " | ".join(", ".join(side)[:_SHOWN] or "(nothing)" for side in only)
            return Differing(path=path, cause=cause, detail=f"{part}: {shown}")
    return None


def first_difference(a: bytes, b: bytes) -> int:
    """Return the offset of the first byte that differs; the shorter length when none does."""
    for start in range(0, min(len(a), len(b)), _CHUNK):
        x, y = a[start : start + _CHUNK], b[start : start + _CHUNK]
        if x != y:
            ends = min(len(x), len(y))
            return start + next((i for i in range(ends) if x[i] != y[i]), ends)
    return min(len(a), len(b))


def _worded(a: str, b: str) -> Cause:
    """Return what, taken out of both texts, makes them equal."""
    if _DIGEST.sub("#", a) == _DIGEST.sub("#", b):
        return Cause.DIGEST
    if _TIME.sub("#", a) == _TIME.sub("#", b):
        return Cause.TIMESTAMP
    if _PATH.sub("#", a) == _PATH.sub("#", b):
        return Cause.PATH
    return Cause.CONTENT


def _printable(data: bytes, at: int, start: int) -> str:
    """Return the printable run around a byte: the whole string that differs."""
    before = re.search(rb"[\x20-\x7e]*\Z", data[start:at])
    after = re.match(rb"[\x20-\x7e]*", data[at : at + 2 * _AROUND])
    return ((before[0] if before else b"") + (after[0] if after else b"")).decode("ascii")


def _binary(path: str, a: Path, b: Path, differing: tuple[Section, ...]) -> Iterator[Differing]:
    loaded = [s.name for s in differing if s.loaded and s.name != BUILD_ID]
    gone = [s.name for s in differing if not s.loaded]
    if any(s.name == BUILD_ID for s in differing):
        yield Differing(path=path, cause=Cause.BUILD_ID, detail=BUILD_ID)
    if gone:
        yield Differing(path=path, cause=Cause.SYMBOLS, detail=", ".join(gone))
    yield from _in_sections(path, a, b, loaded)
    if not differing:
        yield byte_difference(path, a.read_bytes(), b.read_bytes(), part="headers")


def _in_sections(path: str, a: Path, b: Path, names: list[str]) -> Iterator[Differing]:
    """Yield what is told by a text, and else one line: one change moves many sections."""
    found = []
    for name in names:
        ours, theirs = _content(a, name), _content(b, name)
        told_by = strings_difference(path, ours, theirs, part=name)
        found.append((name, told_by or byte_difference(path, ours, theirs, part=name)))
    told = [d for _name, d in found if d.cause is not Cause.SECTION]
    yield from told
    if found and not told:
        first = next((d for name, d in found if name in _MEANT), found[0][1])
        yield replace(first, detail=f"{', '.join(names)}; {first.detail}")


def _sections(path: Path) -> tuple[Section, ...] | None:
    parsed = _elf(path)
    if parsed is None:
        return None
    import lief  # noqa: PLC0415 - takes 60 ms; identical files must not pay

    loaded = lief.ELF.Section.FLAGS.ALLOC
    return tuple(
        Section(
            name=str(s.name),
            loaded=s.has(loaded),
            sha256=hashlib.sha256(bytes(s.content)).hexdigest(),
        )
        for s in parsed.sections
    )


def _content(path: Path, name: str) -> bytes:
    parsed = _elf(path)
    section = parsed.get_section(name) if parsed is not None else None
    return bytes(section.content) if section is not None else b""


def _elf(path: Path) -> lief.ELF.Binary | None:
    import lief  # noqa: PLC0415 - see _sections

    lief.logging.disable()
    return lief.ELF.parse(path) if lief.is_elf(str(path)) else None


def _text(path: Path) -> str | None:
    data = path.read_bytes() if path.stat().st_size <= _TEXT_LIMIT else b"\0"
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
