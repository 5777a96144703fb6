from __future__ import annotations

import os
from pathlib import Path

import pytest

from llamawright.store import files
from llamawright.store.files import flush_tree, move, read_json, size_of, walk, write_json


def test_json_is_replaced_whole_and_nothing_stays_beside(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.json"
    write_json(path, {"one": 1})
    write_json(path, {"two": "zwei"})
    assert read_json(path) == {"two": "zwei"}
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


def test_a_failing_write_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"one": 1})
    with pytest.raises(TypeError):
        write_json(path, {"two": object()})
    assert read_json(path) == {"one": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_json_is_on_the_disk_before_it_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    replace = Path.replace

    def replaced(self: Path, target: Path) -> Path:
        order.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", lambda _handle: order.append("fsync"))
    monkeypatch.setattr(Path, "replace", replaced)
    write_json(tmp_path / "x.json", {})
    assert order[:2] == ["fsync", "replace"]


def test_every_file_of_a_small_tree_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    flushed: list[Path] = []
    monkeypatch.setattr(files, "flush_file", flushed.append)
    flush_tree(tmp_path)
    assert sorted(p.name for p in flushed) == ["one", "three", "two"]


def test_a_large_tree_is_flushed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        (tmp_path / str(number)).touch()
    calls: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: calls.append("sync"), raising=False)
    flush_tree(tmp_path)
    assert calls == ["sync"]


def test_a_single_file_is_flushed(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    flush_tree(tmp_path / "x")


def test_walk_yields_files_and_links_not_what_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "linked").symlink_to("real")
    assert sorted(p.relative_to(tmp_path).as_posix() for p in walk(tmp_path)) == [
        "linked",
        "real/file",
    ]


def test_size_is_the_sum_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(7))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "b").write_bytes(bytes(5))
    assert size_of(tmp_path) == 12
    assert size_of(tmp_path / "a") == 7
    assert size_of(tmp_path / "none") == 0


def test_a_move_waits_for_who_still_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    pauses: list[float] = []
    real = Path.replace

    def busy(self: Path, target: Path) -> Path:
        if len(pauses) < 3:
            raise PermissionError(13, "in use", str(self))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", busy)
    monkeypatch.setattr("llamawright.store.files.time.sleep", pauses.append)
    move(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").is_dir()
    assert len(pauses) == 3


def test_a_move_that_is_never_allowed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, _target: Path) -> Path:
        raise PermissionError(13, "in use", str(self))

    pauses: list[float] = []
    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr("llamawright.store.files.time.sleep", pauses.append)
    with pytest.raises(PermissionError):
        move(tmp_path / "a", tmp_path / "b")
    assert 1 < sum(pauses) < 3
