"""The verbs of the patch series: list, check, refresh and new."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from llamawright.console import Console
from llamawright.digest import plain
from llamawright.errors import PatchError
from llamawright.fetch.tree import included_files
from llamawright.patching import check_series, new_patch, refresh_series
from llamawright.pipeline import Pipeline


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Run one action on the recipe's series."""
    flags.backend = flags.backend if hasattr(flags, "backend") else "cpu"
    pipeline = Pipeline.open(flags, store, console)
    match flags.action:
        case "list":
            return _show(pipeline, flags)
        case "check":
            return _check(pipeline, flags)
        case "refresh":
            patches = refresh_series(pipeline.series, pipeline.source_root())
            console.lines(*(f"{p.name}: written" for p in patches))
            return 0
        case _:
            return _new(pipeline, flags, console)


def _show(pipeline: Pipeline, flags: Namespace) -> int:
    series = pipeline.series
    if flags.json:
        _print(plain(series.patches))
    for patch in () if flags.json else series.patches:
        when = f"  when {' and '.join(patch.needs)}" if patch.needs else ""
        sys.stdout.write(f"{patch.name}  [{patch.type}]{when}\n  {patch.reason}\n")
        sys.stdout.write(f"  upstream: {patch.upstream}\n")
        sys.stdout.writelines(f"  changes {t.path}\n" for t in patch.targets)
    return 0


def _check(pipeline: Pipeline, flags: Namespace) -> int:
    reports = check_series(pipeline.series, pipeline.source_root())
    if flags.json:
        _print(plain(reports))
    for report in () if flags.json else reports:
        sys.stdout.write(f"{report.state:8} {report.name}\n")
        sys.stdout.writelines(f"         {line}\n" for line in report.lines)
    failed = [r.name for r in reports if r.state == "failed"]
    if failed:
        raise PatchError(
            f"{', '.join(failed)} does not apply to {pipeline.recipe.source.commit[:9]}",
            hint="`llamawright patch refresh` follows moved lines; else make the patch anew",
            kind="patch-drift",
        )
    return 0


def _new(pipeline: Pipeline, flags: Namespace, console: Console) -> int:
    patch = new_patch(
        pipeline.series,
        flags.name,
        source=pipeline.source_root(),
        edited=flags.edited,
        kind=flags.type,
        reason=flags.reason,
        upstream=flags.upstream,
        counted=lambda edited: included_files(edited, pipeline.recipe.source.include),
    )
    console.lines(f"{pipeline.series.folder / patch.file} is in the series now")
    return 0


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
