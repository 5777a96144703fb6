"""``verify --soak``: how long, and what the end of it is called."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from llamawright.cli.render import with_pages
from llamawright.digest import plain
from llamawright.errors import ExitCode, UsageError
from llamawright.model.soak import SoakReport
from llamawright.model.verdict import State
from llamawright.pipeline import Outcome, Pipeline
from llamawright.verify import soak_lines

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smhd])+")
PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
LONGEST_S = 60 * UNITS["d"]


def wanted_soak(flags: Namespace) -> float | None:
    """Return the seconds that ``--soak`` asks for, ``None`` without it."""
    text = getattr(flags, "soak", None)
    if text is None:
        return None
    seconds = sum(float(n) * UNITS[unit] for n, unit in PART.findall(text))
    if not DURATION.fullmatch(text) or not 1 <= seconds <= LONGEST_S:
        raise UsageError(
            f"'{text}' is no length of a soak",
            why="it is a number with s, m, h or d, up to 60 days",
            hint="--soak 20m, --soak 72h or --soak 1h30m",
            kind="bad-duration",
        )
    return seconds


def proved(
    pipeline: Pipeline, path: Path, seconds: float | None
) -> tuple[Outcome, SoakReport | None, tuple[Path, ...]]:
    """Prove a file, and soak it when that was asked for."""
    if seconds is None:
        return pipeline.verify_file(path), None, ()
    return pipeline.soak_file(path, seconds)


def soak_code(report: SoakReport) -> tuple[ExitCode, str]:
    """Return the exit code and class of a soak that followed a passed proof."""
    if report.state is State.FAILED:
        return ExitCode.VERIFICATION, report.failure
    return ExitCode.OK, ""


def with_soak(
    result: Mapping[str, object], report: SoakReport, pages: Sequence[Path]
) -> dict[str, object]:
    """Return the result of a proof with what the soak showed; its pages are named last."""
    code, kind = soak_code(report)
    lines = (f"soak      {line}" for line in soak_lines(report))
    told = {
        "code": int(code) or result["code"],
        "class": kind or result["class"],
        "soak": {**plain_report(report), "rounds": len(report.rounds)},
    }
    return with_pages({**result, **told}, lines, pages)


def plain_report(report: SoakReport) -> dict[str, object]:
    """Return the report as plain data."""
    value = plain(report)
    return dict(value) if isinstance(value, dict) else {}
