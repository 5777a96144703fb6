"""Findings to a result that can be read by people and programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from llamawright.model.artifact import Manifest
from llamawright.model.investigation import Cause, Investigation
from llamawright.model.verdict import Verdict
from llamawright.verify.investigate_case import Kind
from llamawright.verify.investigate_cause import Seen, first_cause, segfaults
from llamawright.verify.investigate_lab import plain_command
from llamawright.verify.investigate_probe import Findings

MOST_KERNEL = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What was proved, by file names alone."""

    verdict: Verdict
    manifest: Manifest | None
    artifact: str
    model: str


def compose(found: Findings, named: Named, *, limit_s: float, date: str) -> Investigation:
    """Return the result of an investigation that ran."""
    lab, setting = found.lab, found.subject.setting
    seen = Seen(
        case=lab.case,
        halt=found.halt,
        messages=tuple(found.messages),
        kernel=found.events,
        artifact=str(setting.install.root),
        reproduced=found.reproduced,
    )
    build_ids = (("build id", f"{module} {digest}") for module, digest in found.build_ids)
    return replace(
        _blank(named, first_cause(seen), limit_s=limit_s, date=date),
        failure=lab.case.failure,
        why=lab.case.why,
        run=lab.case.name,
        reproduced=found.reproduced,
        repeated=found.repeated,
        commands=tuple(reproduction(found, named)),
        reductions=tuple(found.reductions),
        instruments=tuple(found.instruments),
        halt=found.halt,
        messages=tuple(found.messages),
        kernel=(*found.events, *segfaults(found.kernel))[:MOST_KERNEL],
        trials=tuple(lab.trials),
        environment=(*environment(named), *build_ids),
        limits=lab.told_limits,
        seconds=round(lab.clock.spent, 1),
    )


def nothing_run(named: Named, why: str, *, limit_s: float, date: str) -> Investigation:
    """Return the result of a failure that no run can show."""
    verdict = named.verdict
    told = f"{verdict.failure or verdict.state}: {verdict.why}"
    cause = Cause(told=told, evidence="the verdict itself")
    blank = _blank(named, cause, limit_s=limit_s, date=date)
    return replace(blank, limits=(f"nothing was run: {why}",))


def _blank(named: Named, cause: Cause, *, limit_s: float, date: str) -> Investigation:
    verdict, device = named.verdict, named.verdict.device
    return Investigation(
        artifact=named.artifact,
        artifact_sha256=verdict.artifact_sha256,
        model=named.model,
        model_sha256=verdict.model_sha256,
        state=str(verdict.state),
        failure=verdict.failure,
        why=verdict.why,
        run="",
        device=f"{device.id} {device.name}" if device else "",
        driver=device.driver if device else "",
        cause=cause,
        reproduced=0,
        repeated=0,
        commands=(),
        reductions=(),
        instruments=(),
        halt=None,
        messages=(),
        kernel=(),
        trials=(),
        environment=tuple(environment(named)),
        limits=(),
        date=date,
        seconds=0.0,
        limit_s=limit_s,
    )


def reproduction(found: Findings, named: Named) -> Iterator[str]:
    """Yield the lines that show the smallest case in a shell, with plain paths."""
    case, shape = found.lab.case, found.shape
    yield f"# ARTIFACT is {named.artifact} (sha256 {named.verdict.artifact_sha256}), unpacked"
    if shape.applied(case.argv) and "-m" in case.argv:
        yield f"# {named.model} has the sha256 {named.verdict.model_sha256}"
    env = {**case.env, **dict(shape.variables)}
    argv = (*shape.applied(case.argv), *shape.flags)
    if case.kind in (Kind.TEXT, Kind.NUMBERS):
        yield "# on the CPU, for comparison (REFERENCE is ARTIFACT without the device's module)"
        yield plain_command(case.reference, case.reference_env or {})
        yield "# on the device"
    yield plain_command(argv, env)


def environment(named: Named) -> Iterator[tuple[str, str]]:
    """Yield what a maintainer asks for first: versions, driver, device, system."""
    verdict, manifest = named.verdict, named.manifest
    if manifest is not None:
        yield "upstream", f"{manifest.upstream} {manifest.commit} (build {manifest.build_number})"
        yield "artifact", manifest.name
        yield "patches", ", ".join(p.name for p in manifest.patches) or "none"
        tools = (f"{t.role} {t.name} {t.version}" for t in manifest.tools)
        yield "built with", ", ".join(tools) or "not told"
    if verdict.device is not None:
        yield "device", f"{verdict.device.id}: {verdict.device.name} {verdict.device.pci}".strip()
        yield "driver", verdict.device.driver or "not told"
    yield from verdict.host
