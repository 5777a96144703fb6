"""A whole release: every file once, one gate, one rename; a second run changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import (
    ExitCode,
    LlamawrightError,
    PackageError,
    ToolchainConflictError,
    VerificationError,
)
from llamawright.model.platform import Backend
from llamawright.model.release import TargetKind
from llamawright.model.verdict import State
from llamawright.release import Built, PlannedTarget, Proved, draft_of, read_record
from release_kit import (
    NAME,
    TinySteps,
    no_verdict,
    plan,
    planned,
    release_run,
    target,
    tree_of,
    two_targets,
)
from reporter_kit import Told


def test_a_release_holds_what_was_planned_and_nothing_else(tmp_path: Path) -> None:
    wanted = two_targets()
    released = release_run(tmp_path, wanted=wanted).make()
    assert released.fresh
    assert released.folder == tmp_path / "dist" / NAME
    promised = {f.name for f in (*wanted.files, *(f for t in wanted.targets for f in t.files))}
    assert set(tree_of(released.folder)) == promised


def test_nothing_but_the_release_is_left(tmp_path: Path) -> None:
    release_run(tmp_path).make()
    assert [p.name for p in (tmp_path / "dist").iterdir()] == [NAME]


def test_the_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    named = {line[66:]: line[:64] for line in lines}
    assert set(named) == set(tree_of(folder)) - {"SHA256SUMS"}
    assert all(sha256_file(folder / name) == digest for name, digest in named.items())


def test_the_record_tells_files_and_verdicts(tmp_path: Path) -> None:
    steps = TinySteps(states={"vulkan": State.VERIFIED_SOFTWARE})
    folder = release_run(tmp_path, steps, wanted=two_targets()).make().folder
    record = read_record(folder)
    assert [(v.target, v.state, v.reason) for v in record.verdicts] == [
        ("cpu", State.VERIFIED, ""),
        ("vulkan", State.VERIFIED_SOFTWARE, "no GPU in this room"),
    ]
    assert {f.target for f in record.files} == {"", "cpu", "vulkan"}
    assert json.loads((folder / "release.json").read_text())["schema"].endswith("release-1.json")


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    one = release_run(tmp_path / "a", wanted=two_targets()).make().folder
    two = release_run(tmp_path / "b", wanted=two_targets()).make().folder
    assert tree_of(one) == tree_of(two)


def test_a_second_run_finds_the_release_and_builds_nothing(tmp_path: Path) -> None:
    first = release_run(tmp_path).make()
    before = tree_of(first.folder)
    steps = TinySteps()
    again = release_run(tmp_path, steps).make()
    assert not again.fresh
    assert again.record == first.record
    assert steps.calls == []
    assert tree_of(first.folder) == before


def test_a_damaged_release_is_neither_believed_nor_replaced(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    artifact = folder / "tiny-cpu-linux_x86_64.tar.zst"
    artifact.write_bytes(artifact.read_bytes()[:-1] + b"?")
    before = tree_of(folder)
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path).make()
    assert caught.value.kind == "release-exists"
    assert tree_of(folder) == before


def test_another_plan_does_not_overwrite_a_release(tmp_path: Path) -> None:
    release_run(tmp_path).make()
    with pytest.raises(PackageError, match="is there, and it is not this release"):
        release_run(tmp_path, wanted=plan(tag="v2")).make()


def test_a_stray_file_makes_a_release_another_one(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    (folder / "extra").write_text("mine")
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path).make()
    assert caught.value.kind == "release-exists"


def test_a_target_without_verdict_stops_it_and_names_the_command(tmp_path: Path) -> None:
    steps = TinySteps(fails=no_verdict("vulkan"))
    with pytest.raises(VerificationError) as caught:
        release_run(tmp_path, steps, wanted=two_targets()).make()
    error = caught.value
    assert error.code is ExitCode.VERIFICATION
    assert error.kind == "not-covered"
    assert "vulkan: it has no verdict (the device is gone; it fell off the bus)" in error.why
    assert "llamawright build vulkan" in error.hint
    assert not (tmp_path / "dist" / NAME).exists()


def test_what_was_done_before_the_gate_is_kept(tmp_path: Path) -> None:
    steps = TinySteps(fails=no_verdict("vulkan"))
    with pytest.raises(VerificationError):
        release_run(tmp_path, steps, wanted=two_targets()).make()
    steps = TinySteps()
    release_run(tmp_path, steps, wanted=two_targets()).make()
    assert "source" not in steps.calls
    assert "build cpu" not in steps.calls
    assert "prove cpu" not in steps.calls
    assert steps.calls.count("prove vulkan") == 1


def test_one_failing_target_does_not_hide_another(tmp_path: Path) -> None:
    conflict = ToolchainConflictError("no compiler fits", why="gcc 99 is too new")
    steps = TinySteps(fails={"build cpu": conflict, **no_verdict("vulkan")})
    told = Told()
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, steps, wanted=two_targets(), told=told).make()
    assert "cpu: it was not built (no compiler fits; gcc 99 is too new)" in caught.value.why
    assert "vulkan: it has no verdict" in caught.value.why
    assert len(told.warnings) == 2


@pytest.mark.parametrize(
    "state", [State.UNVERIFIED, State.CANNOT_VERIFY, State.FAILED, State.QUARANTINED]
)
def test_a_verdict_that_is_not_named_is_not_released(tmp_path: Path, state: State) -> None:
    steps = TinySteps(states={"vulkan": state})
    with pytest.raises(VerificationError, match="is not complete"):
        release_run(tmp_path, steps, wanted=two_targets()).make()
    assert "attest vulkan" not in steps.calls


def test_software_is_not_hardware(tmp_path: Path) -> None:
    steps = TinySteps(states={"cpu": State.VERIFIED_SOFTWARE})
    with pytest.raises(VerificationError) as caught:
        release_run(tmp_path, steps, wanted=two_targets()).make()
    assert "its verdict is verified-software, and 'verified' is demanded" in caught.value.why


def test_a_verdict_that_stopped_a_run_is_asked_again(tmp_path: Path) -> None:
    with pytest.raises(VerificationError):
        release_run(tmp_path, TinySteps(states={"cpu": State.UNVERIFIED})).make()
    steps = TinySteps()
    released = release_run(tmp_path, steps).make()
    assert steps.calls.count("prove cpu") == 1
    assert released.record.verdicts[0].state is State.VERIFIED


def test_another_source_is_not_released(tmp_path: Path) -> None:
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, TinySteps(tree="8" * 64)).make()
    assert "it was built from another source" in caught.value.why


def test_a_missing_statement_stops_it(tmp_path: Path) -> None:
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, TinySteps(), wanted=two_targets(statements=("sbom.json",))).make()
    assert "cpu: cpu.sbom.json is missing" in caught.value.why


def test_an_attestation_that_fails_is_a_gap_even_when_no_file_was_promised(tmp_path: Path) -> None:
    broken = PackageError("no key", why="the file is not there")
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, TinySteps(fails={"attest cpu": broken})).make()
    assert "cpu: it was not finished (no key; the file is not there)" in caught.value.why


def test_statements_are_released_beside_their_artifact(tmp_path: Path) -> None:
    steps = TinySteps(statements=("sbom.json", "provenance.json"))
    wanted = two_targets(statements=("sbom.json", "provenance.json"))
    folder = release_run(tmp_path, steps, wanted=wanted).make().folder
    assert {p.name for p in folder.glob("vulkan.*")} == {
        "vulkan.sbom.json", "vulkan.provenance.json",
    }  # fmt: skip


def test_a_file_that_nobody_planned_stops_it(tmp_path: Path) -> None:
    steps = TinySteps(statements=("surprise.json",))
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, steps).make()
    assert caught.value.kind == "release-damaged"
    assert "cpu.surprise.json was not planned" in caught.value.why
    assert not (tmp_path / "dist" / NAME).exists()


def test_a_damaged_step_is_done_again(tmp_path: Path) -> None:
    with pytest.raises(VerificationError):
        release_run(tmp_path, TinySteps(fails=no_verdict("cpu"))).make()
    draft = draft_of(tmp_path / "dist" / NAME)
    artifact = next((draft / "cpu.build").glob("*.tar.zst"))
    artifact.write_bytes(b"bit rot")
    steps = TinySteps()
    folder = release_run(tmp_path, steps).make().folder
    assert "build cpu" in steps.calls
    assert (folder / artifact.name).read_bytes() != b"bit rot"


def test_a_reopen_that_fails_is_told_as_a_missing_audit(tmp_path: Path) -> None:
    broken = PackageError("the archive is cut short", kind="truncated")
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, TinySteps(fails={"reopen cpu": broken})).make()
    assert "it was not opened and audited (the archive is cut short)" in caught.value.why


def test_two_targets_of_one_name_but_other_bytes_are_refused(tmp_path: Path) -> None:
    class Same(TinySteps):
        def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
            built = super().build(target, source, into)
            (into / "shared").write_text(target.target.name)
            return Built(artifact=built.artifact, companion="shared")

    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, Same(), wanted=two_targets()).make()
    assert caught.value.kind == "bad-step"
    assert "different files of the name shared" in caught.value.what


def test_wheels_come_with_index_and_metadata(tmp_path: Path) -> None:
    wheel = planned(target("wheel", Backend.VULKAN, TargetKind.RUNTIME_WHEEL))
    folder = release_run(tmp_path, wanted=plan(wheel)).make().folder
    names = set(tree_of(folder))
    assert "tiny_runtime-1.0+vulkan-py3-none-linux_x86_64.whl.metadata" in names
    for channel in ("all", "vulkan"):
        for page in ("index.html", "index.json"):
            assert f"index/{channel}/{page}" in names
            assert f"index/{channel}/tiny-runtime/{page}" in names


def test_an_unexpected_error_is_not_a_gap(tmp_path: Path) -> None:
    class Buggy(TinySteps):
        def prove(self, target: PlannedTarget, artifact: Path, into: Path) -> Proved:
            raise KeyError("a bug")

    with pytest.raises(KeyError):
        release_run(tmp_path, Buggy()).make()


def test_errors_are_ours(tmp_path: Path) -> None:
    with pytest.raises(LlamawrightError):
        release_run(tmp_path, TinySteps(fails=no_verdict("cpu"))).make()
