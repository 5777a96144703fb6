"""The verb wheel: an artifact's runtime wheel, or a wheel measured against its own tag."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from llamawright.console import Console, duration, quantity
from llamawright.digest import plain
from llamawright.errors import ExitCode
from llamawright.model.wheel import WHEEL_PROJECT, BuiltWheel
from llamawright.package import read_artifact
from llamawright.package.wheels import audit_wheel, build_wheel
from llamawright.store import Store
from llamawright.transfer.wheel import is_wheel


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Make or measure one wheel; no recipe, compiler or device is needed."""
    path: Path = flags.file
    kept = Store(store)
    if is_wheel(path):
        with console.step("measure"):
            wheel = audit_wheel(path, store=kept, reporter=console)
    else:
        with console.step("wheel"):
            dest = flags.dist or path.absolute().parent
            wheel = build_wheel(read_artifact(path), dest, store=kept, reporter=console)
    if flags.json:
        sys.stdout.write(json.dumps(record(wheel), indent=2, sort_keys=True) + "\n")
    console.lines("", *wheel_lines(wheel))
    console.lines(*(f"warning   {w}" for w in console.warnings))
    console.lines(f"time      {duration(console.elapsed())}")
    return int(ExitCode.OK)


def record(wheel: BuiltWheel) -> dict[str, object]:
    """Return what ``--json`` prints: the manifest is in the wheel, and only named here."""
    contents = wheel.contents
    return {
        "path": str(wheel.path),
        "size": wheel.size,
        "sha256": wheel.sha256,
        "source_sha256": wheel.source_sha256,
        "project": WHEEL_PROJECT,
        "version": wheel.version,
        "tags": list(contents.tags),
        "requires": list(contents.requires),
        "scripts": [name for name, _ in contents.scripts],
        "claim": plain(wheel.claim),
        "name": contents.manifest.name,
        "backend": contents.manifest.backend.value,
    }


def wheel_lines(wheel: BuiltWheel) -> Iterator[str]:
    """Return what was made, what it needs, and the next commands."""
    contents, claim = wheel.contents, wheel.claim
    yield f"wheel     {wheel.path}  ({quantity(wheel.size, 'bytes')})"
    yield f"  sha256  {wheel.sha256}"
    measured = f"; measured: glibc {claim.glibc}, {claim.policy}" if claim.glibc else ""
    yield f"  tag     {claim.claimed}{measured}"
    if contents.requires:
        yield f"  needs   {', '.join(contents.requires)}"
    yield f"  runs    {', '.join(name for name, _ in contents.scripts)}"
    folder = shlex.quote(str(wheel.path.absolute().parent))
    yield f"install   pip install --find-links {folder} '{WHEEL_PROJECT}=={wheel.version}'"
    yield f"prove     llamawright verify {shlex.quote(str(wheel.path))}"
