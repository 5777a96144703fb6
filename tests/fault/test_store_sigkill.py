"""A run killed at any moment of making an entry, and the run after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.digest import tree_digest
from llamawright.store import Store
from transfer_kit import Listener, files_below, python, was_killed

# Each moment is a function that is replaced by one that kills the process first.
MOMENTS = {
    "before make": "content.remove_tree",
    "in make": "",
    "in check": "",
    "before the flush": "content.flush_tree",
    "before the rename": "content.move",
    "after the rename": "content.flush_folder",
    "before the stamp": "content.write_json",
    "in the stamp": "files.os.fsync",
}

CHILD = """
    import os, signal, sys
    from pathlib import Path
    from transfer_kit import Listener
    from llamawright.store import Store, content, files

    root, moment, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

    def die(*_args, **_kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    def make(dest):
        dest.mkdir()
        (dest / "a").write_text("first")
        if moment == "in make":
            die()
        (dest / "folder").mkdir()
        (dest / "folder" / "b").write_text("second")

    def check(dest):
        if moment == "in check":
            die()

    if place:
        owner, _, name = place.rpartition(".")
        target = {"content": content, "files.os": files.os}[owner]
        if moment == "in the stamp":
            # The tree's own flushes come first: die only once the entry stands.
            real = files.os.fsync
            stands = Store(root).shelf("shelf", "key").exists
            setattr(target, name, lambda handle: die() if stands() else real(handle))
        else:
            setattr(target, name, die)

    Store(root).materialise(
        "shelf", "key", make=make, check=check, reporter=Listener(), label="killed"
    )
"""


def make_whole(dest: Path) -> None:
    (dest / "folder").mkdir(parents=True)
    (dest / "a").write_text("first")
    (dest / "folder" / "b").write_text("second")


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_the_next_run_gives_the_same(tmp_path: Path, moment: str) -> None:
    make_whole(tmp_path / "expected")
    store = Store(tmp_path / "store")

    done = python(CHILD, store.root, moment, MOMENTS[moment])
    assert was_killed(done), done.stderr
    assert not store.is_stamped("shelf", "key")

    entry = store.materialise(
        "shelf", "key", make=make_whole, reporter=Listener(), label="again", wait_s=5
    )
    assert entry.fresh
    assert tree_digest(entry.root) == tree_digest(tmp_path / "expected")
    assert [p.name for p in entry.root.parent.iterdir()] == ["key"]
    assert store.gc(keep_days=30).removed == ()


def test_a_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    code = """
        import os, signal, sys
        from pathlib import Path
        from llamawright.store import Store
        with Store(Path(sys.argv[1])).lock("n", reporter=None, what="killed"):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert was_killed(python(code, tmp_path))
    listener = Listener()
    with Store(tmp_path).lock("n", reporter=listener, wait_s=0):
        pass
    assert listener.infos == []


def test_leftovers_of_a_killed_run_are_garbage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert was_killed(python(CHILD, store.root, "in make", ""))
    assert files_below(tmp_path / "shelf")
    (removed,) = store.gc(keep_days=30).removed
    assert removed.reason == "left by a run that died"
    assert files_below(tmp_path / "shelf") == {}
