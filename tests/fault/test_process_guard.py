"""What a parent that was killed leaves running is ended, grandchildren and all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from llamawright import paths
from llamawright.process_guard import left_over

# A shell that starts a worker and ignores SIGTERM: as cmake with a compiler that goes on.
PARENT = """
import sys; sys.path[:0] = {path!r}
from pathlib import Path
from llamawright.process import Command, Limits, run
script = 'trap "" TERM; (trap "" TERM; echo $$ > {pid}; while :; do sleep 0.05; done) & wait'
run(Command(argv=("/bin/sh", "-c", script), cwd=Path("/"), env={{"PATH": "/usr/bin:/bin"}}),
    limits=Limits(total_s={seconds}))
"""


def start(folder: Path, seconds: float) -> tuple[subprocess.Popen[bytes], int]:
    note = folder / "pid"
    code = PARENT.format(path=sys.path, pid=note, seconds=seconds)
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    deadline = time.monotonic() + 20
    while not (note.is_file() and note.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    return parent, int(note.read_text())


def gone(group: int, within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends trees by other means")
def test_grandchildren_of_a_killed_parent_are_ended_though_they_ignore_sigterm(
    tmp_path: Path,
) -> None:
    parent, group = start(tmp_path, 600)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    ended = gone(group)
    if not ended:
        os.killpg(group, signal.SIGKILL)
    assert ended


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends trees by other means")
def test_the_guard_itself_ends_with_its_parent(tmp_path: Path) -> None:
    parent, group = start(tmp_path, 600)
    guards = [
        p for p in psutil.process_iter(["cmdline"])
        if "process_guard.py" in " ".join(p.info["cmdline"] or ()) and p.ppid() == parent.pid
    ]  # fmt: skip
    assert len(guards) == 1
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone(group)
    assert not psutil.wait_procs(guards, timeout=5)[1]


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        ([], set()),
        (["+12\n", "+13\n", "-12\n"], {13}),
        (["+12\n", "-12\n", "+12\n"], {12}),
        (["-12\n"], set()),
        (["+\n", "+x\n", "\n", "+1 2\n", "+12"], {12}),
    ],
)
def test_only_what_was_not_taken_back_is_ended(lines: list[str], groups: set[int]) -> None:
    assert left_over(lines) == groups


def test_a_folder_that_gets_a_last_file_while_it_is_removed_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "LAST_WRITE_S", 0.0)
    root = tmp_path / "tree"
    (root / "a").mkdir(parents=True)
    rmdir = os.rmdir
    late: list[Path] = []

    def write_first(path: str, **place: int) -> None:
        if not late:
            late.append(root / "a" / "late.o")
            late[0].write_text("written by a compiler of a killed run")
        rmdir(path, **place)

    monkeypatch.setattr(os, "rmdir", write_first)
    paths.remove_tree(root)
    assert late
    assert not root.exists()
