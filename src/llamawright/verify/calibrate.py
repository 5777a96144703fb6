"""Measure how far an honest device's figures spread, so that limits have a reason."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from llamawright.errors import UsageError, VerificationError
from llamawright.model.calibration import Calibration, Figure, Spread
from llamawright.model.ports import Meter, Reporter
from llamawright.model.recipe import Verification
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Numbers, Verdict
from llamawright.store import Store
from llamawright.verify import commands
from llamawright.verify.conclude import Attempt
from llamawright.verify.device import ProvideDriver
from llamawright.verify.draft import host_facts, label_of
from llamawright.verify.judge import cut_off, run_failure
from llamawright.verify.logs import read_numbers
from llamawright.verify.prove import verify, with_limits
from llamawright.verify.runs import Course, Side
from llamawright.verify.supervise import Finished, Phase
from llamawright.verify.synthetic import SEED, write_synthetic
from llamawright.verify.types import judge_types, run_types

MOST_RUNS = 1000
# A proof that fails by its figures alone is what calibration is for.
OF_FIGURES = frozenset({"", "wrong-numbers", "wrong-tokens", "wrong-answer", "flaky"})


def calibrate(
    request: VerifyRequest,
    runs: int,
    *,
    store: Store,
    reporter: Reporter,
    provide_driver: ProvideDriver | None = None,
) -> Calibration:
    """Prove, then measure with other seeds and texts: ``runs`` in all, the proof's own first.

    Raises what ``verify`` raises, ``UsageError`` for a count that makes no sense, and
    ``VerificationError`` when the proof or a later run fails by more than its figures.
    """
    require_count(runs)
    began, found = time.monotonic(), list[Calibration]()

    def then(attempt: Attempt, verdict: Verdict) -> None:
        if verdict.failure not in OF_FIGURES or not verdict.numbers or attempt.sides is None:
            return
        measured = Measuring(attempt=attempt, sides=attempt.sides)
        with reporter.meter("calibrate", total=runs, unit="runs") as meter:
            every = [verdict.numbers, *measured.go(runs - 1, meter)]
        seconds = round(time.monotonic() - began, 2)
        limits = with_limits(request, attempt.setting.manifest.backend).verification
        found.append(_calibration(verdict, every, limits, attempt, seconds))

    proof = verify(
        request, store=store, reporter=reporter, provide_driver=provide_driver, then=then
    )
    if not found:
        raise _nothing(proof.verdict)
    return found[0]


def require_count(runs: int) -> None:
    """Refuse a count that makes no sense before anything is unpacked."""
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(
            f"{runs} runs make no calibration",
            hint=f"say between 1 and {MOST_RUNS}: --runs 10",
            kind="bad-runs",
        )


def _nothing(verdict: Verdict) -> VerificationError:
    return VerificationError(
        f"there is nothing to calibrate: {verdict.artifact} is {verdict.state}",
        why=verdict.why,
        hint=verdict.hint,
        kind=verdict.failure or "nothing-measured",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """An artifact that was proved, still unpacked."""

    attempt: Attempt
    sides: tuple[Side, Side]

    def go(self, runs: int, meter: Meter) -> Iterator[tuple[Numbers, ...]]:
        """Measure as often as asked."""
        for number in range(1, runs + 1):
            meter.update(number, note=f"seed {SEED + number}")
            yield self._once(number)

    def _once(self, number: int) -> tuple[Numbers, ...]:
        course = self._course(number)
        patterns = course.stage.patterns
        own = tuple(self._model(course))
        types = run_types(course, self.sides, _unseen, _Quiet(), 0)
        for run in (r for each in types for r in each.runs):
            _require(run, course)
        return own + judge_types(types, course, patterns)[1]

    def _course(self, number: int) -> Course:
        """Return the proof's course with another tiny model, from another place in the text."""
        course, room = self.attempt.course, self.attempt.setting.room
        text = room / "calibration.txt"
        text.write_text(turned(course.verification.text, number), encoding="utf-8")
        model = course.synthetic and write_synthetic(room / "calibration.gguf", seed=SEED + number)
        once = replace(course.verification, max_repeat=None)
        return replace(course, text=text, synthetic=model, verification=once)

    def _model(self, course: Course) -> Iterator[Numbers]:
        """Compare the model itself at every batch size of the proof."""
        reference, device = self.sides
        program = reference.install.program("llama-perplexity")
        argv = commands.save_logits(
            program, course.model, reference.target, course.work, text=course.text, out=course.base
        )
        stage = course.stage
        _require(stage.run("calibrate reference", argv, reference.env, on_device=False), course)
        program = device.install.program("llama-perplexity")
        for batch in course.work.batches:
            argv = commands.compare_logits(
                program, course.model, device.target, course.work, base=course.base, batch=batch
            )
            run = stage.run(f"calibrate {batch}", argv, device.env, on_device=True)
            _require(run, course)
            table = read_numbers(
                run.stdout, stage.patterns, context=course.work.context, batch=batch
            )
            if table is not None:
                yield table


class _Quiet:
    """A meter that shows nothing: the calibration's own counts whole runs."""

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """Show nothing."""


def _unseen(_pid: int, _phase: Phase) -> None:
    """Look at no process: memory and modules were the proof's business."""


def _require(run: Finished, course: Course) -> None:
    failure = run_failure(run)
    if failure is None and "calibrate" in run.task.name:
        failure = cut_off(run, course.stage.patterns)
    if failure is not None:
        raise VerificationError(
            f"the calibration stopped: {failure[1]}",
            hint="run verify: it tells what is wrong",
            kind=failure[0],
        )


def turned(text: str, number: int) -> str:
    """Return a text that begins ``number`` sentences later; what was before follows its end."""
    sentences = [s for s in text.replace("\n", " ").split(". ") if s.strip()]
    if not sentences:
        return text
    at = number % len(sentences)
    return ". ".join(s.strip().rstrip(".") for s in sentences[at:] + sentences[:at]) + ".\n"


def spreads(every: Sequence[Sequence[Numbers]], limits: Verification) -> tuple[Spread, ...]:
    """Return each figure over all runs, in the order in which the first run has them."""
    found: list[Spread] = []
    own = {label_of(t): t.max_mean_kld.value for t in limits.types}
    for kind, batch in dict.fromkeys((n.type, n.batch) for run in every for n in run):
        rows = [n for run in every for n in run if (n.type, n.batch) == (kind, batch)]
        most = own.get(kind, limits.max_mean_kld.value)
        pairs = (
            (Figure.MEAN_KLD, most, [n.mean_kld for n in rows]),
            (Figure.TOP1, limits.min_top1.value, [n.top1 for n in rows]),
        )
        found += [
            Spread(type=kind, batch=batch, figure=figure, limit=limit, values=tuple(values))
            for figure, limit, values in pairs
        ]
    return tuple(found)


def calibration_lines(found: Calibration) -> tuple[str, ...]:
    """Return the table for a terminal."""
    rows: list[tuple[str, ...]] = [
        ("type", "batch", "figure", "min", "median", "max", "limit", "margin")
    ]
    for s in found.spreads:
        form = "{:.5f}" if s.figure is Figure.MEAN_KLD else "{:.3f}"
        cells = (form.format(v) for v in (s.low, s.middle, s.high, s.limit, s.margin))
        rows.append((s.type or "the model", str(s.batch), str(s.figure), *cells))
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    broken = [s for s in found.spreads if s.margin < 0]
    return (
        f"{found.artifact} on {found.device.id} {found.device.name}, {found.runs} runs",
        *("  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip()
          for row in rows),
        *(f"beyond its limit: {s.type or 'the model'}, batch {s.batch}, {s.figure}"
          for s in broken),
    )  # fmt: skip


def _calibration(
    verdict: Verdict,
    every: Sequence[Sequence[Numbers]],
    limits: Verification,
    attempt: Attempt,
    seconds: float,
) -> Calibration:
    return Calibration(
        artifact=verdict.artifact,
        artifact_sha256=verdict.artifact_sha256,
        device=attempt.chosen.device,
        runs=len(every),
        seeds=tuple(SEED + n for n in range(len(every))),
        spreads=spreads(every, limits),
        date=dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        host=host_facts(),
        seconds=seconds,
    )
