"""Artifacts that were made and proved elsewhere: another machine, a job of a CI matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.errors import UsageError
from llamawright.model.artifact import Artifact, Manifest
from llamawright.model.recipe import Recipe
from llamawright.model.release import ReleaseTarget, TargetKind
from llamawright.model.verdict import Verdict
from llamawright.package import read_artifact
from llamawright.release import PlannedTarget, archive_files

VERDICT = ".verdict.json"
REPORT = ".report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An archive with its verdict, beside each other in one folder."""

    artifact: Artifact
    verdict: Verdict
    verdict_file: Path

    @property
    def report(self) -> Path:
        """Return where the page of the verdict is."""
        stem = self.verdict_file.name.removesuffix(VERDICT)
        return self.verdict_file.with_name(f"{stem}{REPORT}")

    def planned(self, target: ReleaseTarget, command: str) -> PlannedTarget:
        """Return the target with the files that are there."""
        manifest, path = self.artifact.manifest, self.artifact.path
        companion = self.artifact.companion.name if self.artifact.companion else ""
        return PlannedTarget(
            target=target,
            key=manifest.key,
            command=command,
            files=archive_files(manifest.name, path.name.removeprefix(manifest.name), companion),
        )


def find_made(target: ReleaseTarget, recipe: Recipe, folders: Iterable[Path]) -> Found | None:
    """Return what the folders hold of a target, the first that fits; ``None`` without one.

    Only a whole archive of this very source with a verdict on its bytes counts.
    """
    if target.kind is not TargetKind.ARCHIVE:
        return None
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(
                f"{folder} is no folder",
                hint="name the folder that holds artifacts and their verdicts: --from DIR",
                kind="no-folder",
            )
        for found in _candidates(folder):
            if _fits(target, recipe, found.artifact.manifest):
                return found
    return None


def _candidates(folder: Path) -> Iterator[Found]:
    for file in sorted(folder.glob(f"*{VERDICT}")):
        try:
            verdict = codec.decode_text(Verdict, file.read_text(encoding="utf-8"), what=file.name)
        except (OSError, ValueError):
            continue
        path = folder / Path(verdict.artifact).name
        if path.suffix != ".whl" and path.is_file():
            artifact = read_artifact(path)
            if artifact.sha256 == verdict.artifact_sha256:
                yield Found(artifact=artifact, verdict=verdict, verdict_file=file)


def _fits(target: ReleaseTarget, recipe: Recipe, manifest: Manifest) -> bool:
    codes = {_digits(c) for c in manifest.cuda.codes} if manifest.cuda else set()
    return (
        manifest.backend is target.backend
        and manifest.commit == recipe.source.commit
        and manifest.source_digest == recipe.source.tree
        and {_digits(a) for a in target.archs} <= codes | ({""} if not target.archs else set())
        and not manifest.native
    )


def _digits(code: str) -> str:
    return "".join(c for c in code if c.isdigit())
