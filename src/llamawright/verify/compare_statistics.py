"""What two small series of samples say about a difference. Pure; the same seed, the same answer.

The interval is a percentile bootstrap of the ratio of medians: it needs no assumption on how
the noise is shaped, and a single slow run moves it little. The test permutes the labels and
looks at the sum of ranks, so an outlier counts as one rank, whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import median

from llamawright.model.comparison import Finding, MetricKind

CONFIDENCE = 0.95
# About ten metrics are looked at: at 0.05 every second comparison of equals would find one.
ALPHA = 0.01
# Two times four samples cannot reach ALPHA: 2 of 70 ways to deal the labels are as extreme.
MIN_ROUNDS = 5
# A difference of 5 % is what a comparison should be able to tell.
PRECISION = 0.05
MOST_NEEDED = 1000
RESAMPLES = 4000
SHUFFLES = 20_000
# All ways to deal two times eight labels are tried; more samples are dealt at random.
MOST_EXACT = 20_000
_SLACK = 1e-9
_LEAST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the samples say; ``None`` where they say nothing."""

    median_a: float | None
    median_b: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    finding: Finding
    rounds_needed: int


def judge(
    a: Sequence[float], b: Sequence[float], kind: MetricKind, *, resolution: float, seed: int
) -> Judged:
    """Compare B with A: a difference counts when the test and the interval both say so."""
    if not a or not b:
        return _unknown(a, b)
    middle_a, middle_b = median(a), median(b)
    p = permutation_p(a, b, seed=seed)
    # Nothing has no ratio: a driver that compiles nothing takes 0 s for it.
    ratio = middle_b / middle_a if middle_a > 0 and middle_b > 0 else None
    rounds = min(len(a), len(b))
    # One sample has no spread, and no interval comes from it.
    span = interval(a, b, seed=seed) if ratio is not None and rounds > 1 else None
    apart = p <= ALPHA and not (span and span[0] <= 1.0 <= span[1])
    found = apart and abs(middle_b - middle_a) > resolution
    # What lies within the resolution is equal for all that can be measured here.
    near = max(max(b) - min(a), max(a) - min(b)) <= resolution
    enough = found or near or ratio is None
    return Judged(
        median_a=middle_a,
        median_b=middle_b,
        ratio=ratio,
        low=span[0] if span else None,
        high=span[1] if span else None,
        p=p,
        finding=_direction(kind, higher=middle_b > middle_a) if found else Finding.SAME,
        rounds_needed=0 if enough else rounds_needed(rounds, *(span or (1.0, 1.0))),
    )


def interval(a: Sequence[float], b: Sequence[float], *, seed: int) -> tuple[float, float]:
    """Return the bootstrap interval of the ratio of medians B/A; no sample is negative."""
    chance = Random(seed)  # noqa: S311 - statistics, not secrets
    ratios = sorted(
        max(_LEAST, median(chance.choices(b, k=len(b))))
        / max(_LEAST, median(chance.choices(a, k=len(a))))
        for _ in range(RESAMPLES)
    )
    cut = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return ratios[cut], ratios[-cut - 1]


def permutation_p(a: Sequence[float], b: Sequence[float], *, seed: int) -> float:
    """Return the share of ways to deal the labels that are as uneven as this one.

    Exact while there are few ways; else by chance, where the way that was seen is one more.
    """
    ranks = _ranks([*a, *b])
    size = len(a)
    even = sum(ranks) * size / len(ranks)
    seen = abs(sum(ranks[:size]) - even) - _SLACK
    if math.comb(len(ranks), size) <= MOST_EXACT:
        ways = [abs(sum(deal) - even) >= seen for deal in combinations(ranks, size)]
        return sum(ways) / len(ways)
    chance = Random(seed)  # noqa: S311
    hits = sum(abs(sum(chance.sample(ranks, size)) - even) >= seen for _ in range(SHUFFLES))
    return (hits + 1) / (SHUFFLES + 1)


def rounds_needed(rounds: int, low: float, high: float) -> int:
    """Return how many rounds would tell a difference of 5 %, 0 when these were enough.

    An interval narrows with the root of the rounds.
    """
    half = math.log(high / low) / 2
    if rounds >= MIN_ROUNDS and half <= PRECISION:
        return 0
    wanted = math.ceil(rounds * (half / PRECISION) ** 2)
    return min(MOST_NEEDED, max(MIN_ROUNDS, wanted, rounds + 1 if half > PRECISION else 0))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return each value's rank from 1 on; equal ones share the mean of theirs."""
    ordered = sorted(values)
    first: dict[float, int] = {}
    for place, value in enumerate(ordered, start=1):
        first.setdefault(value, place)
    return [first[v] + (ordered.count(v) - 1) / 2 for v in values]


def _direction(kind: MetricKind, *, higher: bool) -> Finding:
    match kind:
        case MetricKind.RATE:
            return Finding.FASTER if higher else Finding.SLOWER
        case MetricKind.TIME:
            return Finding.SLOWER if higher else Finding.FASTER
        case MetricKind.AMOUNT:
            return Finding.MORE if higher else Finding.LESS


def _unknown(a: Sequence[float], b: Sequence[float]) -> Judged:
    return Judged(
        median_a=median(a) if a else None,
        median_b=median(b) if b else None,
        ratio=None,
        low=None,
        high=None,
        p=None,
        finding=Finding.UNKNOWN,
        rounds_needed=0,
    )
