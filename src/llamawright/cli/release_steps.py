"""The steps of a release, done by the pipeline and the rooms."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from llamawright.cli.floor import require_floor
from llamawright.cli.release_found import REPORT, VERDICT, Found
from llamawright.cli.release_plan import ReleaseWork
from llamawright.errors import PackageError
from llamawright.model.release import TargetKind
from llamawright.model.verdict import Verdict
from llamawright.package import read_artifact
from llamawright.package.wheels import build_wheel
from llamawright.patching import Series
from llamawright.paths import remove_tree
from llamawright.release import (
    SIDECAR,
    Attested,
    Built,
    Opened,
    PlannedTarget,
    Proved,
    StampedSource,
    link_or_copy,
    write_source,
)
from llamawright.transfer.wheel import is_wheel, read_wheel


@dataclass(frozen=True, slots=True)
class PipelineSteps:
    """Real builds, real proofs; each leaves its files in the folder that it is given."""

    work: ReleaseWork

    def stamp_source(self, into: Path) -> StampedSource:
        """Write the pinned source with its patches into one archive."""
        plan, pipeline = self.work.plan, self.work.pipeline
        pin = pipeline.recipe.source
        stamp: dict[str, object] = {
            "recipe": pipeline.recipe.name,
            "recipe_sha256": pipeline.recipe.digest,
            "upstream": pin.upstream,
            "commit": pin.commit,
            "build_number": pin.build_number,
            "version": pin.version,
            "timestamp": pin.timestamp,
        }
        write_source(
            into / plan.source.name,
            pipeline.source_root(),
            patches=_patch_files(pipeline.series),
            stamp=stamp,
            digest=plan.tree,
            date=plan.timestamp,
        )
        return StampedSource(file=plan.source.name, tree=plan.tree)

    def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
        """Build a target, or take it from where it was made.

        The build reads the store's tree of the same digest; that the artifact says so is
        checked when it is opened again.
        """
        del source
        work = self.work.of(target)
        if work.found is not None:
            return _taken(work.found, into)
        # A wheel's archive is no file of its target.
        wheel = target.target.kind is TargetKind.RUNTIME_WHEEL
        place = into / "archive" if wheel else into
        artifact = work.into(place).build(prove=False).artifact
        if artifact is None or artifact.manifest.native:
            raise _not_for_others(target)
        if work.floor is not None:
            require_floor(artifact.manifest, work.floor)
        companion = artifact.companion.name if artifact.companion else ""
        if not wheel:
            return _built(artifact.path.name, companion, into)
        pipeline = work.pipeline
        made = build_wheel(artifact, into, store=pipeline.store, reporter=pipeline.reporter)
        remove_tree(place)
        return _built(made.path.name, "", into)

    def prove(self, target: PlannedTarget, artifact: Path, into: Path) -> Proved:
        """Run the packed file on a device, or take the verdict that came with it."""
        work = self.work.of(target)
        if work.found is not None:
            return _verdict_taken(work.found, into)
        names = [p.name for p in artifact.parent.iterdir() if not p.name.startswith(".")]
        for name in names:
            link_or_copy(artifact.parent / name, into / name)
        outcome = work.into(into).verify_file(into / artifact.name)
        for name in names:
            (into / name).unlink()
        if outcome.verdict is None:
            raise PackageError(f"{artifact.name} got no verdict", kind="bad-step")
        # A wheel has the manifest of its archive, and must not have the names of its reports.
        stem = _stem(artifact)
        reports = (p.rename(into / f"{stem}{''.join(p.suffixes[-2:])}") for p in outcome.reports)
        verdict, *pages = (p.name for p in reports)
        return _proved(outcome.verdict, verdict, tuple(pages))

    def attest(self, target: PlannedTarget, artifact: Path, verdict: Path, into: Path) -> Attested:
        """Write no statement yet."""
        del target, artifact, verdict, into
        return Attested()

    def reopen(self, target: PlannedTarget, artifact: Path) -> Opened:
        """Open a packed file as strictly as a proof does."""
        del target
        opened = read_wheel(artifact) if is_wheel(artifact) else read_artifact(artifact)
        manifest = opened.manifest
        return Opened(tree=manifest.source_digest, commit=manifest.commit)


def _not_for_others(target: PlannedTarget) -> PackageError:
    return PackageError(
        f"the target {target.target.name} was built for this machine's CPU only, or not at all",
        why="others die of SIGILL in a build that was made with `native`",
        hint="take `native` out of llamawright.toml and LLAMAWRIGHT_NATIVE",
        kind="native-release",
    )


def _stem(artifact: Path) -> str:
    """Return the name without the archive's or wheel's ending; the version's dots stay."""
    return artifact.name.removesuffix(".tar.zst").removesuffix(".zip").removesuffix(".whl")


def _patch_files(series: Series) -> list[Path]:
    return sorted(p for p in series.folder.iterdir() if p.suffix in {".patch", ".toml"})


def _built(artifact: str, companion: str, into: Path) -> Built:
    sums = (f"{n}{SIDECAR}" for n in (artifact, companion) if n)
    present = tuple(n for n in sums if (into / n).is_file())
    return Built(artifact=artifact, companion=companion, checksums=present)


def _taken(found: Found, into: Path) -> Built:
    artifact, companion = found.path, found.companion
    for path in (artifact, *([companion] if companion else [])):
        for file in (path, path.with_name(f"{path.name}{SIDECAR}")):
            if file.is_file():
                shutil.copyfile(file, into / file.name)
    return _built(artifact.name, companion.name if companion else "", into)


def _verdict_taken(found: Found, into: Path) -> Proved:
    stem = _stem(found.path)
    names = [f"{stem}{VERDICT}"]
    shutil.copyfile(found.verdict_file, into / names[0])
    if found.report.is_file():
        names.append(f"{stem}{REPORT}")
        shutil.copyfile(found.report, into / names[1])
    return _proved(found.verdict, names[0], tuple(names[1:]))


def _proved(verdict: Verdict, file: str, pages: tuple[str, ...]) -> Proved:
    return Proved(
        state=verdict.state,
        sha256=verdict.artifact_sha256,
        verdict=file,
        reports=pages,
        device=verdict.device.name if verdict.device else "",
        why=verdict.why,
    )
