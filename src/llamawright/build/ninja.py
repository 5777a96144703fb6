"""The compile itself: ninja with one live line, a stall watchdog and a classified failure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.build import failures
from llamawright.build.failures import FailureClass
from llamawright.build.history import Weights, finished_in, name_of, steps_of, total
from llamawright.errors import BuildError, DiskError, LlamawrightError
from llamawright.model.ports import Meter, Reporter
from llamawright.process import Command, Ending, Limits, Line, Result, run

STATUS = "[%f/%t] "
PROGRESS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
NOTE_WIDTH = 48
STALL_S = 300.0
TOTAL_S = 6 * 3600.0
LIST_S = 60.0
SIGKILLED = -9


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """One ninja run: ``targets`` of the tree ``build`` with ``jobs`` processes."""

    ninja: Path
    build: Path
    targets: tuple[str, ...]
    env: dict[str, str]
    log: Path
    label: str
    weights: Weights = field(default_factory=Weights)
    stall_s: float = STALL_S
    total_s: float = TOTAL_S

    def command(self, *flags: str) -> Command:
        """Return ninja's command for the targets."""
        argv = (str(self.ninja), "-C", str(self.build), *flags, *self.targets)
        env = {**self.env, "NINJA_STATUS": STATUS}
        return Command(argv=argv, cwd=self.build, env=env)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A compile that did not end well: its class, and the error that tells it."""

    kind: FailureClass
    error: LlamawrightError


@dataclass
class Progress:
    """The share of the work that is done, for the live line; the log gets everything.

    A nested build prints lines of the same shape: only a count that does not go back, of a
    whole that is not smaller, is ninja's own.
    """

    meter: Meter
    weights: Weights
    whole: float
    done: float = 0.0
    ran: int = 0
    steps: int = 0

    def __call__(self, line: Line) -> None:
        """Take one line of output."""
        match = PROGRESS.match(line.text)
        if match is None:
            return
        ran, steps, what = int(match[1]), int(match[2]), match[3]
        if ran <= self.ran or steps * 2 < self.steps:
            return
        self.ran, self.steps = ran, steps
        self.done += self.weights.of(what)
        share = min(1.0, self.done / self.whole) if self.whole else ran / steps
        note = f"{ran}/{steps} {name_of(what)}"[:NOTE_WIDTH]
        self.meter.update(100 * (1.0 if ran == steps else share), total=100, note=note)


def compile_targets(job: Compile, *, jobs: int, reporter: Reporter) -> float | Failure:
    """Build the targets; return ninja's own wall seconds, or the failure.

    A stall, a killed process or a lack of memory gets one more try with one job.
    """
    result = _once(job, jobs=jobs, reporter=reporter)
    if result.ok:
        return result.seconds
    kind = class_of(result)
    if kind.retry and jobs > 1:
        reporter.warn(f"{job.label}: {kind.kind}; trying once more with one job")
        again = _once(replace(job, log=_second(job.log)), jobs=1, reporter=reporter)
        if again.ok:
            return result.seconds + again.seconds
        result, kind = again, class_of(again)
    return Failure(kind=kind, error=failed(job.label, result, kind))


def _once(job: Compile, *, jobs: int, reporter: Reporter) -> Result:
    whole = total(job.weights, _pending(job))
    with reporter.meter(job.label, total=100, unit="%") as meter:
        return run(
            job.command("-j", str(jobs)),
            limits=Limits(total_s=job.total_s, stall_s=job.stall_s),
            log=job.log,
            watch=Progress(meter, job.weights, whole),
        )


def _pending(job: Compile) -> tuple[str, ...]:
    """Return what is to be made; it takes hundredths of a second."""
    answer = run(job.command("-t", "commands"), limits=Limits(total_s=LIST_S))
    log = job.build / ".ninja_log"
    done = finished_in(log.read_text("utf-8", errors="replace")) if log.is_file() else frozenset()
    return tuple(steps_of(answer.stdout, done)) if answer.ok else ()


def _second(log: Path) -> Path:
    return log.with_name(f"{log.stem}-again{log.suffix}")


def class_of(result: Result) -> FailureClass:
    """Return the class of a run that did not end well."""
    match result.ending:
        case Ending.STALLED:
            return failures.STALL
        case Ending.TIMED_OUT:
            return failures.TOO_LONG
        case Ending.OUTPUT_CAP:
            return failures.FLOOD
        case _:
            known = failures.classify(_text(result))
    plain = known is failures.OTHER
    return failures.KILLED if plain and result.returncode == SIGKILLED else known


def failed(label: str, result: Result, kind: FailureClass) -> LlamawrightError:
    """Return the error that tells a failed configure or compile."""
    how = {
        Ending.EXITED: f"it ended with status {result.returncode}",
        Ending.STALLED: "no output and no CPU time any more: it was stopped",
        Ending.TIMED_OUT: "it ran past its limit and was stopped",
        Ending.OUTPUT_CAP: "its output never ended: it was stopped",
        Ending.STOPPED: "it was stopped",
    }
    what = DiskError if kind.kind == failures.DISK_FULL else BuildError
    return what(
        f"{label} failed",
        why=how[result.ending],
        hint=kind.hint,
        kind=kind.kind,
        command=result.command.pasteable,
        tail=failures.first_error(_text(result)),
        log=str(result.log or ""),
    )


def _text(result: Result) -> str:
    """Return the end of the output: what is kept in memory is its beginning."""
    if result.log is not None and result.log.is_file():
        return failures.last_part(result.log)
    return result.output
