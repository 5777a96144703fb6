"""Each word of the catalogue does to an artifact what it says, and what it says only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.store import Journal
from llamawright.transfer.opened import open_artifact
from llamawright.verify.quarantine import freezes
from zoo.changes import Cage, make
from zoo.compiling import CannotCompileError
from zoo_kit import cage, good_base


@pytest.fixture
def room(tmp_path: Path) -> Cage:
    return cage(tmp_path, good_base(tmp_path))


def opened(cage: Cage, tmp_path: Path) -> str:
    """Return the class that opening the mutant is refused with, empty when it opens."""
    try:
        open_artifact(cage.archive, tmp_path / "opened")
    except PackageError as error:
        return error.kind
    return ""


def test_without_changes_the_artifact_opens_and_the_copy_is_gone(
    room: Cage, tmp_path: Path
) -> None:
    make(room, [])
    assert opened(room, tmp_path) == ""
    assert not room.tree.exists()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("cut", "0.6"), "truncated"),
        (("page",), "not-an-archive"),
        (("sidecar",), "sidecar-mismatch"),
        (("rename", "llama.cpp-0c1e57098-metal-macos_arm64"), "renamed"),
        (("member", "file", "TOP/../../evil.txt"), "unsafe-archive"),
        (("member", "link", "TOP/etc"), "unsafe-archive"),
        (("member", "pipe", "TOP/bin/pipe"), "unsafe-archive"),
        (("stale", "llama-bench", "absent"), "hash-mismatch"),
        (("stale", "llama-bench", "changed"), "hash-mismatch"),
        (("stale", "libstranger.so", "added"), "hash-mismatch"),
        (("stale", "llama-bench", "link"), "unsafe-archive"),
        (("manifest", "backend", '"quantum"'), "bad-manifest"),
        (("manifest", "schema", "https://llamawright.dev/schema/manifest-99.json"),
         "unknown-schema"),
        (("module", "absent"), ""),
        (("module", "text"), ""),
        (("module", "short"), ""),
        (("module", "other-machine"), ""),
        (("module", "cpu"), ""),
    ],
)  # fmt: skip
def test_a_change_is_wrong_in_its_own_way_only(
    room: Cage, tmp_path: Path, change: tuple[str, ...], kind: str
) -> None:
    make(room, [change])
    assert opened(room, tmp_path) == kind


def test_a_flipped_byte_is_told_by_whatever_reads_it_first(room: Cage, tmp_path: Path) -> None:
    make(room, [("flip", "0.5")])
    assert opened(room, tmp_path) in {"damaged", "hash-mismatch", "unsafe-archive", "bad-manifest"}


def test_the_module_becomes_what_is_said(room: Cage, tmp_path: Path) -> None:
    make(room, [("module", "cpu")])
    open_artifact(room.archive, tmp_path / "out")
    put_there = (tmp_path / "out" / "bin" / "libggml-vulkan.so").read_bytes()
    assert put_there == (tmp_path / "out" / "bin" / "libggml-cpu-x64.so").read_bytes()


def test_another_machine_is_one_byte_of_the_head(room: Cage, tmp_path: Path) -> None:
    before = (room.base.tree / "bin" / "libggml-vulkan.so").read_bytes()
    make(room, [("module", "other-machine")])
    open_artifact(room.archive, tmp_path / "out")
    after = (tmp_path / "out" / "bin" / "libggml-vulkan.so").read_bytes()
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [18]


def test_variables_reach_the_command(room: Cage) -> None:
    make(room, [("env", "A=1", "B=x=y")])
    assert room.environment == {"A": "1", "B": "x=y"}


def test_the_journal_of_a_power_cut_names_this_very_artifact(room: Cage) -> None:
    make(room, [("journal", "load")])
    found = freezes(Journal(room.store / "journal"), artifact=sha256_file(room.archive))
    assert [(f.phase, f.device) for f in found] == [("load", "NVIDIA GeForce RTX 4090")]
    assert not freezes(Journal(room.store / "journal"), artifact="0" * 64)


def test_a_store_of_its_own_has_a_model_with_one_other_byte(room: Cage) -> None:
    model = room.store / "models" / "abc" / "m.gguf"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"0123456789")
    make(room, [("store-model",)])
    copy = (room.folder / "store" / "models" / "abc" / "m.gguf").read_bytes()
    assert sum(a != b for a, b in zip(model.read_bytes(), copy, strict=True)) == 1
    assert model.read_bytes() == b"0123456789"
    assert "--offline" in room.flags


def test_the_manifest_can_say_anything(room: Cage, tmp_path: Path) -> None:
    make(room, [("manifest", "platform", '{"system": "linux", "machine": "aarch64"}')])
    manifest = open_artifact(room.archive, tmp_path / "out")
    assert manifest.platform.machine == "aarch64"
    assert json.loads((room.base.tree / "manifest.json").read_text())["platform"] != {}


@pytest.mark.parametrize("change", [("proxy",), ("program", "llama-bench"), ("module", "nothing")])
def test_without_a_compiler_a_stub_is_not_made(room: Cage, change: tuple[str, ...]) -> None:
    with pytest.raises(CannotCompileError, match="no C compiler"):
        make(room, [change])


@pytest.mark.parametrize(
    "change", [("paint",), ("module", "red"), ("member", "red", "TOP/x")]
)  # fmt: skip
def test_an_unknown_word_is_an_error(room: Cage, change: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="there is no"):
        make(room, [change])
