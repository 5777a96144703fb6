"""The verb release: plan, make, check, and on demand publish on GitHub."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path

from llamawright.cli.release_plan import ReleaseWork, plan_release
from llamawright.cli.release_steps import PipelineSteps
from llamawright.console import Console, duration, quantity
from llamawright.digest import plain
from llamawright.errors import ExitCode, UsageError
from llamawright.paths import data_root
from llamawright.release import Released, ReleasePlan, ReleaseRun, read_changes
from llamawright.release.github import Publication, Publisher, local_file
from llamawright.release.github_api import API, GitHubApi, Place
from llamawright.release.plan import NOTES
from llamawright.store import Store

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Make the release, whole or not at all; a second run finds it and changes nothing."""
    require_address(flags.files_at)
    # What is wrong with the address or the token is told before hours of work.
    place = None if flags.plan_only else wanted_place(flags, os.environ)
    work = plan_release(flags, store, console)
    dest = (flags.dist or Path("dist")).absolute() / work.plan.name
    if flags.plan_only:
        return _show(work.plan, dest, flags)
    released = _made(work, dest, store, console)
    page = None if place is None else _published(released, place, flags, console)
    if flags.json:
        result = {"folder": str(dest), "page": page, "release": plain(released.record)}
        sys.stdout.write(json.dumps(result, indent=2, sort_keys=True) + "\n")
    console.lines("", *_summary(released, page))
    console.lines(*(f"warning   {w}" for w in console.warnings))
    console.lines(f"time      {duration(console.elapsed())}")
    return int(ExitCode.OK)


def require_address(files_at: str | None) -> None:
    """Refuse an address of the wheels that no installer could follow."""
    if files_at is not None and not re.fullmatch(r"https?://[^\s?#]+", files_at):
        raise UsageError(
            f"'{files_at}' is no address for the wheels",
            hint="--files-at https://github.com/OWNER/NAME/releases/download/TAG",
            kind="bad-address",
        )


def wanted_place(flags: Namespace, env: Mapping[str, str]) -> Place | None:
    """Return where to publish, ``None`` when that was not asked for."""
    if flags.github is None:
        return None
    if not REPOSITORY.fullmatch(flags.github):
        raise UsageError(
            f"'{flags.github}' is no repository",
            hint="name it as on its page: --github OWNER/NAME",
            kind="bad-repository",
        )
    token = next((env[n].strip() for n in TOKENS if env.get(n, "").strip()), "")
    if not token:
        raise UsageError(
            "publishing on GitHub needs a token",
            why=f"neither {' nor '.join(TOKENS)} is set; a flag would show it to everybody",
            hint="export GITHUB_TOKEN=… (permission: contents: write)",
            kind="no-token",
        )
    return Place(repo=flags.github, token=token, api=flags.github_api or API)


def _made(work: ReleaseWork, dest: Path, store: Path, console: Console) -> Released:
    return ReleaseRun(
        plan=work.plan,
        rule=work.rule,
        steps=PipelineSteps(work),
        dest=dest,
        store=Store(store),
        reporter=console,
        changes=read_changes(data_root(), work.plan.tag),
    ).make()


def _published(released: Released, place: Place, flags: Namespace, console: Console) -> str:
    """Send every file of the folder itself; the index stays for a web server."""
    files = tuple(
        local_file(p) for p in sorted(released.folder.iterdir()) if p.is_file() and p.name != NOTES
    )
    wanted = Publication(
        tag=released.record.tag,
        title=released.record.tag,
        notes=(released.folder / NOTES).read_text(encoding="utf-8"),
        files=files,
        commitish=flags.commitish or "",
        prerelease=flags.prerelease,
    )
    with console.step(f"publish on {place.repo}"):
        return Publisher(server=GitHubApi(place), reporter=console).publish(wanted)


def _show(plan: ReleasePlan, dest: Path, flags: Namespace) -> int:
    if flags.json:
        sys.stdout.write(json.dumps(planned(plan, dest), indent=2, sort_keys=True) + "\n")
    else:
        sys.stdout.write("\n".join(plan_lines(plan, dest)) + "\n")
    return int(ExitCode.OK)


def planned(plan: ReleasePlan, dest: Path) -> dict[str, object]:
    """Return the plan as data: every file, by target; ``*`` stands for what is measured."""
    return {
        "name": plan.name,
        "tag": plan.tag,
        "folder": str(dest),
        "upstream": plan.upstream,
        "commit": plan.commit,
        "source_tree": plan.tree,
        "digest": plan.digest,
        "files": plain(plan.files),
        "targets": [
            {
                "name": t.target.name,
                "kind": str(t.target.kind),
                "backend": str(t.target.backend),
                "archs": list(t.target.archs),
                "key": t.key,
                "accept": plain(t.target.accept),
                "command": t.command,
                "files": plain(t.files),
            }
            for t in plan.targets
        ],
    }


def plan_lines(plan: ReleasePlan, dest: Path) -> Iterator[str]:
    """Return the plan as lines for a person."""
    yield f"{plan.tag}: {plan.upstream} {plan.commit}"
    yield f"  into      {dest}"
    yield f"  source    tree {plan.tree}"
    for target in plan.targets:
        yield f"  target    {target.target.name}: {target.target.kind}, {target.target.backend}"
        accepted = [f"{e.state} ({e.reason})" for e in target.target.accept]
        yield f"    verdict verified{''.join(f', or {a}' for a in accepted)}"
        yield from (f"    {f.role:<14} {f.name}" for f in target.files)
    yield "  the release as a whole"
    yield from (f"    {f.role:<14} {f.name}" for f in plan.files)


def _summary(released: Released, page: str | None) -> Iterator[str]:
    record = released.record
    yield f"release   {released.folder}" + ("" if released.fresh else "  (made before, unchanged)")
    for verdict in record.verdicts:
        reason = f"  (accepted: {verdict.reason})" if verdict.reason else ""
        yield f"  {verdict.state}: {verdict.target} on {verdict.device or 'no device'}{reason}"
    for file in record.files:
        yield f"  {file.sha256[:12]}  {quantity(file.size, 'bytes'):>10}  {file.name}"
    if page:
        yield f"page      {page}"
