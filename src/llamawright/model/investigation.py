"""What was found by looking into a failed proof: where it fails, why, and how little it takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

INVESTIGATION_SCHEMA = "https://llamawright.dev/schema/investigation-1.json"


class Use(StrEnum):
    """What became of an instrument. ``unable``: it is there, and could not do its work here."""

    USED = "used"
    MISSING = "missing"
    UNABLE = "unable"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """A tool that looks into a failure, or the reason why it did not.

    ``where`` is ``machine`` or ``provided``; ``told`` says what it found, or what it could
    not do and what would help.
    """

    name: str
    use: Use
    told: str
    version: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One call of a stack. ``offset`` is into the module's file as loaded, as addr2line takes it.

    ``guessed``: the value lay on the stack and points behind a call, but nothing was unwound.
    """

    number: int
    function: str
    module: str = ""
    offset: int | None = None
    source: str = ""
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One thread as it was seen: its name, its calls, and what it waits for in the kernel."""

    name: str
    frames: tuple[Frame, ...] = ()
    waits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Where a program stopped: by a ``signal``, or interrupted in a hang.

    ``address`` is what it wanted to read or write, ``instruction`` the one that did; the
    first thread is the one that stopped. ``seen_by`` names the instrument.
    """

    signal: str
    threads: tuple[Thread, ...]
    seen_by: str
    address: str = ""
    instruction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What an instrument reported, ``count`` times.

    ``doubt`` says why it may be the instrument's own ignorance; empty when nothing does.
    """

    source: str
    id: str
    text: str
    count: int = 1
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of the investigation. ``outcome`` is a class word, empty when the run passed.

    ``same``: it failed in the same way; ``None`` when it could not be told in the time.
    """

    name: str
    outcome: str
    same: bool | None
    seconds: float
    command: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """One quantity that was made smaller: as it failed first, and the least that still fails.

    ``passes`` is the nearest that was tried and passed.
    """

    name: str
    before: str
    least: str
    passes: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The first cause in one sentence, and by which evidence."""

    told: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """All that was found; every text is free of private paths, host and user names.

    ``reproduced`` is the number of failures in ``repeated`` runs of the case as it was;
    ``commands`` are lines that show the smallest case without llamawright; ``limits`` says
    what was not done and why.
    """

    artifact: str
    artifact_sha256: str
    model: str
    model_sha256: str
    state: str
    failure: str
    why: str
    run: str
    device: str
    driver: str
    cause: Cause
    reproduced: int
    repeated: int
    commands: tuple[str, ...]
    reductions: tuple[Reduction, ...]
    instruments: tuple[Instrument, ...]
    halt: Halt | None
    messages: tuple[Message, ...]
    kernel: tuple[str, ...]
    trials: tuple[Trial, ...]
    environment: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    date: str
    seconds: float
    limit_s: float
    schema: str = INVESTIGATION_SCHEMA
