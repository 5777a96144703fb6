"""SIGKILL at any request to GitHub: nobody sees half a release, the next run completes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from github_kit import REPO, TOKEN, FakeGitHub, github
from llamawright.release.github import Publication, Publisher, local_file
from llamawright.release.github_api import GitHubApi, Place
from reporter_kit import Told
from transfer_kit import Slept, python, was_killed

FILES = {"a.tar.zst": b"a" * 4000, "b.whl": b"b" * 3000, "SHA256SUMS": b"sums"}
# 2 looks and a draft; for each file a look and an upload; 2 comparisons, a look, the change.
REQUESTS = 3 + 2 * len(FILES) + 4
PUBLISH = """
    import os, signal, sys
    from pathlib import Path
    from llamawright.release.github import Publication, Publisher, local_file
    from llamawright.release.github_api import GitHubApi, Place
    from reporter_kit import Told
    from transfer_kit import Slept

    root, address, count, side = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]

    class Deadly(GitHubApi):
        asked = 0

        def ask(self, *given, **named):
            Deadly.asked += 1
            if Deadly.asked == count and side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = super().ask(*given, **named)
            if Deadly.asked == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

    files = tuple(local_file(p) for p in sorted(root.iterdir()))
    wanted = Publication(tag="v1", title="v1", notes="notes", files=files)
    server = Deadly(Place(repo="someone/tiny", token="ghp_right", api=address))
    Publisher(server=server, reporter=Told(), clock=Slept().clock).publish(wanted)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with github() as opened:
        yield opened


def publish(server: FakeGitHub, folder: Path) -> str:
    wanted = Publication(
        tag="v1",
        title="v1",
        notes="notes",
        files=tuple(local_file(p) for p in sorted(folder.iterdir())),
    )
    opened = GitHubApi(Place(repo=REPO, token=TOKEN, api=server.url))
    return Publisher(server=opened, reporter=Told(), clock=Slept().clock).publish(wanted)


def test_the_kills_cover_every_request(server: FakeGitHub, files: Path) -> None:
    publish(server, files)
    assert len(server.log) == REQUESTS


@pytest.mark.parametrize("number", range(1, REQUESTS + 1))
def test_killed_after_any_request(server: FakeGitHub, files: Path, number: int) -> None:
    """The work is done and the answer never read: the hardest moment of each request."""
    done = python(PUBLISH, files, server.url, number, "after")
    assert was_killed(done), done.stderr
    assert len(server.public) == (1 if number == REQUESTS else 0)
    publish(server, files)
    assert [r.draft for r in server.releases] == [False]
    assert {a.name: a.data for a in server.public[0].assets} == FILES
    sent = server.count("POST", "uploads")
    assert sent == len(FILES), "nothing that was there is sent again"


def test_killed_before_the_change_that_makes_it_public(server: FakeGitHub, files: Path) -> None:
    assert was_killed(python(PUBLISH, files, server.url, REQUESTS, "before"))
    assert server.public == []
    publish(server, files)
    assert {a.name: a.data for a in server.public[0].assets} == FILES


def test_whoever_looks_meanwhile_sees_nothing_or_all(server: FakeGitHub, files: Path) -> None:
    seen: list[dict[str, bytes]] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.extend({a.name: a.data for a in r.assets} for r in list(server.public))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        publish(server, files)
    finally:
        stop.set()
        watcher.join()
    assert all(look == FILES for look in seen)
