from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_kit import Line, line
from llamawright.digest import list_files, tree_digest
from llamawright.patching import Series
from llamawright.pipeline import Pipeline
from patching_kit import World

__all__ = ["line"]

FIX = ("src/a.cpp", "line 15\n", "line fifteen\n")


@pytest.fixture
def world(line: Line, monkeypatch: pytest.MonkeyPatch) -> World:
    """A series of two patches over a small source, in place of the recipe's own."""
    made = World(line.root / "world")
    made.change("first", FIX)
    made.change("second", ("src/b.cpp", "line 3\n", "line three\n"))

    def series(_self: Pipeline) -> Series:
        return made.series

    monkeypatch.setattr(Pipeline, "series", property(series))
    monkeypatch.setattr(Pipeline, "source_root", lambda _self: made.source)
    return made


def edit(world: World, name: str, change: Callable[[str], str]) -> None:
    path = world.source / name
    path.write_text(change(path.read_text()))


def test_list_shows_each_patch_with_type_reason_and_files(line: Line, world: World) -> None:
    assert line("patch", "list") == 0
    blocks = line.out.splitlines()
    assert blocks[:4] == [
        "0001-first  [portability]",
        "  because of first",
        "  upstream: none: a test",
        "  changes src/a.cpp",
    ]
    assert "  changes src/b.cpp" in blocks[4:]


def test_list_says_when_a_patch_is_needed(line: Line) -> None:
    """The recipe's own series: some of its patches are for old headers only."""
    assert line("patch", "list") == 0
    assert "when vulkan-headers < " in line.out
    assert line("patch", "list", "--json") == 0
    rows = json.loads(line.out)
    assert [r["name"] for r in rows] == sorted(r["name"] for r in rows)
    assert all(r["reason"] and r["targets"] for r in rows)
    assert {bool(r["needs"]) for r in rows} == {True, False}


def test_check_of_a_fitting_source_ends_well_and_changes_nothing(line: Line, world: World) -> None:
    before = tree_digest(world.source)
    assert line("patch", "check") == 0
    assert [t.split()[:2] for t in line.out.splitlines() if t[0] != " "] == [
        ["applied", "0001-first"],
        ["applied", "0002-second"],
    ]
    assert tree_digest(world.source) == before


def test_a_change_that_upstream_has_taken_is_retired_not_failed(line: Line, world: World) -> None:
    edit(world, FIX[0], lambda text: text.replace(FIX[1], FIX[2]))
    assert line("patch", "check", "--json") == 0
    assert [r["state"] for r in json.loads(line.out)] == ["retired", "applied"]


def test_a_patch_that_drifted_fails_by_name_and_the_rest_is_still_tried(
    line: Line, world: World
) -> None:
    edit(world, FIX[0], lambda text: text.replace(FIX[1], "something else\n"))
    assert line("patch", "check") == 7
    assert "failed   0001-first" in line.out
    assert "applied  0002-second" in line.out
    assert "error: 0001-first does not apply to " in line.err
    assert "0002" not in line.err
    assert line.last == "llamawright: exit 7 (patch: patch-drift)"


def test_refresh_follows_moved_lines_so_that_the_check_is_clean(line: Line, world: World) -> None:
    before = world.series.patch("0001-first").sha256
    edit(world, FIX[0], lambda text: "new head\n" * 4 + text)
    assert line("patch", "refresh") == 0
    assert "0001-first: written" in line.err
    assert world.series.patch("0001-first").sha256 != before
    assert line("patch", "check") == 0


def test_refresh_of_a_hopeless_series_writes_nothing(line: Line, world: World) -> None:
    edit(world, FIX[0], lambda text: text.replace(FIX[1], "something else\n"))
    before = tree_digest(world.folder)
    assert line("patch", "refresh") == 7
    assert tree_digest(world.folder) == before


def new(line: Line, name: str, edited: Path, kind: str = "bugfix") -> int:
    return line(
        "patch", "new", name, "--from", edited, "--type", kind, "--reason", "it is broken"
    )  # fmt: skip


def copied(world: World, name: str) -> Path:
    edited = world.source.parent / name
    for file in list_files(world.source):
        (edited / file).parent.mkdir(parents=True, exist_ok=True)
        (edited / file).write_bytes((world.source / file).read_bytes())
    return edited


def test_new_adds_the_edit_as_the_last_patch(line: Line, world: World) -> None:
    edited = copied(world, "mine")
    body = (edited / "src" / "a.cpp").read_text()
    (edited / "src" / "a.cpp").write_text(body.replace("line 29\n", "line 29 of ours\n"))
    assert new(line, "third", edited) == 0
    last = world.series.patches[-1]
    assert (last.name, last.type, last.reason) == ("0003-third", "bugfix", "it is broken")
    assert str(world.series.folder / "0003-third.patch") in line.err
    assert "line 29 of ours" in (world.series.folder / "0003-third.patch").read_text()
    assert line("patch", "check") == 0
    assert line.out.count("applied") == 3


def test_new_of_an_unedited_copy_is_refused(line: Line, world: World) -> None:
    assert new(line, "third", copied(world, "mine")) == 7
    assert line.last == "llamawright: exit 7 (patch: empty-patch)"
    assert len(world.series.patches) == 2


def test_new_of_an_unknown_type_is_refused_before_anything_is_written(
    line: Line, world: World
) -> None:
    before = tree_digest(world.folder)
    code = new(line, "third", copied(world, "mine"), kind="magic")
    assert code in (2, 7)
    assert "magic" in line.err
    assert tree_digest(world.folder) == before
