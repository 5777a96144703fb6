"""The verbs that look after the store: fetch ahead of an offline run, and gc."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from llamawright.cli.floor import apply_floor
from llamawright.console import Console, quantity
from llamawright.digest import plain
from llamawright.pipeline import Pipeline
from llamawright.store import Store


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Run ``fetch`` or ``gc``."""
    return _fetch(flags, store, console) if flags.verb == "fetch" else _gc(flags, store, console)


def _fetch(flags: Namespace, store: Path, console: Console) -> int:
    apply_floor(flags, store, console)
    pipeline = Pipeline.open(flags, store, console)
    plan = pipeline.plan()
    paths = pipeline.fetch_all(plan)
    console.lines(f"{plan.name} can now be built and verified with --offline")
    if flags.json:
        sys.stdout.write(json.dumps({k: str(v) for k, v in paths.items()}, indent=2) + "\n")
    return 0


def _gc(flags: Namespace, store: Path, console: Console) -> int:
    report = Store(store).gc(keep_days=flags.keep_days, dry_run=flags.dry_run)
    verb = "would remove" if flags.dry_run else "removed"
    size = quantity(report.freed, "bytes")
    console.lines(f"{verb} {len(report.removed)} entries, {size}")
    console.lines(*(f"spared, a run holds it: {name}" for name in report.busy))
    if flags.json:
        sys.stdout.write(json.dumps(plain(report), indent=2) + "\n")
    return 0
