"""``verify --on``: the proof on another machine, its verdict and pages here."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from llamawright.cli import say_last
from llamawright.cli.make import verify_code
from llamawright.cli.render import verdict_lines
from llamawright.console import Console, duration
from llamawright.errors import ExitCode, LlamawrightError, PackageError, UsageError
from llamawright.model.artifact import Manifest
from llamawright.model.remote import Host, Parcel
from llamawright.paths import data_root
from llamawright.pipeline import Pipeline
from llamawright.remote import (
    Errand,
    FarResult,
    pack_tool,
    parse_address,
    read_result,
    send_and_run,
)
from llamawright.remote.plan import ROOM
from llamawright.remote.tool import parcel_of
from llamawright.transfer.opened import open_artifact
from llamawright.transfer.wheel import is_wheel, read_wheel
from llamawright.verify import write_report
from llamawright.verify.report import artifact_stem

LOCK = ("requirements", "tool.lock")
NOT_WITH = ("soak", "against", "investigate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """The artifact's manifest, where it could be read, and the files that its proof needs."""

    manifest: Manifest | None = None
    beside: tuple[Path, ...] = ()


def verify_on(flags: Namespace, store: Path, console: Console) -> int:
    """Prove one packed file on the machine of ``--on``; exit codes are those of ``verify``."""
    host = parse_address(flags.on)
    _require_alone(flags)
    if not flags.artifact.is_file():
        raise PackageError(
            f"there is no {flags.artifact}", hint="name a packed file in dist/", kind="absent"
        )
    flags.backend = None
    pipeline = Pipeline.open(flags, store, console)
    # Also where a setting wishes it: the machine over there has settings of its own.
    flags.require_hardware = pipeline.wanted.require_hardware
    with tempfile.TemporaryDirectory(prefix="llamawright-") as name:
        folder = Path(name)
        mine = _belongings(flags.artifact, pipeline.wanted.find_links, folder / "opened")
        errand = _errand(pipeline, flags, mine, folder)
        found = folder / "found"
        found.mkdir()
        ended = send_and_run(errand, host, found, console)
        (page,) = errand.keep
        result = read_result(ended, artifact=errand.parcels[0], page=page, host=host)
    return _finish(result, host, mine, flags, console)


def _require_alone(flags: Namespace) -> None:
    used = [f"--{name}" for name in NOT_WITH if getattr(flags, name, None)]
    if used:
        raise UsageError(
            f"{' and '.join(used)} cannot go with --on",
            why="another machine runs the proof alone",
            hint="run it there: ssh to the machine and start llamawright on it",
            kind="not-elsewhere",
        )


def _belongings(artifact: Path, links: Sequence[Path], room: Path) -> Belongings:
    """Return what is part of the artifact's proof; one that cannot be read has its sidecar."""
    sidecar = artifact.with_name(f"{artifact.name}.sha256")
    beside = [sidecar] if sidecar.is_file() else []
    # What was tampered with gets its verdict over there.
    with contextlib.suppress(LlamawrightError):
        if is_wheel(artifact):
            contents = read_wheel(artifact)
            folders = (artifact.absolute().parent, *links)
            beside += _needed_wheels(contents.requires, folders)
            return Belongings(manifest=contents.manifest, beside=tuple(beside))
        manifest = open_artifact(artifact, room)
        companion = manifest.cuda.companion if manifest.cuda else None
        path = artifact.with_name(companion.file) if companion and companion.file else None
        beside += [path] if path and path.is_file() else []
        return Belongings(manifest=manifest, beside=tuple(beside))
    return Belongings(beside=tuple(beside))


def _needed_wheels(requires: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    for requirement in requires:
        name = Requirement(requirement).name.replace("-", "_").replace(".", "_")
        found = (p for folder in folders for p in sorted(folder.glob(f"{name}-*.whl")))
        yield from {p.name: p for p in found}.values()


def _errand(pipeline: Pipeline, flags: Namespace, mine: Belongings, folder: Path) -> Errand:
    """Return what is sent and run: the artifact, what belongs to it, the model, the tool."""
    request = pipeline.proof_request(flags.artifact)
    parcels = [parcel_of(p) for p in (flags.artifact, request.model, *mine.beside)]
    words = ["verify", f"{ROOM}/{flags.artifact.name}", "--model", f"{ROOM}/{request.model.name}"]
    words.append("--json")
    recipe = flags.recipe
    if recipe and Path(recipe).is_file():
        parcels.append(parcel_of(Path(recipe)))
        recipe = f"{ROOM}/{Path(recipe).name}"
    words += ["--recipe", recipe] if recipe else []
    words += ["--device", flags.device] if flags.device else []
    words += [f"--{n}" for n in ("require-hardware", "clear-quarantine", "offline")
              if getattr(flags, n.replace("-", "_"), None)]  # fmt: skip
    name = mine.manifest.name if mine.manifest else artifact_stem(flags.artifact.name)
    return Errand(
        tool=pack_tool(data_root(), folder),
        parcels=_distinct(parcels),
        argv=tuple(words),
        env={},
        keep=(f"{name}.verdict.json",),
        platform=mine.manifest.platform if mine.manifest else pipeline.platform,
        lock=None if pipeline.wanted.offline else data_root().joinpath(*LOCK),
    )


def _distinct(parcels: list[Parcel]) -> tuple[Parcel, ...]:
    names = [p.name for p in parcels]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two files that are sent have the name {twice}",
            hint="rename one of them",
            kind="same-name",
        )
    return tuple(parcels)


def _finish(
    result: FarResult, host: Host, mine: Belongings, flags: Namespace, console: Console
) -> int:
    """Write the pages as a proof on this machine does, and end as the verdict demands."""
    code, kind = result.code, result.kind
    pages: tuple[Path, ...] = ()
    lines: list[str] = []
    if result.verdict is not None:
        # The verdict counts, not what the other side made of it.
        own, why = verify_code(result.verdict, require_hardware=bool(flags.require_hardware))
        code, kind = (own, why) if own is not ExitCode.OK else (code, kind)
        pages = write_report(result.verdict, mine.manifest, flags.artifact.absolute().parent)
        facts = ", ".join(value for _, value in result.verdict.host)
        # Its evidence was told by the lines from there, and is on the page.
        lines = [next(verdict_lines(result.verdict)), f"made on   {host.name} ({facts})"]
    if flags.json:
        told = {**result.value, "on": host.name, "code": int(code), "class": kind,
                "reports": [str(page) for page in pages]}  # fmt: skip
        sys.stdout.write(json.dumps(told, indent=2, sort_keys=True) + "\n")
    console.lines("", *lines, *(f"report    {page}" for page in pages))
    console.lines(f"time      {duration(console.elapsed())}")
    if code is not ExitCode.OK:
        say_last(console, code, kind or "far-failed")
    return int(code)
