"""The same twice: which differences count, and which cannot be told."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.model.verdict import Numbers, Outcome
from llamawright.verify.evidence import Kind
from llamawright.verify.repeat import same_again

LIMIT = 0.0005


def table(*chunks: float, top1: float = 1.0) -> Numbers:
    mean = sum(chunks) / len(chunks)
    return Numbers(batch=8, mean_kld=mean, top1=top1, positions=3 * len(chunks), per_chunk=chunks)


def outcome(first: Numbers | None, second: Numbers | None) -> Outcome:
    return same_again("batch 8", first, second, most=LIMIT).check.outcome


def test_the_same_table_is_the_same() -> None:
    found = same_again("batch 8", table(0.1, 0.2), table(0.1, 0.2), most=LIMIT)
    assert found.kind is Kind.REPEAT
    assert found.check.outcome is Outcome.PASS
    assert found.check.seen == "the same to the last digit"
    assert found.check.name == "the same again, batch 8"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ((0.1003, 0.2), Outcome.PASS),
        ((0.1005, 0.2), Outcome.PASS),
        ((0.1006, 0.2), Outcome.FAIL),
        ((0.1, 0.1994), Outcome.FAIL),
        ((0.2, 0.1), Outcome.FAIL),
    ],
)
def test_any_chunk_further_apart_than_the_limit_is_another_result(
    second: tuple[float, ...], expected: Outcome
) -> None:
    assert outcome(table(0.1, 0.2), table(*second)) is expected


def test_two_chunks_that_change_in_opposite_ways_do_not_cancel_out() -> None:
    first, second = table(0.1, 0.2), table(0.2, 0.1)
    assert first.mean_kld == pytest.approx(second.mean_kld)
    assert outcome(first, second) is Outcome.FAIL


@pytest.mark.parametrize(
    ("first", "second"), [(None, table(0.1)), (table(0.1), None), (table(0.1), table(0.1, 0.1))]
)
def test_a_missing_or_short_table_is_unknown(first: Numbers | None, second: Numbers | None) -> None:
    assert outcome(first, second) is Outcome.UNKNOWN


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_twice_is_the_same_and_once_is_not(bad: float) -> None:
    assert outcome(table(bad), table(bad)) is Outcome.PASS
    assert outcome(table(bad), table(0.1)) is Outcome.FAIL
    assert outcome(table(0.1), table(bad)) is Outcome.FAIL


def test_a_flipped_token_alone_is_told_and_is_no_failure() -> None:
    found = same_again("b", table(0.1), table(0.1, top1=0.9), most=LIMIT)
    assert found.check.outcome is Outcome.PASS
    assert "0.00000" in found.check.seen


@given(st.lists(st.floats(), min_size=1, max_size=5))
def test_nothing_differs_from_itself(chunks: list[float]) -> None:
    assert outcome(table(*chunks), table(*chunks)) is Outcome.PASS


@given(st.floats(), st.floats())
def test_which_run_came_first_does_not_matter(a: float, b: float) -> None:
    assert outcome(table(a), table(b)) is outcome(table(b), table(a))
