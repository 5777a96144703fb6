"""Plans, artifacts and verdicts as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from llamawright.console import duration, quantity
from llamawright.model.artifact import Artifact
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
    for patch in plan.patches:
        yield f"  patch     {patch.name} ({patch.type}): {patch.reason}"
    for option in plan.host_options:
        yield f"  option    {option.name}={option.value}"
    for option in plan.module_options:
        yield f"  module    {option.name}={option.value}"
    for warning in plan.warnings:
        yield f"  warning   {warning}"


def artifact_lines(artifact: Artifact) -> Iterator[str]:
    """Return what was packed, and what it needs."""
    manifest = artifact.manifest
    yield f"artifact  {artifact.path}  ({quantity(artifact.size, 'bytes')})"
    yield f"  sha256  {artifact.sha256}"
    if manifest.glibc:
        yield f"  needs   glibc {manifest.glibc}, {', '.join(manifest.system_libraries)}"
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


def _check_line(check: Check) -> str:
    wanted = f"  (expected {check.expected})" if check.outcome is not Outcome.PASS else ""
    return f"{MARKS[check.outcome]} {check.name}: {check.seen}{wanted}"
