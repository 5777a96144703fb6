"""What runs showed, read as figures; pure, on runs that nobody started."""

from __future__ import annotations

import json

import pytest

from compare_kit import QUICK, finished, measure, metric, seen
from llamawright.model.comparison import Finding, GateOutcome, Letter, Measure, MetricKind
from llamawright.verify.compare_measures import (
    Row,
    between,
    gate,
    measures,
    notes,
    prompt_tokens,
)
from llamawright.verify.compare_plan import Step
from llamawright.verify.compare_runs import Observation
from llamawright.verify.supervise import Phase

A, B = Letter.A, Letter.B


def bench_text(prompt: float, generation: float) -> str:
    rows = [
        {"n_prompt": 16, "n_gen": 0, "avg_ts": prompt},
        {"n_prompt": 0, "n_gen": 8, "avg_ts": generation},
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def marks(load: float, first: float) -> dict[Phase, float]:
    return {Phase.LOAD: 0.1, Phase.FIRST_TOKEN: load, Phase.DONE: load + first}


def whole(rounds: int = 5, *, faster: float = 1.0) -> list[Observation]:
    """Return all runs of a comparison in which B is so many times faster."""
    found = []
    for number in range(1, rounds + 1):
        for letter in (A, B):
            factor = faster if letter is B else 1.0
            noise = 1 + number / 1000

            def told(load: float, first: float, by: float = factor * noise) -> object:
                return finished(marks=marks(load / by, first / by))

            rates = bench_text(1000 * factor * noise, 50 * factor * noise)
            found += [
                seen(number, Step.FRESH, letter, told(0.5, 5.0)),  # type: ignore[arg-type]
                seen(number, Step.WARM, letter, told(0.5, 1.0)),  # type: ignore[arg-type]
                seen(number, Step.COLD, letter, told(0.9, 1.0), resident=0.0),  # type: ignore[arg-type]
                seen(
                    number, Step.CONTEXT, letter, told(0.5, 2.0), tokens=8,  # type: ignore[arg-type]
                    memory=round(300e6 / factor) + number * 10, memory_source="nvidia-smi",
                ),
                seen(number, Step.BENCH, letter, finished(stdout=rates), cpu=80.0 / factor),
            ]  # fmt: skip
    return found


def by_name(found: tuple[Measure, ...]) -> dict[str, Measure]:
    return {m.metric.name: m for m in found}


def test_every_metric_of_a_comparison_is_there_in_a_fixed_order() -> None:
    names = [m.metric.name for m in measures(whole(), QUICK, seed=1)]
    assert names == [
        "prompt", "generation", "first-token-4", "first-token-8", "load-cold", "load-warm",
        "first-run", "memory", "cpu",
    ]  # fmt: skip
    empty = measures((), QUICK, seed=1)
    assert [m.metric.name for m in empty] == names
    assert {m.finding for m in empty} == {Finding.UNKNOWN}
    assert all(m.note.startswith("not read from A and B") for m in empty)


def test_equal_sides_differ_in_nothing() -> None:
    assert {m.finding for m in measures(whole(), QUICK, seed=1)} == {Finding.SAME}


def test_a_side_that_is_better_is_so_in_each_way() -> None:
    found = by_name(measures(whole(faster=2.0), QUICK, seed=1))
    assert {m.finding for n, m in found.items() if n not in ("memory", "cpu")} == {Finding.FASTER}
    assert found["memory"].finding is Finding.LESS
    assert found["cpu"].finding is Finding.LESS
    assert found["prompt"].ratio == pytest.approx(2.0, abs=0.01)
    assert found["first-token-8"].ratio == pytest.approx(0.5, abs=0.01)


def test_figures_are_what_the_marks_say() -> None:
    found = by_name(measures(whole(rounds=1), QUICK, seed=1))
    once = 1.001
    assert found["load-warm"].median_a == pytest.approx(0.5 / once, abs=1e-4)
    assert found["load-cold"].median_a == pytest.approx(0.9 / once, abs=1e-4)
    assert found["first-token-4"].median_a == pytest.approx(1.0 / once, abs=1e-4)
    assert found["first-token-8"].median_a == pytest.approx(2.0 / once, abs=1e-4)
    # compiling: 5.5 s until the first token with nothing kept, 1.5 s with
    assert found["first-run"].median_a == pytest.approx(4.0 / once, abs=1e-3)
    assert found["cpu"].a == (80.0,)


def test_a_gate_leaves_all_but_the_rates_out() -> None:
    found = measures(whole(), QUICK, seed=1, speed_only=True)
    assert {m.metric.kind for m in found} == {MetricKind.RATE}


def test_compiling_is_never_less_than_nothing() -> None:
    runs = [
        seen(1, Step.FRESH, A, finished(marks=marks(0.5, 1.0))),
        seen(1, Step.WARM, A, finished(marks=marks(0.5, 1.2))),
    ]
    assert by_name(measures(runs, QUICK, seed=1))["first-run"].median_a == 0.0


def test_a_round_that_one_side_lacks_counts_for_neither() -> None:
    runs = [o for o in whole() if not (o.turn.letter is B and o.turn.round == 2)]
    found = by_name(measures(runs, QUICK, seed=1))
    assert len(found["prompt"].a) == len(found["prompt"].b) == 4


def test_a_side_without_figures_leaves_the_others_to_be_read() -> None:
    runs = [o for o in whole() if o.turn.letter is A]
    prompt = by_name(measures(runs, QUICK, seed=1))["prompt"]
    assert (prompt.finding, prompt.b, prompt.median_b) == (Finding.UNKNOWN, (), None)
    assert prompt.median_a == pytest.approx(1003.0)
    assert prompt.note.startswith("not read from B")


def test_memory_that_nobody_shows_says_why() -> None:
    runs = [
        seen(1, Step.CONTEXT, letter, tokens=8, memory=None, memory_source="nobody shows it")
        for letter in (A, B)
    ]
    memory = by_name(measures(runs, QUICK, seed=1))["memory"]
    assert memory.finding is Finding.UNKNOWN
    assert "nobody shows it" in memory.note


@pytest.mark.parametrize(
    ("lines", "tokens"),
    [
        (("0.1 I common_perf_print: prompt eval time =      66.46 ms /     5 tokens (",), 5),
        (("prompt eval time = 1 ms / 3 tokens", "prompt eval time = 1 ms / 2048 tokens (x)"), 2048),
        (("eval time =      72.11 ms /     3 runs",), None),
        ((), None),
    ],
)
def test_the_prompts_length_is_the_programs_own_count(
    lines: tuple[str, ...], tokens: int | None
) -> None:
    assert prompt_tokens(finished(lines=lines)) == tokens


def test_a_mark_that_never_came_is_no_time() -> None:
    assert between(finished(marks={Phase.LOAD: 1.0}), Phase.LOAD, Phase.DONE) is None
    assert between(finished(marks=marks(2.0, 1.5)), Phase.FIRST_TOKEN, Phase.DONE) == 1.5


def test_a_row_keeps_its_figures_by_round() -> None:
    row = Row(metric=metric(), figures={(A, 2): 2.0, (A, 1): 1.0, (B, 1): 3.0, (B, 2): 4.0})
    found = row.measure(seed=1)
    assert (found.a, found.b) == ((1.0, 2.0), (3.0, 4.0))


def many(**changes: object) -> Measure:
    """Return a measure of five rounds."""
    return measure(**{"a": (100.0,) * 5, "b": (110.0,) * 5, **changes})


class TestGate:
    @pytest.mark.parametrize(
        ("low", "high", "outcome"),
        [
            (0.96, 1.10, GateOutcome.PASS),
            (0.95, 0.95, GateOutcome.PASS),
            (0.90, 1.10, GateOutcome.UNDECIDED),
            (0.90, 0.95, GateOutcome.UNDECIDED),
            (0.80, 0.949, GateOutcome.TOO_SLOW),
            (None, None, GateOutcome.UNDECIDED),
        ],
    )
    def test_only_an_interval_that_lies_below_fails(
        self, low: float | None, high: float | None, outcome: GateOutcome
    ) -> None:
        ratio = None if low is None or high is None else (low + high) / 2
        held = gate([many(ratio=ratio, low=low, high=high)], 0.95)
        assert (held.outcome, held.min_ratio) == (outcome, 0.95)
        assert "0.95" in held.why

    def test_one_slow_rate_is_enough_and_is_the_one_named(self) -> None:
        slow = many(metric=metric("generation"), ratio=0.5, low=0.4, high=0.6)
        held = gate([many(), slow], 0.95)
        assert held.outcome is GateOutcome.TOO_SLOW
        assert "generation: 0.500 (0.400 to 0.600)" in held.why
        assert "prompt" not in held.why

    def test_times_and_amounts_are_no_matter_of_it(self) -> None:
        load = measure(metric=metric("load", MetricKind.TIME), ratio=0.1, low=0.1, high=0.1)
        assert gate([many(), load], 0.95).outcome is GateOutcome.PASS

    @pytest.mark.parametrize("ratio", [0.1, 2.0])
    def test_a_few_rounds_decide_nothing_however_clear_they_look(self, ratio: float) -> None:
        few = measure(ratio=ratio, low=ratio, high=ratio)
        assert len(few.a) < 5
        assert gate([few], 0.95).outcome is GateOutcome.UNDECIDED

    def test_nothing_measured_is_undecided(self) -> None:
        held = gate([], 0.95)
        assert held.outcome is GateOutcome.UNDECIDED
        assert "nothing was measured" in held.why


class TestNotes:
    @pytest.mark.parametrize(
        ("shares", "words"),
        [
            ((0.0, 0.05), "at most 5 % of it stayed"),
            ((0.0, 0.8), "this is no cold load"),
            ((None, None), "it may be warm"),
        ],
    )
    def test_cold_says_how_cold(self, shares: tuple[float | None, ...], words: str) -> None:
        runs = [seen(1, Step.COLD, A, resident=share) for share in shares]
        (note,) = notes(runs, skipped=False, same=False, device_note="")
        assert words in note
        assert "only be emptied by root" in note

    def test_nothing_to_say_without_a_cold_load(self) -> None:
        assert notes([seen(1, Step.BENCH, A)], skipped=False, same=False, device_note="") == ()

    def test_everything_at_once(self) -> None:
        found = notes([], skipped=True, same=True, device_note="A here, B there")
        assert len(found) == 3
        assert found[0] == "A here, B there"
