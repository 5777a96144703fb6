"""A soak's pictures as plain coordinates; the template only draws them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from llamawright.model.soak import SoakRound
from llamawright.verify.pages import Label
from llamawright.verify.soak_drift import robust_line

WIDTH, HEIGHT = 700.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 16.0, 14.0, 34.0
TICKS = 4
X_TICKS = 6
HEADROOM = 1.08
MIB = 1 << 20
# More dots than this lie on each other: then each is the median of its neighbours.
MOST_DOTS = 500
# Steps of a scale of time, in seconds.
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One round's figure; ``mark``: a first round of a session, ``bad``: it failed."""

    x: float
    y: float
    mark: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One figure over time: dots, and the robust line through the steady ones."""

    name: str
    style: str
    dots: tuple[Dot, ...]
    line: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One picture; ``told`` says it in words; ``breaks`` are where a session began."""

    title: str
    told: str
    curves: tuple[Curve, ...]
    x_labels: tuple[Label, ...]
    y_labels: tuple[Label, ...]
    breaks: tuple[float, ...]
    x_title: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    base: float = HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True)
class _Figure:
    name: str
    style: str
    of: Callable[[SoakRound], float | None]


def _mib(size: int | None) -> float | None:
    return None if size is None else size / MIB


SPEED = (_Figure("generation speed", "one", lambda r: r.tps),)
MEMORY = (
    _Figure("device, peak", "one", lambda r: _mib(r.memory_peak)),
    _Figure("device, after", "two", lambda r: _mib(r.memory_after)),
    _Figure("program", "three", lambda r: _mib(r.rss)),
)
LOADING = (_Figure("load time", "one", lambda r: r.load_s or None),)


def plots(rounds: Sequence[SoakRound]) -> tuple[Plot, ...]:
    """Return speed, memory and load time over time; a figure nobody could read is left out."""
    made = (
        _plot("Generation speed (tok/s)", "tok/s", rounds, SPEED),
        _plot("Memory (MiB)", "MiB", rounds, MEMORY),
        _plot("Load time (s)", "s", rounds, LOADING),
    )
    return tuple(p for p in made if p)


def _plot(
    title: str, unit: str, rounds: Sequence[SoakRound], figures: Sequence[_Figure]
) -> Plot | None:
    known = [(f, _points(rounds, f)) for f in figures]
    known = [(f, points) for f, points in known if points]
    if not known:
        return None
    end = max(r.at for r in rounds)
    step = _round_step(max(y for _, points in known for _, y, _ in points) * HEADROOM)
    place = _Place(end=end, top=step * TICKS)
    ticks, word, x_title = _time_scale(end)
    return Plot(
        title=title,
        told="; ".join(_told(f.name, points, unit) for f, points in known),
        curves=tuple(_curve(f, points, place, unit) for f, points in known),
        x_labels=tuple(Label(at=place.x(t), text=word(t)) for t in ticks),
        y_labels=tuple(Label(at=place.y(step * i), text=f"{step * i:g}") for i in range(TICKS + 1)),
        breaks=tuple(place.x(a.at) for a, b in pairwise(rounds) if a.session != b.session),
        x_title=x_title,
    )


def _points(rounds: Sequence[SoakRound], figure: _Figure) -> list[tuple[float, float, str]]:
    """Return time, value and mark of each round; of very many, medians of the steady ones."""
    found = [
        (r.at, float(v), "bad" if r.failure else "first" if r.first else "")
        for r in rounds
        if (v := figure.of(r)) is not None
    ]
    size = math.ceil(len(found) / MOST_DOTS)
    if size <= 1:
        return found
    made: list[tuple[float, float, str]] = []
    for mark, group in groupby(found, key=lambda p: p[2]):
        same = list(group)
        parts = (
            [same[i : i + size] for i in range(0, len(same), size)]
            if not mark
            else [[p] for p in same]
        )
        made += [(median(p[0] for p in q), median(p[1] for p in q), mark) for q in parts]
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    end: float
    top: float

    def x(self, at: float) -> float:
        share = at / self.end if self.end > 0 else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM), 2)


def _curve(
    figure: _Figure, points: Sequence[tuple[float, float, str]], place: _Place, unit: str
) -> Curve:
    steady = [(x, y) for x, y, mark in points if not mark]
    line = robust_line(steady)
    ends = None
    if line is not None:
        level, change = line.level, line.change
        ends = (
            place.x(steady[0][0]),
            place.y(max(0.0, level)),
            place.x(steady[-1][0]),
            place.y(max(0.0, level + change)),
        )
    return Curve(
        name=figure.name,
        style=figure.style,
        dots=tuple(
            Dot(x=place.x(x), y=place.y(y), mark=mark, value=f"{y:.4g} {unit}")
            for x, y, mark in points
        ),
        line=ends,
    )


def _told(name: str, points: Sequence[tuple[float, float, str]], unit: str) -> str:
    values = [y for _, y, mark in points if not mark] or [y for _, y, _ in points]
    low, high = min(values), max(values)
    return f"{name}: median {median(values):.4g} {unit}, from {low:.4g} to {high:.4g}"


def _time_scale(end: float) -> tuple[tuple[float, ...], Callable[[float], str], str]:
    """Return the times that get a word, the words, and the unit that they are in."""
    step = next((s for s in STEPS if end / s <= X_TICKS), STEPS[-1])
    ticks = tuple(float(step * i) for i in range(int(end // step) + 1))
    unit, size = next(
        (n, s) for n, s in (("hours", 3600), ("minutes", 60), ("seconds", 1)) if step >= s
    )
    return ticks, lambda t: f"{t / size:g}", f"{unit} of the soak"


def _round_step(top: float) -> float:
    """Return the distance of a scale's lines: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(top, 1e-9) / TICKS))
    return next(n * power for n in (1, 2, 5, 10) if n * power * TICKS >= top)
