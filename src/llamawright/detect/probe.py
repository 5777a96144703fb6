"""Running a candidate, and saying exactly what went wrong."""

from __future__ import annotations

import re
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from llamawright.detect.binary import standing, unstartable
from llamawright.detect.surroundings import Surroundings
from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Fault
from llamawright.process import Ending, Result, ask

SIGNAL_BASE = 128
LAST_SIGNAL = 64
NT_ERROR = 0xC0000000
LINE = 200
TELLING = re.compile(r"error|cannot|not found|undefined|unable|No such", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a candidate cannot be used."""

    fault: Fault
    reason: str


def run_tool(
    argv: tuple[str, ...], around: Surroundings, *, seconds: float, cwd: Path | None = None
) -> Result | Problem:
    """Run a program that may end with any exit status, but must start and end by itself."""
    path = Path(argv[0])
    wrong = standing(path, runs=True)
    if wrong:
        return Problem(*wrong)
    try:
        folder = cwd or Path(tempfile.gettempdir())
        result = ask(argv, seconds=seconds, env=around.probe_env, cwd=folder)
    except ToolMissingError as error:
        known = unstartable(path, around.platform.machine)
        return Problem(*known) if known else Problem(Fault.FAILED, f"it cannot start: {error.why}")
    return accident(result, seconds) or result


def succeed(
    argv: tuple[str, ...], around: Surroundings, *, seconds: float, cwd: Path | None = None
) -> Result | Problem:
    """Run a program that must end with exit status 0."""
    result = run_tool(argv, around, seconds=seconds, cwd=cwd)
    if isinstance(result, Problem) or result.ok:
        return result
    return Problem(Fault.FAILED, f"exit status {result.returncode}: {telling_line(result)}")


def telling_line(result: Result) -> str:
    """Return the line of output that says most: the first that names an error, else the last."""
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    named = [line for line in lines if TELLING.search(line)]
    return ((named or lines[-1:] or ["no output"])[0])[:LINE]


def accident(result: Result, seconds: float) -> Problem | None:
    """Return how a run came to a bad end: a limit of ``seconds``, a crash; else ``None``."""
    match result.ending:
        case Ending.TIMED_OUT | Ending.STALLED | Ending.STOPPED:
            return Problem(Fault.HUNG, f"it gave no answer within {seconds:g} s")
        case Ending.OUTPUT_CAP:
            return Problem(Fault.FAILED, "it prints without end")
        case Ending.EXITED:
            return _crash(result.returncode)


def _crash(status: int) -> Problem | None:
    """Tell a crash from an exit: a wrapper script passes a signal on as 128 + number."""
    number = -status if status < 0 else status - SIGNAL_BASE
    if status >= NT_ERROR:
        return Problem(Fault.CRASHED, f"it crashed (exit status {status:#010x})")
    if not 0 < number <= LAST_SIGNAL:
        return None
    try:
        name = signal.Signals(number).name
    except ValueError:
        return None
    return Problem(Fault.CRASHED, f"it crashed with {name} (exit status {SIGNAL_BASE + number})")
