"""Run a program under Linux's ptrace and write down where it stopped, without a debugger.

Run as a program of its own: ``tracer.py OUT PROGRAM ARGUMENT …``; standard library only. A
signal that would end the program, or a SIGINT from outside, is written to OUT as JSON: the
signal, the address, and of each thread its registers and those values on its stack that point
behind a call instruction. Nothing is unwound, so some of them are left over from older calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TRACEME, CONT, GETEVENTMSG, GETSIGINFO, GETREGSET = 0, 7, 0x4201, 0x4202, 0x4204
SETOPTIONS = 0x4200
OPTIONS = 0x8 | 0x100000  # PTRACE_O_TRACECLONE, PTRACE_O_EXITKILL: it dies with us
PRSTATUS = 1
FATAL = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT,
                   signal.SIGSYS, signal.SIGTRAP, signal.SIGINT})  # fmt: skip
# Where program counter and stack pointer stand in NT_PRSTATUS, in words of eight bytes.
REGISTERS = {"x86_64": (16, 19), "aarch64": (32, 31)}
STACK_BYTES = 32 << 10
MOST_CALLS = 24
MOST_THREADS = 32
WALL = 0x40000000
PATIENCE_S = 2.0


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_LIBC.ptrace.restype = ctypes.c_long


def trace(request: int, pid: int, address: int = 0, data: int = 0) -> None:
    """Do one request; a refusal is an ``OSError``."""
    if _LIBC.ptrace(request, pid, address, data) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def registers(tid: int) -> tuple[int, int]:
    """Return a stopped thread's program counter and stack pointer."""
    raw = ctypes.create_string_buffer(512)
    vector = _Vector(ctypes.addressof(raw), len(raw))
    trace(GETREGSET, tid, PRSTATUS, ctypes.addressof(vector))
    pc, sp = REGISTERS[platform.machine()]
    word = struct.Struct("=Q")
    return word.unpack_from(raw.raw, pc * 8)[0], word.unpack_from(raw.raw, sp * 8)[0]


def fault_address(tid: int) -> int:
    """Return ``si_addr`` of the signal that a thread is stopped by."""
    raw = ctypes.create_string_buffer(128)
    trace(GETSIGINFO, tid, 0, ctypes.addressof(raw))
    return int(struct.unpack_from("=Q", raw.raw, 16)[0])


def mappings(pid: int) -> list[tuple[int, int, bool, str]]:
    """Return begin, end, whether it can be executed, and file of every mapping."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        columns = line.split(None, 5)
        begin, end = (int(x, 16) for x in columns[0].split("-"))
        name = columns[5].strip() if len(columns) > 5 else ""  # noqa: PLR2004 - the path's column
        found.append((begin, end, "x" in columns[1], name))
    return found


def place(address: int, mapped: list[tuple[int, int, bool, str]]) -> tuple[str, int]:
    """Return the file at an address and the distance from the file's start in memory."""
    hit = next((m for m in mapped if m[0] <= address < m[1]), None)
    if hit is None or not hit[3].startswith("/"):
        return "", 0
    return hit[3], address - min(m[0] for m in mapped if m[3] == hit[3])


def calls(pid: int, sp: int, mapped: list[tuple[int, int, bool, str]]) -> Iterator[int]:
    """Yield values on the stack that point right behind a call."""
    code = [m for m in mapped if m[2]]
    with contextlib.suppress(OSError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123
        memory.seek(sp)
        stack = memory.read(STACK_BYTES)
        for (value,) in struct.iter_unpack("=Q", stack[: len(stack) // 8 * 8]):
            if any(m[0] <= value < m[1] for m in code) and _behind_call(memory, value):
                yield value


def _behind_call(memory: object, address: int) -> bool:
    """Whether the bytes before an address are a call: E8 rel32, FF /2, or ARM's BL and BLR."""
    try:
        memory.seek(address - 7)  # type: ignore[attr-defined]
        before: bytes = memory.read(7)  # type: ignore[attr-defined]
    except OSError:
        return False
    if platform.machine() == "aarch64":
        word = int.from_bytes(before[3:7], "little")
        return word >> 26 == 0x25 or word & 0xFFFFFC1F == 0xD63F0000  # noqa: PLR2004 - BL, BLR
    indirect = any(before[-n] == 0xFF and before[-n + 1] >> 3 & 7 == 2 for n in (2, 3, 6, 7))  # noqa: PLR2004
    return before[2] == 0xE8 or indirect  # noqa: PLR2004


def thread(pid: int, tid: int, mapped: list[tuple[int, int, bool, str]]) -> dict[str, object]:
    """Return one stopped thread: its name and its calls, the first one is where it stands."""
    pc, sp = registers(tid)
    rows = [place(pc, mapped)]
    rows += [place(value - 1, mapped) for value in calls(pid, sp, mapped)]
    name = Path(f"/proc/{pid}/task/{tid}/comm").read_text(errors="replace").strip()
    return {"name": name, "calls": [r for i, r in enumerate(rows) if i == 0 or r[0]][:MOST_CALLS]}


def write_down(out: Path, pid: int, tid: int, number: int) -> None:
    """Write where every thread is; those that cannot be stopped in time are left out."""
    mapped = mappings(pid)
    threads = [thread(pid, tid, mapped)]
    for other in sorted(int(p.name) for p in Path(f"/proc/{pid}/task").iterdir()):
        if other != tid and len(threads) < MOST_THREADS and _stop(pid, other):
            with contextlib.suppress(OSError):
                threads.append(thread(pid, other, mapped))
    record = {"signal": number, "address": fault_address(tid), "threads": threads}
    out.write_text(json.dumps(record), encoding="utf-8")


def _stop(pid: int, tid: int) -> bool:
    if _LIBC.syscall(_TGKILL, pid, tid, int(signal.SIGSTOP)) < 0:
        return False
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if os.waitpid(tid, WALL | os.WNOHANG)[0] == tid:
                return True
        time.sleep(0.01)
    return False


_TGKILL = {"x86_64": 234, "aarch64": 131}.get(platform.machine(), 0)


def main(out: Path, argv: list[str]) -> int:
    """Run the program to its end; its status is ours."""
    if platform.machine() not in REGISTERS:
        sys.stderr.write("tracer: not made for this processor\n")
        return 3
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            trace(TRACEME, 0)
            os.execv(argv[0], argv)  # noqa: S606 - the tracer becomes the parent by this
        except OSError as error:
            sys.stderr.write(f"tracer: {error.strerror}\n")
            os._exit(3)
    return follow(out, pid)


def follow(out: Path, pid: int) -> int:
    """Let the program run from stop to stop until it ends."""
    os.waitpid(pid, WALL)
    trace(SETOPTIONS, pid, 0, OPTIONS)
    trace(CONT, pid)
    while True:
        tid, status = os.waitpid(-1, WALL)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if tid == pid:
                ended = os.waitstatus_to_exitcode(status)
                return ended if ended >= 0 else 128 - ended
            continue
        number = os.WSTOPSIG(status)
        # A new thread's first stop, and the note of its birth: both are the tracer's own.
        passed = 0 if number in (signal.SIGSTOP, signal.SIGTRAP) else number
        if passed in FATAL:
            write_down(out, pid, tid, number)
            os.kill(pid, signal.SIGKILL)
            _bury(pid)
            return 128 + number
        with contextlib.suppress(OSError):
            trace(CONT, tid, 0, passed)


def _bury(pid: int) -> None:
    """Wait for every thread's end: the first one's is only told after all the others'."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, WALL)[0] != pid:
            pass


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2:]))
