"""The build folder: gone on with only when it is whole and the same."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from llamawright.build.work import MARK, MIB, WorkFolder, check_room
from llamawright.errors import DiskError, ExitCode
from llamawright.model.platform import Backend

ARGUMENTS = ("/cmake", "-S", "/s", "-DGGML_VULKAN:BOOL=ON")


@pytest.fixture
def work(tmp_path: Path) -> WorkFolder:
    folder = WorkFolder(root=tmp_path, key="k" * 64)
    folder.build.mkdir()
    (folder.build / "CMakeCache.txt").write_text("A:BOOL=ON\n")
    (folder.build / "build.ninja").write_text("rule x\n")
    folder.mark(ARGUMENTS)
    return folder


def test_a_marked_folder_is_gone_on_with(work: WorkFolder) -> None:
    assert work.whole_for(ARGUMENTS)


def test_a_source_tree_has_the_same_name_whatever_its_digest_is(tmp_path: Path) -> None:
    """Compiler caches hash that name."""
    names = []
    for digest in ("one", "two"):
        tree = tmp_path / "patched" / digest
        tree.mkdir(parents=True)
        (tree / "which").write_text(digest)
        work = WorkFolder(root=tmp_path / f"work-{digest}", key="k")
        work.root.mkdir()
        link = work.source(tree)
        assert (link / "which").read_text() == digest
        names.append(link.relative_to(work.root))
    assert names[0] == names[1]


def test_a_link_to_another_tree_is_made_anew(tmp_path: Path) -> None:
    work = WorkFolder(root=tmp_path, key="k")
    (tmp_path / "b").mkdir()
    work.source(tmp_path / "a")
    assert work.source(tmp_path / "b").readlink() == tmp_path / "b"
    assert work.source(tmp_path / "b").is_dir()


def test_without_the_right_to_links_the_tree_has_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object, **_named: object) -> None:
        raise OSError(1314, "a required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert WorkFolder(root=tmp_path, key="k").source(tmp_path / "tree") == tmp_path / "tree"


def test_a_new_folder_is_not_whole(tmp_path: Path) -> None:
    assert not WorkFolder(root=tmp_path, key="k").whole_for(ARGUMENTS)


def test_another_command_line_or_key_starts_anew(work: WorkFolder) -> None:
    assert not work.whole_for((*ARGUMENTS, "-DX:BOOL=ON"))
    assert not WorkFolder(root=work.root, key="j" * 64).whole_for(ARGUMENTS)


@pytest.mark.parametrize("name", ["CMakeCache.txt", "build.ninja"])
def test_a_folder_that_lost_a_file_starts_anew(work: WorkFolder, name: str) -> None:
    (work.build / name).write_text("")
    assert not work.whole_for(ARGUMENTS)
    (work.build / name).unlink()
    assert not work.whole_for(ARGUMENTS)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"key": 3}'])
def test_a_torn_mark_counts_for_nothing(work: WorkFolder, text: str) -> None:
    (work.root / MARK).write_text(text)
    assert not work.whole_for(ARGUMENTS)


def test_wiping_keeps_the_logs(work: WorkFolder) -> None:
    work.log("compile").write_text("error: x\n")
    work.wipe()
    assert not work.build.exists()
    assert not work.whole_for(ARGUMENTS)
    assert work.log("compile").read_text() == "error: x\n"
    work.wipe()


Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 - the shape of shutil's own


def room(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: Usage(free, 0, free))


def test_a_volume_that_cannot_hold_the_build_is_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room(monkeypatch, 64 * MIB)
    with pytest.raises(DiskError) as caught:
        check_room(tmp_path, Backend.VULKAN, resumed=False)
    assert caught.value.code is ExitCode.DISK
    assert caught.value.kind == "disk-full"
    assert "64 MiB are free" in caught.value.why
    assert "gc" in caught.value.hint


def test_a_module_needs_more_than_a_host_and_a_resumed_build_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room(monkeypatch, 400 * MIB)
    check_room(tmp_path, Backend.CPU, resumed=False)
    check_room(tmp_path, Backend.VULKAN, resumed=True)
    with pytest.raises(DiskError):
        check_room(tmp_path, Backend.VULKAN, resumed=False)


def test_temporary_files_may_lie_on_another_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def usage(place: Path) -> Usage:
        free = 4096 * MIB if place == tmp_path else MIB
        return Usage(free, 0, free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(DiskError) as caught:
        check_room(tmp_path, Backend.CPU, resumed=False)
    assert "TMPDIR" in caught.value.hint
