"""Steps: done once, believed only when every byte is still the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llamawright.errors import PackageError
from llamawright.release.staging import OUTCOME, RECORD, Staging, kept_files
from llamawright.release.steps import Built


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(tmp_path / "draft")


def maker(calls: list[str], text: str = "bytes") -> Callable[[Path], Built]:
    def make(into: Path) -> Built:
        calls.append(text)
        (into / "a.bin").write_text(text)
        return Built(artifact="a.bin")

    return make


def test_a_step_is_done_once(staging: Staging) -> None:
    calls: list[str] = []
    first = staging.step("one", "key", Built, maker(calls))
    again = staging.step("one", "key", Built, maker(calls))
    assert calls == ["bytes"]
    assert (first.fresh, again.fresh) == (True, False)
    assert first.outcome == again.outcome == Built(artifact="a.bin")
    assert first.files == again.files
    assert again.sha256("a.bin") == first.files[0].sha256
    assert again.sha256("no such") == ""


def test_another_key_is_another_step(staging: Staging) -> None:
    calls: list[str] = []
    staging.step("one", "key", Built, maker(calls))
    made = staging.step("one", "other", Built, maker(calls, "new"))
    assert calls == ["bytes", "new"]
    assert (made.folder / "a.bin").read_text() == "new"


def damage(folder: Path, how: str) -> None:
    match how:
        case "changed":
            (folder / "a.bin").write_text("bytez")
        case "longer":
            (folder / "a.bin").write_text("bytes!")
        case "gone":
            (folder / "a.bin").unlink()
        case "more":
            (folder / "b.bin").write_text("stray")
        case "no record":
            (folder / RECORD).unlink()
        case "torn record":
            (folder / RECORD).write_text((folder / RECORD).read_text()[:-9])
        case "no outcome":
            (folder / OUTCOME).unlink()
        case "foreign outcome":
            (folder / OUTCOME).write_text('{"state": "verified"}')
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    "how",
    ["changed", "longer", "gone", "more", "no record", "torn record", "no outcome",
     "foreign outcome"],
)  # fmt: skip
def test_a_damaged_step_is_done_again(staging: Staging, how: str) -> None:
    calls: list[str] = []
    damage(staging.step("one", "key", Built, maker(calls)).folder, how)
    again = staging.step("one", "key", Built, maker(calls))
    assert len(calls) == 2
    assert again.fresh
    assert [p.name for p in sorted(again.folder.iterdir())] == [OUTCOME, RECORD, "a.bin"]


def test_a_step_that_fails_leaves_nothing(staging: Staging) -> None:
    def fails(into: Path) -> Built:
        (into / "half").write_text("half")
        raise PackageError("no")

    with pytest.raises(PackageError):
        staging.step("one", "key", Built, fails)
    assert list(staging.root.iterdir()) == []


def test_a_step_that_fails_keeps_the_finished_one_before_it(staging: Staging) -> None:
    calls: list[str] = []
    staging.step("one", "key", Built, maker(calls))

    def fails(into: Path) -> Built:
        raise PackageError("no")

    with pytest.raises(PackageError):
        staging.step("one", "other", Built, fails)
    assert not staging.step("one", "key", Built, maker(calls)).fresh


def test_what_a_killed_run_was_making_is_removed(staging: Staging) -> None:
    left = staging.root / "making-one"
    left.mkdir(parents=True)
    (left / "half").write_text("half")
    made = staging.step("one", "key", Built, maker([]))
    assert [p.name for p in staging.root.iterdir()] == ["one"]
    assert not (made.folder / "half").exists()


def test_what_is_not_worth_keeping_is_done_again(staging: Staging) -> None:
    calls: list[str] = []
    for _ in range(2):
        staging.step("one", "key", Built, maker(calls), keep=lambda b: b.companion != "")
    assert len(calls) == 2


def test_folders_and_records_are_no_files_of_a_step(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / RECORD).write_text("x")
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a")
    assert [f.name for f in kept_files(tmp_path)] == ["a", "b"]
