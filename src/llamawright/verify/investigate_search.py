"""The least of several values that still fails. Pure but for the question that is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[V]):
    """The least value that failed, the nearest below it that passed, and whether it is sure.

    ``sure`` is false when an answer was missing: there was no time, or a run came to no end.
    """

    least: V
    passes: V | None = None
    sure: bool = True


def bisect(values: Sequence[V], fails: Callable[[V], bool | None]) -> Found[V]:
    """Halve an ascending series whose last value is known to fail.

    It is taken for granted that what is above a failing value fails too; where that does not
    hold, the answer is one border of several.
    """
    low, high = -1, len(values) - 1
    while high - low > 1:
        middle = (low + high) // 2
        answer = fails(values[middle])
        if answer is None:
            return Found(least=values[high], passes=_at(values, low), sure=False)
        low, high = (low, middle) if answer else (middle, high)
    return Found(least=values[high], passes=_at(values, low))


def first(values: Sequence[V], fails: Callable[[V], bool | None]) -> Found[V]:
    """Go up a series whose last value is known to fail, and stop at the first that does."""
    passed: V | None = None
    for value in values[:-1]:
        answer = fails(value)
        if answer is None:
            return Found(least=values[-1], passes=passed, sure=False)
        if answer:
            return Found(least=value, passes=passed)
        passed = value
    return Found(least=values[-1], passes=passed)


def _at(values: Sequence[V], index: int) -> V | None:
    return values[index] if index >= 0 else None
