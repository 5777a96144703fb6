"""What the kernel shows of a process's threads, from a ``/proc`` of our own and the real one."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import psutil
import pytest

from llamawright.verify.investigate_stacks import MOST_THREADS, read_stacks


def task(proc: Path, tid: int, **files: str) -> None:
    folder = proc / "7" / "task" / str(tid)
    folder.mkdir(parents=True)
    given = {"comm": f"t{tid}", "stat": f"{tid} (a) b) S 1 2", **files}
    for name, text in given.items():
        (folder / name).write_text(f"{text}\n")


def test_a_thread_that_waits_says_for_what(tmp_path: Path) -> None:
    task(tmp_path, 7, comm="llama", wchan="futex_wait_queue", syscall="202 0x0 0x0")
    (found,) = read_stacks(7, proc=tmp_path)
    assert found.name == "llama"
    assert found.waits == "sleeps, in futex, kernel function futex_wait_queue"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"stat": "7 (x) R 1"}, "runs"),
        ({"stat": "7 (x) D 1"}, "cannot be interrupted"),
        ({"syscall": "16 0x3 0xc0"}, "in ioctl"),
        ({"syscall": "999 0x3"}, "in system call 999"),
        ({"syscall": "running"}, "sleeps"),
        ({"syscall": "-1 0x7ffd 0x7f"}, "sleeps"),
        ({"stack": "[<0>] f+0x1/0x2\n[<0>] g_h+0x3/0x4"}, "kernel stack f < g_h"),
        ({"stat": ""}, ""),
    ],
)  # fmt: skip
def test_every_state_is_a_word(tmp_path: Path, files: dict[str, str], words: str) -> None:
    task(tmp_path, 7, **files)
    (found,) = read_stacks(7, proc=tmp_path)
    assert words in found.waits


def test_a_kernel_that_hides_it_shows_nothing_odd(tmp_path: Path) -> None:
    task(tmp_path, 7, wchan="0")
    (found,) = read_stacks(7, proc=tmp_path)
    assert found.waits == "sleeps"


def test_threads_come_by_their_numbers(tmp_path: Path) -> None:
    for tid in (100, 9, 20):
        task(tmp_path, tid)
    (tmp_path / "7" / "task" / "odd").mkdir()
    assert [t.name for t in read_stacks(7, proc=tmp_path)] == ["t9", "t20", "t100"]


def test_thousands_of_threads_are_some(tmp_path: Path) -> None:
    for tid in range(200):
        task(tmp_path, tid)
    assert len(read_stacks(7, proc=tmp_path)) == MOST_THREADS


def test_a_process_that_is_gone_has_no_threads(tmp_path: Path) -> None:
    assert read_stacks(7, proc=tmp_path) == ()


def test_a_thread_that_ends_meanwhile_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "7" / "task" / "7").mkdir(parents=True)
    (found,) = read_stacks(7, proc=tmp_path)
    assert (found.name, found.waits) == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the real /proc")
def test_this_process_itself_is_read() -> None:
    stop = threading.Event()
    worker = threading.Thread(target=stop.wait)
    worker.start()
    try:
        found = read_stacks(psutil.Process().pid)
        assert len(found) >= 2
        assert all(t.name for t in found)
    finally:
        stop.set()
        worker.join()
