"""Rounds, events and limits of a soak, each test changing one thing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.model.recipe import SoakRules, Threshold
from llamawright.model.soak import KernelEvent, SoakReport, SoakRound, Tie
from llamawright.model.verdict import Device, State
from llamawright.verify.soak_judge import drifts, limits_of_soak
from llamawright.verify.soak_record import Record
from llamawright.verify.soak_run import SoakRun
from reporter_kit import Told

MIB = 1 << 20
PCI = "0000:41:00.0"
DEVICE = Device(
    id="Vulkan0", name="Imaginary GPU 9000", backend="vulkan", memory=1 << 34, software=False,
    driver="fake 1.0", pci=PCI,
)  # fmt: skip
RULES = SoakRules(
    tokens=16,
    software_tokens=4,
    max_slowdown=Threshold(value=0.1, reason="a test of hardware"),
    max_software_slowdown=Threshold(value=0.5, reason="a test of software"),
    max_leak=Threshold(value=64.0 * MIB, reason="a test of memory"),
)
LIMITS = limits_of_soak(RULES, slow=False)


def soak_round(number: int, **changes: object) -> SoakRound:
    """Return an honest round of ten seconds on the imaginary card."""
    base = SoakRound(
        number=number, session=1, first=number == 1, at=number * 10.0, seconds=10.0, load_s=1.0,
        tps=100.0, answer="aaaa", exit=0, phase="done", rss=300 * MIB, memory_before=4 * MIB,
        memory_peak=500 * MIB, memory_after=4 * MIB, memory_source="nvidia-smi",
        text=" Paris." if number == 1 else "",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def series(
    count: int,
    *,
    seed: int = 1,
    noise: float = 0.02,
    speed: Callable[[float], float] = lambda _share: 1.0,
    **of_share: Callable[[float], object],
) -> tuple[SoakRound, ...]:
    """Return rounds whose speed follows a curve over the share of the time, with noise."""
    dice = random.Random(seed)
    made = []
    for number in range(1, count + 1):
        share = (number - 1) / max(1, count - 1)
        tps = 100.0 * speed(share) * (1 + dice.gauss(0, noise))
        more = {name: curve(share) for name, curve in of_share.items()}
        made.append(soak_round(number, tps=tps, **more))
    return tuple(made)


def event(tie: Tie = Tie.OURS, text: str = "NVRM: Xid (PCI:0000:41:00): 79") -> KernelEvent:
    return KernelEvent(kind="xid", text=text, pci=PCI if tie is Tie.OURS else "", tie=tie, at=5.0)


def soak_report(rounds: Sequence[SoakRound], **changes: object) -> SoakReport:
    """Return the report of rounds that nothing was wrong with."""
    base = SoakReport(
        state=State.VERIFIED, failure="", why="", hint="", artifact="tiny-vulkan.tar.zst",
        artifact_sha256="a" * 64, model="tiny.gguf", model_sha256="b" * 64, device=DEVICE,
        asked_s=1200.0, soaked_s=rounds[-1].at, count=len(rounds),
        sessions=len({r.session for r in rounds}), rounds=tuple(rounds),
        drifts=drifts(rounds, LIMITS), events=(), kernel_log="/dev/kmsg", kernel_read=True,
        answer=rounds[0].text, record="/store/soaks/key.jsonl", limits=LIMITS,
        date="2026-01-01T00:00:00+00:00", host=(("system", "Linux"),),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


@dataclass
class ScriptedLog:
    """A kernel's log that has lines after certain rounds."""

    after: dict[int, tuple[str, ...]] = field(default_factory=dict)
    looks: int = 0
    told: str = "a script"
    readable: bool = True
    closed: bool = False

    def new(self) -> tuple[str, ...]:
        self.looks += 1
        return self.after.get(self.looks, ())

    def close(self) -> None:
        self.closed = True


@dataclass
class Course:
    """Rounds that are made as they are asked for; ``stop_after`` is a kill in the middle."""

    change: Callable[[int], dict[str, object]] = lambda _number: {}
    stop_after: int | None = None
    seconds: float = 10.0
    asked: list[tuple[int, int, bool, float]] = field(default_factory=list)

    def take(self, number: int, session: int, *, first: bool, at: float) -> SoakRound:
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((number, session, first, at))
        told = {"text": " Paris.", **self.change(number)}
        return soak_round(number, session=session, first=first, at=at + self.seconds, **told)


def soak_run(
    folder: Path, course: Course, *, asked_s: float = 100.0, log: ScriptedLog | None = None,
    passed: State = State.VERIFIED, pci: str = PCI, told: Told | None = None,
) -> SoakRun:  # fmt: skip
    """Return the loop over scripted rounds with its record in a folder."""
    return SoakRun(
        take=course.take, record=Record(folder / "soaks" / "key.jsonl"),
        log=log or ScriptedLog(), pci=pci, limits=LIMITS, passed=passed, asked_s=asked_s,
        reporter=told or Told(),
    )  # fmt: skip
