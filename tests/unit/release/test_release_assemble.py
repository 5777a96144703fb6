"""Putting a release together: shared files once, wheels in every index that is theirs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import DiskError, PackageError
from llamawright.model.platform import Backend
from llamawright.model.release import TargetKind
from llamawright.release import (
    Built,
    FileRole,
    PlannedFile,
    PlannedTarget,
    ReleasePlan,
    link_or_copy,
    read_record,
)
from release_kit import NAME, TinySteps, plan, planned, release_run, target, two_targets
from reporter_kit import Told

RUNTIME = "cuda-runtime-12.4-linux_x86_64.tar.zst"


@dataclass
class WithCompanion(TinySteps):
    """Steps whose archives come with the one runtime archive of a toolkit."""

    text: str = "libcudart"

    def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
        built = super().build(target, source, into)
        (into / RUNTIME).write_text(self.text)
        return Built(artifact=built.artifact, companion=RUNTIME, checksums=built.checksums)


def with_companion() -> ReleasePlan:
    extra = (PlannedFile(name="cuda-runtime-*-linux_x86_64.tar.zst", role=FileRole.COMPANION),)
    first, second = two_targets().targets
    return plan(
        *(
            PlannedTarget(target=t.target, key=t.key, command=t.command, files=(*t.files, *extra))
            for t in (first, second)
        )
    )


def test_a_runtime_of_two_targets_is_there_once(tmp_path: Path) -> None:
    folder = release_run(tmp_path, WithCompanion(), wanted=with_companion()).make().folder
    record = read_record(folder)
    told = [f for f in record.files if f.name == RUNTIME]
    assert [(f.role, f.target) for f in told] == [(FileRole.COMPANION, "cpu")]
    assert (folder / "SHA256SUMS").read_text().count(RUNTIME) == 1
    assert (folder / "RELEASE.md").read_text().count(RUNTIME) == 1


def test_the_archives_of_a_release_lie_in_one_folder(tmp_path: Path) -> None:
    folder = release_run(tmp_path, wanted=two_targets()).make().folder
    targets = {f"tiny-{name}-linux_x86_64.tar.zst" for name in ("cpu", "vulkan")}
    assert {p.name for p in folder.glob("*.tar.zst")} == {f"{NAME}-source.tar.zst", *targets}


def test_a_wheel_is_in_its_backends_its_labels_and_the_combined_index(tmp_path: Path) -> None:
    cuda = target("cuda-wheel", Backend.CUDA, TargetKind.RUNTIME_WHEEL)
    wanted = PlannedTarget(
        target=cuda,
        key="k",
        command="c",
        files=planned_as("tiny_runtime-1.0+cu124-py3-none-*"),
        project="tiny-runtime",
    )
    folder = release_run(tmp_path, wanted=plan(wanted)).make().folder
    for channel in ("cuda", "cu124", "all"):
        data = json.loads((folder / "index" / channel / "tiny-runtime/index.json").read_text())
        file = data["files"][0]
        assert file["filename"] == "tiny_runtime-1.0+cu124-py3-none-linux_x86_64.whl"
        assert file["hashes"]["sha256"] == sha256_file(folder / file["filename"])


def planned_as(name: str) -> tuple[PlannedFile, ...]:
    from llamawright.release import wheel_files

    return wheel_files(name)


def test_the_index_may_name_another_address(tmp_path: Path) -> None:
    wheel = planned(target("wheel", Backend.CPU, TargetKind.RUNTIME_WHEEL))
    wanted = plan(wheel, files_at="https://host/v1")
    folder = release_run(tmp_path, wanted=wanted).make().folder
    page = (folder / "index" / "cpu" / "tiny-runtime" / "index.html").read_text()
    assert 'href="https://host/v1/tiny_runtime-1.0%2Bcpu-py3-none-linux_x86_64.whl#' in page


def test_a_wheel_that_is_none_stops_the_release(tmp_path: Path) -> None:
    class NoWheel(TinySteps):
        def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
            built = super().build(target, source, into)
            (into / built.artifact).write_bytes(b"no wheel")
            return built

    wheel = planned(target("wheel", Backend.CPU, TargetKind.RUNTIME_WHEEL))
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path, NoWheel(), wanted=plan(wheel)).make()
    assert caught.value.kind == "bad-wheel"
    assert not (tmp_path / "dist" / NAME).exists()


def test_a_step_that_promises_a_file_must_leave_it(tmp_path: Path) -> None:
    class Forgetful(TinySteps):
        def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
            built = super().build(target, source, into)
            return Built(artifact=built.artifact, checksums=("not.sha256",))

    with pytest.raises(PackageError, match=r"cpu did not leave its file not\.sha256"):
        release_run(tmp_path, Forgetful()).make()


@pytest.mark.parametrize("module", ["assemble", "staging"])
def test_a_full_disk_is_told_as_one_and_nothing_is_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    name = "link_or_copy" if module == "assemble" else "kept_files"
    with monkeypatch.context() as patch:
        patch.setattr(f"llamawright.release.{module}.{name}", full)
        with pytest.raises((DiskError, PackageError)) as caught:
            release_run(tmp_path).make()
    assert "No space left" in caught.value.why or caught.value.kind == "disk-full"
    assert not (tmp_path / "dist" / NAME).exists()
    assert release_run(tmp_path).make().fresh


def test_each_stage_is_told(tmp_path: Path) -> None:
    told = Told()
    release_run(tmp_path, told=told, wanted=two_targets()).make()
    assert told.lines == ["source", "target cpu", "target vulkan", "assemble and check"]
    assert told.warnings == []


def test_a_link_needs_no_room_and_a_volume_without_links_gets_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("text")
    link_or_copy(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a").stat().st_ino == (tmp_path / "b").stat().st_ino

    def refused(*_given: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    link_or_copy(tmp_path / "a", tmp_path / "c")
    assert (tmp_path / "c").read_text() == "text"
    assert (tmp_path / "a").stat().st_ino != (tmp_path / "c").stat().st_ino
