"""The gate: what is missing, named by target, with the command that makes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import (
    ExitCode,
    PackageError,
    ToolMissingError,
    VerificationError,
)
from llamawright.model.verdict import State
from llamawright.release.coverage import TargetResult, accepted, gaps, require_covered
from llamawright.release.plan import PlannedTarget
from llamawright.release.staging import KeptFile, Staged
from llamawright.release.steps import Attested, Built, Opened, Proved
from release_kit import COMMIT, SOFTWARE, TREE, plan, planned, target

SHA = "a" * 64


def staged_build(wanted: PlannedTarget) -> Staged[Built]:
    name = wanted.artifact.name
    files = (KeptFile(name=name, size=1, sha256=SHA),)
    return Staged(folder=Path(), outcome=Built(artifact=name), files=files, fresh=True)


def staged_proof(state: State = State.VERIFIED, sha256: str = SHA, why: str = "") -> Staged[Proved]:
    proved = Proved(state=state, sha256=sha256, verdict="v.json", device="d", why=why)
    return Staged(folder=Path(), outcome=proved, files=(), fresh=True)


def staged_words(*names: str) -> Staged[Attested]:
    files = tuple(KeptFile(name=n, size=1, sha256=SHA) for n in names)
    return Staged(folder=Path(), outcome=Attested(files=names), files=files, fresh=True)


WANTED = planned(target(accept=(SOFTWARE,)), statements=("sbom.json",))
WHOLE = TargetResult(
    planned=WANTED,
    built=staged_build(WANTED),
    opened=Opened(tree=TREE, commit=COMMIT),
    proved=staged_proof(),
    attested=staged_words("sbom.json"),
)
UNPROVED = "its verdict is unverified, and 'verified' is demanded (no GPU)"
ERROR = ToolMissingError("no compiler", why="none was found")


def told(result: TargetResult) -> list[str]:
    return [str(g) for g in gaps(plan(WANTED), [result])]


def test_a_whole_release_has_no_gap() -> None:
    assert gaps(plan(WANTED), [WHOLE]) == ()
    require_covered(plan(WANTED), [WHOLE])


def test_a_target_that_nobody_tried_is_a_gap() -> None:
    assert [str(g) for g in gaps(plan(WANTED), [])] == [
        "cpu: it was not built: llamawright build cpu"
    ]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (replace(WHOLE, built=None, error=ERROR), "it was not built (no compiler; none was found)"),
        (replace(WHOLE, opened=None), "it was not opened and audited"),
        (replace(WHOLE, opened=Opened(tree="0" * 64, commit=COMMIT)), "built from another source"),
        (replace(WHOLE, opened=Opened(tree=TREE, commit="d" * 40)), "built from another source"),
        (replace(WHOLE, proved=None), "it has no verdict"),
        (replace(WHOLE, proved=None, error=ERROR), "it has no verdict (no compiler"),
        (replace(WHOLE, proved=staged_proof(sha256="b" * 64)), "its verdict is on another file"),
        (replace(WHOLE, proved=staged_proof(State.UNVERIFIED, why="no GPU")), UNPROVED),
        (replace(WHOLE, proved=staged_proof(State.FAILED)), "its verdict is failed"),
        (replace(WHOLE, attested=staged_words()), "sbom.json is missing"),
        (replace(WHOLE, attested=None, error=ERROR), "sbom.json is missing (no compiler"),
    ],
)  # fmt: skip
def test_each_gap_says_what_and_how(result: TargetResult, said: str) -> None:
    lines = told(result)
    assert len(lines) == 1
    assert lines[0].startswith(f"cpu: {said}") or said in lines[0]
    assert lines[0].endswith(": llamawright build cpu")


def test_a_verdict_on_other_bytes_counts_even_when_it_is_accepted() -> None:
    result = replace(WHOLE, proved=staged_proof(State.VERIFIED_SOFTWARE, sha256="b" * 64))
    assert "on another file" in told(result)[0]


def test_an_artifact_of_another_name_is_not_the_planned_one() -> None:
    built = WHOLE.built
    assert built is not None
    other = replace(built, outcome=Built(artifact="else.tar.zst"), files=())
    proof = staged_proof(sha256="")
    assert "another name than planned (else.tar.zst" in told(
        replace(WHOLE, built=other, proved=proof)
    )[0]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "good"),
    [(State.VERIFIED, True), (State.VERIFIED_SOFTWARE, True), (State.UNVERIFIED, False),
     (State.CANNOT_VERIFY, False), (State.FAILED, False), (State.QUARANTINED, False)],
)  # fmt: skip
def test_only_what_the_recipe_names_is_accepted(state: State, good: bool) -> None:
    assert accepted(target(accept=(SOFTWARE,)), state) is good
    assert accepted(target(), state) is (state is State.VERIFIED)


def test_missing_proofs_and_missing_builds_end_with_their_own_codes() -> None:
    with pytest.raises(VerificationError) as unproved:
        require_covered(plan(WANTED), [replace(WHOLE, proved=None)])
    with pytest.raises(PackageError) as unbuilt:
        require_covered(plan(WANTED), [])
    assert unproved.value.code is ExitCode.VERIFICATION
    assert unbuilt.value.code is ExitCode.PACKAGE
    assert {unproved.value.kind, unbuilt.value.kind} == {"not-covered"}
    assert "what is done is kept" in unproved.value.hint


def test_all_gaps_of_all_targets_are_told_at_once() -> None:
    other = planned(target("other"))
    wanted = plan(WANTED, other)
    results = [
        replace(WHOLE, proved=None),
        TargetResult(planned=other, error=ERROR),
    ]
    with pytest.raises(PackageError) as caught:
        require_covered(wanted, results)
    assert [line.split(":")[0] for line in caught.value.why.splitlines()] == ["cpu", "other"]
