"""The compile itself: ninja with one live line, a stall watchdog and a classified failure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.build.failures import STALL, FailureClass, classify, first_error
from llamawright.errors import BuildError, LlamawrightError
from llamawright.model.ports import Meter, Reporter
from llamawright.process import Command, Ending, Limits, Line, Result, run

STATUS = "[%f/%t] "
PROGRESS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
NOTE_WIDTH = 48
STALL_S = 300.0
TOTAL_S = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """One ninja run: ``targets`` of the tree ``build`` with ``jobs`` processes."""

    ninja: Path
    build: Path
    targets: tuple[str, ...]
    env: dict[str, str]
    log: Path
    label: str
    stall_s: float = STALL_S


@dataclass
class Progress:
    """Ninja's own count on the live line; the log gets everything."""

    meter: Meter
    ran: int = 0
    last: str = field(default="")

    def __call__(self, line: Line) -> None:
        """Take one line of output."""
        match = PROGRESS.match(line.text)
        if match:
            done, total, what = int(match[1]), int(match[2]), match[3]
            self.ran = max(self.ran, done)
            self.meter.update(done, total=total, note=what.rpartition("/")[2][:NOTE_WIDTH])


def compile_targets(job: Compile, *, jobs: int, reporter: Reporter) -> float:
    """Build the targets and return ninja's own wall seconds.

    A stall or a lack of memory gets one more try with one job. Raises ``BuildError`` with
    class, command, the lines of the first error and the log.
    """
    result = _once(job, jobs=jobs, reporter=reporter)
    if result.ok:
        return result.seconds
    failure = _class_of(result)
    if failure.retry and jobs > 1:
        reporter.warn(f"{job.label}: {failure.kind}; trying once more with one job")
        again = _once(job, jobs=1, reporter=reporter)
        if again.ok:
            return result.seconds + again.seconds
        result, failure = again, _class_of(again)
    raise failed(job.label, result, failure)


def _once(job: Compile, *, jobs: int, reporter: Reporter) -> Result:
    argv = (str(job.ninja), "-C", str(job.build), "-j", str(jobs), *job.targets)
    command = Command(argv=argv, cwd=job.build, env={**job.env, "NINJA_STATUS": STATUS})
    with reporter.meter(job.label, total=None, unit="steps") as meter:
        return run(
            command,
            limits=Limits(total_s=TOTAL_S, stall_s=job.stall_s),
            log=job.log,
            watch=Progress(meter),
        )


def _class_of(result: Result) -> FailureClass:
    if result.ending in (Ending.STALLED, Ending.TIMED_OUT):
        return STALL
    return classify(result.output)


def failed(label: str, result: Result, failure: FailureClass) -> LlamawrightError:
    """Return the error that tells a failed configure or compile."""
    how = {
        Ending.EXITED: f"it ended with status {result.returncode}",
        Ending.STALLED: "no output and no CPU time any more: it was stopped",
        Ending.TIMED_OUT: "it ran past its limit and was stopped",
        Ending.OUTPUT_CAP: "its output never ended: it was stopped",
        Ending.STOPPED: "it was stopped",
    }
    return BuildError(
        f"{label} failed",
        why=how[result.ending],
        hint=failure.hint,
        kind=failure.kind,
        command=result.command.pasteable,
        tail=first_error(result.output),
        log=str(result.log or ""),
    )
