"""``verify --on``: the proof on another machine, its verdict and pages here."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path

from llamawright.cli import say_last
from llamawright.console import Console, duration
from llamawright.digest import sha256_file
from llamawright.errors import (
    ExitCode,
    LlamawrightError,
    LockedError,
    PackageError,
    UsageError,
    VerificationError,
)
from llamawright.model.remote import FarRun, Parcel
from llamawright.paths import data_root
from llamawright.pipeline import Pipeline
from llamawright.remote import Errand, pack_tool, parse_address, send_and_run
from llamawright.remote.errand import RESULT
from llamawright.remote.plan import ROOM
from llamawright.remote.tool import parcel_of
from llamawright.transfer.opened import open_artifact

# What a proof leaves beside its file, for any name of it.
PAGES = ("*.verdict.json", "*.report.html")
NOT_WITH = ("soak", "against", "investigate")


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
    with tempfile.TemporaryDirectory(prefix="llamawright-") as name:
        folder = Path(name)
        errand = _errand(pipeline, flags, folder)
        found = folder / "found"
        found.mkdir()
        ended = send_and_run(errand, host, found, console)
        result = _result(ended, flags.artifact, host.name)
        _keep(ended, flags.artifact.absolute().parent)
    return _finish(result, ended, flags, console)


def _require_alone(flags: Namespace) -> None:
    used = [f"--{name}" for name in NOT_WITH if getattr(flags, name, None)]
    if used:
        raise UsageError(
            f"{' and '.join(used)} cannot go with --on",
            why="another machine runs the proof alone",
            hint="run it there: ssh to the machine and start llamawright on it",
            kind="not-elsewhere",
        )


def _errand(pipeline: Pipeline, flags: Namespace, folder: Path) -> Errand:
    """Return what is sent and run: the artifact, what belongs to it, the model, the tool."""
    request = pipeline.proof_request(flags.artifact)
    parcels = [parcel_of(flags.artifact), parcel_of(request.model)]
    parcels += [parcel_of(path) for path in _companions(flags.artifact, folder / "opened")]
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
    return Errand(
        tool=pack_tool(data_root(), folder),
        parcels=_distinct(parcels),
        argv=tuple(words),
        env={},
        keep=PAGES,
        platform=pipeline.platform,
    )


def _companions(artifact: Path, room: Path) -> Iterator[Path]:
    """Yield what lies beside the artifact and is part of its proof."""
    names = [f"{artifact.name}.sha256"]
    # What was tampered with gets its verdict over there.
    with contextlib.suppress(LlamawrightError):
        manifest = open_artifact(artifact, room)
        companion = manifest.cuda.companion if manifest.cuda else None
        names += [companion.file] if companion and companion.file else []
    yield from (p for n in names if (p := artifact.with_name(n)).is_file())


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


def _result(ended: FarRun, artifact: Path, host: str) -> dict[str, object]:
    """Return the result of the other side; its verdict must be of this very file."""
    path = next((f for f in ended.files if f.name == RESULT), None)
    try:
        value = json.loads(path.read_text(encoding="utf-8")) if path else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise LockedError(
            f"the proof on {host} ended without a result",
            why=f"status {ended.code}: {ended.last or 'it said nothing'}",
            hint="it was stopped there, or the machine went down: run the same command again",
            kind="far-no-result",
        )
    verdict = value.get("verdict")
    if isinstance(verdict, dict) and verdict.get("artifact_sha256") != sha256_file(artifact):
        raise VerificationError(
            f"{host} proved another file than {artifact.name}",
            why=f"its verdict is of sha256 {verdict.get('artifact_sha256')}",
            hint="look at what answers there under that name, and run it again",
            kind="other-artifact",
        )
    return {**value, "on": host}


def _keep(ended: FarRun, dest: Path) -> None:
    for path in ended.files:
        if path.name != RESULT:
            beside = dest / f".{path.name}.part"
            shutil.copyfile(path, beside)
            beside.replace(dest / path.name)


def _finish(result: Mapping[str, object], ended: FarRun, flags: Namespace, console: Console) -> int:
    if flags.json:
        sys.stdout.write(json.dumps(result, indent=2, sort_keys=True) + "\n")
    console.lines("", f"verified on {result['on']}")
    for path in ended.files:
        if path.name != RESULT:
            console.lines(f"report    {flags.artifact.absolute().parent / path.name}")
    console.lines(f"time      {duration(console.elapsed())}")
    error, code = result.get("error"), result.get("code")
    told = error if isinstance(error, dict) else result
    number = code if isinstance(code, int) else ended.code
    if number:
        known = number if number in {int(c) for c in ExitCode} else int(ExitCode.VERIFICATION)
        say_last(console, ExitCode(known), str(told.get("class") or "far-failed"))
        return known
    return 0
