"""Patience: several places in turn, and pauses that together outlast a minute's outage."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from llamawright.transfer.request import Failure

# 1 + 2 + 4 + 8 + 16 + 32 = 63 seconds of pauses without a byte of progress.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# A server may ask for more patience, within reason.
LONGEST_WAIT_S = 120.0
_JITTER = 0.2

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time as the transfer sees it, so that tests need not wait."""

    sleep: Callable[[float], None] = time.sleep
    spread: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Every place failed; the last failure of each, in the order of the places."""

    failures: tuple[Failure, ...]


def try_in_turn(
    places: Sequence[P],
    attempt: Callable[[P], T | Failure],
    *,
    clock: Clock,
    tell: Callable[[str], None],
) -> T | Exhausted:
    """Try each place until one gives a result, pausing only when all of them failed.

    A place whose failure is final is not asked again. Pauses only ever add to
    ``PAUSES_S`` (jitter, ``Retry-After``), and start afresh after progress.
    """
    failures: dict[int, Failure] = {}
    live = list(range(len(places)))
    pauses = list(PAUSES_S)
    while live:
        for number in tuple(live):
            outcome = attempt(places[number])
            if not isinstance(outcome, Failure):
                return outcome
            failures[number] = outcome
            if not outcome.again:
                live.remove(number)
            if outcome.advanced:
                pauses = list(PAUSES_S)
        waiting = [failures[n] for n in live]
        pause = _pause(pauses, waiting, clock)
        if pause is None:
            break
        tell(f"{waiting[0].told}; trying again in {pause:.0f} s")
        clock.sleep(pause)
    return Exhausted(tuple(failures[n] for n in sorted(failures)))


def _pause(pauses: list[float], waiting: Sequence[Failure], clock: Clock) -> float | None:
    """Take the next pause in seconds; ``None`` when nothing is left to wait for."""
    if not waiting or not pauses:
        return None
    # The most willing place decides: another one may be long before it answers again.
    asked = min(f.wait_s or 0.0 for f in waiting)
    if asked > LONGEST_WAIT_S:
        return None
    planned = pauses.pop(0)
    return max(planned, asked) + planned * _JITTER * clock.spread()
