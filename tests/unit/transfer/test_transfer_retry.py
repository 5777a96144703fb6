from __future__ import annotations

from collections.abc import Sequence

import pytest

from llamawright.transfer import Clock
from llamawright.transfer.request import Failure, Fault
from llamawright.transfer.retry import LONGEST_WAIT_S, PAUSES_S, Exhausted, try_in_turn
from transfer_kit import Slept


def down(place: str = "a", **more: object) -> Failure:
    fields = {"fault": Fault.NETWORK, "url": f"http://{place}", "why": "down", "again": True}
    return Failure(**{**fields, **more})  # type: ignore[arg-type]


def gone(place: str = "a") -> Failure:
    return Failure(fault=Fault.ABSENT, url=f"http://{place}", why="gone")


class Places:
    """Answers by script; the last one of each place stays."""

    def __init__(self, **scripts: Sequence[str | Failure]) -> None:
        self.scripts = {name: list(script) for name, script in scripts.items()}
        self.asked: list[str] = []

    def attempt(self, place: str) -> str | Failure:
        self.asked.append(place)
        script = self.scripts[place]
        return script.pop(0) if len(script) > 1 else script[0]


def run(places: Places, slept: Slept | None = None) -> str | Exhausted:
    clock = (slept or Slept()).clock
    return try_in_turn(tuple(places.scripts), places.attempt, clock=clock, tell=lambda _text: None)


def test_the_pauses_together_outlast_a_minute() -> None:
    assert sum(PAUSES_S) >= 60
    assert list(PAUSES_S) == sorted(PAUSES_S)


def test_the_first_result_is_taken() -> None:
    places = Places(a=["yes"], b=["no"])
    assert run(places) == "yes"
    assert places.asked == ["a"]


def test_a_pause_comes_only_after_all_places_failed() -> None:
    places, slept = Places(a=[down("a")], b=[down("b"), "yes"]), Slept()
    assert run(places, slept) == "yes"
    assert places.asked == ["a", "b", "a", "b"]
    assert slept.pauses == [PAUSES_S[0]]


def test_a_final_failure_takes_the_place_out() -> None:
    places, slept = Places(a=[gone("a")], b=[down("b"), down("b"), "yes"]), Slept()
    assert run(places, slept) == "yes"
    assert places.asked == ["a", "b", "b", "b"]


def test_only_final_failures_end_it_without_a_pause() -> None:
    places, slept = Places(a=[gone("a")], b=[gone("b")]), Slept()
    assert run(places, slept) == Exhausted((gone("a"), gone("b")))
    assert slept.pauses == []


def test_patience_ends_and_the_last_failures_are_kept_in_order() -> None:
    places, slept = Places(a=[down("a")], b=[down("b")], c=[gone("c")]), Slept()
    outcome = run(places, slept)
    assert outcome == Exhausted((down("a"), down("b"), gone("c")))
    assert slept.pauses == list(PAUSES_S)
    assert places.asked.count("a") == len(PAUSES_S) + 1


def test_without_places_it_is_exhausted_at_once() -> None:
    assert run(Places()) == Exhausted(())


def test_progress_starts_the_pauses_afresh() -> None:
    slept = Slept()
    script: list[str | Failure] = [down(), down(), down(advanced=True), down(), "yes"]
    assert run(Places(a=script), slept) == "yes"
    assert slept.pauses == [1.0, 2.0, 1.0, 2.0]


def test_a_wish_for_a_longer_pause_is_granted() -> None:
    slept = Slept()
    run(Places(a=[down(wait_s=30.0), down(wait_s=0.5), "yes"]), slept)
    assert slept.pauses == [30.0, 2.0]


def test_the_place_that_wants_the_shorter_pause_decides() -> None:
    slept = Slept()
    run(Places(a=[down("a", wait_s=90.0)], b=[down("b", wait_s=3.0), "yes"]), slept)
    assert slept.pauses == [3.0]


@pytest.mark.parametrize("wait_s", [LONGEST_WAIT_S + 1, 3600.0])
def test_an_unreasonable_wish_ends_it(wait_s: float) -> None:
    slept = Slept()
    assert isinstance(run(Places(a=[down(wait_s=wait_s)]), slept), Exhausted)
    assert slept.pauses == []


def test_jitter_only_adds() -> None:
    pauses: list[float] = []
    clock = Clock(sleep=pauses.append, spread=lambda: 1.0)
    try_in_turn(("a",), lambda _place: down(), clock=clock, tell=lambda _text: None)
    assert len(pauses) == len(PAUSES_S)
    assert all(p >= planned for p, planned in zip(pauses, PAUSES_S, strict=True))
    assert sum(pauses) < 2 * sum(PAUSES_S)


def test_each_pause_is_told_with_its_reason() -> None:
    told: list[str] = []
    try_in_turn(("a",), Places(a=[down(), "yes"]).attempt, clock=Slept().clock, tell=told.append)
    assert told == ["http://a: down; trying again in 1 s"]


def test_real_time_is_the_default() -> None:
    assert Clock().sleep.__name__ == "sleep"
    assert 0.0 <= Clock().spread() < 1.0
