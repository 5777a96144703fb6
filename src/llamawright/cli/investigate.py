"""``verify --investigate``: how long, with which tools, and what it adds to the summary."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.cli.render import with_pages
from llamawright.cli.soak import DURATION, PART, UNITS
from llamawright.digest import plain
from llamawright.errors import UsageError
from llamawright.model.artifact import Artifact
from llamawright.model.inventory import Role
from llamawright.model.toolchain import ProvidedSet
from llamawright.pipeline import Outcome, Pipeline
from llamawright.provide import debugger_of, layers_of, provide_set
from llamawright.verify import (
    Attachment,
    Offers,
    investigate,
    investigation_lines,
    write_investigation,
    write_report,
)

DEFAULT = "5m"
LEAST_S, MOST_S = 10.0, 24 * UNITS["h"]


def wanted_investigation(flags: Namespace) -> float | None:
    """Return the seconds that an investigation may take, ``None`` when none is wanted."""
    text = getattr(flags, "investigate_limit", None)
    if not getattr(flags, "investigate", False):
        if text is not None:
            raise UsageError(
                "--investigate-limit says how long, and nothing is to be investigated",
                hint="add --investigate",
                kind="no-investigation",
            )
        return None
    if getattr(flags, "soak", None) is not None:
        raise UsageError(
            "--investigate looks into a proof that failed, --soak goes on after one that passed",
            hint="leave one of them out",
            kind="flags-conflict",
        )
    return _seconds(DEFAULT if text is None else text)


def _seconds(text: str) -> float:
    seconds = sum(float(n) * UNITS[unit] for n, unit in PART.findall(text))
    if not DURATION.fullmatch(text) or not LEAST_S <= seconds <= MOST_S:
        raise UsageError(
            f"'{text}' is no limit for an investigation",
            why="it is a number with s, m or h, from 10 seconds to one day",
            hint="--investigate-limit 10m, 90s or 1h30m",
            kind="bad-duration",
        )
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A proof's outcome, and what was attached to it when it failed."""

    outcome: Outcome
    attached: Attachment | None
    pages: tuple[Path, ...]


def investigated(pipeline: Pipeline, path: Path, limit_s: float | None) -> Looked | None:
    """Prove a file and look into its failure; the attachment goes beside the report.

    ``None`` when nothing is to be investigated.
    """
    if limit_s is None:
        return None
    with pipeline.reporter.step("verify"):
        proof, attached = investigate(
            pipeline.proof_request(path),
            limit_s=limit_s,
            store=pipeline.store,
            reporter=pipeline.reporter,
            offers=offers(pipeline),
            provide_driver=pipeline.provider,
        )
    verdict, manifest = proof.verdict, proof.manifest
    reports = write_report(verdict, manifest, path.parent)
    pages = write_investigation(attached.found, attached.logs, path.parent) if attached else ()
    artifact = None
    if manifest is not None:
        size, sha256 = path.stat().st_size, verdict.artifact_sha256
        artifact = Artifact(path=path, size=size, sha256=sha256, manifest=manifest)
    outcome = Outcome(
        name=path.name, artifact=artifact, verdict=verdict, reports=reports, timings=()
    )
    return Looked(outcome=outcome, attached=attached, pages=pages)


def offers(pipeline: Pipeline) -> Offers:
    """Return the instruments that can be provided on this platform; asked for only when used."""

    def of(role: Role) -> ProvidedSet | None:
        tag = pipeline.platform.tag
        sets = pipeline.toolchains.sets
        return next((s for s in sets if s.role is role and tag in s.platforms), None)

    def root(wanted: ProvidedSet) -> Path:
        return provide_set(
            wanted,
            store=pipeline.store,
            toolchains=pipeline.toolchains,
            offline=pipeline.wanted.offline,
            reporter=pipeline.reporter,
        )

    debugger, layers = of(Role.DEBUGGER), of(Role.LAYERS)
    return Offers(
        debugger=(lambda: debugger_of(root(debugger))) if debugger else None,
        layers=(lambda: layers_of(root(layers))[1]) if layers else None,
    )


def with_investigation(result: Mapping[str, object], looked: Looked) -> dict[str, object]:
    """Return the result of a proof with what the investigation found; the verdict stands."""
    if looked.attached is None:
        return dict(result)
    found = looked.attached.found
    lines = (f"inquiry   {line}" for line in investigation_lines(found))
    return with_pages({**result, "investigation": plain(found)}, lines, looked.pages)
