"""The robust line: what moves it, what does not, and what it says of chance."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest

from llamawright.verify.soak_drift import LEAST_POINTS, MOST_POINTS, join, robust_line


def noisy(
    count: int, *, slope: float = 0.0, noise: float = 1.0, seed: int = 1
) -> list[tuple[float, float]]:
    dice = random.Random(seed)
    return [(float(x), 50.0 + slope * x + dice.gauss(0, noise)) for x in range(count)]


def test_an_exact_line_is_found_exactly() -> None:
    line = robust_line([(float(x), 3.0 + 0.5 * x) for x in range(21)])
    assert line is not None
    assert line.level == pytest.approx(3.0)
    assert line.change == line.low == line.high == pytest.approx(10.0)
    assert line.noise == pytest.approx(0.0)
    assert line.rises
    assert not line.falls


@pytest.mark.parametrize("count", [0, 1, LEAST_POINTS - 1])
def test_too_few_points_say_nothing(count: int) -> None:
    assert robust_line(noisy(count)) is None


def test_points_at_one_moment_say_nothing() -> None:
    assert robust_line([(5.0, float(y)) for y in range(50)]) is None


def test_a_constant_neither_rises_nor_falls() -> None:
    line = robust_line([(float(x), 7.0) for x in range(40)])
    assert line is not None
    assert (line.level, line.change, line.noise) == (7.0, 0.0, 0.0)
    assert not line.rises
    assert not line.falls


def test_a_third_of_outliers_does_not_move_it() -> None:
    points = noisy(60, slope=-0.2, noise=0.1)
    spoiled = [(x, y + 500 if i % 4 == 0 else y) for i, (x, y) in enumerate(points)]
    clean, line = robust_line(points), robust_line(spoiled)
    assert clean is not None
    assert line is not None
    assert line.change == pytest.approx(clean.change, rel=0.15)
    assert line.falls


def test_the_interval_holds_the_truth_and_the_noise_is_the_scatter() -> None:
    for seed in range(30):
        line = robust_line(noisy(80, slope=0.1, noise=2.0, seed=seed))
        assert line is not None
        assert line.low <= 0.1 * 79 <= line.high
        assert 1.2 < line.noise < 3.0


def test_noise_alone_is_hardly_ever_taken_for_a_drift() -> None:
    found = [robust_line(noisy(60, seed=seed)) for seed in range(200)]
    wrong = sum(bool(line and (line.rises or line.falls)) for line in found)
    assert wrong <= 3


def test_many_points_are_joined_and_the_line_stays() -> None:
    points = noisy(50_000, slope=-0.001, noise=5.0)
    began = time.monotonic()
    line = robust_line(points)
    assert time.monotonic() - began < 5
    assert line is not None
    assert line.points == 50_000
    assert line.change == pytest.approx(-50.0, rel=0.1)
    assert line.noise == pytest.approx(5.0, rel=0.1)


@pytest.mark.parametrize("count", [1, MOST_POINTS, MOST_POINTS + 1, 12_345])
def test_joined_points_are_few_and_in_order(count: int) -> None:
    joined = join(noisy(count))
    assert len(joined) <= MOST_POINTS
    assert all(a[0] < b[0] for a, b in pairwise(joined))
    if count <= MOST_POINTS:
        assert joined == tuple(noisy(count))
