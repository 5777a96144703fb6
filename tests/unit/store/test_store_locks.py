from __future__ import annotations

import json
import os
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from llamawright.errors import ExitCode, LockedError
from llamawright.store import Holder, Store, locks
from llamawright.store.locks import hold, holders, lock_path, read_holder
from transfer_kit import Listener


def me(**changes: object) -> Holder:
    base = Holder(
        pid=os.getpid(),
        host=socket.gethostname(),
        started=psutil.Process().create_time(),
        since=time.time(),
        what="a test",
        thread=threading.get_ident(),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def write(record: Path, holder: Holder) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    fields = {name: getattr(holder, name) for name in Holder.__dataclass_fields__}
    record.write_text(json.dumps(fields))


def in_thread(folder: Path, name: str, what: str) -> tuple[threading.Event, threading.Thread]:
    """Hold a lock in another thread until the event is set."""
    release, taken = threading.Event(), threading.Event()

    def work() -> None:
        with hold(folder, name, reporter=None, wait_s=5, what=what):
            taken.set()
            release.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert taken.wait(5)
    return release, thread


def test_the_record_says_who_holds_the_lock_and_goes_with_it(tmp_path: Path) -> None:
    with hold(tmp_path, "name", reporter=None, wait_s=None, what="a build"):
        holder = read_holder(tmp_path / "name.json")
        assert holder is not None
        assert (holder.pid, holder.host) == (os.getpid(), socket.gethostname())
        assert holder.what == "a build"
        assert abs(holder.since - time.time()) < 60
        assert [name for name, _ in holders(tmp_path)] == ["name"]
    assert holders(tmp_path) == ()


def test_the_lock_is_free_again_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold(tmp_path, "n", reporter=None, wait_s=None):
        raise ZeroDivisionError
    with hold(tmp_path, "n", reporter=None, wait_s=0):
        pass


def test_who_waits_is_told_once_whom_for(tmp_path: Path) -> None:
    release, thread = in_thread(tmp_path, "n", "download of x.tar")
    listener = Listener()
    threading.Timer(3.2 * locks.POLL_S, release.set).start()
    with hold(tmp_path, "n", reporter=listener, wait_s=10):
        pass
    thread.join()
    assert len(listener.infos) == 1
    assert f"process {os.getpid()}" in listener.infos[0]
    assert "download of x.tar" in listener.infos[0]


def test_waiting_ends_with_the_holder_named(tmp_path: Path) -> None:
    release, thread = in_thread(tmp_path, "n", "a long build")
    start = time.monotonic()
    with (
        pytest.raises(LockedError) as caught,
        hold(tmp_path, "n", reporter=None, wait_s=2 * locks.POLL_S),
    ):
        raise AssertionError("two held it")
    waited = time.monotonic() - start
    release.set()
    thread.join()
    assert 2 * locks.POLL_S <= waited < 5
    assert caught.value.code is ExitCode.LOCKED
    assert "a long build" in caught.value.why
    assert f"kill {os.getpid()}" in caught.value.hint


def test_without_a_record_the_wait_still_ends(tmp_path: Path) -> None:
    release, thread = in_thread(tmp_path, "n", "x")
    (tmp_path / "n.json").unlink()
    with pytest.raises(LockedError, match="locked") as caught, hold(
        tmp_path, "n", reporter=Listener(), wait_s=0
    ):  # fmt: skip
        pass
    release.set()
    thread.join()
    assert "another process" in caught.value.why


def test_the_record_of_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    write(tmp_path / "n.json", me(pid=2**22 + 1, what="died"))
    lock_path(tmp_path, "n").touch()
    with hold(tmp_path, "n", reporter=None, wait_s=0):
        held = read_holder(tmp_path / "n.json")
        assert held is not None
        assert held.pid == os.getpid()


def test_a_recycled_pid_is_not_the_holder(tmp_path: Path) -> None:
    assert me().alive
    assert not me(started=psutil.Process().create_time() - 1000).alive
    write(tmp_path / "n.json", me(started=1.0))
    assert read_holder(tmp_path / "n.json") is None
    assert holders(tmp_path) == ()


def test_a_holder_on_another_host_is_taken_for_alive() -> None:
    assert me(pid=2**22 + 1, host="elsewhere").alive


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"pid": "x"}', '{"pid": 1, "host": "h", "started": "soon"}']
)
def test_a_broken_record_names_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.json").write_text(text)
    assert read_holder(tmp_path / "n.json") is None
    with hold(tmp_path, "n", reporter=None, wait_s=0):
        pass


def test_names_become_safe_file_names(tmp_path: Path) -> None:
    path = lock_path(tmp_path, "../../etc/passwd of ü")
    assert path.parent == tmp_path
    assert "/" not in path.name
    assert path.name.endswith(".lock")
    assert len(lock_path(tmp_path, "x" * 500).name) < 200


def test_different_names_do_not_exclude_each_other(tmp_path: Path) -> None:
    with hold(tmp_path, "a", reporter=None, wait_s=0), hold(tmp_path, "b", reporter=None, wait_s=0):
        assert [name for name, _ in holders(tmp_path)] == ["a", "b"]


def test_only_one_thread_at_a_time_is_inside(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(3):
            with hold(tmp_path, "n", reporter=None, wait_s=30):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0.01)
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 9


def test_the_store_keeps_its_locks_in_one_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "store")
    with store.lock("x", reporter=None, what="why"):
        assert [h.what for _, h in holders(store.root / "locks")] == ["why"]


def test_the_phrase_tells_who_where_since_and_what() -> None:
    told = me(pid=77, host="box", since=0.0, what="build of z").told
    assert "process 77 on box since" in told
    assert "(build of z)" in told
