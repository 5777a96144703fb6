"""Wheel variants: relabelled wheels, the null variant, the index-level file."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import PackageError, ToolMissingError
from llamawright.model.platform import Backend
from llamawright.model.release import TargetKind, VariantRule
from llamawright.release.variants import labels_of, variant_name, write_variants
from release_kit import plan, planned, release_run, rule, target, tree_of, write_wheel

pytest.importorskip("variantlib", reason="the optional extra `variants` is not installed")

DATA = {"tiny_runtime-1.0+cu124.data/scripts/tiny": b"#!python\n"}


@pytest.fixture
def wheels(tmp_path: Path) -> list[tuple[Backend, Path]]:
    cpu = write_wheel(tmp_path / "in" / "tiny_runtime-1.0+cpu-py3-none-any.whl")
    cuda = write_wheel(tmp_path / "in" / "tiny_runtime-1.0+cu124-py3-none-any.whl", files=DATA)
    return [(Backend.CPU, cpu), (Backend.CUDA, cuda)]


def test_each_wheel_becomes_its_variants(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    facts, described = write_variants(tmp_path / "out", wheels, rule())
    assert [f.file for f in facts] == [
        "tiny_runtime-1.0-py3-none-any-null.whl", "tiny_runtime-1.0-py3-none-any-gpu12.whl",
    ]  # fmt: skip
    assert [p.name for p in described] == ["tiny_runtime-1.0-variants.json"]
    assert {f.version for f in facts} == {"1.0"}


def test_the_index_file_has_every_variant_and_its_provider(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    _, described = write_variants(tmp_path / "out", wheels, rule())
    data = json.loads(described[0].read_text())
    assert data["variants"] == {"null": {}, "gpu12": {"gpu": {"toolkit": ["12.4"]}}}
    assert data["default-priorities"] == {"namespace": ["gpu"]}
    assert data["providers"] == {"gpu": {"requires": ["gpu-provider>=1"]}}
    assert data["$schema"].startswith("https://variants-schema.wheelnext.dev/")


def test_a_variant_says_its_own_label_only(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    write_variants(tmp_path / "out", wheels, rule())
    with zipfile.ZipFile(tmp_path / "out" / "tiny_runtime-1.0-py3-none-any-gpu12.whl") as packed:
        data = json.loads(packed.read("tiny_runtime-1.0.dist-info/variant.json"))
    assert list(data["variants"]) == ["gpu12"]


def test_record_metadata_and_folders_fit_the_public_version(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    write_variants(tmp_path / "out", wheels, rule())
    with zipfile.ZipFile(tmp_path / "out" / "tiny_runtime-1.0-py3-none-any-gpu12.whl") as packed:
        names = set(packed.namelist())
        assert "tiny_runtime-1.0.data/scripts/tiny" in names
        assert not any("cu124" in n for n in names)
        metadata = packed.read("tiny_runtime-1.0.dist-info/METADATA").decode()
        assert "\nVersion: 1.0\n" in metadata
        rows = list(
            csv.reader(io.StringIO(packed.read("tiny_runtime-1.0.dist-info/RECORD").decode()))
        )
        assert {r[0] for r in rows} == names
        for name, digest, size in rows:
            if name.endswith("/RECORD"):
                assert (digest, size) == ("", "")
                continue
            data = packed.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={right}", str(len(data)))


def test_the_same_wheels_give_the_same_bytes(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    for side in ("a", "b"):
        write_variants(tmp_path / side, wheels, rule())
    assert tree_of(tmp_path / "a") == tree_of(tmp_path / "b")


def test_the_drafts_library_reads_what_was_written(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    library = importlib.import_module("variantlib.variants_json")
    _, described = write_variants(tmp_path / "out", wheels, rule())
    read = library.VariantsJson(json.loads(described[0].read_text()))
    assert set(read.variants) == {"null", "gpu12"}
    assert read.variants["null"].is_null_variant()


def test_without_a_wheel_for_every_machine_there_are_no_variants(
    tmp_path: Path, wheels: list[tuple[Backend, Path]]
) -> None:
    with pytest.raises(PackageError) as caught:
        write_variants(tmp_path / "out", wheels[1:], rule())
    assert caught.value.kind == "no-null-variant"
    assert "cpu wheel" in caught.value.why


def test_without_the_library_the_extra_is_named(
    tmp_path: Path, wheels: list[tuple[Backend, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "variantlib.api", None)
    with pytest.raises(ToolMissingError) as caught:
        write_variants(tmp_path / "out", wheels, rule())
    assert caught.value.kind == "no-variantlib"
    assert "llamawright[variants]" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_the_null_variant_comes_first_for_its_backend() -> None:
    own = VariantRule(label="fast", backend=Backend.CPU, properties=("gpu :: none :: 1",))
    wanted = replace(rule(), variants=(own,))
    assert [v.label for v in labels_of(Backend.CPU, wanted)] == ["null", "fast"]
    assert labels_of(Backend.VULKAN, wanted) == ()


@pytest.mark.parametrize(
    ("wheel", "named"),
    [
        ("a-1.0+cpu-py3-none-any.whl", "a-1.0-py3-none-any-x.whl"),
        ("a-1.0-py3-none-any.whl", "a-1.0-py3-none-any-x.whl"),
        ("a-0.0.11312+cu124-py3-none-manylinux_2_28_x86_64.whl",
         "a-0.0.11312-py3-none-manylinux_2_28_x86_64-x.whl"),
    ],
)  # fmt: skip
def test_the_label_is_the_last_part_of_the_name(wheel: str, named: str) -> None:
    assert variant_name(wheel, "x") == named


def test_a_release_with_variants_keeps_them_apart(tmp_path: Path) -> None:
    wheel = planned(target("wheel", Backend.CPU, TargetKind.RUNTIME_WHEEL))
    folder = release_run(tmp_path, wanted=plan(wheel, variants=True)).make().folder
    page = (folder / "index" / "variants" / "tiny-runtime" / "index.html").read_text()
    label = "tiny_runtime-1.0-py3-none-linux_x86_64-null.whl"
    assert f'href="../{label}#sha256=' in page
    assert 'href="../tiny_runtime-1.0-variants.json#sha256=' in page
    assert (folder / "index" / "variants" / f"{label}.metadata").is_file()
    for channel in ("all", "cpu"):
        others = (folder / "index" / channel / "tiny-runtime" / "index.html").read_text()
        assert "null" not in others
        assert "variants.json" not in others


def test_a_release_without_the_switch_has_none(tmp_path: Path) -> None:
    wheel = planned(target("wheel", Backend.CPU, TargetKind.RUNTIME_WHEEL))
    folder = release_run(tmp_path, wanted=plan(wheel)).make().folder
    assert not (folder / "index" / "variants").exists()
