"""The verbs that make a proof: build and verify. Exit codes are decided here."""

from __future__ import annotations

import contextlib
import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from llamawright.cli import say_last
from llamawright.cli.floor import apply_floor, require_floor
from llamawright.cli.look import show_plan
from llamawright.cli.render import artifact_lines, verdict_lines
from llamawright.cli.touched import touched
from llamawright.console import Console, duration
from llamawright.digest import plain
from llamawright.errors import ExitCode, InterruptedRunError, LlamawrightError, UsageError
from llamawright.model.verdict import State, Verdict
from llamawright.paths import write_whole
from llamawright.pipeline import Outcome, Pipeline
from llamawright.stamp import RunStamp


def build(flags: Namespace, store: Path, console: Console, stamp: RunStamp | None) -> int:
    """Build, package and verify; write the result file whatever happens."""
    if flags.plan_only:
        return show_plan(flags, store, console)
    pipeline = Pipeline.open(flags, store, console)
    _require_folder(pipeline.result_file.parent)
    try:
        floor = apply_floor(flags, store, console)
        if floor is not None:
            pipeline = Pipeline.open(flags, store, console)
        outcome = pipeline.build(prove=not flags.no_verify)
        if floor is not None and outcome.artifact is not None:
            require_floor(outcome.artifact.manifest, floor)
    except LlamawrightError as error:
        _write_failure(pipeline.result_file, error)
        raise
    except KeyboardInterrupt:
        _write_failure(pipeline.result_file, InterruptedRunError("interrupted"))
        raise
    code, kind = build_code(outcome.verdict, require_hardware=pipeline.wanted.require_hardware)
    result = _result(outcome, code, kind)
    write_result(pipeline.result_file, result)
    if stamp is not None and code is ExitCode.OK:
        stamp.save(result, touched(pipeline, outcome))
    return _finish(result, code, kind, flags, console)


def verify(flags: Namespace, store: Path, console: Console) -> int:
    """Prove one packed file; the report goes beside it."""
    from llamawright.cli import investigate  # noqa: PLC0415
    from llamawright.cli.compare import (  # noqa: PLC0415 - a build needs none of it
        gate_code,
        speed_gate,
        wanted_ratio,
        with_gate,
    )
    from llamawright.cli.soak import (  # noqa: PLC0415
        proved,
        soak_code,
        wanted_soak,
        with_soak,
    )

    flags.backend = None
    ratio = wanted_ratio(flags)
    soak_s = wanted_soak(flags)
    limit_s = investigate.wanted_investigation(flags)
    pipeline = Pipeline.open(flags, store, console)
    looked = investigate.investigated(pipeline, flags.artifact, limit_s)
    outcome, soaked, pages = (
        (looked.outcome, None, ()) if looked else proved(pipeline, flags.artifact, soak_s)
    )
    code, kind = verify_code(outcome.verdict, require_hardware=pipeline.wanted.require_hardware)
    result = _result(outcome, code, kind)
    if looked is not None:
        result = investigate.with_investigation(result, looked)
    if soaked is not None:
        result = with_soak(result, soaked, pages)
        code, kind = soak_code(soaked) if code is ExitCode.OK else (code, kind)
    if ratio is not None and code is ExitCode.OK:
        found, pages = speed_gate(pipeline, flags, ratio)
        code, kind = gate_code(found)
        result = with_gate(result, found, pages)
    return _finish(result, code, kind, flags, console)


def build_code(verdict: Verdict | None, *, require_hardware: bool) -> tuple[ExitCode, str]:
    """Return the exit code of a build: no device is loud, not fatal, unless required."""
    if verdict is None or (verdict.state is State.UNVERIFIED and not require_hardware):
        return ExitCode.OK, ""
    return verify_code(verdict, require_hardware=require_hardware)


def verify_code(verdict: Verdict | None, *, require_hardware: bool) -> tuple[ExitCode, str]:
    """Return the exit code and class of a proof."""
    if verdict is None:
        return ExitCode.OK, ""
    match verdict.state:
        case State.VERIFIED:
            return ExitCode.OK, ""
        case State.VERIFIED_SOFTWARE if not require_hardware:
            return ExitCode.OK, ""
        case State.VERIFIED_SOFTWARE | State.UNVERIFIED | State.CANNOT_VERIFY:
            return ExitCode.NO_DEVICE, verdict.failure or "no-hardware-device"
        case State.FAILED | State.QUARANTINED:
            return ExitCode.VERIFICATION, verdict.failure or str(verdict.state)


def _result(outcome: Outcome, code: ExitCode, kind: str) -> dict[str, object]:
    lines = [] if outcome.artifact is None else list(artifact_lines(outcome.artifact))
    if outcome.verdict is not None:
        lines += verdict_lines(outcome.verdict)
    elif outcome.artifact is not None:
        lines.append("verdict   UNVERIFIED: --no-verify was given")
    lines += [f"report    {path}" for path in outcome.reports]
    return {
        "code": int(code),
        "class": kind,
        "name": outcome.name,
        "artifact": plain(outcome.artifact) if outcome.artifact else None,
        "verdict": plain(outcome.verdict) if outcome.verdict else None,
        "reports": [str(p) for p in outcome.reports],
        "timings": plain(outcome.timings),
        "summary": lines,
    }


def _finish(
    result: Mapping[str, object], code: ExitCode, kind: str, flags: Namespace, console: Console
) -> int:
    if flags.json:
        sys.stdout.write(json.dumps(result, indent=2, sort_keys=True) + "\n")
    summary = result["summary"]
    console.lines("", *(summary if isinstance(summary, list) else []))
    console.lines(*(f"warning   {w}" for w in console.warnings))
    console.lines(f"time      {duration(console.elapsed())}")
    if code is not ExitCode.OK:
        say_last(console, code, kind)
    return int(code)


def _require_folder(dist: Path) -> None:
    """Refuse before a long build what would end it at its last step."""
    if dist.exists() and not dist.is_dir():
        raise UsageError(
            f"{dist} is a file: nothing can be put into it",
            hint="name a folder for the artifact: --dist DIR",
            kind="dist-no-folder",
        )


def _write_failure(path: Path, error: LlamawrightError) -> None:
    """Keep the failure; when even that cannot be written, the failure itself is the news."""
    with contextlib.suppress(OSError):
        write_result(path, {"error": error.as_record()})


def write_result(path: Path, record: Mapping[str, object]) -> None:
    """Write the result file, whole or not at all."""
    write_whole(path, json.dumps(record, indent=2, sort_keys=True) + "\n")
