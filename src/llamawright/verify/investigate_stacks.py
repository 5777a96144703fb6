"""What every thread of a running child waits for, by Linux's ``/proc``: no tool is needed."""

from __future__ import annotations

import contextlib
from pathlib import Path

from llamawright.model.investigation import Thread

PROC = Path("/proc")
MOST_THREADS = 64
# The calls in which programs wait, by the kernel's number for x86-64 (arch/x86/entry/syscalls).
CALLS = {
    0: "read", 1: "write", 7: "poll", 16: "ioctl", 23: "select", 24: "sched_yield", 34: "pause",
    35: "nanosleep", 45: "recvfrom", 47: "recvmsg", 61: "wait4", 202: "futex",
    219: "restart_syscall", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid",
    270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 449: "futex_waitv",
}  # fmt: skip
# How every call enters the kernel, whatever it is.
ENTRY = frozenset({"do_syscall_64", "entry_SYSCALL_64_after_hwframe", "el0_svc", "el0t_64_sync"})
STATES = {
    "R": "runs", "S": "sleeps", "D": "waits for a device and cannot be interrupted",
    "T": "is stopped", "t": "is traced", "Z": "has ended",
}  # fmt: skip


def read_stacks(pid: int, *, proc: Path = PROC) -> tuple[Thread, ...]:
    """Return every thread of a process with what the kernel says of it, the first one first."""
    folder = proc / str(pid) / "task"
    with contextlib.suppress(OSError):
        tids = sorted(
            (p for p in folder.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name)
        )
        return tuple(_thread(tid) for tid in tids[:MOST_THREADS])
    return ()


def _thread(task: Path) -> Thread:
    fields = _text(task / "stat").rpartition(")")[2].split()
    state = STATES.get(fields[0], fields[0]) if fields else ""
    call = _call(_text(task / "syscall"))
    # wchan is "0" for a thread that runs, and where the kernel hides it.
    inside = _text(task / "wchan")
    kernel = _kernel_stack(_text(task / "stack"))
    told = (
        state,
        f"in {call}" if call else "",
        f"kernel function {inside}" if inside not in ("", "0") and inside not in ENTRY else "",
        f"kernel stack {kernel}" if kernel else "",
    )
    return Thread(name=_text(task / "comm"), waits=", ".join(t for t in told if t))


def _call(text: str) -> str:
    number = text.partition(" ")[0]
    if not number.isdecimal():
        return ""
    return CALLS.get(int(number), f"system call {number}")


def _kernel_stack(text: str) -> str:
    """Return the calls inside the kernel; only root may read them."""
    rows = [line.partition("] ")[2].partition("+")[0] for line in text.splitlines()]
    return " < ".join(row for row in rows if row and row not in ENTRY)


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
