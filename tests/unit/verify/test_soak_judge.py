"""Rounds and events to an outcome: what fails a soak, what only looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamawright.model.soak import Drift, Tie
from llamawright.model.verdict import Outcome, State
from llamawright.verify.judge import Ruling, hint_of
from llamawright.verify.soak_drift import LEAST_POINTS
from llamawright.verify.soak_judge import (
    DEVICE_AFTER,
    DEVICE_PEAK,
    HOST,
    LOAD,
    SPEED,
    amount,
    drift_words,
    drifts,
    limits_of_soak,
    rule_soak,
)
from soak_kit import LIMITS, MIB, RULES, event, series, soak_round
from verify_kit import recipe

ROUNDS = series(60)


def of(name: str, found: tuple[Drift, ...]) -> Drift:
    return next(d for d in found if d.name == name)


def ruled(
    rounds: tuple[object, ...] = ROUNDS, events: tuple[object, ...] = (),
    passed: State = State.VERIFIED,
) -> Ruling:  # fmt: skip
    return rule_soak(rounds, events, drifts(rounds, LIMITS), passed=passed)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [State.VERIFIED, State.VERIFIED_SOFTWARE])
def test_an_honest_soak_keeps_the_verdict_of_the_proof(state: State) -> None:
    assert ruled(passed=state) == Ruling(state=state)


def test_honest_noise_fails_nobody() -> None:
    for seed in range(40):
        assert ruled(series(80, seed=seed, noise=0.05)).state is State.VERIFIED


def test_a_soak_that_grows_is_judged_after_each_round_without_false_alarm() -> None:
    for seed in range(4):
        rounds = series(60, seed=seed, noise=0.04)
        assert all(ruled(rounds[:n]).state is State.VERIFIED for n in range(1, 61))


@pytest.mark.parametrize("lost", [0.12, 0.2, 0.5])
def test_a_steady_loss_of_speed_is_found(lost: float) -> None:
    found = ruled(series(80, speed=lambda share: 1 - lost * share))
    assert (found.state, found.failure) == (State.FAILED, "soak-slowed")
    assert found.hint == hint_of("soak-slowed") != ""
    assert found.why.startswith("generation speed: from ")


@pytest.mark.parametrize("lost", [0.0, 0.03, 0.07])
def test_a_small_loss_is_told_and_fails_nobody(lost: float) -> None:
    assert ruled(series(80, speed=lambda share: 1 - lost * share)).state is State.VERIFIED


def test_a_card_that_falls_in_the_middle_and_stays_is_found() -> None:
    found = ruled(series(80, speed=lambda share: 1.0 if share < 0.5 else 0.6))
    assert found.failure == "soak-slowed"


def test_a_stall_in_between_is_no_drift() -> None:
    rounds = series(80, speed=lambda share: 0.1 if 0.4 < share < 0.5 else 1.0)
    assert ruled(rounds).state is State.VERIFIED


def test_getting_faster_is_no_failure() -> None:
    assert ruled(series(80, speed=lambda share: 1 + share)).state is State.VERIFIED


def test_a_noisy_loss_that_may_be_chance_is_not_called_one() -> None:
    rounds = series(14, noise=0.6, seed=3, speed=lambda share: 1 - 0.15 * share)
    speed = of(SPEED, drifts(rounds, LIMITS))
    assert speed.high > 0
    assert speed.outcome is Outcome.PASS


def test_a_slow_first_round_of_each_session_is_left_out() -> None:
    rounds = tuple(
        replace(r, first=True, tps=1.0, load_s=60.0) if r.number in (1, 30) else r for r in ROUNDS
    )
    assert drifts(rounds, LIMITS)[:2] == drifts(
        tuple(r for r in rounds if not r.first), LIMITS
    )[:2]  # fmt: skip
    assert ruled(rounds).state is State.VERIFIED


@pytest.mark.parametrize(
    ("field", "name"),
    [("memory_peak", DEVICE_PEAK), ("memory_after", DEVICE_AFTER), ("rss", HOST)],
)
def test_memory_that_grows_is_a_leak_wherever_it_is(field: str, name: str) -> None:
    rounds = series(60, **{field: lambda share: int((500 + 100 * share) * MIB)})  # type: ignore[arg-type]
    found = ruled(rounds)
    assert found.failure == "soak-leak"
    assert found.why.startswith(f"{name}: from 50")
    assert "limit +64.0 MiB" in found.why


def test_a_leak_below_the_limit_and_a_single_peak_fail_nobody() -> None:
    small = series(60, memory_after=lambda share: int((4 + 40 * share) * MIB))
    assert ruled(small).state is State.VERIFIED
    peak = series(60, rss=lambda share: (900 if 0.5 < share < 0.52 else 300) * MIB)
    assert ruled(peak).state is State.VERIFIED


def test_memory_that_shrinks_is_no_leak() -> None:
    rounds = series(60, memory_peak=lambda share: int((900 - 500 * share) * MIB))
    assert ruled(rounds).state is State.VERIFIED


def test_what_nobody_could_read_is_unknown_not_passed() -> None:
    rounds = series(60, memory_after=lambda _share: None)
    found = of(DEVICE_AFTER, drifts(rounds, LIMITS))
    assert (found.outcome, found.told) == (Outcome.UNKNOWN, "not to be read here")
    assert ruled(rounds).state is State.VERIFIED


def test_too_few_rounds_are_unknown_with_their_number() -> None:
    found = of(SPEED, drifts(series(LEAST_POINTS), LIMITS))
    assert found.outcome is Outcome.UNKNOWN
    assert found.told == f"{LEAST_POINTS - 1} steady rounds, {LEAST_POINTS} are needed"


def test_load_time_is_told_and_not_judged() -> None:
    rounds = series(60, load_s=lambda share: 1.0 + 9 * share)
    found = of(LOAD, drifts(rounds, LIMITS))
    assert (found.limit, found.outcome, found.told) == (None, Outcome.PASS, "told, not judged")
    assert found.change > 8
    assert ruled(rounds).state is State.VERIFIED


def test_another_answer_fails_with_both_in_words() -> None:
    rounds = (*ROUNDS[:5], soak_round(6, answer="bbbb", text=" Rome."), *ROUNDS[6:])
    found = ruled(rounds)
    assert found.failure == "soak-answer-changed"
    assert found.why == "round 6 answered ' Rome.', round 1 ' Paris.'"


def test_a_failed_round_gives_its_own_class() -> None:
    bad = soak_round(6, answer="", failure="hang-at-load", why="soak round in phase load: nothing")
    found = ruled((*ROUNDS[:5], bad))
    assert (found.state, found.failure) == (State.FAILED, "hang-at-load")
    assert found.why == "round 6: soak round in phase load: nothing"
    assert found.hint == hint_of("hang-at-load") != ""


def test_a_reset_goes_before_what_it_made_fail() -> None:
    bad = soak_round(6, answer="", failure="device-lost", why="round in phase done: lost")
    found = ruled((*ROUNDS[:5], bad), (event(),))
    assert found.failure == "device-reset"
    assert "NVRM: Xid (PCI:0000:41:00): 79" in found.why
    assert found.why.endswith("; round in phase done: lost")


def test_a_reset_of_another_card_is_nobodys_business() -> None:
    assert ruled(events=(event(Tie.OTHER),)).state is State.VERIFIED


def test_a_reset_that_names_no_device_is_doubt_on_hardware_only() -> None:
    found = ruled(events=(event(Tie.UNNAMED),))
    assert found.failure == "device-reset"
    assert "names no device" in found.why
    software = ruled(events=(event(Tie.UNNAMED),), passed=State.VERIFIED_SOFTWARE)
    assert software.state is State.VERIFIED_SOFTWARE


def test_our_own_event_is_named_before_a_doubtful_one() -> None:
    found = ruled(events=(event(Tie.UNNAMED, text="some reset"), event(text="our own")))
    assert "our own" in found.why


def test_limits_differ_between_hardware_and_software_and_carry_reasons() -> None:
    hard, soft = limits_of_soak(RULES, slow=False), limits_of_soak(RULES, slow=True)
    assert (hard[0].value, soft[0].value) == (0.1, 0.5)
    assert hard[1] == soft[1]
    assert all(limit.reason for limit in (*hard, *soft))


def test_the_recipe_has_limits_with_reasons() -> None:
    rules = recipe().verification.soak
    assert rules is not None
    assert 0 < rules.max_slowdown.value < rules.max_software_slowdown.value < 1
    assert rules.max_leak.value == 64 * MIB
    assert rules.tokens > rules.software_tokens > 1
    assert all(len(t.reason) > 20 for t in (rules.max_slowdown, rules.max_leak))


def test_words_of_a_drift_have_units_and_signs() -> None:
    text = drift_words(of(DEVICE_PEAK, drifts(ROUNDS, LIMITS)))
    assert text == (
        "device memory, peak: from 500.0 MiB, moved +0.0 MiB (+0.0 MiB to +0.0 MiB), "
        "noise 0.0 MiB, limit +64.0 MiB"
    )
    assert amount(1.5, "s") == "1.5 s"
    assert amount(-0.25, "tok/s", signed=True) == "-0.25 tok/s"
