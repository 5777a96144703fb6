"""From the recipe's targets to a release without open questions."""

from __future__ import annotations

import copy
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.cli.floor import apply_floor
from llamawright.cli.release_found import Found, find_made
from llamawright.console import Console
from llamawright.errors import UsageError
from llamawright.model.floors import numbers
from llamawright.model.plan import Plan
from llamawright.model.recipe import SourcePin
from llamawright.model.release import ReleaseRule, ReleaseTarget, TargetKind
from llamawright.model.toolchain import ProvidedSet
from llamawright.model.wheel import WHEEL_PROJECT
from llamawright.package.archive import archive_suffix
from llamawright.package.wheels.naming import wheel_stem
from llamawright.pipeline import Pipeline
from llamawright.release import (
    PlannedFile,
    PlannedTarget,
    ReleasePlan,
    archive_files,
    shared_files,
    wheel_files,
)
from llamawright.resolve import source_pin

COMMIT_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A target with what makes it: this machine, or a folder that holds it finished."""

    planned: PlannedTarget
    pipeline: Pipeline
    found: Found | None = None
    floor: ProvidedSet | None = None

    def into(self, folder: Path) -> Pipeline:
        """Return the pipeline that leaves its files in ``folder``."""
        return replace(self.pipeline, request=replace(self.pipeline.wish, dist=folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWork:
    """A planned release and the work behind each of its targets."""

    plan: ReleasePlan
    rule: ReleaseRule
    works: tuple[Work, ...]

    @property
    def pipeline(self) -> Pipeline:
        """Return one of the pipelines: source, patches and store are the same for all."""
        return self.works[0].pipeline

    def of(self, target: PlannedTarget) -> Work:
        """Return the work behind a target."""
        return next(w for w in self.works if w.planned.target.name == target.target.name)


def plan_release(flags: Namespace, store: Path, console: Console) -> ReleaseWork:
    """Resolve every target; raises what stops one of them, before anything is built."""
    flags.backend = None
    recipe = Pipeline.open(flags, store, console).recipe
    rule = recipe.release
    if rule is None:
        raise UsageError(
            f"the recipe {recipe.name} says nothing of a release",
            hint="add [[release.targets]] to it: docs/reference/recipe.md",
            kind="no-release-targets",
        )
    if flags.variants and not rule.variants:
        raise UsageError(
            f"the recipe {recipe.name} names no wheel variants",
            hint="add [[release.variants]] with [[release.providers]], or leave out --variants",
            kind="no-variants",
        )
    works = tuple(_work(t, flags, store, console) for t in rule.targets)
    targets = tuple(w.planned for w in works)
    name = f"{recipe.name}-{recipe.source.commit[:COMMIT_DIGITS]}"
    plan = ReleasePlan(
        name=name,
        tag=flags.tag or name,
        upstream=recipe.source.upstream,
        commit=recipe.source.commit,
        tree=_pinned(works[0].pipeline),
        timestamp=recipe.source.timestamp,
        platform=works[0].pipeline.platform.tag,
        recipe_digest=recipe.digest,
        targets=targets,
        files=shared_files(name, targets, variants=flags.variants),
        variants=flags.variants,
        files_at=flags.files_at or "",
    )
    return ReleaseWork(plan=plan, rule=rule, works=works)


def _pinned(pipeline: Pipeline) -> str:
    pin: SourcePin = source_pin(pipeline.wish)
    if pin.tree is None:
        raise UsageError(
            "a release is made from the recipe's pinned source",
            why=f"--source {pipeline.wish.source} has no digest that others could check",
            hint="pin it in a recipe of its own: --recipe FILE",
            kind="unpinned-release",
        )
    return pin.tree


def _work(target: ReleaseTarget, flags: Namespace, store: Path, console: Console) -> Work:
    own = copy.copy(flags)
    own.backend, own.archs = str(target.backend), list(target.archs) or None
    own.floor = target.floor or None
    pipeline = Pipeline.open(own, store, console)
    found = find_made(target, pipeline.recipe, flags.made or ())
    floor = apply_floor(own, store, console) if found is None else None
    if floor is not None:
        # The flags name the floor's own compiler now.
        pipeline = Pipeline.open(own, store, console)
    if found is not None:
        files, key, archive = found.names, found.manifest.key, found.manifest.name
    else:
        plan = pipeline.plan()
        files, key, archive = _files(target, plan), plan.key, plan.name
    planned = PlannedTarget(
        target=target,
        key=key,
        command=_command(target, f"{archive}{archive_suffix(pipeline.platform)}", files),
        files=files,
        project=WHEEL_PROJECT if target.kind is TargetKind.RUNTIME_WHEEL else "",
    )
    return Work(planned=planned, pipeline=pipeline, found=found, floor=floor)


def _files(target: ReleaseTarget, plan: Plan) -> tuple[PlannedFile, ...]:
    match target.kind:
        case TargetKind.ARCHIVE:
            suffix = archive_suffix(plan.platform)
            bundled = plan.cuda is not None and plan.cuda.bundled
            # One for each toolkit, named after the libraries' own version.
            runtime = f"cuda-runtime-*-{plan.platform.tag}{suffix}" if bundled else ""
            return archive_files(plan.name, suffix, runtime)
        case TargetKind.RUNTIME_WHEEL:
            return wheel_files(wheel_stem(_wheel_version(plan), "*"))
        case TargetKind.BINDING_WHEEL:
            raise UsageError(
                f"the target {target.name} is a wheel that a release cannot make yet",
                hint="leave it out of [[release.targets]]",
                kind="no-binding-wheel",
            )


def _wheel_version(plan: Plan) -> str:
    """Return the version of a wheel of this plan, as its manifest will give it."""
    toolkit = plan.cuda.toolkit if plan.cuda else ""
    label = f"cu{''.join(map(str, numbers(toolkit)[:2]))}" if toolkit else str(plan.backend)
    return f"0.0.{plan.recipe.source.build_number}+{label}"


def _command(target: ReleaseTarget, archive: str, files: tuple[PlannedFile, ...]) -> str:
    """Return the commands that make and prove a target by hand, to be pasted as they are."""
    archs = "".join(f" --arch {a}" for a in target.archs)
    hardware = "" if target.accept else " --require-hardware"
    floor = f" --floor {target.floor}" if target.floor else ""
    build = f"llamawright build {target.backend}{archs}{floor}"
    if target.kind is TargetKind.ARCHIVE:
        return f"{build}{hardware}"
    wheel = f"llamawright wheel dist/{archive}"
    return f"{build} && {wheel} && llamawright verify dist/{files[0].name}{hardware}"
