"""Rounds and events to a soak's outcome. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llamawright.model.recipe import SoakRules
from llamawright.model.soak import Drift, KernelEvent, SoakRound, Tie
from llamawright.model.verdict import Limit, Outcome, State
from llamawright.verify.judge import Ruling, hint_of
from llamawright.verify.soak_drift import LEAST_POINTS, Line, robust_line

MIB = 1 << 20
SPEED = "generation speed"
LOAD = "load time"
DEVICE_PEAK = "device memory, peak"
DEVICE_AFTER = "device memory, after"
HOST = "host memory"
MEMORIES = (DEVICE_PEAK, DEVICE_AFTER, HOST)

Figure = Callable[[SoakRound], float | None]


def limits_of_soak(rules: SoakRules, *, slow: bool) -> tuple[Limit, ...]:
    """Return the limits that hold on a device, with their reasons."""
    speed = rules.max_software_slowdown if slow else rules.max_slowdown
    return (
        Limit(name="share of speed lost at most", value=speed.value, reason=speed.reason),
        Limit(
            name="bytes of memory grown at most",
            value=rules.max_leak.value,
            reason=rules.max_leak.reason,
        ),
    )


def drifts(rounds: Sequence[SoakRound], limits: Sequence[Limit]) -> tuple[Drift, ...]:
    """Return how each figure moved; the first round of a session tells of compiling."""
    slowdown, leak = (limit.value for limit in limits)
    steady = [r for r in rounds if not r.first and not r.failure]
    return (
        _drift(SPEED, "tok/s", steady, lambda r: r.tps, share=-slowdown),
        _drift(LOAD, "s", steady, lambda r: r.load_s),
        _drift(DEVICE_PEAK, "bytes", steady, lambda r: r.memory_peak, most=leak),
        _drift(DEVICE_AFTER, "bytes", steady, lambda r: r.memory_after, most=leak),
        _drift(HOST, "bytes", steady, lambda r: r.rss, most=leak),
    )


def _drift(
    name: str,
    unit: str,
    rounds: Sequence[SoakRound],
    figure: Figure,
    *,
    share: float | None = None,
    most: float | None = None,
) -> Drift:
    """Judge one figure: ``share`` of its beginning may be lost, ``most`` may be gained."""
    points = [(r.at, float(v)) for r in rounds if (v := figure(r)) is not None]
    line = robust_line(points)
    if line is None:
        why = (
            f"{len(points)} steady rounds, {LEAST_POINTS} are needed"
            if points or not rounds
            else "not to be read here"
        )
        return Drift(
            name=name, unit=unit, level=0.0, change=0.0, low=0.0, high=0.0, noise=0.0,
            rounds=len(points), limit=None, outcome=Outcome.UNKNOWN, told=why,
        )  # fmt: skip
    limit = share * line.level if share is not None else most
    return Drift(
        name=name,
        unit=unit,
        level=line.level,
        change=line.change,
        low=line.low,
        high=line.high,
        noise=line.noise,
        rounds=line.points,
        limit=limit,
        outcome=Outcome.FAIL if _beyond(line, limit) else Outcome.PASS,
        told="" if limit is not None else "told, not judged",
    )


def _beyond(line: Line, limit: float | None) -> bool:
    """Whether a line surely moves, beyond a limit on the side where that lies."""
    if limit is None:
        return False
    if limit < 0:
        return line.falls and line.change < limit
    return line.rises and line.change > limit


def rule_soak(
    rounds: Sequence[SoakRound],
    events: Sequence[KernelEvent],
    moved: Sequence[Drift],
    *,
    passed: State,
) -> Ruling:
    """Return the outcome; ``passed`` is the proof's own state. The cause goes first."""
    return (
        _reset(events, rounds, software=passed is State.VERIFIED_SOFTWARE)
        or _failed_round(rounds)
        or _changed(rounds)
        or _drifted(moved)
        or Ruling(state=passed)
    )


def _reset(
    events: Sequence[KernelEvent], rounds: Sequence[SoakRound], *, software: bool
) -> Ruling | None:
    """Tell of an event of this device; one that names none is doubt enough on hardware."""
    ours = [e for e in events if e.tie is Tie.OURS]
    doubtful = [] if software else [e for e in events if e.tie is Tie.UNNAMED]
    found = next(iter([*ours, *doubtful]), None)
    if found is None:
        return None
    doubt = "" if found.tie is Tie.OURS else " (the line names no device)"
    last = rounds[-1] if rounds else None
    also = f"; {last.why}" if last is not None and last.failure else ""
    return _failed("device-reset", f"the kernel's log: {found.text}{doubt}{also}")


def _failed_round(rounds: Sequence[SoakRound]) -> Ruling | None:
    bad = next((r for r in rounds if r.failure), None)
    return _failed(bad.failure, f"round {bad.number}: {bad.why}") if bad else None


def _changed(rounds: Sequence[SoakRound]) -> Ruling | None:
    bad = next((r for r in rounds if r.answer != rounds[0].answer), None)
    if bad is None:
        return None
    why = f"round {bad.number} answered {bad.text!r}, round 1 {rounds[0].text!r}"
    return _failed("soak-answer-changed", why)


def _drifted(moved: Sequence[Drift]) -> Ruling | None:
    bad = [d for d in moved if d.outcome is Outcome.FAIL]
    leak = next((d for d in bad if d.name in MEMORIES), None)
    if leak is not None:
        return _failed("soak-leak", drift_words(leak))
    slow = next((d for d in bad if d.name == SPEED), None)
    return _failed("soak-slowed", drift_words(slow)) if slow else None


def drift_words(drift: Drift) -> str:
    """Return a drift as a sentence: level, change with its interval, noise, limit."""
    if drift.outcome is Outcome.UNKNOWN:
        return f"{drift.name}: {drift.told}"
    shown = [amount(v, drift.unit) for v in (drift.level, drift.noise)]
    low, high, change = (amount(v, drift.unit, signed=True) for v in (drift.low, drift.high,
                                                                     drift.change))  # fmt: skip
    limit = "" if drift.limit is None else f", limit {amount(drift.limit, drift.unit, signed=True)}"
    return (
        f"{drift.name}: from {shown[0]}, moved {change} ({low} to {high}), noise {shown[1]}{limit}"
    )


def amount(value: float, unit: str, *, signed: bool = False) -> str:
    """Return a figure with its unit; bytes as MiB."""
    sign = "+" if signed else ""
    if unit == "bytes":
        return f"{value / MIB:{sign}.1f} MiB"
    return f"{value:{sign}.4g} {unit}"


def _failed(kind: str, why: str) -> Ruling:
    return Ruling(state=State.FAILED, failure=kind, why=why, hint=hint_of(kind))
