"""Ninja's output turned into progress, and its ends into classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llamawright.build.history import Weights
from llamawright.build.ninja import Compile, Progress, class_of, failed
from llamawright.errors import BuildError, DiskError
from llamawright.process import Command, Ending, Line, Result


@dataclass
class Seen:
    values: list[tuple[float, float | None, str]] = field(default_factory=list)

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        self.values.append((round(done, 1), total, note))


def progress(weights: dict[str, float], whole: float, *lines: str) -> list[tuple[float, str]]:
    seen = Seen()
    take = Progress(seen, Weights(weights), whole)
    for line in lines:
        take(Line("stdout", line))
    assert {total for _, total, _ in seen.values} <= {100}
    return [(done, note) for done, _, note in seen.values]


def test_a_long_step_moves_the_line_more_than_a_short_one() -> None:
    known = {"ops.cpp.o": 9.0, "vec.cpp.o": 1.0}
    assert progress(
        known,
        10.0,
        "[1/2] Building CXX object a/vec.cpp.o",
        "[2/2] Building CXX object a/ops.cpp.o",
    ) == [(10.0, "1/2 vec.cpp.o"), (100.0, "2/2 ops.cpp.o")]


def test_lines_of_a_nested_build_are_not_ninjas_own() -> None:
    lines = progress(
        {}, 0.0,
        "[40/400] Building CXX object a.o", "[1/3] Building CXX object gen.o",
        "[3/3] Linking CXX executable gen", "[41/400] Performing build step",
    )  # fmt: skip
    assert [done for done, _ in lines] == [10.0, 10.2]


def test_other_output_moves_nothing() -> None:
    noise = ("ninja: Entering directory", "a.cpp:1: warning: [3/4] done", "", "[x/y] odd")
    assert progress({}, 1.0, *noise) == []


def test_more_work_than_was_counted_never_passes_the_whole() -> None:
    lines = progress({"a.o": 50.0, "b.o": 60.0}, 60.0, "[1/3] x a.o", "[2/3] x b.o")
    assert lines[-1][0] <= 100.0
    assert progress({}, 50.0, "[3/3] x last.o")[-1][0] == 100.0


def test_a_plan_that_shrinks_while_it_runs_is_followed() -> None:
    lines = progress({}, 0.0, "[10/40] x a.o", "[11/30] x b.o")
    assert [note for _, note in lines] == ["10/40 a.o", "11/30 b.o"]


def result(code: int, output: str = "", ending: Ending = Ending.EXITED) -> Result:
    return Result(
        command=Command(argv=("/t/ninja",), cwd=Path("/b")), returncode=code, ending=ending,
        seconds=1.0, output=output, stdout=output, tail=(), log=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "ending", "kind"),
    [
        (-15, Ending.STALLED, "stall"),
        (-15, Ending.TIMED_OUT, "time-limit"),
        (-15, Ending.OUTPUT_CAP, "output-flood"),
        (-9, Ending.EXITED, "killed"),
        (1, Ending.EXITED, "compile-failed"),
    ],
)
def test_each_end_has_its_class(code: int, ending: Ending, kind: str) -> None:
    assert class_of(result(code, "FAILED: a.o\nx\n", ending)).kind == kind


def test_a_reason_in_the_log_is_worth_more_than_a_signal() -> None:
    assert class_of(result(-9, "FAILED: a.o\nNo space left on device\n")).kind == "disk-full"


def test_only_what_may_pass_a_second_time_is_tried_again() -> None:
    assert class_of(result(1, "", Ending.STALLED)).retry
    assert class_of(result(-9)).retry
    assert not class_of(result(1, "", Ending.TIMED_OUT)).retry
    assert not class_of(result(1, "FAILED: a.o\na.cpp:1: error: x\n")).retry


def test_an_error_tells_the_command_the_lines_and_the_log(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    log.write_text("FAILED: a.o\na.cpp:1: error: x\n")
    ended = Result(
        command=Command(argv=("/t/ninja", "-C", "/b"), cwd=Path("/b")), returncode=1,
        ending=Ending.EXITED, seconds=1.0, output="", stdout="", tail=(), log=log,
    )  # fmt: skip
    error = failed("compiling the host", ended, class_of(ended))
    assert isinstance(error, BuildError)
    assert error.what == "compiling the host failed"
    assert error.command.endswith("/t/ninja -C /b")
    assert error.tail == ("FAILED: a.o", "a.cpp:1: error: x")
    assert error.log == str(log)


def test_a_full_disk_ends_with_the_disks_own_code() -> None:
    ended = result(1, "FAILED: a.o\nfatal error: error writing: No space left on device\n")
    assert isinstance(failed("x", ended, class_of(ended)), DiskError)


def test_the_targets_come_last(tmp_path: Path) -> None:
    job = Compile(
        ninja=Path("/t/ninja"), build=tmp_path, targets=("llama-cli",), env={"A": "b"},
        log=tmp_path / "l", label="x",
    )  # fmt: skip
    argv = job.command("-j", "2").argv
    assert argv == ("/t/ninja", "-C", str(tmp_path), "-j", "2", "llama-cli")
    assert job.command().env["A"] == "b"
