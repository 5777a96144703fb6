"""Maintainers' verbs: a patch made of an edit, and a series brought to a new source."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from llamawright.digest import list_files, sha256_bytes, tree_digest
from llamawright.errors import PatchError
from llamawright.patching import check_series, load_series, new_patch, refresh_series
from llamawright.patching.series import Patch
from patching_kit import BODY, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def make(
    world: World,
    edited: Path,
    name: str = "next",
    *,
    counted: Callable[[Path], Iterable[str]] = list_files,
    **words: str,
) -> Patch:
    said = {"kind": "bugfix", "reason": "a reason", "upstream": "https://example.org/1", **words}
    return new_patch(
        world.series, name, source=world.source, edited=edited, kind=said["kind"],
        reason=said["reason"], upstream=said["upstream"], counted=counted,
    )  # fmt: skip


def copy(world: World, name: str = "copy") -> Path:
    return Path(shutil.copytree(world.source, world.source.parent / name))


def edit(root: Path, file: str, old: str, new: str) -> None:
    path = root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_a_new_patch_says_all_that_a_series_needs(world: World) -> None:
    edited = copy(world)
    edit(edited, "src/a.cpp", "line 5\n", "line five\n")
    patch = make(world, edited, "old-headers")
    (known,) = world.series.patches
    assert known == patch
    assert (patch.name, patch.type, patch.reason) == ("0001-old-headers", "bugfix", "a reason")
    assert patch.upstream == "https://example.org/1"
    (target,) = patch.targets
    assert target.before == sha256_bytes(BODY.encode())
    assert target.after == sha256_bytes((edited / "src/a.cpp").read_bytes())
    text = world.series.text(patch).decode()
    assert text.startswith("bugfix: a reason\n")
    assert "+line five\n" in text


def test_an_upstream_that_was_not_named_is_none(world: World) -> None:
    edited = copy(world)
    edit(edited, "src/a.cpp", "line 5\n", "line five\n")
    assert make(world, edited, upstream="").upstream == "none"


def test_a_copy_of_the_bare_source_does_not_undo_the_series(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"), ("src/b.cpp", "1\n", "one\n"))
    edited = copy(world)
    edit(edited, "src/a.cpp", "line 25\n", "line XXV\n")
    patch = make(world, edited)
    text = world.series.text(patch).decode()
    assert "+line XXV\n" in text
    assert "line five" not in text
    assert "b.cpp" not in text
    tree = world.apply()
    assert {"line five\n", "line XXV\n"} <= set((tree.root / "src/a.cpp").open())
    assert world.told.warnings == []


def test_a_copy_with_the_series_does_not_repeat_it(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    edited = Path(shutil.copytree(world.apply().root, world.source.parent / "patched-copy"))
    edit(edited, "src/a.cpp", "line 25\n", "line XXV\n")
    text = world.series.text(make(world, edited)).decode()
    assert "line five" not in text


def test_a_bare_edit_in_the_series_own_lines_needs_the_patched_source(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\nline 6\n", "5\n6\n"))
    edited = copy(world)
    edit(edited, "src/a.cpp", "line 7\n", "line seven\n")
    before = tree_digest(world.folder)
    with pytest.raises(PatchError) as caught:
        make(world, edited)
    assert caught.value.kind == "patch-drift"
    assert "series applied" in caught.value.hint
    assert tree_digest(world.folder) == before


def test_files_that_no_build_uses_are_no_edit(world: World) -> None:
    """Of a full checkout only what the recipe takes from upstream counts."""

    def counted(root: Path) -> list[str]:
        return [n for n in list_files(root) if n.startswith("src/")]

    edited = copy(world)
    (edited / "docs").mkdir()
    (edited / "docs/page.md").write_text("words\n")
    (edited / "README.md").write_text("of upstream\n")
    (edited / ".gitmodules").write_text("")
    with pytest.raises(PatchError) as caught:
        make(world, edited, counted=counted)
    assert caught.value.kind == "empty-patch"
    (edited / "src/new.cpp").write_text("code\n")
    assert [t.path for t in make(world, edited, counted=counted).targets] == ["src/new.cpp"]


def test_numbers_go_on_after_the_highest(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    table = world.folder / "up" / "series.toml"
    table.write_text(table.read_text().replace("0001-one", "0007-one"))
    (world.folder / "up" / "0001-one.patch").rename(world.folder / "up" / "0007-one.patch")
    edited = copy(world)
    edit(edited, "src/b.cpp", "line 5\n", "line V\n")
    assert make(world, edited).name == "0008-next"
    assert [p.name for p in world.series.patches] == ["0007-one", "0008-next"]


@pytest.mark.parametrize(
    "words", [{"kind": "magic"}, {"reason": "  "}, {"reason": "two\nlines"}], ids=str
)
def test_words_that_say_nothing_are_refused(world: World, words: dict[str, str]) -> None:
    edited = copy(world)
    edit(edited, "src/a.cpp", "line 5\n", "line five\n")
    with pytest.raises(PatchError):
        make(world, edited, name="next", counted=list_files, **words)
    assert not world.folder.exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "Name", "a b", ".x", "x" * 81])
def test_a_name_is_a_plain_file_name(world: World, name: str) -> None:
    edited = copy(world)
    edit(edited, "src/a.cpp", "line 5\n", "line five\n")
    with pytest.raises(PatchError) as caught:
        make(world, edited, name)
    assert "is no name" in caught.value.why


@pytest.mark.parametrize("content", [b"\0\1", b"a\r\n", b"\xff\n", b""])
def test_an_edit_that_no_patch_can_hold_leaves_the_series_alone(
    world: World, content: bytes
) -> None:
    edited = copy(world)
    (edited / "src/a.cpp").write_bytes(content)
    with pytest.raises(PatchError) as caught:
        make(world, edited)
    assert "src/a.cpp" in caught.value.what
    assert not world.folder.exists()


def test_a_series_survives_being_written_and_read(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", 'say "quoted" \\ ümlaut\n'))
    before = world.series
    refresh_series(before, world.source)
    assert world.series == before
    assert not list(world.folder.rglob("*.part"))


def test_refresh_takes_an_edit_by_hand(world: World) -> None:
    old = world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    path = world.folder / "up" / old.file
    path.write_text(path.read_text().replace("+line five", "+line FIVE"))
    (new,) = refresh_series(world.series, world.source)
    assert new.sha256 != old.sha256
    assert new.targets[0].after != old.targets[0].after
    assert "line FIVE\n" in (world.apply().root / "src/a.cpp").read_text()


def test_refresh_gives_a_patch_its_plain_line_ends_back(world: World) -> None:
    old = world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    path = world.folder / "up" / old.file
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert refresh_series(world.series, world.source) == (old,)
    assert b"\r" not in path.read_bytes()


def test_refresh_keeps_the_order_and_the_later_patches_base(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    world.change("two", ("src/a.cpp", "line five\n", "line V\n"))
    path = world.source / "src/a.cpp"
    path.write_text("first\n" + path.read_text())
    one, two = refresh_series(world.series, world.source)
    assert one.targets[0].after == two.targets[0].before
    assert [r.state for r in check_series(world.series, world.source)] == ["applied", "applied"]
    assert world.apply().applied == ("0001-one", "0002-two")


def test_refresh_says_which_patch_upstream_has_by_now(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    edit(world.source, "src/a.cpp", "line 5\n", "line five\n")
    before = tree_digest(world.folder)
    with pytest.raises(PatchError) as caught:
        refresh_series(world.series, world.source)
    assert caught.value.kind == "patch-retired"
    assert "remove" in caught.value.hint
    assert tree_digest(world.folder) == before


def test_refresh_of_a_lost_file_writes_nothing(world: World) -> None:
    patch = world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    (world.folder / "up" / patch.file).unlink()
    before = tree_digest(world.folder)
    with pytest.raises(PatchError) as caught:
        refresh_series(world.series, world.source)
    assert caught.value.kind == "patch-missing"
    assert tree_digest(world.folder) == before


def test_check_writes_nothing_anywhere(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    before = tree_digest(world.source), tree_digest(world.folder)
    (report,) = check_series(world.series, world.source)
    assert (report.state, report.lines) == ("applied", ("src/a.cpp: applies",))
    assert (tree_digest(world.source), tree_digest(world.folder)) == before
    assert not world.store.root.exists()


def test_check_tells_the_line_where_a_patch_failed(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 15\n", "line fifteen\n"))
    edit(world.source, "src/a.cpp", "line 15\n", "line 15.0\n")
    (report,) = check_series(world.series, world.source)
    assert report.state == "failed"
    assert "line 12" in report.lines[0]


def test_an_entry_under_another_name_is_no_patch(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    table = world.folder / "up" / "series.toml"
    table.write_text(table.read_text().replace("[[patch", "[[patches"))
    with pytest.raises(PatchError) as caught:
        load_series(world.folder, "up")
    assert caught.value.kind == "bad-series"
    assert "patches: unknown key" in caught.value.why


def test_a_folder_without_its_series_is_damaged(world: World) -> None:
    world.change("one", ("src/a.cpp", "line 5\n", "line five\n"))
    (world.folder / "up" / "series.toml").unlink()
    with pytest.raises(PatchError) as caught:
        load_series(world.folder, "up")
    assert caught.value.kind == "series-missing"


def test_a_recipe_without_patches_has_an_empty_series(tmp_path: Path) -> None:
    (tmp_path / "series.toml").write_text("not = 'ours'\n")
    assert load_series(tmp_path, "").patches == ()
