"""From finished steps to one folder that is checked as a stranger would, and renamed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.digest import list_files, sha256_file
from llamawright.errors import PackageError
from llamawright.model.platform import Backend
from llamawright.model.release import ReleaseRule, ReleaseTarget, TargetKind
from llamawright.release.coverage import TargetResult
from llamawright.release.files import link_or_copy
from llamawright.release.index import write_channel, write_index, write_metadata
from llamawright.release.notes import release_notes
from llamawright.release.plan import (
    INDEX,
    NOTES,
    RECORD,
    SUMS,
    VARIANTS,
    FileRole,
    ReleasePlan,
    channels_of,
)
from llamawright.release.record import ReleasedFile, ReleaseRecord, TargetVerdict
from llamawright.release.staging import KeptFile, Staged
from llamawright.release.steps import StampedSource
from llamawright.release.variants import write_variants
from llamawright.release.wheels import WheelFacts, read_wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that a release is put together from."""

    plan: ReleasePlan
    rule: ReleaseRule
    source: Staged[StampedSource]
    results: tuple[TargetResult, ...]
    changes: str


def assemble(parts: Parts, folder: Path) -> ReleaseRecord:
    """Put the release together in the empty ``folder``; nothing is left out or added."""
    copied = tuple(_copied(parts, folder))
    wheels = tuple(_wheels(parts, folder))
    found = (*copied, *_metadata(wheels, folder))
    # Two CUDA targets share one runtime archive: the first one is told.
    files = list({f.name: f for f in reversed(found)}.values())[::-1]
    _index(parts, wheels, folder)
    shipped = [(KeptFile(name=f.name, size=f.size, sha256=f.sha256), f.role) for f in files]
    notes = release_notes(parts.plan, parts.results, shipped, parts.changes)
    (folder / NOTES).write_text(notes, encoding="utf-8", newline="\n")
    record = ReleaseRecord(
        name=parts.plan.name,
        tag=parts.plan.tag,
        upstream=parts.plan.upstream,
        commit=parts.plan.commit,
        tree=parts.plan.tree,
        plan_digest=parts.plan.digest,
        files=tuple(sorted(files, key=lambda f: f.name)),
        verdicts=tuple(_verdicts(parts.results)),
    )
    (folder / RECORD).write_text(codec.encode(record), encoding="utf-8", newline="\n")
    sums = (f"{sha256_file(folder / n)}  {n}\n" for n in list_files(folder))
    (folder / SUMS).write_text("".join(sums), encoding="utf-8", newline="\n")
    return record


def _copied(parts: Parts, folder: Path) -> Iterator[ReleasedFile]:
    source = parts.source
    yield _place(source, source.outcome.file, FileRole.SOURCE, "", folder)
    for result in parts.results:
        name, built = result.planned.target.name, result.built
        if built is not None:
            made = built.outcome
            yield _place(built, made.artifact, FileRole.ARTIFACT, name, folder)
            if made.companion:
                yield _place(built, made.companion, FileRole.COMPANION, name, folder)
            for file in made.checksums:
                yield _place(built, file, FileRole.CHECKSUM, name, folder)
        if result.proved is not None:
            proved = result.proved.outcome
            yield _place(result.proved, proved.verdict, FileRole.VERDICT, name, folder)
            for file in proved.reports:
                yield _place(result.proved, file, FileRole.REPORT, name, folder)
        for file in result.attested.outcome.files if result.attested else ():
            if result.attested is not None:
                yield _place(result.attested, file, FileRole.STATEMENT, name, folder)


def _place(
    staged: Staged[object], name: str, role: FileRole, target: str, folder: Path
) -> ReleasedFile:
    kept = next((f for f in staged.files if f.name == name), None)
    if kept is None:
        raise _bad_step(f"{target or 'the source'} did not leave its file {name}")
    place = folder / name
    if not place.exists():
        link_or_copy(staged.folder / name, place)
    elif sha256_file(place) != kept.sha256:
        raise _bad_step(f"two targets make different files of the name {name}")
    return ReleasedFile(name=name, role=role, target=target, size=kept.size, sha256=kept.sha256)


def _bad_step(what: str) -> PackageError:
    hint = "give the recipe's targets other archs or kinds, so that each has names of its own"
    return PackageError(what, hint=hint, kind="bad-step")


def _wheels(parts: Parts, folder: Path) -> Iterator[tuple[ReleaseTarget, WheelFacts]]:
    for result in parts.results:
        if result.planned.is_wheel and result.built is not None:
            yield result.planned.target, read_wheel(folder / result.built.outcome.artifact)


def _metadata(
    wheels: Iterable[tuple[ReleaseTarget, WheelFacts]], folder: Path
) -> Iterator[ReleasedFile]:
    for target, facts in wheels:
        yield ReleasedFile(
            name=write_metadata(folder, facts),
            role=FileRole.METADATA,
            target=target.name,
            size=len(facts.metadata),
            sha256=facts.metadata_sha256,
        )


def _index(parts: Parts, wheels: Iterable[tuple[ReleaseTarget, WheelFacts]], folder: Path) -> None:
    listed: dict[str, list[WheelFacts]] = {}
    runtime: list[tuple[Backend, Path]] = []
    for target, facts in wheels:
        for channel in channels_of(str(target.backend), facts.file):
            listed.setdefault(channel, []).append(facts)
        if target.kind is TargetKind.RUNTIME_WHEEL:
            runtime.append((target.backend, folder / facts.file))
    write_index(folder, listed, files_at=parts.plan.files_at)
    if parts.plan.variants and runtime:
        place = folder / INDEX / VARIANTS
        made, described = write_variants(place, runtime, parts.rule)
        write_channel(place, made, files_at="..", extra=described)
        for facts in made:
            write_metadata(place, facts)


def _verdicts(results: Iterable[TargetResult]) -> Iterator[TargetVerdict]:
    for result in results:
        if result.proved is not None:
            proved, target = result.proved.outcome, result.planned.target
            yield TargetVerdict(
                target=target.name,
                state=proved.state,
                device=proved.device,
                reason=target.reason_for(proved.state) or "",
            )
