"""The verb bump: a new upstream release measured, compared, and on request built."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from llamawright.console import Console, duration
from llamawright.digest import plain
from llamawright.errors import BuildError, ExitCode, PatchError, UsageError
from llamawright.fetch import fetch_source
from llamawright.fetch.newpin import Bumper
from llamawright.model.bump import BumpReport, NewPin, PatchState
from llamawright.model.plan import SourceTree
from llamawright.model.recipe import SourcePin
from llamawright.patching import check_series
from llamawright.patching.apply import Fit
from llamawright.patching.maintain import PatchReport
from llamawright.paths import write_whole
from llamawright.pipeline import Pipeline
from llamawright.upstream import (
    Expected,
    compare_trees,
    report_page,
    survey,
    with_pin,
)

SHOWN = 8


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Measure and compare; the report goes into the dist folder. Exit 7 or 8 when blocked."""
    build = flags.backend
    if flags.offline:
        raise UsageError(
            "bump looks for something new, and --offline forbids to fetch it",
            hint="run it without --offline",
            kind="offline",
        )
    flags.backend = build or "cpu"
    pipeline = Pipeline.open(flags, store, console)
    report = _report(pipeline, flags, console)
    pages = _write(report, pipeline, flags, console)
    _tell(report, pages, flags, console)
    _require_free(report, pages[0])
    if build:
        return _build(report, pages, flags, store, console)
    if flags.write:
        _into_recipe(report, pipeline, console)
    return int(ExitCode.OK)


def patch_states(reports: tuple[PatchReport, ...]) -> tuple[PatchState, ...]:
    """Return how the patches fare, and which of them only need their lines renewed."""
    return tuple(PatchState(name=r.name, state=_state(r), lines=r.lines) for r in reports)


def _state(report: PatchReport) -> str:
    if report.state == "applied":
        moved = any(str(Fit.OFFSET) in line for line in report.lines)
        return "needs refresh" if moved else "applies"
    return report.state


def _report(pipeline: Pipeline, flags: Namespace, console: Console) -> BumpReport:
    pin = pipeline.recipe.source
    bumper = Bumper(
        pin=pin,
        store=pipeline.store,
        reporter=console,
        now=time.time(),
        least_days=0.0 if flags.young else pin.min_age_days,
    )
    with console.step("measure the new release"):
        new = bumper.measure(
            flags.version, commit=flags.commit or "", build_number=flags.build_number
        )
    old_root = pipeline.source_root()
    with console.step("compare"):
        root = _tree(new.pin, pipeline, console).root
        expected = Expected.of(pipeline.recipe)
        missing = tuple(name for name in expected.files if not (root / name).exists())
        changes = compare_trees(survey(old_root), survey(root), expected, missing)
        patches = patch_states(check_series(pipeline.series, root))
    return BumpReport(
        recipe=pipeline.recipe.name, old=pin, new=new, patches=patches, changes=changes
    )


def _tree(pin: SourcePin, pipeline: Pipeline, console: Console) -> SourceTree:
    return fetch_source(pin, source="auto", store=pipeline.store, offline=False, reporter=console)


def _write(
    report: BumpReport, pipeline: Pipeline, flags: Namespace, console: Console
) -> tuple[Path, Path]:
    dist = (flags.dist or pipeline.wish.dist).absolute()
    stem = f"bump-{report.recipe}-{report.new.version}"
    page, record = dist / f"{stem}.md", dist / f"{stem}.json"
    write_whole(page, report_page(report))
    data = {"report": plain(report), "blocking": list(report.blocking)}
    write_whole(record, json.dumps(data, indent=2, sort_keys=True) + "\n")
    console.info(f"written: {page}")
    return page, record


def _tell(report: BumpReport, pages: tuple[Path, Path], flags: Namespace, console: Console) -> None:
    if flags.json:
        sys.stdout.write(pages[1].read_text(encoding="utf-8"))
    new = report.new
    console.lines("", f"release   {new.version}  {new.pin.commit[:9]}  tree {new.pin.tree}")
    if new.age_days is not None:
        console.lines(f"age       {new.age_days:.1f} days")
    console.lines(*(f"unknown   {text}" for text in new.unknown))
    console.lines(*(f"patch     {p.state:13} {p.name}" for p in report.patches))
    console.lines(f"changes   {len(report.changes)} between the two trees")
    console.lines(*(f"blocks    {text}" for text in report.blocking[:SHOWN]))
    console.lines(f"report    {pages[0]}", f"report    {pages[1]}")
    console.lines(f"time      {duration(console.elapsed())}")


def _require_free(report: BumpReport, page: Path) -> None:
    blocking = report.blocking
    if not blocking:
        return
    failed = [p for p in report.patches if p.state == "failed"]
    kind = PatchError if failed else BuildError
    raise kind(
        f"{len(blocking)} things stand against {report.new.version}",
        why="\n".join(blocking[:SHOWN]),
        hint=f"the report tells all of it: {page}",
        kind="bump-blocked",
    )


def _build(
    report: BumpReport, pages: tuple[Path, Path], flags: Namespace, store: Path, console: Console
) -> int:
    """Build and prove from a recipe of its own beside the report; the real one stays."""
    from llamawright.cli.make import build  # noqa: PLC0415 - heavy, and only here

    recipe = Path(Pipeline.open(flags, store, console).recipe.path)
    tried = pages[0].with_suffix(".toml")
    write_whole(tried, with_pin(recipe.read_text(encoding="utf-8"), _tried(report.new)))
    given = {
        "recipe": str(tried), "plan_only": False, "no_verify": False, "floor": None,
        "force": True, "device": None, "model": None, "require_hardware": None,
        "clear_quarantine": False,
    }  # fmt: skip
    return build(Namespace(**{**vars(flags), **given}), store, console, None)


def _tried(new: NewPin) -> NewPin:
    """Return the pin for a trial: a build number that nobody knows yet does not stop one."""
    return replace(new, unknown=tuple(t for t in new.unknown if not t.startswith("build_number")))


def _into_recipe(report: BumpReport, pipeline: Pipeline, console: Console) -> None:
    path = Path(pipeline.recipe.path)
    write_whole(path, with_pin(path.read_text(encoding="utf-8"), report.new))
    console.lines(f"written   {path}", "next      nox -s build-vulkan")
