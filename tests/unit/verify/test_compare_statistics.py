"""The statistics of a comparison, against values that can be worked out by hand."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamawright.model.comparison import Finding, MetricKind
from llamawright.verify import compare_statistics
from llamawright.verify.compare_statistics import (
    ALPHA,
    MIN_ROUNDS,
    MOST_NEEDED,
    interval,
    judge,
    permutation_p,
    rounds_needed,
)

LOW = [100.0, 101.0, 102.0, 103.0, 104.0]
HIGH = [v * 1.2 for v in LOW]
RATE, TIME, AMOUNT = MetricKind.RATE, MetricKind.TIME, MetricKind.AMOUNT
POSITIVE = st.lists(st.floats(0.001, 1e6), min_size=2, max_size=6)


class TestPermutation:
    def test_two_series_apart_are_the_two_extremes_of_all_ways(self) -> None:
        # 10 over 5 = 252 ways to deal the labels, two of them as extreme
        assert permutation_p(LOW, HIGH, seed=1) == pytest.approx(2 / 252)
        assert permutation_p(HIGH, LOW, seed=1) == pytest.approx(2 / 252)

    def test_of_three_and_three_nothing_can_be_told(self) -> None:
        assert permutation_p(LOW[:3], HIGH[:3], seed=1) == pytest.approx(2 / 20)

    @pytest.mark.parametrize(
        ("a", "b", "p"),
        [
            ([1.0], [2.0], 1.0),  # either way is as extreme
            ([1.0, 2.0], [3.0, 4.0], 2 / 6),
            ([1.0, 4.0], [2.0, 3.0], 1.0),
            ([1.0, 1.0], [1.0, 1.0], 1.0),  # all ranks equal
            ([1.0, 2.0], [2.0, 3.0], 4 / 6),  # the shared 2 has the rank 2.5
        ],
    )
    def test_by_hand(self, a: list[float], b: list[float], p: float) -> None:
        assert permutation_p(a, b, seed=1) == pytest.approx(p)

    def test_an_outlier_counts_as_one_rank_whatever_its_size(self) -> None:
        near, far = [*HIGH[:4], 125.0], [*HIGH[:4], 125_000.0]
        assert permutation_p(LOW, near, seed=1) == permutation_p(LOW, far, seed=1)

    def test_many_samples_are_dealt_by_chance_and_never_give_zero(self) -> None:
        a, b = [float(v) for v in range(20)], [float(v) for v in range(100, 120)]
        p = permutation_p(a, b, seed=1)
        assert 0 < p < 0.001
        assert permutation_p(a, b, seed=1) == p

    def test_chance_and_exact_agree(self, monkeypatch: pytest.MonkeyPatch) -> None:
        a, b = [1.0, 3.0, 5.0, 8.0, 9.0], [2.0, 6.0, 7.0, 10.0, 11.0]
        exact = permutation_p(a, b, seed=1)
        monkeypatch.setattr(compare_statistics, "MOST_EXACT", 1)
        assert permutation_p(a, b, seed=1) == pytest.approx(exact, abs=0.02)

    @settings(max_examples=40, deadline=None)
    @given(POSITIVE, POSITIVE)
    def test_it_is_a_share_and_does_not_know_the_sides(
        self, a: list[float], b: list[float]
    ) -> None:
        p = permutation_p(a, b, seed=1)
        assert 0 < p <= 1
        assert permutation_p(b, a, seed=1) == pytest.approx(p)

    def test_equal_builds_are_told_apart_as_seldom_as_promised(self) -> None:
        chance = Random(7)
        ps = []
        for _ in range(300):
            a = [chance.gauss(100, 5) for _ in range(6)]
            b = [chance.gauss(100, 5) for _ in range(6)]
            ps.append(permutation_p(a, b, seed=1))
        assert sum(p <= ALPHA for p in ps) <= 300 * ALPHA * 3
        assert sum(p <= 0.5 for p in ps) == pytest.approx(150, abs=40)


class TestInterval:
    def test_no_noise_gives_no_width(self) -> None:
        assert interval([2.0] * 5, [3.0] * 5, seed=1) == (1.5, 1.5)

    def test_it_holds_the_ratio_and_narrows_with_the_noise(self) -> None:
        low, high = interval(LOW, HIGH, seed=1)
        assert low < 1.2 < high
        wide_low, wide_high = interval([80.0, 100.0, 120.0], [96.0, 120.0, 144.0], seed=1)
        assert wide_high / wide_low > high / low

    def test_the_same_seed_gives_the_same(self) -> None:
        assert interval(LOW, HIGH, seed=3) == interval(LOW, HIGH, seed=3)

    def test_it_covers_the_truth_most_of_the_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compare_statistics, "RESAMPLES", 400)
        chance, hits = Random(11), 0
        for number in range(120):
            a = [chance.gauss(100, 4) for _ in range(9)]
            b = [chance.gauss(110, 4) for _ in range(9)]
            low, high = interval(a, b, seed=number)
            hits += low <= 1.1 <= high
        assert hits >= 120 * 0.85

    def test_a_zero_among_the_samples_makes_it_wide_and_does_not_break_it(self) -> None:
        low, high = interval([0.0, 0.0, 5.0], [5.0, 5.0, 5.0], seed=1)
        assert low == pytest.approx(1.0)
        assert high > 1e6


class TestJudging:
    @pytest.mark.parametrize(
        ("kind", "a", "b", "finding"),
        [
            (RATE, LOW, HIGH, Finding.FASTER),
            (RATE, HIGH, LOW, Finding.SLOWER),
            (TIME, LOW, HIGH, Finding.SLOWER),
            (TIME, HIGH, LOW, Finding.FASTER),
            (AMOUNT, LOW, HIGH, Finding.MORE),
            (AMOUNT, HIGH, LOW, Finding.LESS),
        ],
    )
    def test_a_direction_is_named_by_what_is_counted(
        self, kind: MetricKind, a: list[float], b: list[float], finding: Finding
    ) -> None:
        judged = judge(a, b, kind, resolution=0.0, seed=1)
        assert judged.finding is finding
        assert judged.rounds_needed == 0

    def test_ratio_is_b_over_a(self) -> None:
        judged = judge(LOW, HIGH, RATE, resolution=0.0, seed=1)
        assert judged.median_a == 102.0
        assert judged.median_b == pytest.approx(122.4)
        assert judged.ratio == pytest.approx(1.2)

    def test_equal_and_quiet_needs_no_more_rounds(self) -> None:
        judged = judge(LOW, [v * 1.001 for v in LOW], RATE, resolution=0.0, seed=1)
        assert (judged.finding, judged.rounds_needed) == (Finding.SAME, 0)

    def test_noise_says_how_many_rounds_would_tell(self) -> None:
        a, b = [60.0, 80.0, 100.0, 120.0, 140.0], [70.0, 90.0, 105.0, 125.0, 150.0]
        judged = judge(a, b, RATE, resolution=0.0, seed=1)
        assert judged.finding is Finding.SAME
        assert 20 < judged.rounds_needed <= MOST_NEEDED

    def test_few_rounds_say_so_even_where_the_series_are_apart(self) -> None:
        judged = judge(LOW[:3], HIGH[:3], RATE, resolution=0.0, seed=1)
        assert (judged.finding, judged.rounds_needed) == (Finding.SAME, MIN_ROUNDS)

    def test_one_round_has_a_ratio_and_no_interval(self) -> None:
        judged = judge([100.0], [90.0], RATE, resolution=0.0, seed=1)
        assert (judged.ratio, judged.low, judged.high, judged.p) == (0.9, None, None, 1.0)
        assert (judged.finding, judged.rounds_needed) == (Finding.SAME, MIN_ROUNDS)

    def test_a_difference_below_the_resolution_is_none(self) -> None:
        a, b = [1.000, 1.001, 1.002, 1.003, 1.004], [1.006, 1.007, 1.008, 1.009, 1.010]
        assert judge(a, b, TIME, resolution=0.0, seed=1).finding is Finding.SLOWER
        coarse = judge(a, b, TIME, resolution=0.02, seed=1)
        assert (coarse.finding, coarse.rounds_needed) == (Finding.SAME, 0)

    def test_tiny_times_are_equal_however_noisy_their_ratio(self) -> None:
        judged = judge([0.01, 0.05, 0.02], [0.03, 0.01, 0.08], TIME, resolution=0.1, seed=1)
        assert (judged.finding, judged.rounds_needed) == (Finding.SAME, 0)

    def test_what_was_not_measured_is_unknown(self) -> None:
        judged = judge((), HIGH, RATE, resolution=0.0, seed=1)
        assert (judged.finding, judged.median_a, judged.ratio) == (Finding.UNKNOWN, None, None)
        assert judged.median_b == pytest.approx(122.4)

    def test_nothing_against_nothing_is_equal(self) -> None:
        judged = judge([0.0] * 5, [0.0] * 5, TIME, resolution=0.1, seed=1)
        assert (judged.finding, judged.ratio) == (Finding.SAME, None)

    def test_something_against_nothing_is_found_without_a_ratio(self) -> None:
        judged = judge([0.0] * 5, [20.0, 21.0, 22.0, 23.0, 24.0], TIME, resolution=0.1, seed=1)
        assert (judged.finding, judged.ratio, judged.low) == (Finding.SLOWER, None, None)


class TestRoundsNeeded:
    @pytest.mark.parametrize(
        ("rounds", "low", "high", "needed"),
        [
            (5, 0.96, 1.04, 0),  # half a width of 4 %
            (7, 1.0, 1.0, 0),
            (3, 1.0, 1.0, MIN_ROUNDS),  # quiet, but too few for the test
            (1, 0.999, 1.001, MIN_ROUNDS),
            (5, 0.9, 1.105170918 * 1.0, 22),  # 10.27 % either way: 5 x 2.05 squared, rounded up
            (5, 1e-9, 1e9, MOST_NEEDED),
        ],
    )
    def test_an_interval_narrows_with_the_root(
        self, rounds: int, low: float, high: float, needed: int
    ) -> None:
        assert rounds_needed(rounds, low, high) == needed

    def test_it_always_asks_for_more_than_there_were(self) -> None:
        assert rounds_needed(40, 0.9500, 1.0502) > 40
