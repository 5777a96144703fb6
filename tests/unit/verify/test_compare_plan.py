"""The order of a comparison's runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from compare_kit import QUICK
from llamawright.model.comparison import Letter
from llamawright.verify.compare_plan import (
    HARDWARE,
    SOFTWARE,
    Step,
    Turn,
    effort,
    order,
    orders,
    turns,
)
from llamawright.verify.compare_statistics import MIN_ROUNDS


def test_sides_take_turns_and_each_round_begins_with_the_other() -> None:
    benches = [t.letter for t in turns(QUICK) if t.step is Step.BENCH]
    assert "".join(benches[:8]) == "ABBAABBA"
    assert orders(4) == ("AB", "BA", "AB", "BA")
    assert order(1) == (Letter.A, Letter.B)


def test_both_sides_do_the_same_as_often() -> None:
    every = list(turns(QUICK))
    mine = {
        letter: sorted((t.round, t.step, t.tokens) for t in every if t.letter is letter)
        for letter in Letter
    }
    assert mine[Letter.A] == mine[Letter.B]
    assert len(mine[Letter.A]) == QUICK.rounds * 5 + len(QUICK.contexts) + 1


def test_what_the_driver_compiles_for_each_length_is_there_before_anything_is_measured() -> None:
    every = list(turns(QUICK))
    before = [t for t in every if t.step is Step.PREPARE]
    assert before == every[: len(before)]
    assert {(t.letter, t.tokens) for t in before} == {
        (letter, tokens) for letter in Letter for tokens in (0, *QUICK.contexts)
    }
    assert {t.round for t in before} == {0}


def test_a_step_of_both_sides_is_adjacent() -> None:
    for first, second in list(pairwise(turns(QUICK)))[::2]:
        assert (first.round, first.step, first.tokens) == (second.round, second.step, second.tokens)
        assert first.letter is not second.letter


def test_no_side_is_ahead_by_place_over_two_rounds() -> None:
    """The sum of places is equal: a drift that is a straight line hits both alike."""
    every = list(turns(effort(software=True, rounds=2)))
    places = dict.fromkeys(Letter, 0)
    for place, turn in enumerate(t for t in every if t.round):
        places[turn.letter] += place
    assert places[Letter.A] == places[Letter.B]


def test_the_fresh_run_comes_before_the_same_run_with_what_was_kept() -> None:
    mine = [t for t in turns(QUICK) if t.letter is Letter.A and t.round == 1]
    assert [t.step for t in mine] == [
        Step.FRESH, Step.WARM, Step.COLD, Step.CONTEXT, Step.BENCH,
    ]  # fmt: skip
    assert [t.tokens for t in mine] == [4, 4, 4, 8, 0]


def test_a_gate_measures_speed_only() -> None:
    every = list(turns(QUICK, speed_only=True))
    assert [t.step for t in every[:2]] == [Step.PREPARE, Step.PREPARE]
    assert {t.step for t in every[2:]} == {Step.BENCH}
    assert len(every) == 2 * QUICK.rounds + 2


@pytest.mark.parametrize("usual", [HARDWARE, SOFTWARE])
def test_without_a_word_there_are_rounds_enough_for_a_finding(usual: object) -> None:
    assert HARDWARE.rounds >= MIN_ROUNDS
    assert SOFTWARE.rounds >= MIN_ROUNDS
    assert effort(software=usual is SOFTWARE) == usual


def test_what_was_said_is_kept_and_lengths_are_sorted_once_each() -> None:
    said = effort(software=False, rounds=3, contexts=(512, 8, 512))
    assert (said.rounds, said.contexts) == (3, (8, 512))
    assert (said.prompt, said.generation) == (HARDWARE.prompt, HARDWARE.generation)


@pytest.mark.parametrize(
    ("turn", "name"),
    [
        (Turn(round=2, step=Step.BENCH, letter=Letter.B), "B round 2 bench"),
        (Turn(round=1, step=Step.COLD, letter=Letter.A, tokens=8), "A round 1 cold"),
        (Turn(round=1, step=Step.CONTEXT, letter=Letter.A, tokens=8), "A round 1 context 8"),
    ],
)
def test_names_of_runs_differ_wherever_their_logs_must(turn: Turn, name: str) -> None:
    assert turn.name == name
    names = [t.name for t in turns(QUICK)]
    assert len(names) == len(set(names))
