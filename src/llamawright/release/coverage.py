"""The gate before a release: every target of the recipe is there, audited and proved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llamawright.errors import ExitCode, LlamawrightError, PackageError, VerificationError
from llamawright.model.release import ReleaseTarget
from llamawright.model.verdict import State
from llamawright.release.plan import FileRole, PlannedTarget, ReleasePlan
from llamawright.release.staging import Staged
from llamawright.release.steps import Attested, Built, Opened, Proved


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What a target lacks, and the command that makes it."""

    target: str
    what: str
    why: str
    command: str
    code: ExitCode = ExitCode.VERIFICATION

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.target}: {self.what}{f' ({self.why})' if self.why else ''}: {self.command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """How far a target came; ``error`` is what stopped it."""

    planned: PlannedTarget
    built: Staged[Built] | None = None
    opened: Opened | None = None
    proved: Staged[Proved] | None = None
    attested: Staged[Attested] | None = None
    error: LlamawrightError | None = None


def gaps(plan: ReleasePlan, results: Iterable[TargetResult]) -> tuple[Gap, ...]:
    """Return everything that the release lacks, in the recipe's order."""
    by_name = {r.planned.target.name: r for r in results}
    return tuple(
        gap for t in plan.targets for gap in _target_gaps(plan, t, by_name.get(t.target.name))
    )


def require_covered(plan: ReleasePlan, results: Iterable[TargetResult]) -> None:
    """Raise with the whole list when the release is not complete; nothing is published then."""
    missing = gaps(plan, results)
    if not missing:
        return
    unproved = all(g.code is ExitCode.VERIFICATION for g in missing)
    kind = VerificationError if unproved else PackageError
    raise kind(
        f"the release {plan.name} is not complete: nothing was published",
        why="\n".join(map(str, missing)),
        hint=f"{missing[0].command}   (then run the same command: what is done is kept)",
        kind="not-covered",
    )


def accepted(target: ReleaseTarget, state: State) -> bool:
    """Whether a target may be released with this verdict."""
    return state is State.VERIFIED or target.reason_for(state) is not None


def _target_gaps(
    plan: ReleasePlan, planned: PlannedTarget, result: TargetResult | None
) -> Iterator[Gap]:
    name, command = planned.target.name, planned.command
    if result is None or result.built is None:
        error = result.error if result else None
        yield Gap(target=name, what="it was not built", why=_told(error), command=command,
                  code=error.code if error else ExitCode.PACKAGE)  # fmt: skip
        return
    yield from (
        Gap(target=name, what=what, why=why, command=command, code=ExitCode.PACKAGE)
        for what, why in _audit(plan, planned, result)
    )
    if result.proved is None:
        yield Gap(target=name, what="it has no verdict", why=_told(result.error), command=command)
        return
    yield from (
        Gap(target=name, what=what, why=why, command=command)
        for what, why in _judge(planned, result.built, result.proved)
    )
    if result.attested is not None or result.error is not None:
        yield from _unstated(planned, result)


def _audit(
    plan: ReleasePlan, planned: PlannedTarget, result: TargetResult
) -> Iterator[tuple[str, str]]:
    built, opened = result.built, result.opened
    artifact = built.outcome.artifact if built else ""
    if not planned.artifact.fits(artifact):
        yield "its file has another name than planned", f"{artifact}, not {planned.artifact.name}"
    if opened is None:
        yield "it was not opened and audited", _told(result.error)
    elif opened.tree != plan.tree or opened.commit != plan.commit:
        made, wanted = (opened.commit, opened.tree), (plan.commit, plan.tree)
        yield "it was built from another source", f"{_source(*made)}; not {_source(*wanted)}"


def _judge(
    planned: PlannedTarget, built: Staged[Built], proved: Staged[Proved]
) -> Iterator[tuple[str, str]]:
    verdict = proved.outcome
    if verdict.sha256 != built.sha256(built.outcome.artifact):
        yield "its verdict is on another file", f"sha256 {verdict.sha256[:12]}"
    elif not accepted(planned.target, verdict.state):
        page = next((f"report: {proved.folder / r}" for r in verdict.reports), "")
        why = "; ".join(w for w in (verdict.why, page) if w)
        yield f"its verdict is {verdict.state}, and 'verified' is demanded", why


def _unstated(planned: PlannedTarget, result: TargetResult) -> Iterator[Gap]:
    made = [f.name for f in result.attested.files] if result.attested else []
    wanted = planned.promised(FileRole.STATEMENT)
    missing = [f"{w.name} is missing" for w in wanted if not any(w.fits(n) for n in made)]
    if result.error is not None and not missing:
        missing = ["it was not finished"]
    for what in missing:
        yield Gap(
            target=planned.target.name,
            what=what,
            why=_told(result.error),
            command=planned.command,
            code=ExitCode.PACKAGE,
        )


def _source(commit: str, tree: str) -> str:
    return f"{commit[:9]}, tree {tree[:12]}"


def _told(error: LlamawrightError | None) -> str:
    return "" if error is None else f"{error.what}; {error.why}".rstrip("; ")
