from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llamawright.errors import DownloadError, LockedError
from llamawright.store import Entry, Store, scratch_beside, work_lock
from transfer_kit import Listener, files_below, sha

HELLO = sha(b"hello")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def make_tree(content: str = "x") -> Callable[[Path], None]:
    def make(dest: Path) -> None:
        dest.mkdir()
        (dest / "file").write_text(content)

    return make


def never(dest: Path) -> None:
    raise AssertionError(f"made again: {dest}")


def materialise(
    store: Store,
    make: Callable[[Path], None],
    check: Callable[[Path], None] | None = None,
    key: str = "key",
) -> Entry:
    return store.materialise(
        "shelf", key, make=make, check=check, reporter=Listener(), label="a test's entry"
    )


def test_an_entry_is_made_once_and_found_afterwards(store: Store) -> None:
    first = materialise(store, make_tree())
    second = materialise(store, never)
    assert first.fresh
    assert not second.fresh
    assert first.root == second.root == store.shelf("shelf", "key")
    assert (second.root / "file").read_text() == "x"


def test_another_store_object_on_the_same_folder_finds_it(store: Store) -> None:
    materialise(store, make_tree())
    assert not materialise(Store(store.root), never).fresh


def test_an_entry_may_be_a_single_file(store: Store) -> None:
    def make(dest: Path) -> None:
        dest.write_bytes(b"one")

    entry = materialise(store, make)
    assert entry.root.read_bytes() == b"one"
    assert store.is_stamped("shelf", "key")


def test_make_works_beside_the_final_place_and_on_nothing(store: Store) -> None:
    places: list[Path] = []

    def make(dest: Path) -> None:
        assert not dest.exists()
        assert not store.shelf("shelf", "key").exists()
        places.append(dest)
        dest.mkdir()

    materialise(store, make)
    assert places[0].parent == store.shelf("shelf", "key").parent
    assert places[0] != store.shelf("shelf", "key")
    assert not places[0].exists()


def test_check_sees_what_was_made_before_it_is_visible(store: Store) -> None:
    seen: list[dict[str, bytes]] = []

    def check(dest: Path) -> None:
        assert not store.shelf("shelf", "key").exists()
        seen.append(files_below(dest))

    materialise(store, make_tree(), check)
    assert seen == [{"file": b"x"}]


def test_a_refused_entry_leaves_nothing_and_can_be_made_again(store: Store) -> None:
    def refuse(dest: Path) -> None:
        raise DownloadError("wrong", kind="wrong-tree")

    with pytest.raises(DownloadError, match="wrong"):
        materialise(store, make_tree(), refuse)
    assert not store.is_stamped("shelf", "key")
    assert list(store.shelf("shelf", "key").parent.iterdir()) == []
    assert materialise(store, make_tree("second")).fresh


def test_a_make_that_raises_leaves_nothing(store: Store) -> None:
    def fail(dest: Path) -> None:
        dest.mkdir()
        (dest / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        materialise(store, fail)
    assert list(store.shelf("shelf", "key").parent.iterdir()) == []


def test_a_folder_without_a_stamp_is_no_evidence(store: Store) -> None:
    planted = store.shelf("shelf", "key")
    planted.mkdir(parents=True)
    (planted / "stale").write_text("left by someone")
    assert not store.is_stamped("shelf", "key")
    entry = materialise(store, make_tree())
    assert entry.fresh
    assert files_below(entry.root) == {"file": b"x"}


def test_a_stamp_without_a_folder_is_no_evidence(store: Store) -> None:
    entry = materialise(store, make_tree())
    (entry.root / "file").unlink()
    entry.root.rmdir()
    assert not store.is_stamped("shelf", "key")
    assert materialise(store, make_tree()).fresh


def test_what_a_dead_run_left_beside_is_removed(store: Store) -> None:
    beside = store.shelf("shelf", "key").with_name(".making-key")
    beside.mkdir(parents=True)
    (beside / "half").write_text("half")
    scratch_beside(beside).mkdir()
    materialise(store, make_tree())
    assert [p.name for p in store.shelf("shelf", "key").parent.iterdir()] == ["key"]


@pytest.mark.parametrize("fails", [False, True])
def test_the_scratch_place_ends_with_the_making(store: Store, fails: bool) -> None:
    places: list[Path] = []

    def make(dest: Path) -> None:
        places.append(scratch_beside(dest))
        places[0].mkdir()
        (places[0] / "note").write_text("x")
        dest.mkdir()
        if fails:
            raise ValueError

    if fails:
        with pytest.raises(ValueError, match=r"^$"):
            materialise(store, make)
    else:
        materialise(store, make)
    assert not places[0].exists()


def test_read_only_leftovers_are_removed_too(store: Store) -> None:
    beside = store.shelf("shelf", "key").with_name(".making-key")
    (beside / "folder").mkdir(parents=True)
    (beside / "folder" / "file").write_text("x")
    (beside / "folder").chmod(0o500)
    assert materialise(store, make_tree()).fresh


def test_a_tree_of_many_files_is_flushed_too(store: Store) -> None:
    def make(dest: Path) -> None:
        dest.mkdir()
        for number in range(300):
            (dest / f"{number}").write_text(str(number))

    entry = materialise(store, make)
    assert len(list(entry.root.iterdir())) == 300


def test_dangling_links_in_an_entry_do_not_disturb(store: Store) -> None:
    def make(dest: Path) -> None:
        dest.mkdir()
        (dest / "link").symlink_to("nowhere")

    assert (materialise(store, make).root / "link").is_symlink()


def test_a_found_entry_counts_as_used_now(store: Store) -> None:
    materialise(store, make_tree())
    stamp = store.root / "stamps" / "shelf" / "key.json"
    os.utime(stamp, (1_000_000, 1_000_000))
    materialise(store, never)
    assert time.time() - stamp.stat().st_mtime < 60


def test_keys_do_not_disturb_each_other(store: Store) -> None:
    one = materialise(store, make_tree("1"), key="one")
    two = materialise(store, make_tree("2"), key="two")
    assert (one.root / "file").read_text() == "1"
    assert (two.root / "file").read_text() == "2"


def test_forget_makes_the_next_run_make_it_again(store: Store) -> None:
    materialise(store, make_tree("old"))
    store.write_record("shelf", "key", "origin", {"a": 1})
    store.forget("shelf", "key")
    assert store.read_record("shelf", "key", "origin") is None
    entry = materialise(store, make_tree("new"))
    assert entry.fresh
    assert (entry.root / "file").read_text() == "new"


@pytest.mark.parametrize(
    "name", ["", "..", ".", "a/b", "../x", "/abs", ".hidden", "a\\b", "a\0b", "x" * 300, "a b"]
)
def test_names_that_could_leave_the_store_are_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        store.shelf("shelf", name)
    with pytest.raises(ValueError, match="not a name"):
        store.shelf(name, "key")
    with pytest.raises(ValueError, match="not a name"):
        store.logs(name)


def test_blobs_stand_by_their_sha256(store: Store) -> None:
    blob = store.blob(HELLO)
    assert blob == store.root / "blobs" / "sha256" / HELLO[:2] / HELLO
    assert not store.has_blob(HELLO, 5)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"hello")
    assert store.has_blob(HELLO, 5)
    assert store.has_blob(HELLO)
    assert not store.has_blob(HELLO, 6)


@pytest.mark.parametrize("text", ["", "abc", HELLO.upper(), f"{HELLO}0", "../" + HELLO[3:]])
def test_only_a_sha256_names_a_blob(store: Store, text: str) -> None:
    with pytest.raises(ValueError, match="sha256"):
        store.blob(text)


def test_records_are_kept_whole(store: Store) -> None:
    assert store.read_record("shelf", "key", "note") is None
    store.write_record("shelf", "key", "note", {"b": [1, 2], "a": "ä"})
    store.write_record("shelf", "key", "note", {"c": None})
    assert store.read_record("shelf", "key", "note") == {"c": None}
    folder = store.root / "records" / "shelf" / "key"
    assert [p.name for p in folder.iterdir()] == ["note.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\x00\xff"])
def test_a_broken_record_is_as_none(store: Store, text: str) -> None:
    store.write_record("shelf", "key", "note", {"a": 1})
    (store.root / "records" / "shelf" / "key" / "note.json").write_text(text, encoding="latin-1")
    assert store.read_record("shelf", "key", "note") is None


def test_the_work_tree_of_a_key_is_kept(store: Store) -> None:
    key = "0123456789abcdef" + "f" * 48
    (store.work(key) / "build.ninja").write_text("x")
    assert (store.work(key) / "build.ninja").read_text() == "x"
    assert store.work(key) == store.root / "work" / "0123456789abcdef"
    assert work_lock(key) == "work-0123456789abcdef"


def test_logs_have_a_folder_for_each_run(store: Store) -> None:
    assert store.logs("run-1").is_dir()
    assert store.logs("run-1") != store.logs("run-2")


def test_a_lock_taken_twice_by_one_thread_is_an_error_not_a_hang(store: Store) -> None:
    with store.lock("a", reporter=None), pytest.raises(LockedError) as caught:  # noqa: SIM117
        with store.lock("a", reporter=None):
            pass
    assert str(os.getpid()) in caught.value.why


def test_nothing_but_the_stamp_time_changes_when_an_entry_is_found(store: Store) -> None:
    materialise(store, make_tree())
    before = {p: p.stat().st_mtime_ns for p in store.root.rglob("*") if p.parent.name != "shelf"}
    materialise(store, never)
    after = {p: p.stat().st_mtime_ns for p in store.root.rglob("*") if p.parent.name != "shelf"}
    assert before == after
