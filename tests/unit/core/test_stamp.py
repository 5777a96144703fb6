from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.stamp import RunStamp, identity, run_stamp


@pytest.fixture
def world(tmp_path: Path) -> tuple[RunStamp, Path, Path]:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("a = 1\n")
    artifact = tmp_path / "dist" / "x.tar.zst"
    artifact.parent.mkdir()
    artifact.write_bytes(b"bytes")
    stamp = RunStamp(tmp_path / "store" / "runs" / "x.json")
    stamp.save({"code": 0}, [recipe, artifact, tmp_path / "llamawright.toml"])
    return stamp, recipe, artifact


def test_an_unchanged_world_needs_nothing(world: tuple[RunStamp, Path, Path]) -> None:
    assert world[0].load() == {"code": 0}


def test_an_edited_recipe_runs_again(world: tuple[RunStamp, Path, Path]) -> None:
    stamp, recipe, _ = world
    recipe.write_text("a = 2 # longer\n")
    assert stamp.load() is None


def test_a_removed_artifact_runs_again(world: tuple[RunStamp, Path, Path]) -> None:
    stamp, _, artifact = world
    artifact.unlink()
    assert stamp.load() is None


def test_a_replaced_artifact_of_the_same_size_and_time_runs_again(
    world: tuple[RunStamp, Path, Path],
) -> None:
    import os

    stamp, _, artifact = world
    before = artifact.stat()
    other = artifact.with_name("other")
    other.write_bytes(b"BYTES")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(artifact)
    assert stamp.load() is None


def test_a_settings_file_that_appears_runs_again(world: tuple[RunStamp, Path, Path]) -> None:
    stamp, recipe, _ = world
    (recipe.parent / "llamawright.toml").write_text("jobs = 1\n")
    assert stamp.load() is None


def test_a_new_program_on_path_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    stamp = RunStamp(tmp_path / "x.json")
    stamp.save({}, [])
    assert stamp.load() == {}
    (folder / "g++").write_text("#!/bin/sh\n")
    assert stamp.load() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seen": 3}', '{"seen": {}}'])
def test_a_damaged_stamp_is_no_stamp(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert RunStamp(path).load() is None


def test_a_missing_stamp_is_no_stamp(tmp_path: Path) -> None:
    assert RunStamp(tmp_path / "x.json").load() is None


def test_arguments_folder_and_environment_each_have_their_own_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLAMAWRIGHT_JOBS", raising=False)
    one = run_stamp(tmp_path, ["build", "cpu"], tmp_path)
    assert one == run_stamp(tmp_path, ["build", "cpu"], tmp_path)
    assert one != run_stamp(tmp_path, ["build", "vulkan"], tmp_path)
    assert one != run_stamp(tmp_path, ["build", "cpu"], tmp_path / "other")
    monkeypatch.setenv("LLAMAWRIGHT_JOBS", "1")
    assert one != run_stamp(tmp_path, ["build", "cpu"], tmp_path)


def test_a_folder_is_its_entries_not_its_time(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "a").touch()
    before = identity(str(folder))
    (folder / "b").touch()
    (folder / "b").unlink()
    assert identity(str(folder)) == before
    (folder / "c").touch()
    assert identity(str(folder)) != before


def test_nothing_is_left_beside_the_stamp(world: tuple[RunStamp, Path, Path]) -> None:
    assert [p.name for p in world[0].path.parent.iterdir()] == ["x.json"]
