"""The runs of one proof, in order: the reference first, then the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.model.ports import Meter
from llamawright.model.recipe import ModelType, TypeSource, TypeWork, Verification, Workload
from llamawright.store import Journal
from llamawright.verify import commands
from llamawright.verify.commands import Target
from llamawright.verify.install import Install
from llamawright.verify.patterns import PatternSet
from llamawright.verify.supervise import Finished, PhaseLimits, Sample, Task, supervise

# A model is read from disk at no less than this on top of the recipe's limit.
SLOWEST_DISK = 50e6
# Half of the cores, and never more than eight. ggml's threads wait for each other at every
# operation: on a busy machine with two cores one thread was seven times faster than two.
MOST_THREADS = 8
SPEED_RUN = "device speed"
# Of any type: made and computed on the CPU; of a synthetic one also widened.
RUNS_BESIDE_DEVICE = 2
# The first prompt once more, when the driver has compiled and kept what it needs.
AGAIN_RUN = "device prompt 1 again"
REPEATED = " repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where runs happen: folders, log files, limits, journal."""

    scratch: Path
    logs: Path
    patterns: PatternSet
    journal: Journal
    limits: PhaseLimits
    facts: Mapping[str, str]

    def run(
        self,
        name: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        *,
        on_device: bool,
        sample: Sample | None = None,
    ) -> Finished:
        """Run one program in an empty folder: ggml also looks for modules where it is started."""
        empty = self.scratch / "empty"
        empty.mkdir(exist_ok=True)
        task = Task(
            name=name,
            argv=argv,
            cwd=empty,
            env=env,
            log=self.logs / f"{name.replace(' ', '-')}.log",
            limits=self.limits,
            on_device=on_device,
        )
        return supervise(
            task, patterns=self.patterns, journal=self.journal, facts=self.facts, sample=sample
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two that are compared: an install, its environment and where it computes."""

    install: Install
    env: Mapping[str, str]
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All that the runs have in common."""

    stage: Stage
    model: Path
    verification: Verification
    work: Workload
    base: Path
    text: Path
    bench: bool
    again: bool = False
    types: tuple[ModelType, ...] = ()
    synthetic: Path | None = None
    software: bool = False

    def reference(self, side: Side, sample: Sample, meter: Meter) -> tuple[Finished, ...]:
        """Run the prompts and write the probabilities on the CPU; stops at a failed run."""
        runs: list[Finished] = []
        for number in range(len(self.work.prompts)):
            batch = commands.WHOLE_PROMPT
            runs.append(self._greedy(side, number, batch, "reference", sample=sample))
            meter.update(len(runs), note=runs[-1].task.name)
            if not runs[-1].clean:
                return tuple(runs)
        program = side.install.program("llama-perplexity")
        argv = commands.save_logits(
            program, self.model, side.target, self.work, text=self.text, out=self.base
        )
        runs.append(self.stage.run("reference probabilities", argv, side.env, on_device=False))
        return tuple(runs)

    def device(
        self,
        side: Side,
        sample: Sample,
        meter: Meter,
        before: int,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[Finished, ...]:
        """Run on the device; ends after a failed run, or the prompt after which it must stop."""
        runs: list[Finished] = []
        for number, batch in enumerate(self.work.prompts):
            runs.append(self._greedy(side, number, batch, "device", sample=sample))
            meter.update(before + len(runs), note=runs[-1].task.name)
            if not runs[-1].clean or stop():
                return tuple(runs)
        program = side.install.program("llama-perplexity")
        for batch in self.work.batches:
            argv = commands.compare_logits(
                program, self.model, side.target, self.work, base=self.base, batch=batch
            )
            name = f"device probabilities {batch}"
            runs.append(self.stage.run(name, argv, side.env, on_device=True, sample=sample))
            meter.update(before + len(runs), note=name)
            if not runs[-1].clean:
                return tuple(runs)
        if self.repeats:
            argv, name = runs[-1].task.argv, f"{runs[-1].task.name}{REPEATED}"
            runs.append(self.stage.run(name, argv, side.env, on_device=True))
            if not runs[-1].clean:
                return tuple(runs)
        if self.bench:
            runs.append(self._speed(side))
        if self.again and runs[-1].clean:
            runs.append(
                self._greedy(side, 0, self.work.prompts[0], "device", sample=sample, name=AGAIN_RUN)
            )
        return tuple(runs)

    def _speed(self, side: Side) -> Finished:
        """Measure with upstream's own benchmark; its log has no phases, so one limit is left."""
        program = side.install.program("llama-bench")
        argv = commands.bench(program, self.model, side.target)
        stage = replace(
            self.stage, limits=replace(self.stage.limits, start_s=self.stage.limits.total_s)
        )
        return stage.run(SPEED_RUN, argv, side.env, on_device=True)

    @property
    def count(self) -> int:
        """Return how many runs there will be."""
        own = 2 * len(self.work.prompts) + 1 + len(self.work.batches)
        types = sum(self._count_of(kind) for kind in self.types)
        return own + self.repeats + self.bench + self.again + types

    @property
    def repeats(self) -> bool:
        """Whether the model's own comparison is done twice: in software it takes too long."""
        return self.bench and self.verification.max_repeat is not None

    def repeats_type(self, kind: ModelType) -> bool:
        """Whether a type's comparisons are done twice: those of the first synthetic one."""
        synthetic = [t for t in self.types if t.source is TypeSource.SYNTHETIC]
        return self.verification.max_repeat is not None and kind in synthetic[:1]

    def work_of(self, kind: ModelType) -> TypeWork:
        """Return how much is computed with a type."""
        rules = self.verification.synthetic
        if kind.source is TypeSource.PINNED or rules is None:
            context = self.work.context
            return TypeWork(context=context, chunks=self.work.chunks, batches=(context,))
        if not self.software:
            return rules.hardware
        work = rules.software
        return replace(work, batches=kind.software_batches or work.batches)

    def _count_of(self, kind: ModelType) -> int:
        compared = len(self.work_of(kind).batches) * (1 + self.repeats_type(kind))
        return RUNS_BESIDE_DEVICE + (kind.source is TypeSource.SYNTHETIC) + compared

    def _greedy(
        self,
        side: Side,
        number: int,
        batch: int,
        whose: str,
        *,
        sample: Sample,
        name: str = "",
    ) -> Finished:
        prompt = self.verification.prompts[number]
        program = side.install.program("llama-completion")
        argv = commands.greedy(program, self.model, prompt, side.target, batch=batch)
        on_device = whose == "device"
        name = name or f"{whose} prompt {number + 1}"
        return self.stage.run(name, argv, side.env, on_device=on_device, sample=sample)


def run_limits(verification: Verification, model: Path) -> PhaseLimits:
    """Return the recipe's limits, with time to read a large model."""
    reading = model.stat().st_size / SLOWEST_DISK
    return PhaseLimits(
        start_s=verification.probe_s,
        load_s=verification.load_s + reading,
        first_token_s=verification.first_token_s,
        total_s=verification.total_s + reading,
        output_cap=verification.output_cap,
    )


def compiling_limits(limits: PhaseLimits, seconds: float) -> PhaseLimits:
    """Return limits for a driver that compiles for up to ``seconds``, in whatever phase."""
    return replace(
        limits,
        start_s=limits.start_s + seconds,
        load_s=limits.load_s + seconds,
        first_token_s=limits.first_token_s + seconds,
        total_s=limits.total_s + seconds,
    )


def probe_limits(limits: PhaseLimits) -> PhaseLimits:
    """Return the limits of a run that only lists devices."""
    return replace(limits, total_s=limits.start_s)


def thread_count() -> int:
    """Return the threads for the CPU's part."""
    return max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2))
