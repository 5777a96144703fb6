"""One round of a soak: a fresh process loads, generates and ends, watched from outside."""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import dataclass, replace
from itertools import pairwise

import psutil

from llamawright.model.recipe import Prompt, SoakRules
from llamawright.model.soak import SoakRound
from llamawright.process import Ending
from llamawright.verify import commands
from llamawright.verify.commands import WHOLE_PROMPT, Target
from llamawright.verify.conclude import Attempt
from llamawright.verify.judge import cut_off, run_failure
from llamawright.verify.logs import read_load
from llamawright.verify.memory import MemoryWatch, watching
from llamawright.verify.nvidia import find_smi, list_cards
from llamawright.verify.runs import Stage, thread_count
from llamawright.verify.sampling import vram_used
from llamawright.verify.supervise import Finished, Phase

ROUND_RUN = "soak round"
ANSWER_DIGITS = 16
# A driver gives a dead process's memory back within moments.
LOOKS_AFTER, PAUSE_S = 10, 0.1


@dataclass(slots=True)
class PeakRss:
    """The most memory of the child's own that was resident, in bytes."""

    peak: int = 0

    def __call__(self, pid: int, _phase: Phase) -> None:
        """Look at the child; one that has just ended keeps its last figure."""
        with contextlib.suppress(psutil.Error):
            self.peak = max(self.peak, int(psutil.Process(pid).memory_info().rss))


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A device's used memory around a round, in bytes; ``source`` says who told."""

    before: int | None
    peak: int | None
    after: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Rounds:
    """Takes rounds with the install, the device and the environment of a proof."""

    attempt: Attempt
    rules: SoakRules

    @property
    def tokens(self) -> int:
        """Return how many tokens a round generates."""
        slow = self.attempt.chosen.device.software or self.attempt.setting.cpu
        return self.rules.software_tokens if slow else self.rules.tokens

    def take(self, number: int, session: int, *, first: bool, at: float) -> SoakRound:
        """Run once; ``at`` are the seconds of the soak so far."""
        attempt, rss = self.attempt, PeakRss()
        began = time.monotonic()
        with watching(attempt.chosen.device, cpu=attempt.setting.cpu) as watch:

            def sample(pid: int, phase: Phase) -> None:
                watch.sampler(pid, phase)
                rss(pid, phase)

            run = self._stage(number).run(
                ROUND_RUN,
                self._command(),
                {**attempt.setting.scene.env, **attempt.chosen.env},
                on_device=True,
                sample=sample,
            )
        memory = readings(watch, cpu=attempt.setting.cpu)
        kind, why = self._failure(run) or ("", "")
        seconds = time.monotonic() - began
        return SoakRound(
            number=number,
            session=session,
            first=first,
            at=round(at + seconds, 3),
            seconds=round(seconds, 3),
            load_s=round(run.marks.get(Phase.FIRST_TOKEN, 0.0), 4),
            tps=speed_of(run.tokens),
            answer=digest_of(run.stdout),
            exit=run.returncode if run.ending is Ending.EXITED else None,
            phase=str(run.phase),
            rss=rss.peak or None,
            memory_before=memory.before,
            memory_peak=memory.peak,
            memory_after=memory.after,
            memory_source=memory.source,
            text=run.stdout,
            failure=kind,
            why=why,
        )

    def _stage(self, number: int) -> Stage:
        """Return the proof's stage; the journal names the round."""
        stage = self.attempt.course.stage
        return replace(stage, facts={**stage.facts, "round": str(number)})

    def _command(self) -> tuple[str, ...]:
        attempt, verification = self.attempt, self.attempt.course.verification
        prompt = Prompt(text=verification.prompts[-1].text, tokens=self.tokens)
        device = "" if attempt.setting.cpu else attempt.chosen.device.id
        return commands.greedy(
            attempt.setting.install.program("llama-completion"),
            attempt.course.model,
            prompt,
            Target(device=device, threads=thread_count()),
            batch=WHOLE_PROMPT,
        )

    def _failure(self, run: Finished) -> tuple[str, str] | None:
        """Return what is wrong with a run, one that left the device in silence too."""
        patterns = self.attempt.setting.stage.patterns
        failure = run_failure(run) or cut_off(run, patterns)
        if failure is not None or self.attempt.setting.cpu:
            return failure
        facts = read_load(run.lines, patterns)
        device, (done, every) = self.attempt.chosen.device.id, facts.offloaded or (0, 0)
        if done >= max(1, every) and device in facts.using:
            return None
        used = ", ".join(facts.using) or "the CPU"
        kind = "partly-offloaded" if done else "silent-cpu"
        return kind, f"{run.task.name}: {done}/{every} layers on {used}, asked for {device}"


def readings(watch: MemoryWatch, *, cpu: bool) -> Readings:
    """Return the device's memory before, at most and after, from whoever can tell.

    A software device's memory is the process's own and goes with it.
    """
    if cpu or watch.device.software:
        own = watch.sampler.private or None
        source = "/proc/PID/status, the process's own" if own else "not shown by this system"
        return Readings(before=None, peak=own, after=None, source=source)
    pci = watch.place
    if pci in watch.monitor.before:
        before, peak = watch.monitor.before[pci], watch.monitor.peak[pci]
        return Readings(before=before, peak=peak, after=_after(pci, before), source="nvidia-smi")
    if pci in watch.vram_before:
        before = watch.vram_before[pci]
        peak = max(before, watch.sampler.vram.get(pci, 0))
        source = "sysfs mem_info_vram_used"
        return Readings(before=before, peak=peak, after=_after(pci, before), source=source)
    if pci in watch.sampler.drm:
        peak = watch.sampler.drm[pci]
        return Readings(before=None, peak=peak, after=None, source="/proc/PID/fdinfo")
    return Readings(before=None, peak=None, after=None, source="not shown by this system")


def _after(pci: str, before: int) -> int | None:
    """Return the memory that is still used: the least of some looks, until it is as before."""
    smi, seen = find_smi(), []
    for _ in range(LOOKS_AFTER):
        cards = {c.pci: c.used for c in list_cards(smi)} or vram_used()
        if pci not in cards:
            break
        seen.append(cards[pci])
        if cards[pci] <= before:
            break
        time.sleep(PAUSE_S)
    return min(seen, default=None)


def speed_of(tokens: tuple[float, ...]) -> float | None:
    """Return tokens per second between the first and the last that came, by our clock."""
    steps = [b - a for a, b in pairwise(tokens)]
    return round(len(steps) / sum(steps), 3) if steps and sum(steps) > 0 else None


def digest_of(text: str) -> str:
    """Return what two equal answers share."""
    return hashlib.sha256(text.encode()).hexdigest()[:ANSWER_DIGITS]
