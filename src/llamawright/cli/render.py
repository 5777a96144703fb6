"""Plans, artifacts and verdicts as lines for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from llamawright.console import duration, quantity
from llamawright.model.artifact import Artifact
from llamawright.model.cuda import CudaPlan
from llamawright.model.plan import Plan
from llamawright.model.verdict import Check, Outcome, State, Verdict

MARKS = {Outcome.PASS: "ok  ", Outcome.FAIL: "FAIL", Outcome.UNKNOWN: "?   "}
LOUD = {
    State.VERIFIED: "VERIFIED",
    State.VERIFIED_SOFTWARE: "VERIFIED IN SOFTWARE (no hardware was proved)",
    State.UNVERIFIED: "UNVERIFIED: built, and run on no device",
    State.CANNOT_VERIFY: "CANNOT VERIFY HERE",
    State.FAILED: "FAILED",
    State.QUARANTINED: "QUARANTINED",
}


def plan_lines(plan: Plan) -> Iterator[str]:
    """Return the plan as a page: tools, provisions, patches, options, keys."""
    yield f"{plan.name}"
    yield f"  key       {plan.key[:16]}  (host {plan.host_key[:16]})"
    yield f"  source    {plan.recipe.source.upstream} {plan.recipe.source.commit}  [{plan.source}]"
    yield f"  jobs      {plan.jobs}"
    for tool in plan.tools:
        yield f"  tool      {tool.role}: {tool.name} {tool.version}  {tool.path}  [{tool.where}]"
    for item in plan.provisions:
        state = "in the store" if item.present else f"{quantity(item.size, 'bytes')} to download"
        yield f"  provide   {item.name} {item.version}  ({state})"
    if plan.cuda is not None:
        yield from _cuda_lines(plan.cuda)
    for patch in plan.patches:
        yield f"  patch     {patch.name} ({patch.type}): {patch.reason}"
    for option in plan.host_options:
        yield f"  option    {option.name}={option.value}"
    for option in plan.module_options:
        yield f"  module    {option.name}={option.value}"
    for warning in plan.warnings:
        yield f"  warning   {warning}"


def _cuda_lines(cuda: CudaPlan) -> Iterator[str]:
    codes = ", ".join(c.name for c in cuda.codes)
    yield f"  cuda      {cuda.toolkit} for {codes}"
    jit = f"; its PTX needs {cuda.driver_jit}" if cuda.driver_jit and _has_ptx(cuda) else ""
    yield f"  driver    {cuda.driver or 'not known'} or newer runs it{jit}"
    where = "go into a companion archive" if cuda.bundled else "must be the system's"
    yield f"  runtime   {', '.join(p.name for p in cuda.libraries)} {where}"


def _has_ptx(cuda: CudaPlan) -> bool:
    return any(c.ptx for c in cuda.codes)


def artifact_lines(artifact: Artifact) -> Iterator[str]:
    """Return what was packed, and what it needs."""
    manifest = artifact.manifest
    yield f"artifact  {artifact.path}  ({quantity(artifact.size, 'bytes')})"
    yield f"  sha256  {artifact.sha256}"
    if manifest.glibc:
        yield f"  needs   glibc {manifest.glibc}, {', '.join(manifest.system_libraries)}"
    if manifest.cuda is not None:
        cuda = manifest.cuda
        yield f"  cuda    {cuda.toolkit}: {', '.join(cuda.codes)}; driver {cuda.driver} or newer"
        if cuda.companion is not None and cuda.companion.file:
            size = quantity(cuda.companion.size, "bytes")
            yield f"  runtime {cuda.companion.file}  ({size}): unpack it over the artifact"
    lost = [c for c in manifest.capabilities if not c.present]
    if manifest.capabilities:
        have = ", ".join(c.name for c in manifest.capabilities if c.present) or "none"
        yield f"  with    {have}"
    for capability in lost:
        yield f"  without {capability.name}: {capability.cost}"


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Return the verdict with each piece of evidence."""
    device = f" on {verdict.device.name}" if verdict.device else ""
    failure = f" ({verdict.failure})" if verdict.failure else ""
    yield f"verdict   {LOUD[verdict.state]}{failure}{device}  ({duration(verdict.seconds)})"
    yield from (f"  {line}" for line in map(_check_line, verdict.checks))
    speed = verdict.speed
    if speed.generation_tps:
        yield (
            f"  speed: prompt {speed.prompt_tps:.1f} tok/s, generation "
            f"{speed.generation_tps:.1f} tok/s, first token {duration(speed.first_token_s)}"
        )
    if verdict.why:
        yield f"  why: {verdict.why}"
    if verdict.hint:
        yield f"  hint: {verdict.hint}"


def with_pages(
    result: Mapping[str, object], lines: Iterable[str], pages: Sequence[Path]
) -> dict[str, object]:
    """Return a result with more lines in its summary and more pages among its reports."""
    before, reports = result["summary"], result["reports"]
    return {
        **result,
        "reports": [*(reports if isinstance(reports, list) else []), *map(str, pages)],
        "summary": [
            *(before if isinstance(before, list) else []),
            *lines,
            *(f"report    {page}" for page in pages),
        ],
    }


def _check_line(check: Check) -> str:
    wanted = f"  (expected {check.expected})" if check.outcome is not Outcome.PASS else ""
    return f"{MARKS[check.outcome]} {check.name}: {check.seen}{wanted}"
