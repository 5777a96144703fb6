"""Our own tracer: real programs that crash, hang and end, under a real ptrace."""

from __future__ import annotations

import json
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from llamawright.verify.investigate_look import TRACER, read_trace

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="ptrace, on processors that it was made for",
)
ENDS = "import os, signal, sys, threading, time\n"


def traced(root: Path, body: str) -> tuple[subprocess.Popen[bytes], Path]:
    out = root / "trace.json"
    argv = [sys.executable, "-IS", str(TRACER), str(out), sys.executable, "-IS", "-c", ENDS + body]
    return subprocess.Popen(argv, stderr=subprocess.PIPE), out


def ended(child: subprocess.Popen[bytes]) -> int:
    _, said = child.communicate(timeout=30)
    if b"tracer: Operation not permitted" in said:
        pytest.skip("this system forbids tracing")
    return child.returncode


def test_a_crash_is_written_down(tmp_path: Path) -> None:
    child, out = traced(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")
    assert ended(child) == 128 + signal.SIGSEGV
    halt = read_trace(out, hung=False)
    assert halt is not None
    assert (halt.signal, halt.seen_by) == ("SIGSEGV", "ptrace")
    frames = halt.threads[0].frames
    assert not frames[0].guessed
    assert all(f.guessed for f in frames[1:])
    assert any("libc" in f.module or "python" in f.module for f in frames)


def test_the_address_that_was_touched_is_read(tmp_path: Path) -> None:
    child, out = traced(tmp_path, "import ctypes\nctypes.string_at(0xe8)")
    assert ended(child) == 128 + signal.SIGSEGV
    halt = read_trace(out, hung=False)
    assert halt is not None
    assert halt.address == "0xe8"


def test_a_program_that_ends_by_itself_leaves_no_note(tmp_path: Path) -> None:
    child, out = traced(tmp_path, "sys.exit(7)")
    assert ended(child) == 7
    assert read_trace(out, hung=False) is None


def test_threads_run_and_signals_of_the_program_arrive(tmp_path: Path) -> None:
    body = (
        "got = []\nsignal.signal(signal.SIGUSR1, lambda *_: got.append(1))\n"
        "t = [threading.Thread(target=time.sleep, args=(0.05,)) for _ in range(8)]\n"
        "[x.start() for x in t]\nos.kill(os.getpid(), signal.SIGUSR1)\n[x.join() for x in t]\n"
        "sys.exit(0 if got else 9)"
    )
    child, _ = traced(tmp_path, body)
    assert ended(child) == 0


def test_a_hang_is_interrupted_and_every_thread_is_seen(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    body = (
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        f"open({str(ready)!r}, 'w').close()\ntime.sleep(600)"
    )
    child, out = traced(tmp_path, body)
    until = time.monotonic() + 20
    while not ready.exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    for inner in psutil.Process(child.pid).children():
        inner.send_signal(signal.SIGINT)
    assert ended(child) == 128 + signal.SIGINT
    halt = read_trace(out, hung=True)
    assert halt is not None
    assert halt.signal == "hang"
    assert len(halt.threads) == 2


def test_when_the_tracer_is_killed_the_program_goes_with_it(tmp_path: Path) -> None:
    child, _ = traced(tmp_path, "time.sleep(600)")
    until = time.monotonic() + 20
    inner: list[psutil.Process] = []
    while not inner and time.monotonic() < until:
        inner = psutil.Process(child.pid).children()
        time.sleep(0.05)
    time.sleep(0.3)
    child.kill()
    ended(child)
    _, alive = psutil.wait_procs(inner, timeout=5)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    argv = [sys.executable, "-IS", str(TRACER), str(tmp_path / "out"), str(tmp_path / "gone")]
    done = subprocess.run(argv, capture_output=True, timeout=30, check=False)
    assert done.returncode != 0


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"threads": []}', '{"signal": 11, "address": 0, "threads": [{}]}',
     '{"signal": "x", "address": 0, "threads": []}', '{"signal": 11, "address": 0, "threads": 7}',
     '{"signal": 11, "address": 0, "threads": [{"name": "a", "calls": [[1]]}]}'],
)  # fmt: skip
def test_a_torn_note_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert read_trace(path, hung=False) is None


def test_a_note_of_a_signal_without_an_address_has_none(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    record = {"signal": 6, "address": 77, "threads": [{"name": "t", "calls": [["/lib/x", 5]]}]}
    path.write_text(json.dumps(record))
    halt = read_trace(path, hung=False)
    assert halt is not None
    assert (halt.signal, halt.address) == ("SIGABRT", "")
    assert halt.threads[0].frames[0].offset == 5
