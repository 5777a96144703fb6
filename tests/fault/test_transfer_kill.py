"""A download killed by SIGKILL, and the run after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llamawright.store import Store
from llamawright.transfer import DownloadRequest, download
from transfer_kit import Listener, Reply, Seen, Slept, noise, python, sha, site, was_killed

BODY = noise(1 << 20)

CHILD = """
    import os, signal, sys
    from pathlib import Path
    from transfer_kit import Listener
    from llamawright.store import Store
    from llamawright.transfer import DownloadRequest, download, part

    url, root, size, digest, moment = sys.argv[1:6]

    def die(*_args, **_more):
        os.kill(os.getpid(), signal.SIGKILL)

    class Deadly(Listener):
        def update(self, done, *, total=None, note=""):
            if moment == "midway" and done >= int(size) // 2:
                die()

    if moment == "before the check":
        part.Part.sha256 = die
    if moment == "before the rename":
        part.Part.settle = die
    request = DownloadRequest(urls=(url,), size=int(size), sha256=digest, label="f")
    download(request, Store(Path(root)), offline=False, reporter=Deadly())
"""


@pytest.mark.parametrize("moment", ["midway", "before the check", "before the rename"])
def test_a_killed_download_goes_on_where_it_stopped(tmp_path: Path, moment: str) -> None:
    store = Store(tmp_path / "store")
    with site() as web:
        web.routes["/f"] = Reply(body=BODY, etag='"one"')
        url = web.url("/f")
        done = python(CHILD, url, store.root, len(BODY), sha(BODY), moment)
        assert was_killed(done), done.stderr
        assert not store.has_blob(sha(BODY))

        request = DownloadRequest(urls=(url,), size=len(BODY), sha256=sha(BODY), label="f")
        blob = download(request, store, offline=False, reporter=Listener(), clock=Slept().clock)
        assert blob.read_bytes() == BODY
        later = web.seen[1:]
    if moment == "midway":
        (seen,) = later
        start = int(re.sub(r"\D", "", seen.headers["Range"]))
        assert start >= len(BODY) // 2 - (1 << 17)
        assert seen.headers["If-Range"] == '"one"'
    else:
        assert later == []
    assert [p.name for p in blob.parent.iterdir()] == [blob.name]


def test_two_downloads_of_one_file_fetch_it_once(tmp_path: Path) -> None:
    """The second waits for the first and finds what it brought."""
    import threading

    store = Store(tmp_path / "store")
    blobs: list[Path] = []
    with site() as web:
        started, go_on = threading.Event(), threading.Event()

        def slowly(_seen: Seen) -> Reply:
            started.set()
            go_on.wait(10)
            return Reply(body=BODY)

        web.routes["/f"] = slowly
        request = DownloadRequest(
            urls=(web.url("/f"),), size=len(BODY), sha256=sha(BODY), label="f"
        )
        listeners = [Listener(), Listener()]

        def work(listener: Listener) -> None:
            blobs.append(download(request, store, offline=False, reporter=listener))

        first, second = (threading.Thread(target=work, args=(ear,)) for ear in listeners)
        first.start()
        assert started.wait(10)
        second.start()
        while not listeners[1].infos and second.is_alive():
            second.join(0.05)
        go_on.set()
        first.join()
        second.join()
        assert len(web.seen) == 1
    assert blobs == [store.blob(sha(BODY))] * 2
    assert "download of f" in listeners[1].infos[0]
