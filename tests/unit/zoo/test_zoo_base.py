"""Copies of a good artifact, packed again so that nothing but the sabotage is wrong."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from llamawright.errors import PackageError
from llamawright.transfer.opened import open_artifact
from zoo.base import copy_tree, digest_of, files_digest, open_base, pack, put, restamp
from zoo_kit import NAME, good_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return good_tree(tmp_path / "good")


def test_a_good_tree_packs_into_an_artifact_that_opens(tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / f"{NAME}.tar.zst"
    pack(tree, NAME, archive)
    assert open_artifact(archive, tmp_path / "out").name == NAME


def test_a_change_of_a_copy_leaves_the_good_tree_alone(tree: Path, tmp_path: Path) -> None:
    copy_tree(tree, tmp_path / "copy")
    before = (tree / "bin" / "llama-bench").read_bytes()
    put(tmp_path / "copy" / "bin" / "llama-bench", b"other", executable=True)
    assert (tree / "bin" / "llama-bench").read_bytes() == before
    assert (tmp_path / "copy" / "bin" / "llama-bench").stat().st_mode & 0o111


def test_a_changed_tree_opens_once_its_manifest_says_so(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy_tree(tree, copy)
    put(copy / "bin" / "llama-bench", b"other", executable=True)
    archive = tmp_path / f"{NAME}.tar.zst"
    pack(copy, NAME, archive)
    with pytest.raises(PackageError) as caught:
        open_artifact(archive, tmp_path / "no")
    assert caught.value.kind == "hash-mismatch"
    restamp(copy, {})
    pack(copy, NAME, archive)
    assert open_artifact(archive, tmp_path / "yes").name == NAME


def test_restamping_forgets_a_module_that_is_gone_and_takes_other_words(tree: Path) -> None:
    (tree / "bin" / "libggml-vulkan.so").unlink()
    restamp(tree, {"backend": "cpu"})
    manifest = json.loads((tree / "manifest.json").read_text())
    assert "libggml-vulkan.so" not in manifest["modules"]
    assert manifest["backend"] == "cpu"
    assert "bin/libggml-vulkan.so" not in [f["path"] for f in manifest["files"]]


def test_a_link_keeps_its_target_and_its_contents_digest(tree: Path) -> None:
    (tree / "bin" / "libx.so").symlink_to("llama-bench")
    restamp(tree, {})
    rows = {f["path"]: f for f in json.loads((tree / "manifest.json").read_text())["files"]}
    assert rows["bin/libx.so"]["link"] == "llama-bench"
    assert rows["bin/libx.so"]["sha256"] == rows["bin/llama-bench"]["sha256"]


def test_a_strange_member_goes_in_as_it_is(tree: Path, tmp_path: Path) -> None:
    member = tarfile.TarInfo(f"{NAME}/../../evil.txt")
    member.size = 4
    archive = tmp_path / f"{NAME}.tar.zst"
    pack(tree, NAME, archive, [member])
    with pytest.raises(PackageError) as caught:
        open_artifact(archive, tmp_path / "out")
    assert caught.value.kind == "unsafe-archive"
    assert not (tmp_path / "evil.txt").exists()


def test_a_base_is_unpacked_once(tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / f"{NAME}.tar.zst"
    pack(tree, NAME, archive)
    base = open_base(archive, tmp_path / "bases", python="/nonexistent")
    assert (base.backend, base.module, base.name) == ("vulkan", "libggml-vulkan.so", NAME)
    mark = base.tree / "bin" / "mark"
    mark.write_text("still the same folder")
    assert open_base(archive, tmp_path / "bases", python="/nonexistent") == base
    assert mark.exists()


def test_digests_depend_on_names_contents_and_their_borders(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("a")
    two.write_text("b")
    first = files_digest([one, two])
    assert files_digest([two, one]) == first
    two.write_text("c")
    assert files_digest([one, two]) != first
    assert digest_of(b"ab", b"c") != digest_of(b"a", b"bc")
