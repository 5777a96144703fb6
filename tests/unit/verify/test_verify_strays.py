"""A process in a session of its own, without a parent, is found and ended all the same."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from llamawright.verify.strays import MARK, end_marked, no_strays

# Forks twice and begins a session in between, as a daemon does; the grandchild tells its pid.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1] + ".part", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        time.sleep(300)
    os._exit(0)
os.wait()
"""
posix = pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")


def daemon(place: Path, mark: dict[str, str]) -> psutil.Process:
    """Start a process that nobody's tree holds."""
    argv = [sys.executable, "-I", "-c", DAEMON, str(place)]
    subprocess.run(argv, env={**os.environ, **mark}, check=True, timeout=30)
    deadline = time.monotonic() + 10
    while not place.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return psutil.Process(int(place.read_text()))


def alive(process: psutil.Process) -> bool:
    """Whether it still runs: a dead one stays listed where nobody waits for orphans."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@posix
def test_a_daemon_does_not_outlive_its_run(tmp_path: Path) -> None:
    with no_strays() as mark:
        left = daemon(tmp_path / "pid", mark)
        assert alive(left)
    assert not alive(left)


def interrupted(place: Path, found: list[psutil.Process]) -> None:
    with no_strays() as mark:
        found.append(daemon(place, mark))
        raise KeyboardInterrupt


@posix
def test_it_is_ended_when_the_run_raises(tmp_path: Path) -> None:
    found: list[psutil.Process] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "pid", found)
    assert not alive(found[0])


@posix
def test_another_runs_processes_stay(tmp_path: Path) -> None:
    other = daemon(tmp_path / "pid", {MARK: "another"})
    try:
        with no_strays():
            pass
        assert end_marked("nobody") == 0
        assert alive(other)
    finally:
        assert end_marked("another") == 1
    assert not alive(other)


def test_every_run_has_a_mark_of_its_own() -> None:
    with no_strays() as one, no_strays() as two:
        assert one[MARK] != two[MARK]


def test_the_own_process_is_never_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "own")
    assert end_marked("own") == 0
