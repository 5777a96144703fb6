from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from llamawright.store import GcReport, Store
from llamawright.store.gc import DAY_S
from transfer_kit import Listener, files_below, python, sha


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def add(store: Store, key: str, *, days: float, size: int = 10) -> Path:
    def make(dest: Path) -> None:
        dest.mkdir()
        (dest / "file").write_bytes(bytes(size))

    entry = store.materialise("shelf", key, make=make, reporter=Listener(), label=key)
    age(store.root / "stamps" / "shelf" / f"{key}.json", days)
    return entry.root


def add_blob(store: Store, content: bytes, *, days: float, tail: str = "") -> Path:
    blob = store.blob(sha(content))
    path = blob.with_name(blob.name + tail)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    age(path, days)
    return path


def age(path: Path, days: float) -> None:
    past = time.time() - days * DAY_S
    os.utime(path, (past, past))


def removed(report: GcReport, store: Store) -> list[str]:
    return sorted(r.path.relative_to(store.root).as_posix() for r in report.removed)


def test_only_what_was_not_used_for_the_time_goes(store: Store) -> None:
    old, new = add(store, "old", days=31), add(store, "new", days=29)
    report = store.gc(keep_days=30)
    assert removed(report, store) == ["shelf/old"]
    assert not old.exists()
    assert not store.is_stamped("shelf", "old")
    assert files_below(new)
    assert store.is_stamped("shelf", "new")
    assert report.freed == 10
    assert "31 days" in report.removed[0].reason


def test_a_dry_run_only_tells(store: Store) -> None:
    old = add(store, "old", days=31)
    report = store.gc(keep_days=30, dry_run=True)
    assert report.dry_run
    assert removed(report, store) == ["shelf/old"]
    assert report.freed == 10
    assert files_below(old)
    assert store.is_stamped("shelf", "old")


def test_records_go_with_their_entry(store: Store) -> None:
    add(store, "old", days=31)
    store.write_record("shelf", "old", "origin", {"a": 1})
    store.gc(keep_days=30)
    assert store.read_record("shelf", "old", "origin") is None


def test_use_renews(store: Store) -> None:
    add(store, "old", days=31)
    store.used("shelf", "old")
    assert store.gc(keep_days=30).removed == ()


def test_blobs_and_parts_go_by_their_time(store: Store) -> None:
    kept = add_blob(store, b"new", days=1)
    add_blob(store, b"old", days=40)
    add_blob(store, b"half", days=40, tail=".part")
    report = store.gc(keep_days=30)
    assert len(report.removed) == 2
    assert kept.exists()


def test_a_file_of_an_unpinned_address_goes_too(store: Store) -> None:
    part = store.root / "blobs" / "by-address" / f"{sha(b'url')}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x")
    age(part, 40)
    assert len(store.gc(keep_days=30).removed) == 1


def test_work_trees_and_logs_go_by_their_time(store: Store) -> None:
    age(store.work("0123456789abcdef00"), 40)
    age(store.logs("run-1"), 40)
    store.logs("run-2")
    assert removed(store.gc(keep_days=30), store) == ["logs/run-1", "work/0123456789abcdef"]


def test_what_a_dead_run_left_goes_at_once(store: Store) -> None:
    add(store, "good", days=0)
    shelf = store.root / "shelf"
    (shelf / ".making-half").mkdir()
    (shelf / ".making-half~scratch").mkdir()
    (shelf / "unstamped").mkdir()
    report = store.gc(keep_days=30)
    assert removed(report, store) == [
        "shelf/.making-half", "shelf/.making-half~scratch", "shelf/unstamped",
    ]  # fmt: skip
    assert {r.reason for r in report.removed} == {"left by a run that died"}
    assert [p.name for p in shelf.iterdir()] == ["good"]


def test_folders_that_are_no_shelves_are_left_alone(store: Store) -> None:
    cache = store.root / "ccache" / "a"
    cache.mkdir(parents=True)
    (cache / "object").write_bytes(b"x")
    age(cache, 400)
    assert store.gc(keep_days=0).removed == ()
    assert (cache / "object").exists()


def test_what_is_locked_stays_however_old(store: Store) -> None:
    old = add(store, "old", days=400)
    blob = add_blob(store, b"old", days=400)
    with store.lock("shelf-old", reporter=None), store.lock(f"blob-{blob.name}", reporter=None):
        report = store.gc(keep_days=0)
    assert report.removed == ()
    assert sorted(report.busy) == sorted(["shelf-old", f"blob-{blob.name}"])
    assert old.exists()
    assert blob.exists()


def test_an_entry_that_is_being_made_stays(store: Store) -> None:
    add(store, "good", days=0)
    making = store.root / "shelf" / ".making-half"
    making.mkdir()
    with store.lock("shelf-half", reporter=None):
        assert store.gc(keep_days=0).busy
    assert making.exists()


def test_what_a_running_process_may_use_stays(store: Store) -> None:
    """A build holds the lock of its own entry only, and reads its sources meanwhile."""
    used_since_start = add(store, "source", days=0)
    long_unused = add(store, "ancient", days=400)
    with store.lock("shelf-build", reporter=None):
        report = store.gc(keep_days=0)
    assert removed(report, store) == ["shelf/ancient"]
    assert report.busy == ("shelf-source",)
    assert used_since_start.exists()
    assert not long_unused.exists()


def test_keeping_no_days_empties_an_idle_store(store: Store) -> None:
    add(store, "one", days=0)
    add_blob(store, b"x", days=0)
    time.sleep(0.01)
    store.gc(keep_days=0)
    assert files_below(store.root / "shelf") == {}
    assert files_below(store.root / "blobs") == {}


def test_a_journal_file_stays_while_a_phase_of_it_is_open(store: Store) -> None:
    code = """
        import os, signal, sys
        from pathlib import Path
        from llamawright.store import Store
        Store(Path(sys.argv[1])).journal.begin("first-token")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    python(code, store.root)
    store.gc(keep_days=0)
    (found,) = store.journal.unfinished()
    store.journal.end(found.token)
    assert len(store.gc(keep_days=0).removed) == 1
    assert store.journal.unfinished() == ()


def test_an_absent_store_is_clean(tmp_path: Path) -> None:
    assert Store(tmp_path / "none").gc(keep_days=1).removed == ()
