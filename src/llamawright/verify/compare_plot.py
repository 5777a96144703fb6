"""The pictures of a comparison as plain coordinates; the template only draws them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llamawright.model.comparison import Comparison, Finding, Measure
from llamawright.verify.compare_words import figure, title
from llamawright.verify.pages import Label

WIDTH, LEFT, RIGHT = 700.0, 200.0, 155.0
ROW, TOP, BOTTOM = 30.0, 22.0, 34.0
LEAST_SPAN = 1.08
MOST_SPAN = 100.0
PLOT_HEIGHT, PLOT_LEFT, PLOT_RIGHT = 220.0, 64.0, 16.0
STEPS: tuple[tuple[float, ...], ...] = (
    (1.02,), (1.05,), (1.05, 1.1), (1.1, 1.2), (1.25, 1.5), (1.5, 2), (2, 5), (2, 10), (10, 100),
)  # fmt: skip
INNER = 24.0
TICKS = 4
# Equal places of both sides are drawn beside each other, not on top.
SHIFT = {"a": -5.0, "b": 5.0}
HEADROOM = 1.05
TONES = {
    Finding.FASTER: "good",
    Finding.LESS: "good",
    Finding.SLOWER: "bad",
    Finding.MORE: "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One metric of the overview: a dot with its interval, and the words at both ends."""

    y: float
    x: float
    low: float
    high: float
    label: str
    value: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All ratios on one logarithmic scale; right of the middle B is the better one."""

    marks: tuple[Mark, ...]
    ticks: tuple[Label, ...]
    middle: float
    told: str
    height: float
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One sample; ``side`` is ``a`` (a circle) or ``b`` (a square)."""

    x: float
    y: float
    side: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Samples of both sides over a scale, with a line through each side's medians."""

    title: str
    told: str
    dots: tuple[Dot, ...]
    lines: tuple[tuple[str, str], ...]
    x_labels: tuple[Label, ...]
    y_labels: tuple[Label, ...]
    x_title: str
    width: float = WIDTH
    height: float = PLOT_HEIGHT
    left: float = PLOT_LEFT
    right: float = WIDTH - PLOT_RIGHT
    base: float = PLOT_HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One side's samples: x, y and the words of each."""

    side: str
    points: tuple[tuple[float, float], ...]
    line: tuple[tuple[float, float], ...]


def advantage(measure: Measure) -> tuple[float, float, float] | None:
    """Return how many times better B is, with its interval; ``None`` without a ratio."""
    if measure.ratio is None or measure.low is None or measure.high is None:
        return None
    if min(measure.ratio, measure.low) <= 0:
        return None
    if measure.metric.kind.more_is_better:
        return measure.ratio, measure.low, measure.high
    return 1 / measure.ratio, 1 / measure.high, 1 / measure.low


def overview(comparison: Comparison) -> Overview | None:
    """Return the picture of all ratios, ``None`` when there are none."""
    known = [(m, found) for m in comparison.measures if (found := advantage(m)) is not None]
    if not known:
        return None
    span = max(max(abs(math.log(v)) for v in found) for _, found in known)
    span = min(math.log(MOST_SPAN), max(math.log(LEAST_SPAN), span) * HEADROOM)
    right = WIDTH - RIGHT

    def place(value: float) -> float:
        share = max(-1.0, min(1.0, math.log(value) / span))
        return round(LEFT + (share + 1) / 2 * (right - LEFT), 2)

    marks = tuple(
        Mark(
            y=TOP + ROW * (number + 0.5),
            x=place(found[0]),
            low=place(found[1]),
            high=place(found[2]),
            label=title(measure.metric),
            value=f"{found[0]:.3g} ({found[1]:.3g} to {found[2]:.3g})",
            tone=TONES.get(measure.finding, "even"),
        )
        for number, (measure, found) in enumerate(known)
    )
    better = sum(m.tone == "good" for m in marks)
    worse = sum(m.tone == "bad" for m in marks)
    return Overview(
        marks=marks,
        ticks=tuple(Label(at=place(t), text=f"{t:g}x") for t in scale(math.exp(span))),
        middle=place(1.0),
        told=f"{len(marks)} metrics: B is better in {better}, worse in {worse}",
        height=TOP + ROW * len(marks) + BOTTOM,
    )


def scale(span: float) -> tuple[float, ...]:
    """Return round numbers on both sides of 1, within ``span`` times and its inverse."""
    fitting = [steps for steps in STEPS if steps[-1] <= span]
    up = (fitting or [()])[-1]
    return tuple(sorted([round(1 / s, 3) for s in up] + [1.0, *up]))


def by_length(comparison: Comparison) -> Plot | None:
    """Return the time to the first token over the prompt's length."""
    found = [m for m in comparison.measures if m.metric.name.startswith("first-token") and m.a]
    if not found:
        return None
    lengths = [float(m.metric.tokens) for m in found]
    series = tuple(
        Series(
            side=side,
            points=tuple((x, v) for x, m in zip(lengths, found, strict=True) for v in _of(m, side)),
            line=tuple((x, _middle(m, side)) for x, m in zip(lengths, found, strict=True)),
        )
        for side in ("a", "b")
    )
    words = "; ".join(
        f"{m.metric.tokens} tokens: A {figure(m.median_a, 's')}, B {figure(m.median_b, 's')}"
        for m in found
    )
    return _plot(
        "Time to the first token over the prompt's length (s)",
        words,
        series,
        x_title="tokens of prompt",
        unit="s",
        x_words=tuple((x, f"{x:g}") for x in dict.fromkeys(lengths)),
    )


def by_round(measure: Measure) -> Plot | None:
    """Return every sample of a metric in the order of the rounds: a drift would show."""
    if not measure.a or not measure.b:
        return None
    series = tuple(
        Series(
            side=side,
            points=tuple(enumerate(map(float, values), start=1)),
            line=((1.0, middle), (float(len(values)), middle)),
        )
        for side, values, middle in (
            ("a", measure.a, measure.median_a or 0.0),
            ("b", measure.b, measure.median_b or 0.0),
        )
    )
    unit = measure.metric.unit
    return _plot(
        f"{title(measure.metric)} in each round ({unit})",
        f"medians: A {figure(measure.median_a, unit)}, B {figure(measure.median_b, unit)}",
        series,
        x_title="round",
        unit=unit,
        x_words=tuple((float(n), str(n)) for n in _spread(len(measure.a))),
    )


def _plot(
    heading: str,
    told: str,
    series: Sequence[Series],
    *,
    x_title: str,
    unit: str,
    x_words: Sequence[tuple[float, str]],
) -> Plot:
    xs = [x for s in series for x, _ in (*s.points, *s.line)]
    step = _round_step(max([y for s in series for _, y in s.points] + [1e-9]) * HEADROOM)
    top = step * TICKS
    first, last = min(xs), max(xs)
    base, span = PLOT_HEIGHT - BOTTOM, WIDTH - PLOT_LEFT - PLOT_RIGHT - 2 * INNER

    def across(x: float) -> float:
        share = (x - first) / (last - first) if last > first else 0.5
        return round(PLOT_LEFT + INNER + share * span, 2)

    def up(y: float) -> float:
        return round(base - y / top * (base - TOP), 2)

    return Plot(
        title=heading,
        told=told,
        dots=tuple(
            Dot(x=across(x) + SHIFT[s.side], y=up(y), side=s.side, value=figure(y, unit))
            for s in series
            for x, y in s.points
        ),
        lines=tuple(
            (s.side, " ".join(f"{across(x) + SHIFT[s.side]:g},{up(y):g}" for x, y in s.line))
            for s in series
        ),
        x_labels=tuple(Label(at=across(x), text=word) for x, word in x_words),
        y_labels=tuple(Label(at=up(step * i), text=f"{step * i:g}") for i in range(TICKS + 1)),
        x_title=x_title,
    )


def _of(measure: Measure, side: str) -> tuple[float, ...]:
    return measure.a if side == "a" else measure.b


def _middle(measure: Measure, side: str) -> float:
    return (measure.median_a if side == "a" else measure.median_b) or 0.0


def _spread(count: int) -> range:
    """Return the rounds that get a word: no more than about twenty."""
    return range(1, count + 1, math.ceil(count / 20))


def _round_step(top: float) -> float:
    """Return the distance of a scale's lines: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(top / TICKS))
    return next(n * power for n in (1, 2, 5, 10) if n * power * TICKS >= top)
