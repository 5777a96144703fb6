"""The least value that fails: by halves, and from below."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.verify.investigate_search import bisect, first


def counting(border: int) -> tuple[list[int], Callable[[int], bool]]:
    asked: list[int] = []

    def fails(value: int) -> bool:
        asked.append(value)
        return value >= border

    return asked, fails


@given(st.integers(1, 300), st.data())
def test_halving_finds_the_border(count: int, data: st.DataObject) -> None:
    border = data.draw(st.integers(0, count - 1))
    asked, fails = counting(border)
    found = bisect(range(count), fails)
    assert (found.least, found.sure) == (border, True)
    assert found.passes == (border - 1 if border else None)
    assert len(asked) <= count.bit_length()
    assert len(set(asked)) == len(asked)


@given(st.integers(1, 40), st.data())
def test_going_up_finds_the_border_and_asks_nothing_above_it(
    count: int, data: st.DataObject
) -> None:
    border = data.draw(st.integers(0, count - 1))
    asked, fails = counting(border)
    found = first(range(count), fails)
    assert (found.least, found.sure) == (border, True)
    assert found.passes == (border - 1 if border else None)
    assert asked == list(range(min(border + 1, count - 1)))


@pytest.mark.parametrize("search", [bisect, first])
def test_one_value_is_known_to_fail_and_nobody_is_asked(search: Callable[..., object]) -> None:
    def never(_value: int) -> bool:
        raise AssertionError

    assert search((7,), never).least == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("search", [bisect, first])
def test_the_known_failing_value_is_never_asked_again(search: Callable[..., object]) -> None:
    asked, fails = counting(9)
    search(range(10), fails)
    assert 9 not in asked


def test_an_answer_that_nobody_has_leaves_the_last_failing_value() -> None:
    answers = {4: True, 1: None}
    found = bisect(range(10), lambda v: answers[v])
    assert (found.least, found.passes, found.sure) == (4, None, False)


def test_without_an_answer_from_below_the_value_stays_as_it_was() -> None:
    answers = {1: False, 2: None}
    found = first((1, 2, 4, 8), lambda v: answers[v])
    assert (found.least, found.passes, found.sure) == (8, 1, False)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_failure_without_order_still_ends_at_one_that_fails(fails: list[bool]) -> None:
    fails = [*fails, True]
    found = bisect(range(len(fails)), lambda v: fails[v])
    assert fails[found.least]
    assert found.passes is None or not fails[found.passes]
    assert first(range(len(fails)), lambda v: fails[v]).least == fails.index(True)
