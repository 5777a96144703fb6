from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from llamawright.errors import ToolMissingError
from llamawright.process import Command, Ending, Limits, ask, base_environment, run


def python(code: str, *, cwd: Path, **env: str) -> Command:
    return Command(argv=(sys.executable, "-c", code), cwd=cwd, env=base_environment(env))


def test_output_of_both_streams_is_kept_and_stdout_apart(tmp_path: Path) -> None:
    code = "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr)"
    result = run(python(code, cwd=tmp_path), limits=Limits(total_s=20), log=tmp_path / "log")
    assert result.ok
    assert result.stdout == "out\n"
    assert sorted(result.output.split()) == ["err", "out"]
    assert sorted((tmp_path / "log").read_text().split()) == ["err", "out"]


def test_an_unfinished_last_line_reaches_the_watcher(tmp_path: Path) -> None:
    seen: list[str] = []
    code = "import sys; sys.stdout.write('a\\nno newline')"
    run(python(code, cwd=tmp_path), limits=Limits(total_s=20), watch=lambda x: seen.append(x.text))
    assert seen == ["a", "no newline"]


def test_the_environment_is_an_allow_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMAKE_GENERATOR", "Unix Makefiles")
    monkeypatch.setenv("CXXFLAGS", "-O0")
    code = "import os; print(sorted(os.environ))"
    text = run(python(code, cwd=tmp_path, MINE="1"), limits=Limits(total_s=20)).stdout
    assert "MINE" in text
    assert "LC_ALL" in text
    assert "CMAKE_GENERATOR" not in text
    assert "CXXFLAGS" not in text


def test_stdin_is_closed(tmp_path: Path) -> None:
    code = "import sys; print(repr(sys.stdin.read()))"
    assert run(python(code, cwd=tmp_path), limits=Limits(total_s=20)).stdout.strip() == "''"


def test_the_time_limit_ends_the_whole_tree(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    result = run(python(code, cwd=tmp_path), limits=Limits(total_s=1.0))
    assert result.ending is Ending.TIMED_OUT
    assert result.seconds < 10
    assert not psutil.pid_exists(int(result.stdout.split()[0]))


def test_a_stopped_clock_without_cpu_is_a_stall(tmp_path: Path) -> None:
    code = "import time; print('half', flush=True); time.sleep(60)"
    limits = Limits(total_s=30, stall_s=1.0)
    result = run(python(code, cwd=tmp_path), limits=limits)
    assert result.ending is Ending.STALLED
    assert result.tail == ("half",)


def test_silent_work_is_no_stall(tmp_path: Path) -> None:
    code = "import time; t = time.time()\nwhile time.time() - t < 2.5: pass"
    result = run(python(code, cwd=tmp_path), limits=Limits(total_s=30, stall_s=1.0))
    assert result.ok


def test_endless_output_hits_the_cap(tmp_path: Path) -> None:
    code = "import sys\nwhile True: sys.stdout.write('>')"
    limits = Limits(total_s=30, output_cap=1 << 20)
    assert run(python(code, cwd=tmp_path), limits=limits).ending is Ending.OUTPUT_CAP


def test_the_watcher_can_stop_the_run(tmp_path: Path) -> None:
    code = "import time; print('enough', flush=True); time.sleep(60)"
    command = python(code, cwd=tmp_path)
    result = run(command, limits=Limits(total_s=30), watch=lambda line: line.text == "enough")
    assert result.ending is Ending.STOPPED
    assert result.seconds < 10


def test_a_signal_shows_as_negative_status(tmp_path: Path) -> None:
    code = "import os; os.kill(os.getpid(), 11)"
    result = run(python(code, cwd=tmp_path), limits=Limits(total_s=20))
    assert result.returncode == -signal.SIGSEGV
    assert not result.ok


@pytest.mark.parametrize("kind", ["absent", "not executable", "wrong format"])
def test_what_cannot_start_is_told(tmp_path: Path, kind: str) -> None:
    program = tmp_path / "tool"
    if kind != "absent":
        program.write_bytes(b"\x7fELF not really")
        program.chmod(0o755 if kind == "wrong format" else 0o644)
    with pytest.raises(ToolMissingError) as caught:
        ask((str(program),))
    assert "could not be started" in caught.value.what
    assert caught.value.why
    assert caught.value.hint


def test_the_pasteable_line_repeats_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    command = python("import os; print(os.environ['MINE'])", cwd=folder, MINE="a b")
    shell = subprocess.run(
        command.pasteable, shell=True, capture_output=True, text=True, check=True
    )
    assert shell.stdout == "a b\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_a_long_run_dies_with_its_parent(tmp_path: Path) -> None:
    code = f"""
import os, sys; sys.path.insert(0, {str(Path("src").absolute())!r})
from pathlib import Path
from llamawright.process import *
c = Command(argv=("/bin/sh", "-c", "echo $$ > pid; exec sleep 60"), cwd=Path({str(tmp_path)!r}),
            env=base_environment())
run(c, limits=Limits(total_s=100))
"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    mark = tmp_path / "pid"
    limit = time.monotonic() + 15
    while not (mark.exists() and mark.read_text().strip()) and time.monotonic() < limit:
        time.sleep(0.05)
    child = int(mark.read_text())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    limit = time.monotonic() + 5
    while psutil.pid_exists(child) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not psutil.pid_exists(child)
