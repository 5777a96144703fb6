"""Take out of a text what is nobody's business: paths, host, user, serial numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeVar, cast

T = TypeVar("T")

# Names that many machines share say nothing about a person, and stand in many words.
COMMON_NAMES = frozenset({"", "root", "user", "admin", "localhost", "ubuntu", "debian", "runner"})
LEAST_NAME = 2
HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:\\Users\\)(?!USER\b)[^/\\\s:'\"]+")
# What a driver says of a card is that card's serial number; the Linux machine id is 32 digits.
SERIALS = re.compile(
    r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
DOTTED = re.compile(r"/[^/\s:'\"]+/\.\./")


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces places by names, the longest first, and private names by words."""

    places: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def text(self, text: str) -> str:
        """Return the text without private places and names."""
        while (short := DOTTED.sub("/", text)) != text:
            text = short
        for place, name in self.places:
            text = re.sub(rf"{re.escape(place)}(?![\w.-]*\w)", name.replace("\\", r"\\"), text)
        text = HOMES.sub(r"\1USER", text)
        for name, word in self.names:
            pattern = rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
            text = re.sub(pattern, word, text, flags=re.IGNORECASE)
        return SERIALS.sub(r"\1-UUID", text)

    def value(self, value: T) -> T:
        """Return a frozen value with every text in it scrubbed."""
        return cast("T", self._any(value))

    def _any(self, value: object) -> object:
        match value:
            case str() if type(value) is str:
                return self.text(value)
            case tuple():
                return tuple(self._any(v) for v in value)
            case _ if is_dataclass(value) and not isinstance(value, type):
                changed = {f.name: self._any(getattr(value, f.name)) for f in fields(value)}
                return replace(value, **changed)
            case _:
                return value


def scrubber(
    places: Iterable[tuple[str, str]], *, user: str, host: str, home: str = ""
) -> Scrubber:
    """Return a scrubber for these places, each with the name that stands for it.

    A home folder becomes ``~``. Names of less than two letters and names that every machine
    has are left: replacing them would tear words apart.
    """
    given = [*places, (home, "~")]
    kept = {p.rstrip("/"): n for p, n in given if len(p.rstrip("/")) > 1}
    longest = sorted(kept.items(), key=lambda pair: -len(pair[0]))
    short = host.partition(".")[0]
    named = ((host, "HOST"), (short, "HOST"), (user, "USER"))
    private = [(n, w) for n, w in named if _is_private(n)]
    return Scrubber(tuple(longest), tuple(dict(private).items()))


def _is_private(name: str) -> bool:
    return len(name) >= LEAST_NAME and name.casefold() not in COMMON_NAMES
