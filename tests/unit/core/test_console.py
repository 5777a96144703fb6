from __future__ import annotations

import io
import time

import pytest

from llamawright.console import Console, Host, duration, quantity
from llamawright.errors import ToolchainConflictError


def written(console: Console) -> str:
    stream = console.stream
    assert isinstance(stream, io.StringIO)
    return stream.getvalue()


def make(host: Host = Host.PLAIN, *, quiet: bool = False) -> Console:
    return Console(stream=io.StringIO(), host=host, quiet=quiet)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (42.4, "42 s"), (185, "3 min 05 s"), (3725, "1 h 02 min")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [(17, "steps", "17 steps"), (512, "bytes", "512 B"), (76_589_250, "bytes", "73.0 MiB")],
)
def test_quantities_carry_their_unit(amount: float, unit: str, text: str) -> None:
    assert quantity(amount, unit) == text


def test_a_stage_says_its_seconds_at_the_end() -> None:
    console = make()
    with console.step("compile host"):
        console.info("481 steps")
    lines = written(console).splitlines()
    assert lines[0] == "• compile host"
    assert lines[1] == "  481 steps"
    assert lines[2].startswith("✓ compile host (")


def test_a_failed_stage_is_not_ticked_off() -> None:
    console = make()
    with pytest.raises(ValueError, match="no"), console.step("patch"):
        raise ValueError("no")
    assert "✓" not in written(console)


def test_github_gets_folds_warnings_and_error_annotations() -> None:
    console = make(Host.GITHUB)
    with console.step("fetch"):
        console.warn("the mirror is slow")
    console.failure(ToolchainConflictError("two do not fit", hint="drop one"))
    text = written(console)
    assert "::group::fetch" in text
    assert "::endgroup::" in text
    assert "::warning::the mirror is slow" in text
    assert "::error::two do not fit. drop one" in text


def test_a_fold_is_closed_when_its_stage_fails() -> None:
    console = make(Host.GITHUB)
    with pytest.raises(ValueError, match="x"), console.step("fetch"):
        raise ValueError("x")
    assert written(console).splitlines()[-1] == "::endgroup::"


def test_gitlab_gets_sections_with_the_same_mark() -> None:
    console = make(Host.GITLAB)
    with console.step("compile host"):
        pass
    text = written(console)
    assert "section_start:" in text
    assert text.count(":compile_host_0") == 2


def test_a_warning_is_said_once_and_kept_for_the_summary() -> None:
    console = make()
    console.warn("no git")
    console.warn("no git")
    assert written(console) == "warning: no git\n"
    assert console.warnings == ["no git"]


def test_quiet_keeps_warnings_and_errors() -> None:
    console = make(quiet=True)
    with console.step("fetch"):
        console.info("hidden")
        console.warn("seen")
    assert written(console) == "warning: seen\n"


def test_an_error_tells_what_why_command_lines_log_and_hint() -> None:
    console = make()
    error = ToolchainConflictError(
        "sm_61 cannot be built with CUDA 13.0",
        why="nvcc lists 75 … 121",
        hint="--cuda-toolkit 12.4\nor drop sm_61",
        command="cd /x && nvcc",
        tail=("one", "two"),
        log="/tmp/log",
    )
    console.failure(error)
    assert written(console).splitlines() == [
        "error: sm_61 cannot be built with CUDA 13.0",
        "  because: nvcc lists 75 … 121",
        "  last lines:",
        "    one",
        "    two",
        "  command: cd /x && nvcc",
        "  log: /tmp/log",
        "hint: --cuda-toolkit 12.4",
        "hint: or drop sm_61",
    ]


def test_a_log_gets_a_line_every_ten_seconds_with_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    console = make()
    with console.meter("compile", total=200, unit="steps") as meter:
        for done in range(0, 201, 20):
            meter.update(done)
            clock[0] += 4
    lines = written(console).splitlines()
    assert lines[0] == "compile: 60 steps of 200 steps (30%, 28 s left)"
    assert len(lines) == 4
    assert lines[-1] == "compile: 200 steps in 44 s"


def test_a_short_job_prints_no_progress_at_all() -> None:
    console = make()
    with console.meter("hash", total=10, unit="bytes") as meter:
        meter.update(10)
    assert written(console) == ""


def test_a_meter_without_a_total_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    console = make()
    with console.meter("download", total=None, unit="bytes") as meter:
        clock[0] = 11.0
        meter.update(2048, note="second try")
    assert written(console).splitlines()[0] == "download: 2.0 KiB  second try"


def test_a_terminal_gets_a_live_line_and_whole_lines_around_it() -> None:
    console = make(Host.TERMINAL)
    with console.meter("compile", total=3, unit="steps") as meter:
        meter.update(1, note="a.cpp")
        console.info("a line in between")
        with console.meter("inner", total=None, unit="bytes") as inner:
            inner.update(5, total=10)
        meter.update(3)
    assert "a line in between" in written(console)
    console.info("after")
    assert written(console).endswith("after\n")


@pytest.mark.parametrize(
    ("variable", "host"), [("GITHUB_ACTIONS", Host.GITHUB), ("GITLAB_CI", Host.GITLAB)]
)
def test_hosted_ci_is_known_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, host: Host
) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "true")
    assert Console.for_process().host is host
