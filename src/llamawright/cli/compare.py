"""The verb compare, and the speed gate of verify: both print a table and leave a page."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from llamawright import codec
from llamawright.cli.render import with_pages
from llamawright.console import Console, duration
from llamawright.digest import plain
from llamawright.errors import ExitCode, UsageError
from llamawright.model.comparison import Comparison, GateOutcome
from llamawright.pipeline import Pipeline
from llamawright.verify import comparison_lines

LEAST_RATIO = 0.95
TOO_SLOW = "too-slow"


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Compare two builds; a difference is a finding, not a failure."""
    other = other_side(flags)
    flags.backend = None
    pipeline = Pipeline.open(flags, store, console)
    dest = flags.dist or flags.a.absolute().parent
    found, pages = pipeline.compare(flags.a, other, dest)
    if flags.json:
        sys.stdout.write(codec.encode(found))
    console.lines("", *comparison_lines(found), *(f"page      {p}" for p in pages))
    console.lines(*(f"warning   {w}" for w in console.warnings))
    console.lines(f"time      {duration(console.elapsed())}")
    return int(ExitCode.OK)


def other_side(flags: Namespace) -> Path:
    """Return B: an artifact or a folder, and exactly one of them."""
    if (flags.b is None) == (flags.against_folder is None):
        raise UsageError(
            "a comparison has two sides",
            hint="name a second artifact, or a folder of binaries with --against-folder DIR",
            kind="two-sides",
        )
    folder: Path | None = flags.against_folder
    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder",
            hint="name the folder that an upstream archive unpacks to",
            kind="no-folder",
        )
    return folder if folder is not None else Path(flags.b)


def wanted_ratio(flags: Namespace) -> float | None:
    """Return the ratio that a speed gate asks for, ``None`` when there is no gate."""
    if flags.against is None:
        if flags.min_ratio is not None:
            raise UsageError(
                "--min-ratio says how fast, not as what",
                hint="name the artifact that it is measured against: --against FILE",
                kind="no-reference",
            )
        return None
    return LEAST_RATIO if flags.min_ratio is None else float(flags.min_ratio)


def speed_gate(
    pipeline: Pipeline, flags: Namespace, ratio: float
) -> tuple[Comparison, tuple[Path, ...]]:
    """Measure a file that was proved against the reference, on the same device."""
    dest = flags.artifact.absolute().parent
    return pipeline.compare(flags.against, flags.artifact, dest, min_ratio=ratio)


def gate_code(found: Comparison) -> tuple[ExitCode, str]:
    """Return the exit code and class: what is undecided does not fail."""
    if found.gate is not None and found.gate.outcome is GateOutcome.TOO_SLOW:
        return ExitCode.VERIFICATION, TOO_SLOW
    return ExitCode.OK, ""


def with_gate(
    result: Mapping[str, object], found: Comparison, pages: Sequence[Path]
) -> dict[str, object]:
    """Return the result of a proof with what the speed gate measured and decided."""
    code, kind = gate_code(found)
    lines = (f"speed     {line}" for line in comparison_lines(found))
    told = {"code": int(code), "class": kind, "comparison": plain(found)}
    return with_pages({**result, **told}, lines, pages)
