"""The plan: every file of a release by name and target, before anything is built."""

from __future__ import annotations

import pytest

from llamawright.model.platform import Backend
from llamawright.model.release import TargetKind
from llamawright.release import (
    FileRole,
    PlannedFile,
    archive_files,
    shared_files,
    wheel_files,
)
from llamawright.release.plan import channels, channels_of
from release_kit import NAME, PROJECT, SOFTWARE, plan, planned, target

WHEEL = planned(target("cpu-wheel", Backend.CPU, TargetKind.RUNTIME_WHEEL))
CUDA_WHEEL = planned(target("cuda-wheel", Backend.CUDA, TargetKind.RUNTIME_WHEEL))


def names(*files: PlannedFile) -> list[str]:
    return [f.name for f in files]


def test_an_archive_comes_with_sum_verdict_and_report() -> None:
    assert names(*archive_files("a", ".tar.zst")) == [
        "a.tar.zst", "a.tar.zst.sha256", "a.verdict.json", "a.report.html",
    ]  # fmt: skip


def test_a_companion_has_a_sum_of_its_own() -> None:
    files = archive_files("a", ".zip", "cuda-runtime-12.4-windows_x86_64.zip")
    assert {f.name: f.role for f in files} == {
        "a.zip": FileRole.ARTIFACT,
        "cuda-runtime-12.4-windows_x86_64.zip": FileRole.COMPANION,
        "a.zip.sha256": FileRole.CHECKSUM,
        "cuda-runtime-12.4-windows_x86_64.zip.sha256": FileRole.CHECKSUM,
        "a.verdict.json": FileRole.VERDICT,
        "a.report.html": FileRole.REPORT,
    }


def test_a_wheels_tag_is_open_until_it_is_measured() -> None:
    files = wheel_files("tiny-1.0+cpu-py3-none-*")
    artifact = next(f for f in files if f.role is FileRole.ARTIFACT)
    assert artifact.fits("tiny-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl")
    assert not artifact.fits("tiny-1.0+vulkan-py3-none-manylinux_2_28_x86_64.whl")
    assert not artifact.fits("tiny-1.0+cpu-py3-none-linux_x86_64.whl.metadata")
    assert {f.role for f in files} >= {FileRole.METADATA, FileRole.VERDICT, FileRole.CHECKSUM}


@pytest.mark.parametrize("name", ["a.tar.zst", "A.tar.zst", "a.tar.zst.sha256", "b/a.tar.zst"])
def test_a_name_fits_as_it_is_spelled(name: str) -> None:
    assert PlannedFile(name="a.tar.zst", role=FileRole.ARTIFACT).fits(name) is (name == "a.tar.zst")


def test_without_wheels_there_is_no_index() -> None:
    files = shared_files(NAME, [planned(target())], variants=True)
    assert names(*files) == [f"{NAME}-source.tar.zst", "RELEASE.md", "release.json", "SHA256SUMS"]


def test_the_index_has_a_folder_a_backend_and_one_for_all() -> None:
    found = set(names(*shared_files(NAME, [WHEEL, CUDA_WHEEL], variants=False)))
    pages = {f"index/{c}/{p}" for c in ("all", "cpu", "cuda")
             for p in ("index.html", f"{PROJECT}/index.json")}  # fmt: skip
    assert pages <= found
    assert "index/content-types.txt" in found
    assert not any("variants" in n for n in found)


def test_variants_are_planned_where_they_are_asked_for() -> None:
    files = shared_files(NAME, [WHEEL], variants=True)
    made = [f for f in files if f.fits("index/variants/tiny_runtime-1.0-py3-none-any-null.whl")]
    assert len(made) == 1
    assert made[0].role is FileRole.INDEX
    assert any(f.fits("index/variants/tiny_runtime-1.0-variants.json") for f in files)


def test_each_cuda_release_has_a_folder_of_its_own() -> None:
    assert channels_of("cuda", "tiny-1.0+cu124-py3-none-*.whl") == ("cuda", "cu124")
    assert channels_of("cpu", "tiny-1.0+cpu-py3-none-any.whl") == ("cpu",)
    assert channels_of("vulkan", "tiny-1.0-py3-none-any.whl") == ("vulkan",)


def test_channels_name_their_projects_once() -> None:
    assert channels([WHEEL, CUDA_WHEEL, WHEEL]) == {
        "all": (PROJECT,), "cpu": (PROJECT,), "cuda": (PROJECT,),
    }  # fmt: skip


def test_the_digest_follows_everything_that_can_change_the_bytes() -> None:
    same = plan()
    assert same.digest == plan().digest
    others = [
        plan(tag="v2"),
        plan(files_at="https://host/"),
        plan(planned(target(accept=(SOFTWARE,)))),
        plan(planned(target("vulkan", Backend.VULKAN))),
        plan(WHEEL, variants=True),
        plan(WHEEL),
    ]
    assert len({p.digest for p in (same, *others)}) == len(others) + 1


def test_a_target_knows_its_artifact_and_reason() -> None:
    wanted = planned(target(accept=(SOFTWARE,)))
    assert wanted.artifact.name == "tiny-cpu-linux_x86_64.tar.zst"
    assert not wanted.is_wheel
    assert WHEEL.is_wheel
    assert wanted.target.reason_for("verified-software") == "no GPU in this room"
    assert wanted.target.reason_for("unverified") is None
