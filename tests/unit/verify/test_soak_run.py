"""The loop of a soak: until the time is over, or something is wrong, over several sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.model.verdict import State
from llamawright.verify.soak_record import Record
from llamawright.verify.soak_run import MOST_KEPT, thinned
from reporter_kit import Told
from soak_kit import PCI, Course, ScriptedLog, series, soak_round, soak_run

XID = f"NVRM: Xid (PCI:{PCI.removesuffix('.0')}): 79, GPU has fallen off the bus."


def test_rounds_go_on_until_the_time_is_over(tmp_path: Path) -> None:
    course = Course()
    ruling, past = soak_run(tmp_path, course, asked_s=95.0).go()
    assert ruling.state is State.VERIFIED
    assert [r.number for r in past.rounds] == list(range(1, 11))
    assert past.rounds[-1].at == 100.0
    assert [first for *_, first, _ in course.asked] == [True] + [False] * 9


def test_one_round_is_always_run(tmp_path: Path) -> None:
    _, past = soak_run(tmp_path, Course(), asked_s=1.0).go()
    assert len(past.rounds) == 1


def test_a_killed_soak_goes_on_where_it_was(tmp_path: Path) -> None:
    killed = Course(stop_after=4)
    with pytest.raises(KeyboardInterrupt):
        soak_run(tmp_path, killed).go()
    told, course = Told(), Course()
    ruling, past = soak_run(tmp_path, course, told=told).go()
    assert ruling.state is State.VERIFIED
    assert [r.number for r in past.rounds] == list(range(1, 11))
    assert [r.session for r in past.rounds] == [1] * 4 + [2] * 6
    assert [r.number for r in past.rounds if r.first] == [1, 5]
    assert course.asked[0] == (5, 2, True, 40.0)
    assert "soak: goes on after round 4, 40 s were done before" in told.lines


def test_three_kills_add_up_to_the_time_that_was_asked(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            soak_run(tmp_path, Course(stop_after=2)).go()
    _, past = soak_run(tmp_path, Course()).go()
    assert [r.session for r in past.rounds] == [1, 1, 2, 2, 3, 3, 4, 4, 4, 4]
    assert past.rounds[-1].at == 100.0


def test_an_ended_soak_begins_anew(tmp_path: Path) -> None:
    soak_run(tmp_path, Course()).go()
    course = Course()
    _, past = soak_run(tmp_path, course).go()
    assert course.asked[0] == (1, 1, True, 0.0)
    assert len(past.rounds) == 10


def test_a_killed_soak_with_less_time_asked_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        soak_run(tmp_path, Course(stop_after=4)).go()
    course = Course()
    ruling, past = soak_run(tmp_path, course, asked_s=20.0).go()
    assert course.asked == []
    assert (ruling.state, len(past.rounds)) == (State.VERIFIED, 4)


def test_progress_counts_this_sessions_time_so_that_the_eta_is_right(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        soak_run(tmp_path, Course(stop_after=4)).go()
    told = Told()
    soak_run(tmp_path, Course(), told=told).go()
    assert told.done[0] == ("soak", 10.0, 60.0)
    assert told.done[-1] == ("soak", 60.0, 60.0)
    assert told.notes[0].endswith("round 5, 100.0 tok/s")


def test_another_answer_ends_it_at_once_and_is_kept_in_words(tmp_path: Path) -> None:
    course = Course(lambda n: {"answer": "b", "text": " Rome."} if n == 3 else {})
    ruling, past = soak_run(tmp_path, course).go()
    assert (ruling.state, ruling.failure) == (State.FAILED, "soak-answer-changed")
    assert [r.text for r in past.rounds] == [" Paris.", "", " Rome."]


def test_a_failed_round_ends_it_with_its_class(tmp_path: Path) -> None:
    course = Course(lambda n: {"failure": "crashed", "why": "by SIGSEGV"} if n == 5 else {})
    ruling, past = soak_run(tmp_path, course).go()
    assert (ruling.failure, len(past.rounds)) == ("crashed", 5)


def test_a_slowdown_ends_it_before_its_time(tmp_path: Path) -> None:
    course = Course(lambda n: {"tps": 100.0 - n})
    ruling, past = soak_run(tmp_path, course, asked_s=10_000.0).go()
    assert ruling.failure == "soak-slowed"
    assert len(past.rounds) < 40


def test_a_leak_ends_it_before_its_time(tmp_path: Path) -> None:
    course = Course(lambda n: {"memory_after": n * (10 << 20)})
    ruling, past = soak_run(tmp_path, course, asked_s=10_000.0).go()
    assert ruling.failure == "soak-leak"
    assert len(past.rounds) < 40


def test_a_line_of_the_kernel_ends_it(tmp_path: Path) -> None:
    log = ScriptedLog({3: ("eth0: link up", XID)})
    ruling, past = soak_run(tmp_path, Course(), log=log).go()
    assert (ruling.failure, len(past.rounds)) == ("device-reset", 3)
    assert [(e.kind, e.at) for e in past.events] == [("xid", 30.0)]


def test_a_line_of_another_card_is_kept_and_does_not_end_it(tmp_path: Path) -> None:
    log = ScriptedLog({3: (XID.replace("0000:41", "0000:99"),)})
    ruling, past = soak_run(tmp_path, Course(), log=log).go()
    assert (ruling.state, len(past.rounds), len(past.events)) == (State.VERIFIED, 10, 1)


def test_an_event_survives_a_kill_right_after_it(tmp_path: Path) -> None:
    """The event is on the disk before the round: what follows a reset may be a crash."""
    run = soak_run(tmp_path, Course(), log=ScriptedLog({1: (XID,)}))
    keep = run.record
    real = Record.add_round

    def power_cut(_record: Record, _done: object) -> None:
        raise KeyboardInterrupt

    try:
        Record.add_round = power_cut  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            run.go()
    finally:
        Record.add_round = real  # type: ignore[method-assign]
    assert keep.read().events
    course = Course()
    ruling, _ = soak_run(tmp_path, course).go()
    assert ruling.failure == "device-reset"
    assert course.asked == []


def test_a_kill_between_a_bad_round_and_the_end_does_not_hide_it(tmp_path: Path) -> None:
    record = Record(tmp_path / "soaks" / "key.jsonl")
    with pytest.raises(KeyboardInterrupt):
        soak_run(tmp_path, Course(stop_after=2)).go()
    record.add_round(soak_round(3, failure="crashed", why="w"))
    course = Course()
    ruling, _ = soak_run(tmp_path, course).go()
    assert (ruling.failure, course.asked) == ("crashed", [])


def test_an_unreadable_log_is_told_once_with_the_reason(tmp_path: Path) -> None:
    told = Told()
    log = ScriptedLog(readable=False, told="dmesg: not installed")
    ruling, _ = soak_run(tmp_path, Course(), log=log, told=told).go()
    assert ruling.state is State.VERIFIED
    assert told.warnings == ["soak: the kernel's log cannot be read (dmesg: not installed)"]


def test_a_short_soak_is_kept_whole_and_a_long_one_in_part() -> None:
    assert thinned(series(50)) == series(50)
    rounds = list(series(3 * MOST_KEPT + 1))
    rounds[100] = soak_round(101, failure="crashed")
    rounds[200] = soak_round(201, session=2, first=True)
    kept = thinned(tuple(rounds))
    assert len(kept) <= MOST_KEPT + 4
    assert {1, 101, 201, 3 * MOST_KEPT + 1} <= {r.number for r in kept}
    assert [r.number for r in kept] == sorted(r.number for r in kept)
