"""One release: every step once, the gate, the last check, one rename."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.digest import digest_data
from llamawright.errors import LlamawrightError, PackageError
from llamawright.model.ports import Reporter
from llamawright.model.release import ReleaseRule
from llamawright.paths import remove_tree
from llamawright.release.assemble import Parts, assemble
from llamawright.release.coverage import TargetResult, accepted, require_covered
from llamawright.release.plan import PlannedTarget, ReleasePlan
from llamawright.release.record import ReleaseRecord, is_whole, read_record, recheck
from llamawright.release.staging import Staged, Staging
from llamawright.release.steps import Attested, Built, Proved, StampedSource, Steps
from llamawright.store import Store, disk_guard
from llamawright.store.files import flush_folder, flush_tree, move

DRAFT = ".draft"
ASSEMBLED = "assembled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A release on this machine; ``fresh`` when this run made it."""

    folder: Path
    record: ReleaseRecord
    fresh: bool


@dataclass(slots=True, kw_only=True)
class ReleaseRun:
    """The making of one release folder; killed anywhere, the next run goes on there."""

    plan: ReleasePlan
    rule: ReleaseRule
    steps: Steps
    dest: Path
    store: Store
    reporter: Reporter
    changes: str = ""
    staging: Staging = field(init=False)

    def __post_init__(self) -> None:
        self.staging = Staging(draft_of(self.dest))

    def make(self) -> Released:
        """Return the finished release; raise with everything that it lacks."""
        name = f"release-{digest_data(str(self.dest.absolute()))[:16]}"
        with self.store.lock(name, reporter=self.reporter, what=f"release {self.plan.name}"):
            if self.dest.exists():
                return self._known()
            source = self._source()
            results = tuple(self._target(t, source) for t in self.plan.targets)
            require_covered(self.plan, results)
            return self._publish(source, results)

    def _known(self) -> Released:
        if not is_whole(self.dest, self.plan):
            raise PackageError(
                f"{self.dest} is there, and it is not this release",
                why="a release never changes: it was made by another plan, or was damaged",
                hint=f"move it away, or name another folder: --dist {self.dest}-2",
                kind="release-exists",
            )
        remove_tree(self.staging.root)
        return Released(folder=self.dest, record=read_record(self.dest), fresh=False)

    def _source(self) -> Staged[StampedSource]:
        key = digest_data((self.plan.name, self.plan.tree, self.plan.recipe_digest))
        with self.reporter.step("source"):
            staged = self.staging.step("source", key, StampedSource, self.steps.stamp_source)
        if staged.outcome.tree != self.plan.tree:
            raise PackageError(
                "the stamped source is not the planned one",
                why=f"its tree is {staged.outcome.tree}, planned was {self.plan.tree}",
                kind="source-changed",
            )
        return staged

    def _target(self, planned: PlannedTarget, source: Staged[StampedSource]) -> TargetResult:
        """Return how far a target came: one that fails does not hide what the others lack."""
        result = TargetResult(planned=planned)
        try:
            with self.reporter.step(f"target {planned.target.name}"):
                result = self._built(result, source)
                result = self._opened(result)
                result = self._proved(result)
                result = self._attested(result)
        except LlamawrightError as error:
            self.reporter.warn(f"target {planned.target.name}: {error.what}")
            return replace(result, error=error)
        return result

    def _built(self, result: TargetResult, source: Staged[StampedSource]) -> TargetResult:
        planned = result.planned
        archive = source.folder / source.outcome.file
        key = digest_data((planned, source.files))

        def make(into: Path) -> Built:
            return self.steps.build(planned, archive, into)

        built = self.staging.step(f"{planned.target.name}.build", key, Built, make)
        return replace(result, built=built)

    def _opened(self, result: TargetResult) -> TargetResult:
        built = result.built
        if built is None:
            return result
        opened = self.steps.reopen(result.planned, built.folder / built.outcome.artifact)
        return replace(result, opened=opened)

    def _proved(self, result: TargetResult) -> TargetResult:
        planned, built = result.planned, result.built
        if built is None:
            return result
        artifact = built.folder / built.outcome.artifact

        def make(into: Path) -> Proved:
            return self.steps.prove(planned, artifact, into)

        def good(proved: Proved) -> bool:
            # A verdict that stopped the last run is not asked again: the device is.
            return accepted(planned.target, proved.state)

        name = planned.target.name
        key = digest_data((name, built.files))
        proved = self.staging.step(f"{name}.prove", key, Proved, make, keep=good)
        return replace(result, proved=proved)

    def _attested(self, result: TargetResult) -> TargetResult:
        planned, built, proved = result.planned, result.built, result.proved
        if built is None or proved is None or not accepted(planned.target, proved.outcome.state):
            return result
        artifact = built.folder / built.outcome.artifact
        verdict = proved.folder / proved.outcome.verdict

        def make(into: Path) -> Attested:
            return self.steps.attest(planned, artifact, verdict, into)

        key = digest_data((planned, built.files, proved.files))
        return replace(
            result,
            attested=self.staging.step(f"{planned.target.name}.attest", key, Attested, make),
        )

    def _publish(
        self, source: Staged[StampedSource], results: tuple[TargetResult, ...]
    ) -> Released:
        parts = Parts(
            plan=self.plan,
            rule=self.rule,
            source=source,
            results=results,
            changes=self.changes,
        )
        folder = self.staging.root / ASSEMBLED
        with self.reporter.step("assemble and check"), disk_guard(self.dest.parent):
            remove_tree(folder)
            folder.mkdir(parents=True)
            record = assemble(parts, folder)
            recheck(self.plan, results, folder, record, self.steps)
            flush_tree(folder)
            move(folder, self.dest)
            flush_folder(self.dest.parent)
            remove_tree(self.staging.root)
        return Released(folder=self.dest, record=record, fresh=True)


def draft_of(dest: Path) -> Path:
    """Return where the steps of a release are kept until it is whole: on the same volume."""
    return dest.with_name(f".{dest.name}{DRAFT}")
