"""Small charts as plain coordinates; the template only draws them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llamawright.model.verdict import Numbers

WIDTH, HEIGHT = 640.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 12.0, 18.0, 34.0
HEADROOM = 1.15
TICKS = 4
WIDEST = 64.0
FILL = 0.72
MOST_LABELS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar; ``over`` when it is above the limit, ``broken`` when it is no number."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: str
    over: bool
    broken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One line of the scale."""

    y: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A bar chart with an optional limit line; ``told`` says it in words."""

    title: str
    told: str
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    limit_y: float | None
    limit: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    base: float = HEIGHT - BOTTOM


def divergence_chart(numbers: Sequence[Numbers], limit: float) -> Chart | None:
    """Return the divergence of every chunk at every batch size, under its limit."""
    values = [
        (f"{n.type or 'b'}{'' if n.type else n.batch}·{i + 1}", v)
        for n in numbers
        for i, v in enumerate(n.per_chunk)
    ]
    if not values:
        return None
    worst = max((v for _, v in values if math.isfinite(v)), default=math.nan)
    return _chart(
        "KL divergence from the CPU, per batch size and chunk (nats)",
        f"{len(values)} chunks, the highest {worst:.4f} nats, the limit {limit:g}",
        values,
        limit=limit,
        form="{:.4f}",
    )


def token_chart(seconds: Sequence[float]) -> Chart | None:
    """Return how long each generated token took."""
    if not seconds:
        return None
    values = [(str(i + 2), s * 1000) for i, s in enumerate(seconds)]
    mean = sum(v for _, v in values) / len(values)
    told = f"{len(values)} tokens, {mean:.1f} ms each on average"
    return _chart("Time of each generated token (ms)", told, values, limit=None, form="{:.1f}")


def _chart(
    title: str,
    told: str,
    values: Sequence[tuple[str, float]],
    *,
    limit: float | None,
    form: str,
) -> Chart:
    finite = [v for _, v in values if math.isfinite(v)]
    top = max([*finite, limit or 0.0, 1e-9]) * HEADROOM
    span, base = HEIGHT - TOP - BOTTOM, HEIGHT - BOTTOM
    slot = (WIDTH - LEFT - RIGHT) / len(values)
    wide = min(slot * FILL, WIDEST)
    every = math.ceil(len(values) / MOST_LABELS)
    bars = []
    for number, (label, value) in enumerate(values):
        broken = not math.isfinite(value)
        height = span if broken else max(0.0, value) / top * span
        bars.append(
            Bar(
                x=round(LEFT + number * slot + (slot - wide) / 2, 2),
                y=round(base - height, 2),
                width=round(wide, 2),
                height=round(height, 2),
                label=label if number % every == 0 else "",
                value="NaN" if broken else form.format(value),
                over=broken or (limit is not None and value > limit),
                broken=broken,
            )
        )
    return Chart(
        title=title,
        told=told,
        bars=tuple(bars),
        ticks=_ticks(top, form),
        limit_y=None if limit is None else round(base - limit / top * span, 2),
        limit="" if limit is None else f"limit {limit:g}",
    )


def _ticks(top: float, form: str) -> tuple[Tick, ...]:
    span, base = HEIGHT - TOP - BOTTOM, HEIGHT - BOTTOM
    return tuple(
        Tick(y=round(base - span * i / TICKS, 2), label=form.format(top * i / TICKS))
        for i in range(TICKS + 1)
    )
