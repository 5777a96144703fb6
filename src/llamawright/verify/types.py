"""Other quantisations of the pinned model, made by the artifact's own quantiser.

Each has kernels of its own. F16 is the sharpest of all: nothing is rounded to 8 bits on
either side, so honest devices differ from the CPU by a hundredth of what they do elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from llamawright.model.ports import Meter
from llamawright.model.recipe import ModelType
from llamawright.model.verdict import Numbers
from llamawright.verify import commands, evidence
from llamawright.verify.evidence import Evidence
from llamawright.verify.logs import read_numbers
from llamawright.verify.patterns import PatternSet
from llamawright.verify.runs import Course, Side
from llamawright.verify.supervise import Finished, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRuns:
    """The runs of one type: made, reference, device; fewer when one failed."""

    type: ModelType
    runs: tuple[Finished, ...]


def run_types(
    course: Course, sides: tuple[Side, Side], sample: Sample, meter: Meter, before: int
) -> tuple[TypeRuns, ...]:
    """Make each type and compare the device with the CPU; stops at a failed run."""
    done: list[TypeRuns] = []
    for kind in course.types:
        runs: list[Finished] = []
        for run in _runs(course, kind, sides, sample):
            runs.append(run)
            meter.update(before + len(runs), note=run.task.name)
            if not run.clean:
                break
        done.append(TypeRuns(type=kind, runs=tuple(runs)))
        before += len(runs)
        if not runs[-1].clean:
            break
    return tuple(done)


def _runs(
    course: Course, kind: ModelType, sides: tuple[Side, Side], sample: Sample
) -> Iterator[Finished]:
    reference, device = sides
    work, folder = course.work, course.base.parent
    model, base = folder / f"{kind.name}.gguf", folder / f"{kind.name}.kld"
    made = commands.requantise(
        reference.install.program("llama-quantize"), course.model, model, kind.name
    )
    # Its log has no phases, so one limit is left.
    stage = replace(
        course.stage, limits=replace(course.stage.limits, start_s=course.stage.limits.total_s)
    )
    yield stage.run(f"make {kind.name}", made, reference.env, on_device=False)
    saved = commands.save_logits(
        reference.install.program("llama-perplexity"), model, reference.target, work,
        text=course.text, out=base,
    )  # fmt: skip
    yield course.stage.run(f"reference {kind.name}", saved, reference.env, on_device=False)
    compared = commands.compare_logits(
        device.install.program("llama-perplexity"), model, device.target, work,
        base=base, batch=work.context,
    )  # fmt: skip
    yield course.stage.run(
        f"device {kind.name}", compared, device.env, on_device=True, sample=sample
    )
    # A large model's types would fill the disk together.
    model.unlink(missing_ok=True)
    base.unlink(missing_ok=True)


def judge_types(
    types: tuple[TypeRuns, ...], course: Course, patterns: PatternSet
) -> tuple[tuple[Evidence, ...], tuple[Numbers, ...]]:
    """Return what each type's comparison says; all runs ended well."""
    found: list[Evidence] = []
    numbers: list[Numbers] = []
    work, least = course.work, course.verification.min_top1.value
    for each in types:
        table = read_numbers(
            each.runs[-1].stdout, patterns, context=work.context, batch=work.context
        )
        label = f"{each.type.name}, batch {work.context}"
        most = each.type.max_mean_kld.value
        found += evidence.divergence(table, label, work.chunks, most=most, least=least)
        numbers += [replace(table, type=each.type.name)] if table else []
    return tuple(found), tuple(numbers)
