"""The verb check: what a file and the statements about it prove, line by line."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from llamawright.attest import (
    Demand,
    Finding,
    IdentityReader,
    Part,
    Trust,
    VerdictRule,
    check,
    conclude,
    load_public,
    require_library,
)
from llamawright.console import Console
from llamawright.errors import ExitCode, LlamawrightError, UsageError


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Check one file offline; ends with 0 only when what is required holds."""
    del store
    path: Path = flags.file
    trust = _trust(flags)
    rule = VerdictRule(
        now=datetime.now(UTC),
        hardware=bool(flags.require_hardware),
        max_age_days=flags.max_age or 0.0,
    )
    demand = Demand(trust=trust.named, parts=frozenset(Part(p) for p in flags.require or ()))
    with console.step("check"):
        findings = check(path, trust=trust, rule=rule)
    error = conclude(path.name, findings, demand)
    if flags.json:
        sys.stdout.write(json.dumps(record(path, findings, error), indent=2, sort_keys=True) + "\n")
    console.lines("", *told(findings))
    if error is None:
        signed = "" if trust.named else "; nobody was named to trust (--trust KEY.pub)"
        console.lines("", f"accepted  {path.name}{signed}")
        return int(ExitCode.OK)
    return _refused(error, console)


def record(
    path: Path, findings: tuple[Finding, ...], error: LlamawrightError | None
) -> dict[str, object]:
    """Return what ``--json`` prints, also for a file that is refused."""
    return {
        "file": str(path),
        "accepted": error is None,
        "error": error.as_record() if error else None,
        "findings": [
            {
                "part": str(f.part),
                "signature": f.signature,
                "standing": str(f.standing),
                "seen": f.seen,
                "proves": f.proves,
            }
            for f in findings
        ],
    }


def told(findings: tuple[Finding, ...]) -> Iterator[str]:
    """Return one line for each part, and under it what it proves."""
    wide = max(len(f.name) for f in findings)
    for found in findings:
        yield f"{found.standing:<14}  {found.name:<{wide}}  {found.seen}"
        if found.proves:
            yield f"{'':<14}  {'':<{wide}}  proves: {found.proves}"


def _trust(flags: Namespace) -> Trust:
    keys = tuple(load_public(p) for p in flags.trust or ())
    if bool(flags.identity) is not bool(flags.issuer):
        raise UsageError(
            "an identity and who vouches for it belong together",
            hint="--identity NAME --issuer URL, as the CI's job has them",
            kind="flags-conflict",
        )
    if not flags.identity:
        return Trust(keys=keys)
    require_library()
    reader = IdentityReader(identity=flags.identity, issuer=flags.issuer, root=flags.sigstore_root)
    return Trust(keys=keys, identity=reader)


def _refused(error: LlamawrightError, console: Console) -> int:
    """Tell it as ``main`` would: the findings are on stdout already."""
    from llamawright.cli import say_last  # noqa: PLC0415 - the package imports this module

    console.failure(error)
    say_last(console, error.code, error.kind)
    return int(error.code)
