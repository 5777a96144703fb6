"""The verb calibrate: how far honest figures spread, beside the recipe's limits."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from llamawright import codec
from llamawright.console import Console, duration
from llamawright.errors import ExitCode
from llamawright.model.calibration import Calibration
from llamawright.pipeline import Pipeline


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Measure and print; a figure beyond its limit is a finding, not a failure."""
    flags.backend = None
    pipeline = Pipeline.open(flags, store, console)
    found = _measure(pipeline, flags)
    if flags.json:
        sys.stdout.write(codec.encode(found))
    from llamawright.verify.calibrate import calibration_lines  # noqa: PLC0415 - a heavy room

    console.lines("", *calibration_lines(found))
    console.lines(*(f"warning   {w}" for w in console.warnings))
    console.lines(f"time      {duration(console.elapsed())}")
    return int(ExitCode.OK)


def _measure(pipeline: Pipeline, flags: Namespace) -> Calibration:
    from llamawright.verify.calibrate import calibrate  # noqa: PLC0415

    return calibrate(
        pipeline.proof_request(flags.artifact),
        flags.runs,
        store=pipeline.store,
        reporter=pipeline.reporter,
        provide_driver=pipeline.provider,
    )
