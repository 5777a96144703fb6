"""The whole series or nothing, and everything odd refused with its reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.digest import tree_digest
from llamawright.errors import PatchError
from llamawright.model.plan import PlannedPatch
from llamawright.patching import (
    Series,
    check_series,
    load_series,
    new_patch,
    patch_tree,
    planned,
    refresh_series,
)
from llamawright.patching.series import Patch, Target
from patching_kit import BODY, World, pin, refused


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_series_changes_a_private_copy_only(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    before = tree_digest(world.source)
    tree = world.apply()
    assert "line five\n" in (tree.root / "src/a.cpp").read_text()
    assert tree_digest(world.source) == before == tree.source_digest
    assert tree.digest == tree_digest(tree.root) != before
    assert tree.applied == ("0001-one",)
    assert (tree.root / "run.sh").stat().st_mode & 0o111


def test_a_second_run_finds_the_first_ones_tree(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    assert world.apply() == world.apply()


def test_later_patches_build_on_earlier_ones(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    world.change("two", ("src/a.cpp", "line five\n", "line V\n"))
    tree = world.apply()
    assert tree.applied == ("0001-one", "0002-two")
    assert "line V\n" in (tree.root / "src/a.cpp").read_text()


def test_without_patches_the_source_is_the_tree(world: World) -> None:
    tree = world.apply()
    assert tree.root == world.source
    assert tree.digest == tree.source_digest


def test_files_come_and_go(world: World) -> None:
    world.change("new", ("src/new.cpp", "", "fresh\n"))
    tree = world.apply()
    assert (tree.root / "src/new.cpp").read_text() == "fresh\n"
    edited = world.source.parent / "gone"
    for file in ("src/a.cpp", "run.sh", "src/new.cpp"):
        (edited / file).parent.mkdir(parents=True, exist_ok=True)
        (edited / file).write_bytes((tree.root / file).read_bytes())
    new_patch(
        world.series, "gone", source=world.source, edited=edited, kind="bugfix", reason="r",
        upstream="",
    )  # fmt: skip
    assert not (world.apply().root / "src/b.cpp").exists()


def test_a_change_that_upstream_has_is_retired(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    path = world.source / "src/a.cpp"
    path.write_text(path.read_text().replace("line 5\n", "line five\n"))
    tree = world.apply()
    assert tree.retired == ("0001-one",)
    assert tree.applied == ()
    assert any("already upstream" in line for line in world.told.lines)


def test_one_bad_patch_of_three_stops_all(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    world.change("two", ("src/b.cpp", "line 9\n", "line nine\n"))
    world.change("three", ("src/a.cpp", "line 20\n", "line twenty\n"))
    path = world.source / "src/b.cpp"
    path.write_text(path.read_text().replace("line 9\n", "other\n"))
    error = refused(world)
    assert error.kind == "patch-drift"
    assert "1 of 3" in error.what
    assert "0002-two: src/b.cpp" in error.why
    assert "0001" not in error.why


def test_moved_lines_are_followed_and_told(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 15\n", "line fifteen\n"))
    path = world.source / "src/a.cpp"
    path.write_text("new first line\n" + path.read_text())
    assert "line fifteen\n" in (world.apply().root / "src/a.cpp").read_text()
    assert any("line 12 is now line 13" in w for w in world.told.warnings)


def test_context_must_match_to_the_letter(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    path = world.source / "src/a.cpp"
    path.write_text(path.read_text().replace("line 3\n", "line  3\n"))
    assert refused(world).kind == "patch-drift"


def test_two_places_that_fit_are_one_too_many(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 15\n", "line fifteen\n"))
    path = world.source / "src/a.cpp"
    path.write_text("x\n" + BODY + BODY)
    assert "stand at 2 places" in refused(world).why


def test_a_half_patched_tree_is_refused(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line V\n"), ("src/b.cpp", "line 5\n", "V\n"))
    path = world.source / "src/a.cpp"
    path.write_text(path.read_text().replace("line 5\n", "line V\n"))
    error = refused(world)
    assert error.kind == "half-patched"
    assert "fresh copy" in error.hint


def test_half_the_hunks_of_one_file_are_half_patched_too(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "V\n"), ("src/a.cpp", "line 25\n", "XXV\n"))
    path = world.source / "src/a.cpp"
    path.write_text(path.read_text().replace("line 25\n", "XXV\n"))
    assert refused(world).kind == "half-patched"


@pytest.mark.parametrize("side", ["patch", "tree", "both"])
def test_windows_line_ends_are_named_whichever_side_has_them(world: World, side: str) -> None:
    patch = world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    if side in ("patch", "both"):
        path = world.folder / "up" / patch.file
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    if side in ("tree", "both"):
        path = world.source / "src/a.cpp"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    error = refused(world)
    assert error.kind == ("tree-crlf" if side == "tree" else "patch-crlf")
    assert "autocrlf" in error.hint


def test_an_edited_patch_is_not_the_series_patch(world: World) -> None:
    patch = world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    path = world.folder / "up" / patch.file
    path.write_text(path.read_text().replace("five", "FIVE"))
    error = refused(world)
    assert error.kind == "patch-changed"
    assert patch.sha256 in error.why


def test_a_lost_patch_file_is_named(world: World) -> None:
    patch = world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    (world.folder / "up" / patch.file).unlink()
    assert refused(world).kind == "patch-missing"


@pytest.mark.parametrize(
    "path", ["../evil", "src/../../evil", "/etc/passwd", "C:/evil", "..\\evil", ".git/hooks/x"]
)
def test_a_patch_stays_in_the_tree(world: World, path: str) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    text = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n"
    if path.startswith("/"):
        text = text.replace(f"b/{path}", path)
    world.rewrite("0001-one", text)
    assert refused(world).kind == "patch-outside"


A_HEAD = "--- a/src/a.cpp\n+++ b/src/a.cpp\n"
ONE_LINE = "@@ -1 +1 @@\n-line 1\n+x\n"
RENAME = "diff --git a/src/a.cpp b/src/z.cpp\nrename from src/a.cpp\nrename to src/z.cpp\n"
NO_PATCHES = {
    "empty": "",
    "words": "only words\n",
    "no-hunk": A_HEAD,
    "renames": A_HEAD.replace("b/src/a", "b/src/b") + ONE_LINE,
    "git-rename": RENAME + A_HEAD + ONE_LINE,
    "mode": "old mode 100644\nnew mode 100755\n" + A_HEAD + ONE_LINE,
    "cut-short": A_HEAD + "@@ -1,3 +1,3 @@\n-line 1\n+x\n",
    "binary": "GIT binary patch\nliteral 3\n",
}


@pytest.mark.parametrize("text", NO_PATCHES.values(), ids=list(NO_PATCHES))
def test_what_is_no_plain_patch_is_refused(world: World, text: str) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    world.rewrite("0001-one", text)
    assert refused(world).kind in ("bad-patch", "empty-patch")


def test_a_link_is_never_written_through(world: World, tmp_path: Path) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    outside = tmp_path / "outside"
    outside.write_text(BODY)
    (world.source / "src/a.cpp").unlink()
    (world.source / "src/a.cpp").symlink_to(outside)
    assert refused(world).kind == "patch-link"
    assert outside.read_text() == BODY


def test_a_patch_of_a_missing_file_says_so(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    (world.source / "src/a.cpp").unlink()
    assert "the file is missing" in refused(world).why


def test_a_plan_of_another_series_is_refused(world: World) -> None:
    stranger = PlannedPatch(name="0009-x", sha256="0" * 64, type="bugfix", reason="r")
    with pytest.raises(PatchError) as caught:
        patch_tree(world.tree(), world.series, (stranger,), store=world.store, reporter=world.told)
    assert caught.value.kind == "unknown-patch"


@pytest.mark.parametrize(
    ("first", "last", "build", "count"),
    [(0, 0, 5, 1), (10, 0, 5, 0), (10, 20, 15, 1), (10, 20, 21, 0), (0, 4, 5, 0)],
)
def test_a_patch_is_for_a_range_of_upstream_builds(
    first: int, last: int, build: int, count: int
) -> None:
    patch = Patch(
        name="0001-x", type="bugfix", reason="r", upstream="none", sha256="0" * 64,
        targets=(Target(path="a", before="", after=""),), first_build=first, last_build=last,
        needs=("vulkan-headers < 272",),
    )  # fmt: skip
    rows = planned(Series(folder=Path("/x"), patches=(patch,)), pin(build))
    assert len(rows) == count
    assert all(r.needs == patch.needs for r in rows)


def test_check_tells_each_patch_apart(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    world.change("two", ("src/b.cpp", "line 9\n", "line nine\n"))
    world.change("three", ("src/b.cpp", "line 20\n", "line twenty\n"))
    a, b = world.source / "src/a.cpp", world.source / "src/b.cpp"
    a.write_text(a.read_text().replace("line 5\n", "line five\n"))
    b.write_text(b.read_text().replace("line 9\n", "other\n"))
    states = {r.name: r.state for r in check_series(world.series, world.source)}
    assert states == {"0001-one": "retired", "0002-two": "failed", "0003-three": "applied"}


def test_refresh_follows_moved_lines_and_keeps_the_rest(world: World) -> None:
    first = world.change("one", ("src/a.cpp", "line 15\n", "line fifteen\n"))
    table = world.folder / "up" / "series.toml"
    needs = 'needs = ["vulkan-headers < 3"]'
    table.write_text(table.read_text().replace("\n[[patch.t", f"{needs}\n\n[[patch.t", 1))
    path = world.source / "src/a.cpp"
    path.write_text("new first line\n" + path.read_text())
    (after,) = refresh_series(world.series, world.source)
    assert after.sha256 != first.sha256
    assert after.needs == ("vulkan-headers < 3",)
    world.told.warnings.clear()
    world.apply()
    assert world.told.warnings == []


def test_refresh_writes_nothing_when_one_fails(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 15\n", "line fifteen\n"))
    path = world.source / "src/a.cpp"
    path.write_text("other\n")
    before = tree_digest(world.folder)
    with pytest.raises(PatchError):
        refresh_series(world.series, world.source)
    assert tree_digest(world.folder) == before


def test_an_edit_that_changes_nothing_makes_no_patch(world: World) -> None:
    with pytest.raises(PatchError) as caught:
        world.change("one")
    assert caught.value.kind == "empty-patch"
    assert not world.folder.exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('type = "portability"', 'type = "magic"'),
        ('reason = "because of one"', 'reason = " "'),
        ("sha256 =", "sha265 ="),
        ("upstream =", 'needs = ["vulkan-headers older 3"]\nupstream ='),
        ('name = "0001-one"', 'name = "../0001-one"'),
        ("[[patch]]", "[[patch"),
        ('upstream = "none: a test"', "upstream = 3"),
    ],
)
def test_a_bad_series_is_named(world: World, old: str, new: str) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    table = world.folder / "up" / "series.toml"
    assert old in table.read_text()
    table.write_text(table.read_text().replace(old, new, 1))
    with pytest.raises(PatchError) as caught:
        load_series(world.folder, "up")
    assert caught.value.kind == "bad-series"
    assert "series.toml" in caught.value.what


def test_an_upstream_without_a_folder_has_no_patches(tmp_path: Path) -> None:
    assert load_series(tmp_path, "nobody").patches == ()


def test_a_last_line_without_its_end_survives(world: World) -> None:
    (world.source / "src" / "a.cpp").write_text(BODY + "end")
    world.change("one", ("src/a.cpp", "end", "END"))
    assert (world.apply().root / "src/a.cpp").read_text() == BODY + "END"


def test_our_own_series_is_readable_and_whole() -> None:
    series = load_series(Path("patches"), "llama.cpp")
    assert series.patches
    for patch in series.patches:
        assert series.text(patch)
        assert replace(patch, needs=()).upstream
