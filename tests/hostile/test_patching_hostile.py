"""Series, patches and trees that lie: nothing is written outside, nothing by half."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from llamawright.digest import list_files, sha256_bytes, tree_digest
from llamawright.errors import ExitCode, PatchError
from llamawright.patching import patch_tree, planned
from llamawright.process import ask, base_environment
from patching_kit import BODY, World, pin, refused

FIVE = ("src/a.cpp", "line 5\n", "line five\n")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_linked_folder_never_leads_a_write_out(world: World, tmp_path: Path) -> None:
    world.change("one", FIVE)
    outside = tmp_path / "outside"
    shutil.move(world.source / "src", outside)
    (world.source / "src").symlink_to(outside, target_is_directory=True)
    error = refused(world)
    assert error.kind == "patch-link"
    assert "src is no plain folder" in error.why
    assert (outside / "a.cpp").read_text() == BODY


def test_a_new_file_is_not_made_through_a_linked_folder(world: World, tmp_path: Path) -> None:
    world.change("one", ("src/new.cpp", "", "fresh\n"))
    outside = tmp_path / "outside"
    shutil.move(world.source / "src", outside)
    (world.source / "src").symlink_to(outside, target_is_directory=True)
    assert refused(world).kind == "patch-link"
    assert not (outside / "new.cpp").exists()


def test_a_dangling_link_is_no_missing_file(world: World, tmp_path: Path) -> None:
    world.change("one", ("src/new.cpp", "", "fresh\n"))
    (world.source / "src/new.cpp").symlink_to(tmp_path / "victim")
    assert refused(world).kind == "patch-link"
    assert not (tmp_path / "victim").exists()


def test_a_file_where_a_folder_should_be_is_named(world: World) -> None:
    world.change("one", ("src/new.cpp", "", "fresh\n"))
    shutil.rmtree(world.source / "src")
    (world.source / "src").write_text("not a folder\n")
    error = refused(world)
    assert error.kind == "patch-link"
    assert "src is no plain folder" in error.why


def test_a_folder_where_a_file_should_be_is_named(world: World) -> None:
    world.change("one", FIVE)
    (world.source / "src/a.cpp").unlink()
    (world.source / "src/a.cpp").mkdir()
    assert "src/a.cpp is no plain file" in refused(world).why


def test_a_result_other_than_the_series_says_is_refused(world: World) -> None:
    patch = world.change("one", FIVE)
    table = world.folder / "up" / "series.toml"
    table.write_text(table.read_text().replace(patch.targets[0].after, sha256_bytes(b"other")))
    error = refused(world)
    assert error.kind == "patch-result"
    assert patch.targets[0].after in error.why


def test_the_reader_is_told_when_only_the_context_was_checked(world: World) -> None:
    world.change("one", FIVE)
    path = world.source / "src/a.cpp"
    path.write_text(path.read_text() + "a later line\n")
    world.apply()
    assert any("differs from the pinned revision" in w for w in world.told.warnings)


@pytest.mark.parametrize("path", ["src/b.cpp", "src/a.cpp.orig"])
def test_a_patch_changes_only_what_the_series_says(world: World, path: str) -> None:
    world.change("one", FIVE)
    text = (world.folder / "up" / "0001-one.patch").read_text().replace("src/a.cpp", path)
    world.rewrite("0001-one", text)
    error = refused(world)
    assert error.kind == "bad-series"
    assert path in error.why
    assert "src/a.cpp" in error.why


def test_a_source_that_was_changed_after_its_fetch_is_refused(world: World) -> None:
    world.change("one", FIVE)
    tree = world.tree()
    (world.source / "src/b.cpp").write_text("tampered\n")
    with pytest.raises(PatchError) as caught:
        patch_tree(
            tree, world.series, planned(world.series, pin()), store=world.store,
            reporter=world.told,
        )  # fmt: skip
    assert caught.value.kind == "source-changed"
    assert str(world.source) in caught.value.hint
    assert not list((world.store.root / "patched").iterdir())


@pytest.mark.parametrize("damage", ["reverted", "added", "removed", "emptied"])
def test_a_patched_tree_that_was_changed_since_is_made_anew(world: World, damage: str) -> None:
    world.change("one", FIVE)
    first = world.apply()
    target = first.root / "src/a.cpp"
    match damage:
        case "reverted":
            target.write_text(BODY)
        case "added":
            (first.root / "src/extra.cpp").write_text("built in place\n")
        case "removed":
            (first.root / "src/b.cpp").unlink()
        case _:
            target.write_bytes(b"")
    assert world.apply() == first
    assert tree_digest(first.root) == first.digest
    assert any("made anew" in w or "making it anew" in w for w in world.told.warnings)


def test_a_folder_without_a_stamp_is_no_patched_tree(world: World) -> None:
    world.change("one", FIVE)
    first = world.apply()
    shutil.rmtree(world.store.root / "stamps")
    (first.root / "src/a.cpp").write_text("half written")
    assert world.apply() == first
    assert "line five\n" in (first.root / "src/a.cpp").read_text()


def test_a_write_that_does_not_last_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.change("one", FIVE)
    real = Path.write_bytes

    def forgetful(path: Path, data: bytes) -> int:
        return real(path, BODY.encode() if path.name == "a.cpp" else data)

    tree, series = world.tree(), world.series
    monkeypatch.setattr(Path, "write_bytes", forgetful)
    with pytest.raises(PatchError) as caught:
        patch_tree(
            tree, series, planned(series, pin()), store=world.store, reporter=world.told
        )  # fmt: skip
    assert caught.value.kind == "applied-to-nothing"
    assert "src/a.cpp" in caught.value.why
    assert not [p for p in (world.store.root / "patched").iterdir() if p.is_dir()]


def test_a_repository_around_the_tree_changes_nothing(world: World, tmp_path: Path) -> None:
    """``git apply`` below another repository exits 0 and does nothing; here there is no git."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git here to make the repository with")
    assert ask((git, "init", "-q", str(tmp_path)), env=base_environment()).ok
    world.change("one", FIVE)
    tree = world.apply()
    assert "line five\n" in (tree.root / "src/a.cpp").read_text()
    assert tree.digest != tree.source_digest


def test_no_program_is_needed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    world.change("one", FIVE)
    assert world.apply().applied == ("0001-one",)


def test_applying_twice_is_applying_once(world: World) -> None:
    world.change("one", FIVE)
    first = world.apply()
    shutil.rmtree(world.source)
    shutil.copytree(first.root, world.source)
    again = world.apply()
    assert again.retired == ("0001-one",)
    assert again.root == world.source
    assert again.digest == first.digest


def test_a_source_without_write_bits_is_patched(world: World) -> None:
    world.change("one", FIVE)
    for name in list_files(world.source):
        (world.source / name).chmod(0o444)
    target = world.apply().root / "src/a.cpp"
    assert "line five\n" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o444


def test_the_same_patches_in_another_order_are_another_tree(world: World) -> None:
    world.change("one", FIVE)
    world.change("two", ("src/b.cpp", "line 9\n", "line nine\n"))
    both = planned(world.series, pin())
    roots = {
        patch_tree(
            world.tree(), world.series, chosen, store=world.store, reporter=world.told
        ).root
        for chosen in (both, both[::-1], both[:1], both[1:])
    }  # fmt: skip
    assert len(roots) == 4


def test_two_series_of_one_source_do_not_share_a_tree(world: World) -> None:
    world.change("one", FIVE)
    first = world.apply()
    text = (world.folder / "up" / "0001-one.patch").read_text()
    (world.folder / "up" / "0001-one.patch").write_text(text.replace("+line five", "+line 5.0"))
    patch = world.series.patches[0]
    table = world.folder / "up" / "series.toml"
    data = (world.folder / "up" / patch.file).read_bytes()
    after = sha256_bytes(BODY.replace("line 5\n", "line 5.0\n").encode())
    table.write_text(
        table.read_text()
        .replace(patch.sha256, sha256_bytes(data))
        .replace(patch.targets[0].after, after)
    )
    second = world.apply()
    assert second.root != first.root
    assert "line five\n" in (first.root / "src/a.cpp").read_text()
    assert "line 5.0\n" in (second.root / "src/a.cpp").read_text()


def test_every_refusal_ends_with_exit_code_7_and_a_cure(world: World) -> None:
    world.change("one", FIVE)
    (world.source / "src/a.cpp").write_text("quite another file\n")
    error = refused(world)
    assert error.code is ExitCode.PATCH
    assert error.what
    assert error.why
    assert error.hint
    assert json.dumps(error.as_record())


@pytest.mark.parametrize("size", [1, 12])
def test_each_bad_patch_is_reported_with_its_file(world: World, size: int) -> None:
    for number in range(size):
        world.change(f"p{number}", (f"src/f{number}.cpp", "", "x\n"))
    for number in range(0, size, 2):
        (world.source / f"src/f{number}.cpp").write_text("taken\n")
    error = refused(world)
    lines = error.why.splitlines()
    assert len(lines) == len(range(0, size, 2))
    assert all("another file of that name" in line for line in lines)


def test_a_series_that_is_cut_short_is_no_series(world: World) -> None:
    world.change("one", FIVE)
    table = world.folder / "up" / "series.toml"
    whole = table.read_bytes()
    start = whole.index(b"[[patch]]") + 1
    for length in range(start, len(whole) - 1):
        table.write_bytes(whole[:length])
        with pytest.raises(PatchError) as caught:
            world.series  # noqa: B018
        assert caught.value.kind == "bad-series"
