"""Runs of a case: told apart, bounded, noted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from investigate_kit import (
    ARGV,
    COMPARE,
    CRASH,
    HANG,
    LIMITS,
    PROMPT,
    SAVE,
    Bench,
    Ticking,
    case,
    shape,
    table,
)
from llamawright.process import Ending
from llamawright.verify.investigate_case import Kind, value_of
from llamawright.verify.investigate_lab import (
    LEAST_HANG_S,
    LEAST_RUN_S,
    Clock,
    plain_command,
    with_base,
)
from llamawright.verify.supervise import Phase

Argv = tuple[str, ...]
Env = Mapping[str, str]
Answer = Mapping[str, object]


def crashes(_argv: Argv, _env: Env) -> Answer:
    return CRASH


def passes(_argv: Argv, _env: Env) -> Answer:
    return {}


def test_the_same_end_is_the_same_failure(tmp_path: Path) -> None:
    lab = Bench(tmp_path, crashes).lab(case())
    assert lab.fails("again 1", shape()) is True
    (trial,) = lab.trials
    assert (trial.name, trial.outcome, trial.same) == ("again 1", "crashed", True)
    assert trial.log == "investigate-01-again-1.log"


def test_a_run_that_ends_well_is_none(tmp_path: Path) -> None:
    lab = Bench(tmp_path, passes).lab(case())
    assert lab.fails("again 1", shape()) is False
    assert (lab.trials[0].outcome, lab.trials[0].same) == ("", False)


def test_another_failure_is_another(tmp_path: Path) -> None:
    lost = {"returncode": -6, "lines": ("vk::Queue::submit: ErrorDeviceLost",)}
    lab = Bench(tmp_path, lambda _a, _e: lost).lab(case())
    assert lab.fails("again 1", shape()) is False
    assert (lab.trials[0].outcome, lab.trials[0].same) == ("device-lost", False)


def test_a_run_that_was_stopped_tells_nothing_of_a_crash(tmp_path: Path) -> None:
    lab = Bench(tmp_path, lambda _a, _e: HANG).lab(case())
    assert lab.fails("slow", shape()) is None
    assert lab.trials[0].same is None


def test_a_run_that_was_stopped_is_a_hang_again(tmp_path: Path) -> None:
    hangs = case(failure="hang-at-load")
    lab = Bench(tmp_path, lambda _a, _e: HANG).lab(hangs)
    assert lab.fails("again 1", shape()) is True
    assert Bench(tmp_path, passes).lab(hangs).fails("again 1", shape()) is False


def test_a_shape_goes_into_the_command_line_and_the_environment(tmp_path: Path) -> None:
    bench = Bench(tmp_path, crashes)
    bench.lab(case()).fails(
        "x", shape(tokens=1, variables=(("SWITCH", "1"),), flags=("-fa", "off"))
    )
    _, argv, env, _ = bench.runs[0]
    assert value_of(argv, "-n") == "1"
    assert argv[-2:] == ("-fa", "off")
    assert env["SWITCH"] == "1"
    assert env["VK_DRIVER_FILES"] == "/d/lvp.json"


def test_when_the_time_is_over_nothing_is_run_and_it_is_said_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, crashes, cost_s=9.0)
    lab = bench.lab(case(), limit_s=10.0)
    assert lab.fails("first", shape()) is True
    assert lab.fails("second", shape()) is None
    assert lab.fails("second", shape()) is None
    assert len(bench.runs) == 1
    assert lab.told_limits == ("the time was over; not run: second",)


def test_no_run_gets_more_time_than_is_left(tmp_path: Path) -> None:
    bench = Bench(tmp_path, crashes, cost_s=7.0)
    lab = bench.lab(case(), limit_s=20.0)
    for _ in range(9):
        lab.fails("x", shape())
    assert bench.clock.at <= 20.0
    assert all(limits.total_s <= 20.0 for *_, limits in bench.runs)


def test_a_hang_is_waited_for_by_a_share_of_the_time(tmp_path: Path) -> None:
    lab = Bench(tmp_path, crashes).lab(case(failure="hang-at-load"), limit_s=800.0)
    assert lab.bounds().first_token_s == 100.0
    assert lab.bounds().start_s == 60.0
    short = Bench(tmp_path, crashes).lab(case(failure="hang-at-load"), limit_s=30.0)
    assert short.bounds().load_s == LEAST_HANG_S


def test_other_runs_may_take_some_times_what_the_failing_one_took(tmp_path: Path) -> None:
    lab = Bench(tmp_path, crashes).lab(case())
    assert lab.bounds().total_s == LEAST_RUN_S
    lab.usual_s = 10.0
    assert lab.bounds().total_s == 80.0
    lab.usual_s = 100.0
    assert lab.bounds().total_s == 100.0


def test_limits_never_grow_beyond_the_proofs_own(tmp_path: Path) -> None:
    lab = Bench(tmp_path, crashes).lab(case(failure="hang-at-load"), limit_s=86_400.0)
    given = lab.bounds()
    assert (given.start_s, given.load_s) == (LIMITS.start_s, LIMITS.load_s)
    assert given.total_s == LIMITS.total_s


def test_an_instrument_gets_time_to_speak(tmp_path: Path) -> None:
    lab = Bench(tmp_path, crashes).lab(case())
    assert lab.bounds(40.0).total_s == lab.bounds().total_s + 40.0


def test_the_meter_is_told_of_every_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path, crashes)
    lab = bench.lab(case())
    lab.planned = 2
    for name in ("a", "b", "c"):
        lab.fails(name, shape())
    assert [said[0] for said in bench.notes.said] == [1, 2, 3]
    assert all(total is not None and total >= done for done, total, _ in bench.notes.said)
    assert bench.notes.said[0][2] == "a: crashed"


def text_case() -> object:
    return case(
        kind=Kind.TEXT, failure="wrong-tokens", reference=("/r/llama", "-p", PROMPT, "-n", "9"),
        reference_env={"HERE": "cpu"},
    )  # fmt: skip


def test_words_are_compared_with_the_cpus_of_the_same_shape(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lambda argv, _e: {"stdout": "a" if argv[0] == "/r/llama" else "b"})
    lab = bench.lab(text_case())  # type: ignore[arg-type]
    assert lab.fails("two words", shape(prompt="We hold", layers=3)) is True
    (_, ours, env, _), (_, theirs, _, _) = bench.runs
    assert value_of(ours, "-p") == value_of(theirs, "-p") == "We hold"
    assert value_of(theirs, "-ngl") == "3"
    assert env == {"HERE": "cpu"}
    assert lab.trials[-1].outcome == "wrong-tokens"
    assert lab.trials[0].same is False


def test_equal_words_pass(tmp_path: Path) -> None:
    lab = Bench(tmp_path, lambda _a, _e: {"stdout": "same"}).lab(text_case())  # type: ignore[arg-type]
    assert lab.fails("x", shape()) is False
    assert lab.trials[-1].outcome == ""


@pytest.mark.parametrize("broken", ["/r/llama", ARGV[0]])
def test_words_that_never_came_are_not_compared(tmp_path: Path, broken: str) -> None:
    lab = Bench(tmp_path, lambda argv, _e: CRASH if argv[0] == broken else {}).lab(
        text_case()  # type: ignore[arg-type]
    )
    assert lab.fails("x", shape()) is None


def numbers_case() -> object:
    return case(
        kind=Kind.NUMBERS, failure="wrong-numbers", argv=COMPARE, reference=SAVE,
        reference_env={}, most=0.02, least=0.75,
    )  # fmt: skip


@pytest.mark.parametrize(("kld", "wrong"), [("0.00100", False), ("0.50000", True), ("nan", True)])
def test_numbers_are_held_to_their_limits(tmp_path: Path, kld: str, wrong: bool) -> None:
    bench = Bench(tmp_path, lambda argv, _e: {"stdout": table(kld)} if "--kl" in str(argv) else {})
    lab = bench.lab(numbers_case())  # type: ignore[arg-type]
    assert lab.fails("x", shape(batch=4)) is wrong
    assert lab.trials[-1].same is wrong
    base = value_of(bench.runs[0][1], "--save-all-logits")
    assert value_of(bench.runs[1][1], "--kl-divergence-base") == base


def test_the_cpus_numbers_are_computed_once_for_each_model(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lambda _a, _e: {"stdout": table("0.00100")})
    lab = bench.lab(numbers_case())  # type: ignore[arg-type]
    for model in (None, None, Path("/w/F16.gguf"), None, Path("/w/F16.gguf")):
        lab.fails("x", shape(model=model))
    saved = [argv for _, argv, *_ in bench.runs if "--save-all-logits" in argv]
    assert [value_of(argv, "-m") for argv in saved] == ["/models/tiny.gguf", "/w/F16.gguf"]
    assert len(bench.runs) == 7


def test_without_the_cpus_numbers_nothing_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lambda argv, _e: CRASH if "--save-all-logits" in argv else {})
    assert bench.lab(numbers_case()).fails("x", shape()) is None  # type: ignore[arg-type]


def test_a_comparison_that_did_not_end_is_not_told(tmp_path: Path) -> None:
    def cut(argv: Argv, _env: Env) -> Answer:
        return {"ending": Ending.TIMED_OUT, "phase": Phase.LOAD} if "--kl" in str(argv) else {}

    assert Bench(tmp_path, cut).lab(numbers_case()).fails("x", shape()) is None  # type: ignore[arg-type]


def test_a_command_can_be_pasted_and_shows_no_folder_of_ours() -> None:
    env = {"HOME": "/x", "TMPDIR": "/y", "PATH": "/z", "VK_DRIVER_FILES": "/d/a b.json", "L": "1"}
    line = plain_command(("/a/llama", "-p", "it's"), env)
    assert line == "L=1 VK_DRIVER_FILES='/d/a b.json' /a/llama -p 'it'\"'\"'s'"


def test_the_base_of_a_comparison_is_put_into_its_place() -> None:
    assert value_of(with_base(COMPARE, Path("/n")), "--kl-divergence-base") == "/n"


def test_a_clock_never_shows_less_than_nothing() -> None:
    ticking = Ticking()
    clock = Clock(limit_s=5.0, now=ticking)
    ticking.at = 3.0
    assert (clock.spent, clock.left) == (3.0, 2.0)
    ticking.at = 30.0
    assert clock.left == 0.0


def test_the_end_of_an_instrument_says_nothing_of_the_case(tmp_path: Path) -> None:
    bench = Bench(tmp_path, passes)
    lab = bench.lab(case())
    lab.run("under gdb", ARGV, {}, judged=False)
    assert lab.trials[0].same is None
    assert bench.notes.said[0][2] == "under gdb: done"
