"""The case under one instrument after the other; what an instrument cannot do it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from llamawright.model.investigation import Frame, Halt, Instrument, Message, Thread, Use
from llamawright.model.platform import Backend
from llamawright.verify import (
    investigate_gdb,
    investigate_layers,
    investigate_sanitizer,
)
from llamawright.verify.investigate_lab import Lab
from llamawright.verify.investigate_stacks import read_stacks
from llamawright.verify.investigate_tools import (
    Absent,
    Debugger,
    Offers,
    find_debugger,
    find_layers,
)
from llamawright.verify.judge import signal_name
from llamawright.verify.sampling import ProcSampler
from llamawright.verify.supervise import Finished, Phase

TRACER = Path(__file__).with_name("investigate_tracer.py")
TRACE = "ptrace"
# For a debugger to read symbols and print the stacks of a program with many threads.
TALK_S = 40.0


@dataclass(slots=True)
class Interrupter:
    """Interrupts a program that runs under a tracer, once a phase has taken too long.

    Called with the tracer's pid; the SIGINT goes to the program itself. ``waits`` are its
    threads at that moment, as the kernel shows them.
    """

    limit_s: Callable[[Phase], float]
    clock: Callable[[], float] = time.monotonic
    phase: Phase | None = None
    since: float = 0.0
    sent: bool = False
    waits: tuple[Thread, ...] = ()

    def __call__(self, pid: int, phase: Phase) -> None:
        """Look at the run; about four times a second."""
        now = self.clock()
        if phase is not self.phase:
            self.phase, self.since = phase, now
        if self.sent or now - self.since <= self.limit_s(phase):
            return
        self.sent = True
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(pid).children():
                self.waits = self.waits or read_stacks(child.pid)
                child.send_signal(signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one instrument saw."""

    instrument: Instrument
    halt: Halt | None = None
    messages: tuple[Message, ...] = ()
    files: tuple[Path, ...] = ()


def look_at_stack(lab: Lab, offers: Offers) -> Looked:
    """Run the case under a debugger; without one under our own tracer."""
    debugger = find_debugger(offers)
    if isinstance(debugger, Absent):
        traced = _trace(lab)
        told = f"{debugger.told}. {traced.instrument.told}"
        return _replaced(traced, told)
    return _debug(lab, debugger)


def _debug(lab: Lab, debugger: Debugger) -> Looked:
    script = lab.work / "gdb-commands.txt"
    script.write_text(
        investigate_gdb.commands(lab.case.env, thrown=lab.case.silent), encoding="utf-8"
    )
    argv = investigate_gdb.argv(str(debugger.program), str(script), lab.case.argv)
    env = {**_plain_environment(lab.work), **dict(debugger.env)}
    watch = Interrupter(lab.bounds().of)
    done = lab.run(
        "under gdb",
        argv,
        env,
        on_device=lab.case.on_device,
        sample=watch,
        extra_s=TALK_S,
        judged=False,
    )
    output = _output(done)
    halt = investigate_gdb.read_halt(output, hung=watch.sent)
    if halt is not None and watch.waits:
        halt = with_waits(halt, watch.waits)
    told = _told(halt) if halt else investigate_gdb.why_not(output)
    instrument = Instrument(
        name=investigate_gdb.NAME,
        use=Use.USED if halt else Use.UNABLE if done else Use.SKIPPED,
        told=told if done else "the time was over",
        version=debugger.version,
        where=debugger.where,
    )
    fallback = _only_waits(watch.waits) if halt is None else None
    return Looked(instrument=instrument, halt=halt or fallback)


def _trace(lab: Lab) -> Looked:
    out = lab.work / "trace.json"
    argv = (sys.executable, "-I", "-S", str(TRACER), str(out), *lab.case.argv)
    watch = Interrupter(lab.bounds().of)
    done = lab.run("under a tracer", argv, lab.case.env, on_device=lab.case.on_device,
                   sample=watch, extra_s=TALK_S, judged=False)  # fmt: skip
    halt = read_trace(out, hung=watch.sent)
    if halt is not None and watch.waits:
        halt = with_waits(halt, watch.waits)
    told = "the tracer saw no stop: the program ended by itself, or tracing is forbidden here"
    if halt is not None:
        told = f"without gdb: {_told(halt)}; calls are guessed from the stack, not unwound"
    use = Use.USED if halt else Use.UNABLE if done else Use.SKIPPED
    instrument = Instrument(name=TRACE, use=use, told=told, where="llamawright")
    return Looked(instrument=instrument, halt=halt or _only_waits(watch.waits))


def read_trace(path: Path, *, hung: bool) -> Halt | None:
    """Return what the tracer wrote; a file that is missing or torn is no halt."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        threads = tuple(_traced(t) for t in record["threads"])
        name = signal_name(-int(record["signal"]))
        address = f"0x{int(record['address']):x}" if name in investigate_gdb.OF_MEMORY else ""
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Halt(signal="hang" if hung else name, threads=threads, seen_by=TRACE, address=address)


def _traced(record: Mapping[str, object]) -> Thread:
    calls = record["calls"]
    rows = calls if isinstance(calls, list) else []
    frames = [
        Frame(number=i, function="??", module=str(module), offset=int(offset), guessed=i > 0)
        for i, (module, offset) in enumerate(rows)
    ]
    return Thread(name=str(record["name"]), frames=tuple(frames))


def with_waits(halt: Halt, waits: tuple[Thread, ...]) -> Halt:
    """Add what the kernel says of each thread; both lists go by the threads' numbers."""
    left = list(waits)
    threads = []
    for thread in halt.threads:
        same = next((w for w in left if w.name == thread.name), None)
        if same is not None:
            left.remove(same)
        threads.append(replace(thread, waits=same.waits) if same else thread)
    return replace(halt, threads=tuple(threads))


def _only_waits(waits: tuple[Thread, ...]) -> Halt | None:
    return Halt(signal="hang", threads=waits, seen_by="/proc") if waits else None


def look_at_layers(lab: Lab, offers: Offers) -> Looked:
    """Run the case with the validation layers between the program and its driver."""
    layers = find_layers(offers)
    if isinstance(layers, Absent):
        return _absent(investigate_layers.NAME, layers.told)
    settings, log = lab.work / "vk_layer_settings.txt", lab.work / "layers.log"
    settings.write_text(investigate_layers.SETTINGS.format(log=log), encoding="utf-8")
    log.unlink(missing_ok=True)
    sampler = ProcSampler()
    env = {**lab.case.env, **layers.environment(lab.case.env, settings)}
    done = lab.run("under validation layers", lab.case.argv, env, on_device=True, sample=sampler)
    text = _text(log)
    messages = investigate_layers.read_messages(text)
    loaded = bool(text) or any("VkLayer_khronos" in lib for lib in sampler.libraries)
    sure = [m for m in messages if not m.doubt]
    told = f"{len(sure)} messages, and {len(messages) - len(sure)} that say the layer is old"
    if not loaded:
        told = (
            "the Vulkan loader did not load them: the program ended before it asked for Vulkan, "
            "or the loader is older than the layers"
        )
    instrument = Instrument(
        name=investigate_layers.NAME,
        use=Use.SKIPPED if done is None else Use.USED if loaded else Use.UNABLE,
        told=told if done else "the time was over",
        version=layers.version,
        where=layers.where,
    )
    return Looked(instrument=instrument, messages=messages, files=(log,) if text else ())


def look_at_memory(lab: Lab) -> Looked:
    """Run the case under compute-sanitizer's memcheck."""
    program = investigate_sanitizer.find(os.environ)
    if program is None:
        told = "no CUDA toolkit here brings it: install cuda-sanitizer, or a whole toolkit"
        return _absent(investigate_sanitizer.NAME, told)
    log = lab.work / "compute-sanitizer.log"
    log.unlink(missing_ok=True)
    argv = investigate_sanitizer.argv(program, log, lab.case.argv)
    done = lab.run("under compute-sanitizer", argv, lab.case.env, judged=False)
    text = _text(log) or _output(done)
    messages = investigate_sanitizer.read_messages(text)
    said = investigate_sanitizer.summary(text)
    works = bool(messages) or said.startswith("ERROR SUMMARY")
    instrument = Instrument(
        name=investigate_sanitizer.NAME,
        use=Use.SKIPPED if done is None else Use.USED if works else Use.UNABLE,
        told=said or "it printed no summary: it was stopped, or does not know this driver",
        where="machine",
    )
    return Looked(instrument=instrument, messages=messages, files=(log,) if text else ())


def instruments_for(lab: Lab, backend: Backend, offers: Offers) -> Iterator[Callable[[], Looked]]:
    """Yield the instruments that fit a case, the one that names the place first."""
    if lab.case.stops:
        yield lambda: look_at_stack(lab, offers)
    if backend is Backend.VULKAN and lab.case.on_device:
        yield lambda: look_at_layers(lab, offers)
    if backend is Backend.CUDA and lab.case.on_device:
        yield lambda: look_at_memory(lab)


def _absent(name: str, told: str) -> Looked:
    return Looked(instrument=Instrument(name=name, use=Use.MISSING, told=told))


def _replaced(looked: Looked, told: str) -> Looked:
    return replace(looked, instrument=replace(looked.instrument, told=told))


def _told(halt: Halt) -> str:
    count = len(halt.threads)
    return f"{halt.signal}, with the stacks of {count} thread{'s' if count > 1 else ''}"


def _plain_environment(work: Path) -> dict[str, str]:
    """Return what a debugger itself needs: none of the program's variables."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {"PATH": path, "HOME": str(work), "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8"}


def _output(done: Finished | None) -> str:
    return "" if done is None else _text(done.task.log)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
