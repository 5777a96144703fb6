"""Other quantisations of a model, made by the artifact's own quantiser.

Each has kernels of its own. F16 is the sharpest of all: nothing is rounded to 8 bits on
either side, so honest devices differ from the CPU by a hundredth of what they do elsewhere.

The types of our own tiny model are compared with the same weights widened to single
precision. ggml's CPU rounds what it multiplies with a quantised matrix to 8 bits, and a
device that does not would be judged by the CPU's rounding; so only its own is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.model.ports import Meter
from llamawright.model.recipe import ModelType, TypeSource, TypeWork, Workload
from llamawright.model.verdict import Numbers
from llamawright.verify import commands, evidence
from llamawright.verify.draft import label_of
from llamawright.verify.evidence import Evidence
from llamawright.verify.judge import cut_off
from llamawright.verify.logs import read_numbers
from llamawright.verify.patterns import PatternSet
from llamawright.verify.repeat import same_again
from llamawright.verify.runs import REPEATED, Course, Side
from llamawright.verify.supervise import Finished, Sample
from llamawright.verify.synthetic import even_importance

# What a quantised model is widened to.
WIDE = "F32"
MOST_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison on the device at one batch size, and the same once more if it was done."""

    batch: int
    run: Finished
    again: Finished | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRuns:
    """The runs of one type: made, reference, device; fewer when one failed."""

    type: ModelType
    work: TypeWork
    runs: tuple[Finished, ...]

    @property
    def compared(self) -> tuple[Compared, ...]:
        """Return the comparisons on the device by batch size; all runs ended well."""
        first = [r for r in self.runs if r.task.on_device and not r.task.name.endswith(REPEATED)]
        again = {r.task.name: r for r in self.runs if r.task.name.endswith(REPEATED)}
        return tuple(
            Compared(batch=batch, run=run, again=again.get(f"{run.task.name}{REPEATED}"))
            for batch, run in zip(self.work.batches, first, strict=False)
        )


def run_types(
    course: Course, sides: tuple[Side, Side], sample: Sample, meter: Meter, before: int
) -> tuple[TypeRuns, ...]:
    """Make each type and compare the device with the CPU; stops at a failed run."""
    done: list[TypeRuns] = []
    for kind in course.types:
        runs: list[Finished] = []
        for run in Kitchen(course=course, kind=kind, sides=sides, sample=sample).runs():
            runs.append(run)
            meter.update(before + len(runs), note=run.task.name)
            if not run.clean:
                break
        done.append(TypeRuns(type=kind, work=course.work_of(kind), runs=tuple(runs)))
        before += len(runs)
        if not runs[-1].clean:
            break
    return tuple(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kitchen:
    """Where one type is made and compared; files are gone after the last run."""

    course: Course
    kind: ModelType
    sides: tuple[Side, Side]
    sample: Sample

    def runs(self) -> Iterator[Finished]:
        """Make the type, compute it on the CPU, compare the device."""
        made, base, wide = self._file("gguf"), self._file("kld"), self._file("wide.gguf")
        try:
            if self.kind.source is TypeSource.SYNTHETIC:
                yield from self._make_synthetic(made, wide)
                yield self._reference(wide, base)
            else:
                yield self._make(self.course.model, made, self.kind.name)
                yield self._reference(made, base)
            yield from self._compare(made, base)
        finally:
            # A large model's types would fill the disk together.
            for file in (made, base, wide):
                file.unlink(missing_ok=True)

    @property
    def _label(self) -> str:
        return label_of(self.kind)

    @property
    def _work(self) -> Workload:
        work = self.course.work_of(self.kind)
        return replace(self.course.work, context=work.context, chunks=work.chunks)

    def _file(self, ending: str) -> Path:
        return self.course.base.parent / f"{self._label.replace(' ', '-')}.{ending}"

    def _make_synthetic(self, made: Path, wide: Path) -> Iterator[Finished]:
        """Make the type of our own model, and widen what was made for the reference."""
        source, importance = self.course.synthetic or self.course.model, None
        if self.kind.importance:
            importance = source.with_name("importance.gguf")
            importance.write_bytes(even_importance())
        program = self.sides[0].install.program("llama-quantize")
        argv = commands.make_plain(program, source, made, self.kind.name, importance=importance)
        yield self._quantise(f"make {self._label}", argv)
        yield self._make(made, wide, WIDE, name=f"widen {self._label}")

    def _make(self, source: Path, made: Path, kind: str, *, name: str = "") -> Finished:
        program = self.sides[0].install.program("llama-quantize")
        argv = commands.requantise(program, source, made, kind)
        return self._quantise(name or f"make {self._label}", argv)

    def _quantise(self, name: str, argv: tuple[str, ...]) -> Finished:
        """Run the quantiser; its log has no phases, so one limit is left."""
        stage = self.course.stage
        limits = replace(stage.limits, start_s=stage.limits.total_s)
        env = self.sides[0].env
        return replace(stage, limits=limits).run(name, argv, env, on_device=False)

    def _reference(self, model: Path, base: Path) -> Finished:
        side = self.sides[0]
        argv = commands.save_logits(
            side.install.program("llama-perplexity"), model, side.target, self._work,
            text=self.course.text, out=base,
        )  # fmt: skip
        return self.course.stage.run(f"reference {self._label}", argv, side.env, on_device=False)

    def _compare(self, model: Path, base: Path) -> Iterator[Finished]:
        side, batches = self.sides[1], self.course.work_of(self.kind).batches
        rounds = ("", REPEATED) if self.course.repeats_type(self.kind) else ("",)
        for batch in batches:
            argv = commands.compare_logits(
                side.install.program("llama-perplexity"), model, side.target, self._work,
                base=base, batch=batch,
            )  # fmt: skip
            pinned = self.kind.source is TypeSource.PINNED
            name = f"device {self._label}" if pinned else f"device {self._label} {batch}"
            for word in rounds:
                yield self._whole(f"{name}{word}", argv, batch)

    def _whole(self, name: str, argv: tuple[str, ...], batch: int) -> Finished:
        """Run a comparison; one that ended well and lost the end of its table runs again.

        Builds without the patch flush-log-at-exit lose it now and then, and most often in
        runs as short as these.
        """
        stage, side = self.course.stage, self.sides[1]
        work = self.course.work_of(self.kind)
        for _ in range(MOST_TRIES):
            run = stage.run(name, argv, side.env, on_device=True, sample=self.sample)
            lost = run.clean and cut_off(run, stage.patterns) is not None
            if not lost or is_whole(run, work, batch, stage.patterns):
                break
        return run


def judge_types(
    types: tuple[TypeRuns, ...], course: Course, patterns: PatternSet
) -> tuple[tuple[Evidence, ...], tuple[Numbers, ...]]:
    """Return what each type's comparisons say; all runs ended well."""
    found: list[Evidence] = []
    numbers: list[Numbers] = []
    least, repeat = course.verification.min_top1.value, course.verification.max_repeat
    for each in types:
        most = each.type.max_mean_kld.value
        for compared in each.compared:
            table = numbers_of(compared.run, each.work, compared.batch, patterns)
            label = f"{label_of(each.type)}, batch {compared.batch}"
            found += evidence.divergence(table, label, each.work.chunks, most=most, least=least)
            numbers += [replace(table, type=label_of(each.type))] if table else []
            if compared.again and repeat:
                again = numbers_of(compared.again, each.work, compared.batch, patterns)
                found.append(same_again(label, table, again, most=repeat.value))
    return tuple(found), tuple(numbers)


def short_tables(types: tuple[TypeRuns, ...], patterns: PatternSet) -> tuple[Finished, ...]:
    """Return the comparisons whose table is not whole.

    These runs are so short that a program often ends before its log's last line is written;
    that costs nothing while the table is there.
    """
    short: list[Finished] = []
    for each in types:
        for compared in each.compared:
            runs = [r for r in (compared.run, compared.again) if r is not None]
            short += [r for r in runs if not is_whole(r, each.work, compared.batch, patterns)]
    return tuple(short)


def numbers_of(run: Finished, work: TypeWork, batch: int, patterns: PatternSet) -> Numbers | None:
    """Return the table of one comparison."""
    return read_numbers(run.stdout, patterns, context=work.context, batch=batch)


def is_whole(run: Finished, work: TypeWork, batch: int, patterns: PatternSet) -> bool:
    """Return whether a comparison printed a row for every chunk."""
    table = numbers_of(run, work, batch, patterns)
    return table is not None and len(table.per_chunk) == work.chunks
