"""How two keys differ, input by input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llamawright.model.plan import KeyPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One input that is not the same; empty text: the side does not have it."""

    name: str
    a: str
    b: str


def explain(parts_a: Iterable[KeyPart], parts_b: Iterable[KeyPart]) -> tuple[Difference, ...]:
    """Return the inputs in which two keys differ, in the order of the first, then the second."""
    a = {p.name: p.value for p in parts_a}
    b = {p.name: p.value for p in parts_b}
    return tuple(
        Difference(name=n, a=a.get(n, ""), b=b.get(n, ""))
        for n in dict.fromkeys((*a, *b))
        if a.get(n) != b.get(n)
    )
