"""A robust straight line through noisy figures: Theil's and Sen's. Pure.

The slope is the median of the slopes of all pairs of points, so a third of them may be
outliers (a stall, another program's burst) without moving it. Its interval follows Sen (1968):
Kendall's S of points without a trend has the variance n(n-1)(2n+5)/18, and that many ranks of
the sorted slopes around the middle are left to chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

# Two-sided 99.7 %: a soak is looked at after every round, and each look may be fooled.
Z = 3.0
LEAST_POINTS = 10
# All pairs of 200 points are 19,900 slopes, sorted in 10 ms; more points are joined before.
MOST_POINTS = 200
# The median distance from the middle, as a standard deviation of a normal distribution.
MAD_TO_SD = 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line: ``level`` at the first point, ``change`` to the last, with its interval.

    ``noise`` is the scatter of the points around it as a standard deviation.
    """

    level: float
    change: float
    low: float
    high: float
    noise: float
    points: int

    @property
    def rises(self) -> bool:
        """Whether it surely goes up."""
        return self.low > 0

    @property
    def falls(self) -> bool:
        """Whether it surely goes down."""
        return self.high < 0


def robust_line(points: Sequence[tuple[float, float]]) -> Line | None:
    """Return the line through points in order of x; ``None`` for too few of them."""
    if len(points) < LEAST_POINTS or points[0][0] >= points[-1][0]:
        return None
    joined = join(points)
    slopes = sorted((y - b) / (x - a) for (a, b), (x, y) in combinations(joined, 2) if x > a)
    slope = median(slopes)
    low, high = _interval(slopes, len(joined))
    start, end = points[0][0], points[-1][0]
    level = median(y - slope * (x - start) for x, y in joined)
    off = median(abs(y - level - slope * (x - start)) for x, y in points)
    span = end - start
    return Line(
        level=level,
        change=slope * span,
        low=low * span,
        high=high * span,
        noise=off * MAD_TO_SD,
        points=len(points),
    )


def join(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return at most 200 points: neighbours become the medians of both coordinates."""
    size = math.ceil(len(points) / MOST_POINTS)
    parts = (points[i : i + size] for i in range(0, len(points), size))
    return tuple((median(x for x, _ in p), median(y for _, y in p)) for p in parts)


def _interval(slopes: Sequence[float], count: int) -> tuple[float, float]:
    chance = Z * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = math.floor((len(slopes) - chance) / 2)
    high = math.ceil((len(slopes) + chance) / 2)
    return slopes[max(0, low)], slopes[min(len(slopes) - 1, high)]
