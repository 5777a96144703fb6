"""The runs of a comparison: each a supervised child that leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.errors import LlamawrightError
from llamawright.model.comparison import Letter
from llamawright.model.ports import Meter
from llamawright.model.recipe import Verification
from llamawright.process import tree_cpu_seconds
from llamawright.verify.commands import ALL_LAYERS, COMMON, Target
from llamawright.verify.compare_cache import fresh_caches, give_back
from llamawright.verify.compare_plan import Effort, Step, Turn
from llamawright.verify.compare_sides import Ready, refusal
from llamawright.verify.cuda_setup import JIT_S
from llamawright.verify.judge import rule_failure, run_failure
from llamawright.verify.logs import read_load
from llamawright.verify.memory import MemoryWatch, watching
from llamawright.verify.runs import Stage, compiling_limits, thread_count
from llamawright.verify.supervise import Finished, Phase, Sample

# A driver that compiles for longer than this is asked to once, not in every round.
MOST_FRESH_S = 60.0
# SmolLM2 makes about 1.3 tokens of an English word; other models are close to that.
TOKENS_PER_WORD = 1.3
LEAST_CONTEXT = 256
ROOM_FOR_MORE = 2
ALL_CORES = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One run and what was seen of it from outside.

    ``memory`` is the device memory's peak in bytes and ``memory_source`` who says so or why
    nobody does; ``cpu`` the child's processor time in per cent of one core; ``resident`` the
    share of the model that the page cache kept when it was asked to forget it.
    """

    turn: Turn
    run: Finished
    memory: int | None = None
    memory_source: str = ""
    cpu: float | None = None
    resident: float | None = None


@dataclass(slots=True)
class CpuWatch:
    """Processor seconds of a child and the time they took, at the last look."""

    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    spent: float = 0.0

    def __call__(self, pid: int, _phase: Phase) -> None:
        """Look at the child; one that has ended keeps its last figure."""
        spent = tree_cpu_seconds(pid)
        if spent >= self.spent and spent > 0:
            self.seconds, self.spent = self.clock() - self.began, spent

    @property
    def percent(self) -> float | None:
        """Return per cent of one core, ``None`` when the child was never seen."""
        return self.spent / self.seconds * ALL_CORES if self.seconds > 0 else None


@dataclass(slots=True, kw_only=True)
class Contest:
    """Both sides, the model and how much is computed; ``run`` takes the turns."""

    sides: Mapping[Letter, Ready]
    model: Path
    verification: Verification
    effort: Effort
    folder: Path
    compiled_s: float = 0.0
    skipped: bool = False

    def run(self, turns: tuple[Turn, ...], meter: Meter) -> Iterator[Observation]:
        """Yield what each turn showed; raises when a run fails or leaves the device out."""
        for number, turn in enumerate(turns, start=1):
            if turn.step is Step.FRESH and turn.round > 1 and self.compiled_s > MOST_FRESH_S:
                self.skipped = True
                continue
            seen = self._take(turn)
            require_fit(turn.letter, self.sides[turn.letter], seen.run)
            if turn.step is Step.FRESH:
                took = seen.run.marks.get(Phase.DONE, seen.run.seconds)
                self.compiled_s = max(self.compiled_s, took)
            meter.update(number, note=turn.name)
            yield seen

    def _take(self, turn: Turn) -> Observation:
        side = self.sides[turn.letter]
        match turn.step:
            case Step.PREPARE if not turn.tokens:
                return Observation(turn=turn, run=self._start(turn, self._bench(side), None))
            case Step.BENCH:
                cpu = CpuWatch()
                run = self._start(turn, self._bench(side), cpu)
                return Observation(turn=turn, run=run, cpu=cpu.percent)
            case Step.COLD:
                share = give_back(self.model)
                return Observation(turn=turn, run=self._first_token(turn), resident=share)
            case Step.FRESH:
                env = fresh_caches(side.env, side.setting.room / "fresh-caches")
                return Observation(turn=turn, run=self._first_token(turn, env=env))
            case Step.PREPARE:
                return Observation(turn=turn, run=self._first_token(turn))
            case Step.WARM | Step.CONTEXT:
                return self._watched(turn, side)

    def _watched(self, turn: Turn, side: Ready) -> Observation:
        """Run a prompt; with the longest one the device's memory is watched too."""
        if turn.tokens != max(self.effort.contexts):
            return Observation(turn=turn, run=self._first_token(turn))
        with watching(side.device, cpu=side.setting.cpu) as watch:
            run = self._first_token(turn, watch.sampler)
        memory, source = device_memory(watch, cpu=side.setting.cpu)
        return Observation(turn=turn, run=run, memory=memory, memory_source=source)

    def _first_token(
        self, turn: Turn, sample: Sample | None = None, *, env: Mapping[str, str] | None = None
    ) -> Finished:
        side = self.sides[turn.letter]
        prompt = self.folder / f"prompt-{turn.tokens}.txt"
        if not prompt.exists():
            prompt.write_text(prompt_text(self.verification.text, turn.tokens), encoding="utf-8")
        program = side.setting.install.program("llama-completion")
        argv = first_token(program, self.model, self._target(side), prompt, tokens=turn.tokens)
        return self._start(turn, argv, sample, env)

    def _bench(self, side: Ready) -> tuple[str, ...]:
        program = side.setting.install.program("llama-bench")
        return bench(program, self.model, self._target(side), self.effort)

    def _target(self, side: Ready) -> Target:
        device = "" if side.setting.cpu else side.device.id
        return Target(device=device, threads=thread_count())

    def _start(
        self,
        turn: Turn,
        argv: tuple[str, ...],
        sample: Sample | None,
        env: Mapping[str, str] | None = None,
    ) -> Finished:
        side = self.sides[turn.letter]
        stage = stage_of(side, whole=not turn.tokens)
        return stage.run(turn.name, argv, env or side.env, on_device=True, sample=sample)


def stage_of(side: Ready, *, whole: bool) -> Stage:
    """Return a side's stage with its device in the journal; ``whole``: phases don't show."""
    stage = side.setting.stage
    facts = {**stage.facts, "device": side.device.name, "driver": side.device.driver}
    limits = compiling_limits(stage.limits, JIT_S) if side.jit else stage.limits
    if whole:
        limits = replace(limits, start_s=limits.total_s)
    return replace(stage, facts=facts, limits=limits)


def first_token(
    program: Path, model: Path, target: Target, prompt: Path, *, tokens: int
) -> tuple[str, ...]:
    """Compute a prompt of a file and one token more."""
    context = max(LEAST_CONTEXT, ROOM_FOR_MORE * tokens)
    return (
        str(program), *COMMON, "-m", str(model), "-f", str(prompt), "-n", "1", "--temp", "0",
        "--seed", "1", "-c", str(context), "-no-cnv", "--no-display-prompt", *target.flags,
    )  # fmt: skip


def bench(program: Path, model: Path, target: Target, work: Effort) -> tuple[str, ...]:
    """Measure both rates once; upstream warms up before, and the rounds are ours."""
    where = ("--device", target.device, "-ngl", ALL_LAYERS) if target.device else ()
    return (
        str(program), "-m", str(model), "-p", str(work.prompt), "-n", str(work.generation),
        "-r", "1", "-o", "jsonl", *where, "-t", str(target.threads),
    )  # fmt: skip


def prompt_text(text: str, tokens: int) -> str:
    """Return about so many tokens of a text, which is repeated as often as needed."""
    words = text.split()
    count = max(1, round(tokens / TOKENS_PER_WORD))
    return " ".join((words * (count // len(words) + 1))[:count])


def device_memory(watch: MemoryWatch, *, cpu: bool) -> tuple[int | None, str]:
    """Return the peak of a device's memory; what computes on the CPU has its own memory only."""
    if not cpu and not watch.device.software:
        return watch.rise()
    if watch.sampler.private:
        return watch.sampler.private, "/proc/PID/status: the process's own memory"
    return None, "this system does not show a process's memory"


def require_fit(letter: Letter, side: Ready, run: Finished) -> None:
    """Refuse the figures of a run that failed, or that left the device out in silence."""
    failure = run_failure(run)
    if failure is not None:
        raise _told(refusal(letter, rule_failure(*failure, of_reference=False)), run)
    # llama-bench prints no such lines; a device that is not there it refuses.
    if side.setting.cpu or run.phase is Phase.START:
        return
    facts = read_load(run.lines, side.setting.stage.patterns)
    done, every = facts.offloaded or (0, 0)
    if done < max(1, every) or side.device.id not in facts.using:
        kind = "partly-offloaded" if done else "silent-cpu"
        used = ", ".join(facts.using) or "the CPU"
        why = f"{run.task.name}: {done}/{every} layers on {used}, asked for {side.device.id}"
        ruling = rule_failure(kind, why, of_reference=False)
        raise _told(refusal(letter, ruling), run)


def _told(error: LlamawrightError, run: Finished) -> LlamawrightError:
    error.tail = tuple(run.lines[-8:])
    error.log = str(run.task.log)
    return error
