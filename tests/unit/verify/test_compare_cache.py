"""What a run finds prepared, and what may be taken away from it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from llamawright.verify.compare_cache import CACHES, fresh_caches, give_back, resident


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(os.urandom(1 << 20))
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    return path


def test_a_file_is_unharmed_and_the_share_is_one(model: Path) -> None:
    before = model.read_bytes()
    share = give_back(model)
    assert share is None or 0.0 <= share <= 1.0
    assert model.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="Linux's own call")
def test_a_file_that_was_just_read_is_resident(model: Path) -> None:
    model.read_bytes()
    with model.open("rb") as stream:
        share = resident(stream.fileno(), model.stat().st_size)
    assert share in (None, 1.0)


def test_what_must_wait_for_the_disk_is_not_there(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def waits(_handle: int, _buffers: object, offset: int, _flags: int) -> int:
        calls.append(offset)
        if len(calls) % 2:
            raise OSError(errno.EAGAIN, "it would have to wait")
        return 1

    monkeypatch.setattr(os, "preadv", waits)
    monkeypatch.setattr(os, "RWF_NOWAIT", 8, raising=False)
    with model.open("rb") as stream:
        assert resident(stream.fileno(), model.stat().st_size) == 0.5
    assert calls == sorted(calls)
    assert calls[-1] < model.stat().st_size


def test_a_file_system_that_cannot_tell_is_not_guessed(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_given: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(os, "preadv", refuses)
    with model.open("rb") as stream:
        assert resident(stream.fileno(), 10) is None


def test_a_system_without_the_calls_gives_nothing_back(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    assert give_back(model) is None


def test_an_empty_file_has_no_share(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open("rb") as stream:
        assert resident(stream.fileno(), 0) is None


class TestDriverCaches:
    def test_a_fresh_run_finds_nothing_and_the_other_runs_keep_theirs(self, tmp_path: Path) -> None:
        env = {name: str(tmp_path / name) for name in CACHES} | {"LANG": "C"}
        for name in CACHES:
            kept = tmp_path / name / "mesa" / "shader"
            kept.parent.mkdir(parents=True)
            kept.write_text("x")
        fresh = fresh_caches(env, tmp_path / "fresh")
        assert fresh["LANG"] == "C"
        for name in CACHES:
            assert list(Path(fresh[name]).iterdir()) == []
            assert Path(fresh[name]).is_relative_to(tmp_path / "fresh")
            assert (tmp_path / name / "mesa" / "shader").read_text() == "x"

    def test_a_second_fresh_run_does_not_find_what_the_first_left(self, tmp_path: Path) -> None:
        env = {"HOME": str(tmp_path / "home")}
        first = fresh_caches(env, tmp_path / "fresh")
        (Path(first["HOME"]) / "shader").write_text("x")
        assert list(Path(fresh_caches(env, tmp_path / "fresh")["HOME"]).iterdir()) == []

    def test_a_variable_that_is_not_set_stays_so(self, tmp_path: Path) -> None:
        assert fresh_caches({}, tmp_path / "fresh") == {}
        assert set(fresh_caches({"HOME": "/h"}, tmp_path / "fresh")) == {"HOME"}

    def test_a_link_in_an_old_fresh_cache_is_removed_and_not_followed(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "precious").write_text("x")
        (tmp_path / "fresh").mkdir()
        (tmp_path / "fresh" / "home").symlink_to(outside, target_is_directory=True)
        fresh = fresh_caches({"HOME": "/h"}, tmp_path / "fresh")
        assert list(Path(fresh["HOME"]).iterdir()) == []
        assert (outside / "precious").read_text() == "x"
