"""Figures that a lying or broken build prints: none may become a ratio, an interval or NaN."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare_kit import QUICK, comparison, finished, seen
from llamawright import codec
from llamawright.model.comparison import Finding, GateOutcome, Letter, Measure
from llamawright.verify.compare_measures import gate, measures, prompt_tokens
from llamawright.verify.compare_plan import Step
from llamawright.verify.compare_report import comparison_lines, render_comparison

A, B = Letter.A, Letter.B
HONEST = '{"n_prompt": 16, "n_gen": 0, "avg_ts": 100.0}\n'


def rated(text: str, rounds: int = 5) -> tuple[Measure, ...]:
    """Return both rates of an honest A and a B that prints a text."""
    runs = []
    for number in range(1, rounds + 1):
        runs.append(seen(number, Step.BENCH, A, finished(stdout=HONEST)))
        runs.append(seen(number, Step.BENCH, B, finished(stdout=text)))
    return measures(runs, QUICK, seed=1, speed_only=True)


@pytest.mark.parametrize(
    "rate",
    ["NaN", "Infinity", "-Infinity", "-5.0", "0", "0.0", "null", '"fast"', "[]", "{}", "true x"],
)
def test_a_rate_that_is_no_rate_is_not_measured(rate: str) -> None:
    prompt = rated('{"n_prompt": 16, "n_gen": 0, "avg_ts": ' + rate + "}\n")[0]
    assert (prompt.finding, prompt.ratio, prompt.b) == (Finding.UNKNOWN, None, ())
    assert gate([prompt], 0.95).outcome is GateOutcome.UNDECIDED


@pytest.mark.parametrize(
    "text",
    ["", "\0\0\0", "[]\n", "{}\n", "null\n", "not json\n", "{" * 2000, '{"avg_ts": 1}\n' * 3],
)
def test_output_that_is_no_table_breaks_nothing(text: str) -> None:
    assert rated(text)[0].finding is Finding.UNKNOWN


@pytest.mark.parametrize("rate", ["1e308", "5e-324", "1e-300"])
def test_a_rate_beyond_all_measure_still_makes_a_page(rate: str) -> None:
    found = rated('{"n_prompt": 16, "n_gen": 0, "avg_ts": ' + rate + "}\n")
    made = comparison(*found)
    assert "NaN" not in codec.encode(made)
    assert "Infinity" not in codec.encode(made)
    assert "<svg" in render_comparison(made)
    assert list(comparison_lines(made))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_no_text_at_all_raises(text: str) -> None:
    found = rated(text, rounds=1)
    assert json.loads(codec.encode(comparison(*found)))["measures"]
    prompt_tokens(finished(lines=text.splitlines()))
