"""One run of one program: phases with a limit each, a journal line before each phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from re import Pattern

from llamawright.model.verdict import RunRecord
from llamawright.process import Command, Ending, Limits, Line, run
from llamawright.store import Journal
from llamawright.verify.logs import strip_prefix
from llamawright.verify.patterns import PatternSet
from llamawright.verify.strays import no_strays

JOURNAL_PREFIX = "verify-"
MAX_LINES = 50_000
EXCERPT_HEAD = 40
EXCERPT_TAIL = 12
MAX_LINE = 240


class Phase(StrEnum):
    """Where a run is. ``done`` lasts from the first token to the program's end."""

    START = "start"
    LOAD = "load"
    FIRST_TOKEN = "first-token"  # noqa: S105 - a phase of a run
    DONE = "done"

    @property
    def has_backends(self) -> bool:
        """Whether modules and drivers are loaded: upstream does that before the model."""
        return self is not Phase.START


Sample = Callable[[int, Phase], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLimits:
    """Seconds each phase may take, seconds in all, bytes of output."""

    start_s: float
    load_s: float
    first_token_s: float
    total_s: float
    output_cap: int

    def of(self, phase: Phase) -> float:
        """Return the limit of one phase in seconds."""
        match phase:
            case Phase.START:
                return self.start_s
            case Phase.LOAD:
                return self.load_s
            case Phase.FIRST_TOKEN:
                return self.first_token_s
            case Phase.DONE:
                return self.total_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run: ``on_device`` tells it from a run of the reference; ``tokens`` are wanted."""

    name: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    limits: PhaseLimits
    on_device: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a run did.

    ``overran`` is the phase whose limit ended it. ``marks`` are seconds since the start at
    which phases began, ``tokens`` and ``rows`` those at which generated tokens and rows of
    the comparison came, all by our clock.
    """

    task: Task
    returncode: int
    ending: Ending
    seconds: float
    stdout: str
    lines: tuple[str, ...]
    phase: Phase
    overran: Phase | None
    marks: Mapping[Phase, float]
    tokens: tuple[float, ...]
    rows: tuple[float, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the program ended by itself with status 0."""
        return self.ending is Ending.EXITED and self.returncode == 0

    def record(self, interesting: Callable[[str], bool]) -> RunRecord:
        """Return the run for the verdict, with the lines that matter and the last ones."""
        chosen = [line for line in self.lines if interesting(line)][:EXCERPT_HEAD]
        tail = [line for line in self.lines[-EXCERPT_TAIL:] if line not in chosen]
        gap = ["…"] if chosen and tail else []
        return RunRecord(
            name=self.task.name,
            command=self.task.argv,
            returncode=self.returncode if self.ending is Ending.EXITED else None,
            seconds=round(self.seconds, 3),
            phase=str(self.phase),
            excerpt=tuple(line[:MAX_LINE] for line in (*chosen, *gap, *tail)),
        )


def supervise(
    task: Task,
    *,
    patterns: PatternSet,
    journal: Journal,
    facts: Mapping[str, str],
    sample: Sample | None = None,
) -> Finished:
    """Run a program under its limits and leave nothing of it running.

    ``facts`` (device, driver, artifact) go into the journal before each phase; ``sample``
    sees the child's pid and phase, at every sign of life.
    """
    task.log.unlink(missing_ok=True)
    watch = _Watch(task, patterns, journal, facts, sample)
    try:
        with no_strays() as mark:
            result = run(
                Command(argv=task.argv, cwd=task.cwd, env={**task.env, **mark}),
                limits=Limits(total_s=task.limits.total_s, output_cap=task.limits.output_cap),
                log=task.log,
                watch=watch.line,
                tick=watch.tick,
            )
    finally:
        watch.close()
    return Finished(
        task=task,
        returncode=result.returncode,
        ending=result.ending,
        seconds=result.seconds,
        stdout=result.stdout,
        lines=tuple(watch.lines),
        phase=watch.phase,
        overran=watch.overran,
        marks=watch.marks,
        tokens=tuple(watch.tokens),
        rows=tuple(watch.rows),
    )


@dataclass(slots=True)
class _Watch:
    task: Task
    patterns: PatternSet
    journal: Journal
    facts: Mapping[str, str]
    sample: Sample | None
    phase: Phase = Phase.START
    overran: Phase | None = None
    began: float = field(default_factory=time.monotonic)
    since: float = field(default_factory=time.monotonic)
    pid: int = 0
    token: str = ""
    lines: list[str] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    marks: dict[Phase, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.token = self.journal.begin(f"{JOURNAL_PREFIX}{self.phase}", **self._facts())

    def line(self, line: Line) -> bool | None:
        """See one line: it may begin the next phase."""
        now = time.monotonic()
        text = strip_prefix(line.text, self.patterns)
        # Generated text goes to stdout: whatever a model says there is no evidence.
        if line.stream == "stderr":
            if len(self.lines) < MAX_LINES:
                self.lines.append(line.text.rstrip("\r"))
            if self.patterns.token.search(text):
                self.tokens.append(now - self.began)
        elif self.patterns.chunk.search(text):
            self.rows.append(now - self.began)
        following = self._following(text)
        if following is not None:
            self._enter(following, now)
        return None

    def tick(self, pid: int) -> bool | None:
        """Sample the child, and stop it when its phase took too long."""
        self.pid = pid
        self._look()
        if time.monotonic() - self.since > self.task.limits.of(self.phase):
            self.overran = self.phase
            return True
        return None

    def close(self) -> None:
        """Note that the last phase ended, whatever its outcome."""
        self.journal.end(self.token)

    def _following(self, text: str) -> Phase | None:
        match self.phase:
            case Phase.START if self.patterns.load_begins.search(text):
                return Phase.LOAD
            case Phase.START | Phase.LOAD if self.patterns.compute_begins.search(text):
                return Phase.FIRST_TOKEN
            case Phase.FIRST_TOKEN if any(p.search(text) for p in self._results):
                return Phase.DONE
            case _:
                return None

    @property
    def _results(self) -> tuple[Pattern[str], ...]:
        """Return what shows that something was computed; streams may come out of order."""
        return self.patterns.token, self.patterns.chunk_pass, self.patterns.chunk

    def _enter(self, phase: Phase, now: float) -> None:
        self.phase, self.since = phase, now
        self.marks[phase] = now - self.began
        self._look()
        self.journal.end(self.token)
        self.token = self.journal.begin(f"{JOURNAL_PREFIX}{phase}", **self._facts())

    def _look(self) -> None:
        if self.sample and self.pid:
            self.sample(self.pid, self.phase)

    def _facts(self) -> dict[str, object]:
        return {**self.facts, "run": self.task.name}
