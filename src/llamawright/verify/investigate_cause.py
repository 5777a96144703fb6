"""All that was seen to its first cause, in one sentence with its evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from llamawright.model.investigation import Cause, Frame, Halt, Message, Thread
from llamawright.verify.investigate_case import Case
from llamawright.verify.patterns import DRIVER_LIBRARIES

NULL_PAGE = 1 << 16
# What stands between a program's mistake and the place where it stops: the C library's way to
# end a program, and the C++ library's.
PASSING = re.compile(
    r"^(__?)?(pthread_kill|raise|abort|kill|gsignal|libc_message|assert|malloc_printerr|exit|Exit)"
    r"|^__pthread_kill|^__GI_|^__run_exit_handlers|^__cxa_|^_Unwind|^std::terminate|^__gnu_cxx"
    r"|^__cxxabiv1|^ggml_uncaught_exception"
    r"|^__verbose_terminate|^ggml_abort|^std::__throw|^__restore_rt|^clone3?$|^start_thread"
)
SYSTEM = re.compile(r"^(libc|libm|libpthread|libstdc\+\+|libgcc_s|ld-linux[^.]*)[.-]")
SEGFAULT = re.compile(r"segfault at (\S+) .* in (\S+?)\[([0-9a-f]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that speaks of a cause. ``kernel`` are events of the device itself."""

    case: Case
    halt: Halt | None
    messages: tuple[Message, ...]
    kernel: tuple[str, ...]
    artifact: str
    reproduced: int


def first_cause(seen: Seen) -> Cause:
    """Return the cause that came first.

    The device's own word goes before an instrument's message, that before the place where the
    program stopped, and that before what the program said.
    """
    sure = [m for m in seen.messages if not m.doubt]
    errors = [m for m in sure if "(warning)" not in m.id and "performance" not in m.id]
    if seen.kernel:
        return Cause(told=f"the device: {seen.kernel[0]}", evidence="the kernel's log")
    if errors:
        where = f"; then it stopped: {stopped(seen.halt, seen.artifact)}" if seen.halt else ""
        told = f"{errors[0].id}: {errors[0].text}{where}"
        return Cause(told=told, evidence=errors[0].source)
    if seen.halt is not None:
        return Cause(told=stopped(seen.halt, seen.artifact), evidence=seen.halt.seen_by)
    told = f"{seen.case.failure}: {seen.case.why}"
    if not seen.reproduced and seen.case.failure:
        told = f"not found: it did not happen again ({told})"
    return Cause(told=told, evidence="the run's own log")


def stopped(halt: Halt, artifact: str) -> str:
    """Return where a program stopped as a sentence."""
    first = halt.threads[0] if halt.threads else Thread(name="")
    frame = culprit(first.frames)
    if halt.signal == "hang":
        return _hanging(halt, artifact)
    at = place(frame, artifact) if frame else "an unknown place"
    how = f" ({halt.instruction})" if halt.instruction and halt.address else ""
    null = f", {address_word(halt.address)}" if halt.address else ""
    thread = f" on thread {first.name}" if first.name else ""
    other = meanwhile(halt, artifact)
    return f"{halt.signal} in {at}{how}{null}{thread}{other}"


def address_word(address: str) -> str:
    """Return what an address tells: those near zero are null pointers."""
    value = int(address, 16)
    if value == 0:
        return "a null pointer"
    return f"address {address}" + (", a null pointer" if value < NULL_PAGE else "")


def culprit(frames: Sequence[Frame]) -> Frame | None:
    """Return the first call that is nobody's way to end a program, nor a system library's."""
    own = [f for f in frames if not PASSING.match(f.function)]
    return next((f for f in own if not _of_system(f)), next(iter(own or frames), None))


def place(frame: Frame, artifact: str) -> str:
    """Return a call in words: its function, module and offset, and whose it is."""
    name = PurePath(frame.module).name
    offset = f"+0x{frame.offset:x}" if frame.offset is not None else ""
    whose = "the artifact's " if artifact and frame.module.startswith(artifact) else ""
    whose = "the driver's " if DRIVER_LIBRARIES.match(name) else whose
    module = f"{whose}{name}{offset}" if name else frame.source or "unknown memory"
    return module if frame.function in ("", "??") else f"{frame.function}, {module}"


def meanwhile(halt: Halt, artifact: str) -> str:
    """Return what the artifact itself was at, when it was another's thread that stopped."""
    first, *others = halt.threads or (Thread(name=""),)
    if any(_of_artifact(f, artifact) for f in first.frames):
        return _called_by(first, artifact)
    for thread in others:
        frame = next((f for f in thread.frames if _of_artifact(f, artifact)), None)
        # Threads that wait for work to do stand in the C++ library's condition variables.
        if frame is not None and frame.function not in ("", "??") and not _idle(frame):
            return f", while {place(frame, artifact)} was waiting"
    return ""


def _called_by(thread: Thread, artifact: str) -> str:
    frame = culprit(thread.frames)
    own = next((f for f in thread.frames if _of_artifact(f, artifact)), None)
    return f", called by {place(own, artifact)}" if own is not None and own != frame else ""


def _hanging(halt: Halt, artifact: str) -> str:
    """Return the thread that tells most: one that runs or waits below the artifact's code."""
    ranked = sorted(halt.threads, key=lambda t: _interest(t, artifact), reverse=True)
    thread = ranked[0] if ranked else Thread(name="")
    frame = culprit(thread.frames)
    top = thread.frames[0] if thread.frames else None
    own = next((f for f in thread.frames if _of_artifact(f, artifact)), None)
    told = [f"hangs in {place(frame, artifact)}" if frame else "hangs"]
    if top is not None and frame is not None and top != frame:
        told.append(f"inside {top.function}")
    if own is not None and own != frame:
        told.append(f"called by {place(own, artifact)}")
    if thread.waits:
        told.append(f"thread {thread.name or '?'} {thread.waits}")
    return ", ".join(told)


def _interest(thread: Thread, artifact: str) -> tuple[bool, bool, int]:
    own = [f for f in thread.frames if _of_artifact(f, artifact) and not _idle(f)]
    return bool(own), thread.waits.startswith("runs"), len(own)


def _idle(frame: Frame) -> bool:
    """Whether a call belongs to a pool that waits for work: the log's writer, ggml's threads."""
    return "common_log" in frame.function or "threadpool" in frame.function


def _of_artifact(frame: Frame, artifact: str) -> bool:
    return bool(artifact) and frame.module.startswith(artifact)


def _of_system(frame: Frame) -> bool:
    return SYSTEM.match(PurePath(frame.module).name) is not None


def segfaults(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the kernel's own notes of crashes: they name module and offset without any tool."""
    return tuple(line for line in lines if SEGFAULT.search(line))
