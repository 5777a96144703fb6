"""Artifacts that were made and proved elsewhere: another machine, a job of a CI matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.digest import sha256_file
from llamawright.errors import UsageError
from llamawright.model.artifact import Manifest
from llamawright.model.floors import numbers
from llamawright.model.recipe import Recipe
from llamawright.model.release import ReleaseTarget, TargetKind
from llamawright.model.verdict import Verdict
from llamawright.package import read_artifact
from llamawright.release import PlannedFile, archive_files, wheel_files
from llamawright.transfer.wheel import is_wheel, read_wheel

VERDICT = ".verdict.json"
REPORT = ".report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An archive or wheel with its verdict, beside each other in one folder."""

    path: Path
    manifest: Manifest
    companion: Path | None
    verdict: Verdict
    verdict_file: Path

    @property
    def report(self) -> Path:
        """Return where the page of the verdict is."""
        stem = self.verdict_file.name.removesuffix(VERDICT)
        return self.verdict_file.with_name(f"{stem}{REPORT}")

    @property
    def names(self) -> tuple[PlannedFile, ...]:
        """Return the files that a target gets of it."""
        if is_wheel(self.path):
            return wheel_files(self.path.name.removesuffix(".whl"))
        companion = self.companion.name if self.companion else ""
        suffix = self.path.name.removeprefix(self.manifest.name)
        return archive_files(self.manifest.name, suffix, companion)


def find_made(target: ReleaseTarget, recipe: Recipe, folders: Iterable[Path]) -> Found | None:
    """Return what the folders hold of a target, the first that fits; ``None`` without one.

    Only a whole archive of this very source with a verdict on its bytes counts.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(
                f"{folder} is no folder",
                hint="name the folder that holds artifacts and their verdicts: --from DIR",
                kind="no-folder",
            )
        for found in _candidates(folder):
            if _is_kind(target.kind, found.path) and _fits(target, recipe, found.manifest):
                return found
    return None


def _candidates(folder: Path) -> Iterator[Found]:
    for file in sorted(folder.glob(f"*{VERDICT}")):
        try:
            verdict = codec.decode_text(Verdict, file.read_text(encoding="utf-8"), what=file.name)
        except (OSError, ValueError):
            continue
        path = folder / Path(verdict.artifact).name
        if path.is_file() and sha256_file(path) == verdict.artifact_sha256:
            artifact = None if is_wheel(path) else read_artifact(path)
            yield Found(
                path=path,
                manifest=artifact.manifest if artifact else read_wheel(path).manifest,
                companion=artifact.companion if artifact else None,
                verdict=verdict,
                verdict_file=file,
            )


def _is_kind(kind: TargetKind, path: Path) -> bool:
    return is_wheel(path) is (kind is TargetKind.RUNTIME_WHEEL)


def _fits(target: ReleaseTarget, recipe: Recipe, manifest: Manifest) -> bool:
    codes = {_digits(c) for c in manifest.cuda.codes} if manifest.cuda else set()
    return (
        manifest.backend is target.backend
        and manifest.commit == recipe.source.commit
        and manifest.source_digest == recipe.source.tree
        and {_digits(a) for a in target.archs} <= codes | ({""} if not target.archs else set())
        and not manifest.native
        and _old_enough(target.floor, manifest)
    )


def _old_enough(floor: str, manifest: Manifest) -> bool:
    promised = floor.removeprefix("manylinux_").replace("_", ".")
    return not floor or numbers(manifest.glibc) <= numbers(promised)


def _digits(code: str) -> str:
    return "".join(c for c in code if c.isdigit())
