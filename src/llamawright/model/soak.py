"""What hours of repeated runs on one device showed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.verdict import Device, Limit, Outcome, State

SOAK_SCHEMA = "https://llamawright.dev/schema/soak-1.json"


class Tie(StrEnum):
    """Whose trouble a line of the kernel's log is, by the PCI place that it names."""

    OURS = "this device"
    OTHER = "another device"
    UNNAMED = "no device named"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """A line of the kernel's log that tells of a device's trouble.

    ``kind`` is ``xid``, ``lost``, ``reset`` or ``hang``; ``at`` in seconds of the soak.
    """

    kind: str
    text: str
    pci: str
    tie: Tie
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakRound:
    """One round: the program was started, loaded the model, generated and ended.

    Times in seconds, memory in bytes, ``None``: not to be read here. ``at`` is when the round
    ended, in seconds of the soak: time in which nothing ran between two sessions is left out.
    ``first`` in its session: the driver may have compiled its shaders then, so its times say
    nothing of drift. ``answer`` is the text's digest; ``text`` the words of the first round
    and of one that differs. ``failure`` is the class of a run that failed, else empty.
    """

    number: int
    session: int
    first: bool
    at: float
    seconds: float
    load_s: float
    tps: float | None
    answer: str
    exit: int | None
    phase: str
    rss: int | None
    memory_before: int | None
    memory_peak: int | None
    memory_after: int | None
    memory_source: str
    text: str = ""
    failure: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a figure moved over the soak, by the median of all pairs' slopes (Theil, Sen).

    ``level`` is the line's value at its beginning, ``change`` what it moved until its end,
    ``low`` and ``high`` the confidence interval of that, ``noise`` the scatter around it as a
    standard deviation, all in ``unit``. ``limit`` is the change that is too much, ``None``
    for a figure that is only told.
    """

    name: str
    unit: str
    level: float
    change: float
    low: float
    high: float
    noise: float
    rounds: int
    limit: float | None
    outcome: Outcome
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakReport:
    """The outcome of a soak; ``state`` is the proof's own one when it was passed.

    ``rounds`` are those that are drawn: of a long soak a part, evenly spread; ``record`` is
    the file that holds all ``count``. ``kernel_log`` says what was read for events, or why
    nothing could be.
    """

    state: State
    failure: str
    why: str
    hint: str
    artifact: str
    artifact_sha256: str
    model: str
    model_sha256: str
    device: Device
    asked_s: float
    soaked_s: float
    count: int
    sessions: int
    rounds: tuple[SoakRound, ...]
    drifts: tuple[Drift, ...]
    events: tuple[KernelEvent, ...]
    kernel_log: str
    kernel_read: bool
    answer: str
    record: str
    limits: tuple[Limit, ...]
    date: str
    host: tuple[tuple[str, str], ...]
    schema: str = SOAK_SCHEMA
