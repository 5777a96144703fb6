"""Compiles that hang, die, fill the disk or print for ever."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from build_kit import job, tries
from llamawright.build.ninja import Failure, compile_targets
from llamawright.errors import BuildError, DiskError, ExitCode
from reporter_kit import Told

# A shader generator that never ends: the child of a child, asleep, as in case V10.
HANG = """
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
(here / "child").write_text(str(child.pid))
print("[1/9] Generate vulkan shaders for mul_mm.comp", flush=True)
child.wait()
"""


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def failure(outcome: float | Failure) -> Failure:
    assert isinstance(outcome, Failure), outcome
    return outcome


def test_a_hang_is_ended_tried_once_with_one_job_and_called_a_stall(tmp_path: Path) -> None:
    told = Told()
    outcome = failure(
        compile_targets(job(tmp_path, HANG, stall_s=0.8), jobs=4, reporter=told)
    )  # fmt: skip
    assert tries(tmp_path) == ["4", "1"]
    assert outcome.kind.kind == "stall"
    assert outcome.error.kind == "stall"
    assert outcome.error.code is ExitCode.BUILD
    assert "no output and no CPU time" in outcome.error.why
    assert gone(int((tmp_path / "child").read_text()))
    assert any("once more with one job" in line for line in told.warnings)


def test_a_hang_that_one_job_cures_is_no_failure(tmp_path: Path) -> None:
    body = f"if attempt == 1:\n    {'    '.join(HANG.strip().splitlines(keepends=True))}\n"
    outcome = compile_targets(job(tmp_path, body, stall_s=0.8), jobs=2, reporter=Told())
    assert isinstance(outcome, float)
    assert tries(tmp_path) == ["2", "1"]


def test_one_job_that_hangs_is_not_tried_with_one_job_again(tmp_path: Path) -> None:
    outcome = compile_targets(job(tmp_path, HANG, stall_s=0.8), jobs=1, reporter=Told())
    assert failure(outcome).kind.kind == "stall"
    assert tries(tmp_path) == ["1"]


def test_work_without_output_is_no_stall(tmp_path: Path) -> None:
    body = "end = time.monotonic() + 2.5\nwhile time.monotonic() < end:\n    pass\n"
    outcome = compile_targets(job(tmp_path, body, stall_s=0.8), jobs=1, reporter=Told())
    assert isinstance(outcome, float)


KILLED = """
print("[1/2] Building CXX object a.o")
print("FAILED: [code=1] b.o\\ng++: fatal error: Killed signal terminated program cc1plus")
sys.exit(1 if attempt == 1 else 0)
"""


def test_a_compiler_killed_for_memory_gets_the_machine_to_itself(tmp_path: Path) -> None:
    told = Told()
    assert isinstance(compile_targets(job(tmp_path, KILLED), jobs=8, reporter=told), float)
    assert tries(tmp_path) == ["8", "1"]
    assert "out-of-memory" in told.warnings[0]


def test_a_second_try_keeps_the_log_of_the_first(tmp_path: Path) -> None:
    compile_targets(job(tmp_path, KILLED), jobs=8, reporter=Told())
    assert "Killed signal" in (tmp_path / "compile.log").read_text()
    assert (tmp_path / "compile-again.log").exists()


def test_ninja_that_is_killed_itself_is_told_apart_from_an_error(tmp_path: Path) -> None:
    body = "import signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    outcome = failure(compile_targets(job(tmp_path, body), jobs=2, reporter=Told()))
    assert outcome.kind.kind == "killed"
    assert "--jobs 1" in outcome.error.hint


@pytest.mark.parametrize("words", ["No space left on device", "Disk quota exceeded"])
def test_a_full_disk_has_its_own_exit_code_and_no_second_try(tmp_path: Path, words: str) -> None:
    body = f'print("FAILED: a.o\\nfatal error: error writing to a.s: {words}")\nsys.exit(1)\n'
    outcome = failure(compile_targets(job(tmp_path, body), jobs=4, reporter=Told()))
    assert isinstance(outcome.error, DiskError)
    assert outcome.error.code is ExitCode.DISK
    assert tries(tmp_path) == ["4"]


def test_a_plain_error_is_not_tried_again(tmp_path: Path) -> None:
    body = 'print("FAILED: a.o\\na.cpp:1:1: error: expected primary")\nsys.exit(1)\n'
    outcome = failure(compile_targets(job(tmp_path, body), jobs=4, reporter=Told()))
    assert isinstance(outcome.error, BuildError)
    assert outcome.error.kind == "compile-failed"
    assert outcome.error.tail[-1] == "a.cpp:1:1: error: expected primary"
    assert "ninja" in outcome.error.command
    assert tries(tmp_path) == ["4"]


def test_a_failure_after_megabytes_of_warnings_is_still_found(tmp_path: Path) -> None:
    body = (
        'sys.stdout.write("a.cpp:1: warning: x\\n" * 900_000)\n'
        'print("FAILED: b.o\\nvirtual memory exhausted: Cannot allocate memory")\nsys.exit(1)\n'
    )
    outcome = failure(compile_targets(job(tmp_path, body), jobs=1, reporter=Told()))
    assert outcome.error.kind == "out-of-memory"
    assert "FAILED: b.o" in outcome.error.tail


def test_a_time_limit_is_no_stall_and_keeps_what_is_done(tmp_path: Path) -> None:
    body = 'while True:\n    print("busy", flush=True)\n    time.sleep(0.05)\n'
    outcome = failure(compile_targets(job(tmp_path, body, total_s=0.8), jobs=2, reporter=Told()))
    assert outcome.kind.kind == "time-limit"
    assert "go on" in outcome.error.hint
    assert tries(tmp_path) == ["2"]
