"""How two builds compare on one device, with every sample that was taken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Device, RunRecord

COMPARISON_SCHEMA = "https://llamawright.dev/schema/comparison-1.json"
# Any number does; the same one makes the same figures from the same samples.
SEED = 20_261_201


class Letter(StrEnum):
    """The two sides: ratios are B's figure over A's."""

    A = "A"
    B = "B"


class MetricKind(StrEnum):
    """What a figure counts, and so which direction is the better one."""

    RATE = "rate"
    TIME = "time"
    AMOUNT = "amount"

    @property
    def more_is_better(self) -> bool:
        """Whether the higher figure is the better one."""
        return self is MetricKind.RATE


class Finding(StrEnum):
    """What B is, measured against A. ``unknown``: not measured here, the note says why."""

    FASTER = "faster"
    SLOWER = "slower"
    MORE = "more"
    LESS = "less"
    SAME = "no-difference"
    UNKNOWN = "unknown"


class GateOutcome(StrEnum):
    """Whether B is at least as fast as was asked for."""

    PASS = "pass"  # noqa: S105 - a gate is passed
    TOO_SLOW = "too-slow"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is measured.

    ``unit`` is ``tok/s``, ``s``, ``bytes`` or ``%`` (of one core). ``tokens`` is the length
    of the prompt where the metric depends on it, else 0. A difference of medians of
    ``resolution`` or less is none: the way it is measured shows no smaller one.
    """

    name: str
    title: str
    unit: str
    kind: MetricKind
    tokens: int = 0
    resolution: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One metric of both sides; ``a`` and ``b`` hold one sample of each round.

    ``ratio`` is the median of B over that of A, between ``low`` and ``high`` with the
    comparison's ``confidence``; ``p`` the chance of so great a difference between two equal
    builds. They are ``None`` where nothing can be said. ``rounds_needed`` is how many rounds
    would tell a difference of 5 %, 0 when these were enough.
    """

    metric: Metric
    a: tuple[float, ...]
    b: tuple[float, ...]
    median_a: float | None
    median_b: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    finding: Finding
    rounds_needed: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One of the two. ``sha256`` is the artifact file's, empty for a folder of binaries."""

    letter: Letter
    name: str
    file: str
    sha256: str
    backend: str
    device: Device
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The speed gate: B's rates must be at least ``min_ratio`` times A's.

    ``too-slow`` where a whole interval lies below it, ``undecided`` where one holds it.
    """

    min_ratio: float
    outcome: GateOutcome
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All measures of two builds on one device.

    ``order`` tells which side came first in each round (``AB``, ``BA`` …). ``notes`` are
    what a reader must know to read the figures right; ``runs`` are those of the first round.
    """

    a: Entrant
    b: Entrant
    model: str
    model_sha256: str
    rounds: int
    order: tuple[str, ...]
    seed: int
    confidence: float
    alpha: float
    measures: tuple[Measure, ...]
    notes: tuple[str, ...]
    runs: tuple[RunRecord, ...]
    date: str
    host: tuple[tuple[str, str], ...]
    seconds: float
    gate: Gate | None = None
    schema: str = COMPARISON_SCHEMA

    @property
    def rates(self) -> tuple[Measure, ...]:
        """Return the measures that a speed gate looks at."""
        return tuple(m for m in self.measures if m.metric.kind is MetricKind.RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """A comparison as the user wants it.

    ``first`` has A's artifact and all that both sides share; ``other`` is B's artifact, or a
    folder of binaries of the same backend. ``rounds`` and ``contexts`` (tokens) are ``None``
    and empty for what the device can bear. ``min_ratio`` makes it a speed gate: then only the
    two rates are measured.
    """

    first: VerifyRequest
    other: Path
    rounds: int | None = None
    contexts: tuple[int, ...] = ()
    min_ratio: float | None = None
    seed: int = SEED
