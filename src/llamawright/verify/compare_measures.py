"""What the runs showed to one figure for each round, and from figures to findings. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from llamawright.model.comparison import (
    Gate,
    GateOutcome,
    Letter,
    Measure,
    Metric,
    MetricKind,
)
from llamawright.verify.compare_plan import Effort, Step
from llamawright.verify.compare_runs import Observation
from llamawright.verify.compare_statistics import MIN_ROUNDS, judge
from llamawright.verify.logs import read_bench
from llamawright.verify.supervise import Finished, Phase

MIB = 1 << 20
# common_perf_print of common/common.cpp: how long the prompt really was.
PROMPT_TOKENS = re.compile(r"prompt eval time = .* / +(?P<tokens>\d+) tokens")
DROPPED = 0.1
PERCENT = 100.0

Figures = dict[tuple[Letter, int], float]
Read = Callable[[Observation], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric with the figures of both sides by round, and why some are not there."""

    metric: Metric
    figures: Figures
    note: str = ""

    def measure(self, *, seed: int) -> Measure:
        """Return what the figures say; only rounds count that both sides have."""
        of_a, of_b = self._rounds(Letter.A), self._rounds(Letter.B)
        both = of_a & of_b if of_a and of_b else of_a | of_b
        a = tuple(self.figures[Letter.A, r] for r in sorted(both & of_a))
        b = tuple(self.figures[Letter.B, r] for r in sorted(both & of_b))
        judged = judge(a, b, self.metric.kind, resolution=self.metric.resolution, seed=seed)
        return Measure(
            metric=self.metric,
            a=tuple(round(v, 6) for v in a),
            b=tuple(round(v, 6) for v in b),
            median_a=_rounded(judged.median_a),
            median_b=_rounded(judged.median_b),
            ratio=_rounded(judged.ratio),
            low=_rounded(judged.low),
            high=_rounded(judged.high),
            p=_rounded(judged.p),
            finding=judged.finding,
            rounds_needed=judged.rounds_needed,
            note=self.note if a and b else f"{_missing(a, b)}: {self.note}",
        )

    def _rounds(self, letter: Letter) -> set[int]:
        return {number for side, number in self.figures if side is letter}


def measures(
    seen: Sequence[Observation], work: Effort, *, seed: int, speed_only: bool = False
) -> tuple[Measure, ...]:
    """Return every metric of a comparison, those that nobody could read as ``unknown``."""
    rows = [*_rates(seen, work)]
    if not speed_only:
        rows += [*_first_tokens(seen, work), *_loads(seen), _compiling(seen), _memory(seen)]
        rows.append(_cpu(seen))
    return tuple(row.measure(seed=seed + number) for number, row in enumerate(rows))


def gate(found: Sequence[Measure], min_ratio: float) -> Gate:
    """Hold B's rates against A's: too slow is what lies below the ratio as a whole interval.

    An interval of a few samples is too narrow to be trusted, so it decides nothing.
    """
    rates = [m for m in found if m.metric.kind is MetricKind.RATE]
    many = [m for m in rates if min(len(m.a), len(m.b)) >= MIN_ROUNDS]
    slow = [m for m in many if m.high is not None and m.high < min_ratio]
    unsure = [m for m in rates if m not in many or m.low is None or m.low < min_ratio]
    if slow:
        outcome = GateOutcome.TOO_SLOW
    else:
        outcome = GateOutcome.UNDECIDED if unsure or not rates else GateOutcome.PASS
    told = "; ".join(map(_ratio_told, slow or unsure or rates)) or "nothing was measured"
    asked = f"at least {min_ratio:g} times A's speed was asked for"
    return Gate(min_ratio=min_ratio, outcome=outcome, why=f"{asked}; {told}")


def _ratio_told(measure: Measure) -> str:
    title = measure.metric.title
    if measure.ratio is None or measure.low is None or measure.high is None:
        return f"{title}: not measured"
    return f"{title}: {measure.ratio:.3f} ({measure.low:.3f} to {measure.high:.3f})"


def notes(
    seen: Sequence[Observation], *, skipped: bool, same: bool, device_note: str
) -> tuple[str, ...]:
    """Return what a reader must know to read the figures right."""
    found = [device_note] if device_note else []
    if same:
        found.append("A and B are the same file: whatever differs here is noise")
    if any(s.turn.step is Step.COLD for s in seen):
        found.append(_cold_note([s.resident for s in seen if s.turn.step is Step.COLD]))
    if skipped:
        found.append("the first run took so long that only the first round compiled anew")
    return tuple(found)


def _cold_note(shares: Sequence[float | None]) -> str:
    """Say what cold means: without root nobody empties the page cache."""
    root = "the page cache as a whole can only be emptied by root"
    known = [s for s in shares if s is not None]
    if not known:
        return f"cold load: {root}, and this system shows no file's part of it: it may be warm"
    worst = max(known)
    if worst <= DROPPED:
        return (
            f"cold load: {root}; the model alone was given back, at most {worst * PERCENT:.0f} % "
            "of it stayed. Programs and libraries stay warm"
        )
    return (
        f"cold load: {root}, and up to {worst * PERCENT:.0f} % of the model stayed in memory "
        "although it was given back: this is no cold load"
    )


def _rates(seen: Sequence[Observation], work: Effort) -> Iterable[Row]:
    read: tuple[tuple[str, int, Read], ...] = (
        ("prompt", work.prompt, lambda o: read_bench(o.run.stdout)[0]),
        ("generation", work.generation, lambda o: read_bench(o.run.stdout)[1]),
    )
    for name, tokens, rate in read:
        yield Row(
            metric=Metric(
                name=name,
                title=f"{name}, {tokens} tokens",
                unit="tok/s",
                kind=MetricKind.RATE,
                tokens=tokens,
            ),
            figures=_figures(seen, Step.BENCH, rate),
            note="llama-bench, one repetition in each round",
        )


def _first_tokens(seen: Sequence[Observation], work: Effort) -> Iterable[Row]:
    for number, asked in enumerate(work.contexts):
        step = Step.CONTEXT if number else Step.WARM
        mine = [s for s in seen if s.turn.step is step and s.turn.tokens == asked]
        tokens = next(filter(None, (prompt_tokens(s.run) for s in mine)), asked)
        yield Row(
            metric=Metric(
                name=f"first-token-{asked}",
                title=f"first token after {tokens} tokens",
                unit="s",
                kind=MetricKind.TIME,
                tokens=tokens,
                resolution=0.01,
            ),
            figures=_figures(mine, step, lambda o: between(o.run, Phase.FIRST_TOKEN, Phase.DONE)),
            note="from the loaded model on; what the driver compiles was kept from a run before",
        )


def _loads(seen: Sequence[Observation]) -> Iterable[Row]:
    for step, note in (
        (Step.COLD, "the model given back by the page cache before"),
        (Step.WARM, "the model in the page cache"),
    ):
        yield Row(
            metric=Metric(
                name=f"load-{step}",
                title=f"load, {step}",
                unit="s",
                kind=MetricKind.TIME,
                resolution=0.02,
            ),
            figures=_figures(seen, step, lambda o: o.run.marks.get(Phase.FIRST_TOKEN)),
            note=f"from the program's start to the loaded model, {note}",
        )


def _compiling(seen: Sequence[Observation]) -> Row:
    """Return how much longer the first run took than the same one right after it."""
    fresh = _figures(seen, Step.FRESH, lambda o: o.run.marks.get(Phase.DONE))
    again = _figures(seen, Step.WARM, lambda o: o.run.marks.get(Phase.DONE))
    figures = {key: max(0.0, fresh[key] - again[key]) for key in fresh if key in again}
    metric = Metric(
        name="first-run", title="compiling in the first run", unit="s", kind=MetricKind.TIME,
        resolution=0.1,
    )  # fmt: skip
    note = "first token with an empty driver cache, less the same run with what the driver kept"
    return Row(metric=metric, figures=figures, note=note)


def _memory(seen: Sequence[Observation]) -> Row:
    watched = [s for s in seen if s.memory_source]
    sources = dict.fromkeys(s.memory_source for s in watched)
    figures = {
        (s.turn.letter, s.turn.round): float(s.memory) for s in watched if s.memory is not None
    }
    metric = Metric(
        name="memory", title="device memory", unit="bytes", kind=MetricKind.AMOUNT, resolution=MIB
    )  # fmt: skip
    note = f"the peak in the run with the longest prompt ({', '.join(sources) or 'not watched'})"
    return Row(metric=metric, figures=figures, note=note)


def _cpu(seen: Sequence[Observation]) -> Row:
    metric = Metric(
        name="cpu", title="host CPU", unit="%", kind=MetricKind.AMOUNT, resolution=2.0
    )  # fmt: skip
    note = "processor time of llama-bench, its start included; 100 % is one core"
    return Row(metric=metric, figures=_figures(seen, Step.BENCH, lambda o: o.cpu), note=note)


def _figures(seen: Iterable[Observation], step: Step, read: Read) -> Figures:
    found = ((s.turn, read(s)) for s in seen if s.turn.step is step)
    return {
        (turn.letter, turn.round): value
        for turn, value in found
        if value is not None and math.isfinite(value) and value > 0
    }


def between(run: Finished, first: Phase, then: Phase) -> float | None:
    """Return the seconds between two marks, ``None`` when one was never seen."""
    if first not in run.marks or then not in run.marks:
        return None
    return max(0.0, run.marks[then] - run.marks[first])


def prompt_tokens(run: Finished) -> int | None:
    """Return how many tokens the prompt had, as the program counted them."""
    found = [m for m in map(PROMPT_TOKENS.search, run.lines) if m]
    return int(found[-1]["tokens"]) if found else None


def _missing(a: Sequence[float], b: Sequence[float]) -> str:
    sides = [letter for letter, values in (("A", a), ("B", b)) if not values]
    return f"not read from {' and '.join(sides)}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
