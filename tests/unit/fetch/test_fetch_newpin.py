"""A new release measured: from an index, a tag or a commit; what is young or silent is told."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fetch_fakes import (
    BUILT,
    COMMIT,
    all_files,
    archive_origin,
    index_origin,
    pin,
    repository,
    run_git,
    sdist,
    write,
)

from llamawright.digest import tree_digest
from llamawright.errors import DownloadError, ExitCode, UsageError
from llamawright.fetch.newpin import DAY_S, Bumper
from llamawright.fetch.vendored import Vendored, vendored_commit
from llamawright.model.recipe import ArchiveOrigin, GitOrigin, IndexOrigin, SourcePin
from llamawright.store import Store
from llamawright.transfer.listing import list_files_of
from llamawright.transfer.pipconfig import IndexSettings
from transfer_kit import Listener, Reply, Site, sha, site, tar_of

NEW = "a" * 40
NOW = 1_800_000_000.0
JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
GIT = "x-2/.git/modules/vendor/llama.cpp"
CMAKE = (
    b'project(llama)\noption(LLAMA_BUILD_IS_DEV "dev" ON)\n'
    b"set(LLAMA_VERSION_MAJOR 0)\nset(LLAMA_VERSION_MINOR 9)\nset(LLAMA_VERSION_PATCH 1)\n"
)
FILES = {**all_files(), "CMakeLists.txt": CMAKE}


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as opened:
        yield opened


def loose(date: int) -> tuple[str, bytes]:
    """Return a commit object as git stores it, and its name."""
    body = f"tree {'1' * 40}\ncommitter A <a@x> {date} +0000\n\nhello\n".encode()
    raw = b"commit %d\0" % len(body) + body
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest(), zlib.compress(raw)


def release(git: dict[str, bytes] | None = None, changes: bytes = b"") -> bytes:
    """Return a source distribution of version 2, with what its git folder holds."""
    inner: dict[str, bytes | str] = {f"x-2/vendor/llama.cpp/{n}": c for n, c in FILES.items()}
    inner.update({f"{GIT}/{n}": c for n, c in (git or {}).items()})
    if changes:
        inner["x-2/CHANGELOG.md"] = changes
    return tar_of(inner)


def listed(web: Site, content: bytes, *, days: float | None = 100.0, version: str = "2") -> None:
    """Publish a release on the index; ``days`` old, or without a date."""
    name = f"llama_cpp_python-{version}.tar.gz"
    file: dict[str, object] = {
        "filename": name, "url": web.url(f"/files/{name}"), "size": len(content),
        "hashes": {"sha256": sha(content)}, "yanked": False,
    }  # fmt: skip
    if days is not None:
        at = dt.datetime.fromtimestamp(NOW - days * DAY_S, dt.UTC)
        file["upload-time"] = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    page = {
        "meta": {"api-version": "1.1"}, "name": "llama-cpp-python",
        "versions": [version], "files": [file],
    }  # fmt: skip
    web.routes["/simple/llama-cpp-python/"] = Reply(body=json.dumps(page).encode(), headers=JSON)
    web.routes[f"/files/{name}"] = Reply(body=content)


def bumper(
    web: Site, tmp_path: Path, pinned: SourcePin | None = None, *, least_days: float = 7.0
) -> Bumper:
    settings = IndexSettings(indexes=(web.url("/simple/"),))
    old = pinned or pin(
        "0" * 64,
        index_origin(sdist()),
        archive_origin(f"https://example.org/archive/{COMMIT}.tar.gz"),
        GitOrigin(url="https://example.org/x", commit=COMMIT),
    )
    return Bumper(
        pin=old, store=Store(tmp_path / "store"), reporter=Listener(), now=NOW,
        least_days=least_days, settings=lambda: settings,
    )  # fmt: skip


def test_a_release_of_the_index_is_measured_from_its_bytes(web: Site, tmp_path: Path) -> None:
    commit, stored = loose(1_790_000_000)
    content = release(
        {"HEAD": f"{commit}\n".encode(), f"objects/{commit[:2]}/{commit[2:]}": stored}
    )
    listed(web, content)
    found = bumper(web, tmp_path).measure("2", build_number=77)
    new = found.pin
    assert found.unknown == ()
    assert found.age_days == pytest.approx(100.0, abs=0.001)
    assert (new.commit, new.timestamp, new.build_number) == (commit, 1_790_000_000, 77)
    assert new.version == "0.9.1-dev"
    assert new.tree == tree_digest(write(tmp_path / "e", {**BUILT, "CMakeLists.txt": CMAKE}))
    index, archive, git = new.origins
    assert isinstance(index, IndexOrigin)
    assert (index.version, index.size, index.sha256) == ("2", len(content), sha(content))
    assert index.filename == "llama_cpp_python-2.tar.gz"
    assert index.subdir == "vendor/llama.cpp"
    assert archive.label == f"archive:https://example.org/archive/{commit}.tar.gz"
    assert isinstance(git, GitOrigin)
    assert git.commit == commit


def test_what_the_release_does_not_tell_is_named_and_not_guessed(web: Site, tmp_path: Path) -> None:
    listed(web, release())
    found = bumper(web, tmp_path).measure("2")
    assert [u.partition(":")[0] for u in found.unknown] == [
        "origin archive", "origin git", "commit", "timestamp", "build_number",
    ]  # fmt: skip
    assert found.pin.commit == "0" * 40
    assert [type(o) for o in found.pin.origins] == [IndexOrigin]


def test_a_maintainers_commit_is_taken_where_the_release_is_silent(
    web: Site, tmp_path: Path
) -> None:
    listed(web, release())
    found = bumper(web, tmp_path).measure("2", commit=NEW, build_number=5)
    assert found.pin.commit == NEW
    assert [u.partition(":")[0] for u in found.unknown] == ["timestamp"]


@pytest.mark.parametrize("days", [0.0, 6.9, None])
def test_a_young_release_is_refused_before_it_is_fetched(
    web: Site, tmp_path: Path, days: float | None
) -> None:
    listed(web, release(), days=days)
    with pytest.raises(UsageError, match="too young") as refused:
        bumper(web, tmp_path).measure("2")
    assert refused.value.code is ExitCode.USAGE
    assert refused.value.kind == "too-young"
    assert "--young" in refused.value.hint
    assert "/files/llama_cpp_python-2.tar.gz" not in web.paths()


@pytest.mark.parametrize("days", [0.0, None])
def test_a_young_release_is_taken_when_that_is_asked_for(
    web: Site, tmp_path: Path, days: float | None
) -> None:
    listed(web, release(), days=days)
    assert bumper(web, tmp_path, least_days=0.0).measure("2").pin.tree


def test_a_version_that_is_not_there_tells_which_are(web: Site, tmp_path: Path) -> None:
    listed(web, release())
    with pytest.raises(DownloadError, match="python 3") as absent:
        bumper(web, tmp_path).measure("3")
    assert absent.value.why == "its newest are: 2"


def test_other_bytes_than_the_index_promises_are_refused(web: Site, tmp_path: Path) -> None:
    content = release()
    listed(web, content)
    other = bytes(len(content))
    web.routes["/files/llama_cpp_python-2.tar.gz"] = Reply(body=other)
    with pytest.raises(DownloadError):
        bumper(web, tmp_path).measure("2")


def test_a_release_whose_source_moved_is_told(web: Site, tmp_path: Path) -> None:
    listed(web, tar_of({"x-2/vendor/elsewhere/CMakeLists.txt": CMAKE, "x-2/PKG-INFO": b"x"}))
    with pytest.raises(DownloadError):
        bumper(web, tmp_path).measure("2")


def test_a_tag_of_the_git_origin_gives_commit_date_and_number(web: Site, tmp_path: Path) -> None:
    first, second = repository(tmp_path / "up", BUILT, FILES)
    run_git(tmp_path / "up", "tag", "-a", "-m", "t", "b123", second.commit)
    run_git(tmp_path / "up", "tag", "b100", first.commit)
    pinned = pin("0" * 64, index_origin(sdist()), archive_origin("https://x/y.tar.gz"), first)
    found = bumper(web, tmp_path, pinned, least_days=0.0).measure("b123")
    new = found.pin
    assert (new.commit, new.build_number) == (second.commit, 123)
    assert new.timestamp == int(run_git(tmp_path / "up", "show", "-s", "--format=%ct", "b123^{}"))
    assert new.tree == tree_digest(write(tmp_path / "e", {**BUILT, "CMakeLists.txt": CMAKE}))
    assert [type(o) for o in new.origins] == [GitOrigin]
    assert [u.partition(":")[0] for u in found.unknown] == ["origin index", "origin archive"]
    older = bumper(web, tmp_path, pinned, least_days=0.0).measure("b100")
    assert older.pin.commit == first.commit


def test_a_full_commit_keeps_an_archive_that_is_named_by_it(web: Site, tmp_path: Path) -> None:
    first, second = repository(tmp_path / "up", BUILT, FILES)
    archive = archive_origin(f"https://x/{first.commit}.tar.gz")
    pinned = pin("0" * 64, replace(archive, sha256="f" * 64), first, commit=first.commit)
    found = bumper(web, tmp_path, pinned, least_days=0.0).measure(second.commit, build_number=9)
    kept = found.pin.origins[0]
    assert isinstance(kept, ArchiveOrigin)
    assert kept.url == f"https://x/{second.commit}.tar.gz"
    assert kept.sha256 is None
    assert found.unknown == ()


def test_a_commit_of_today_is_young(web: Site, tmp_path: Path) -> None:
    (origin,) = repository(tmp_path / "up", FILES)
    date = int(run_git(tmp_path / "up", "show", "-s", "--format=%ct", "HEAD"))
    young = replace(bumper(web, tmp_path, pin("0" * 64, origin)), now=date + DAY_S)
    with pytest.raises(UsageError) as refused:
        young.measure(origin.commit)
    assert "it is 1.0 days old" in refused.value.why


def test_a_tag_that_is_not_there_and_a_missing_origin_are_told(web: Site, tmp_path: Path) -> None:
    (origin,) = repository(tmp_path / "up", FILES)
    with pytest.raises(DownloadError, match="tag b9") as absent:
        bumper(web, tmp_path, pin("0" * 64, origin)).measure("b9")
    assert absent.value.kind == "absent"
    with pytest.raises(UsageError, match="no such origin"):
        bumper(web, tmp_path, pin("0" * 64, origin)).measure("0.3.37")
    with pytest.raises(UsageError, match="no such origin"):
        bumper(web, tmp_path, pin("0" * 64, index_origin(sdist()))).measure("b9")


def archived(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(content)
    return path


def test_a_head_that_names_a_branch_is_followed(tmp_path: Path) -> None:
    commit, stored = loose(5)
    git = {
        "HEAD": b"ref: refs/heads/master\n",
        "refs/heads/master": f"{commit}\n".encode(),
        f"objects/{commit[:2]}/{commit[2:]}": stored,
    }
    path = archived(tmp_path, release(git))
    assert vendored_commit(path, "vendor/llama.cpp") == Vendored(commit=commit, timestamp=5)


def test_a_commit_in_a_pack_is_read_without_the_senders_settings(tmp_path: Path) -> None:
    (origin,) = repository(tmp_path / "up", FILES)
    up = tmp_path / "up"
    run_git(up, "gc", "-q")
    evil = tmp_path / "evil"
    packs = {f"objects/pack/{p.name}": p.read_bytes() for p in (up / ".git/objects/pack").iterdir()}
    config = f"[core]\n fsmonitor = touch {evil}\n pager = touch {evil}\n".encode()
    git = {"HEAD": f"{origin.commit}\n".encode(), "config": config, **packs}
    found = vendored_commit(archived(tmp_path, release(git)), "vendor/llama.cpp")
    date = int(run_git(up, "show", "-s", "--format=%ct", "HEAD"))
    assert found == Vendored(commit=origin.commit, timestamp=date)
    assert not evil.exists()


@pytest.mark.parametrize("damage", [b"not zlib", zlib.compress(b"commit 0\0no committer")])
def test_an_object_that_is_damaged_has_no_date(tmp_path: Path, damage: bytes) -> None:
    git = {"HEAD": f"{NEW}\n".encode(), f"objects/aa/{NEW[2:]}": damage}
    found = vendored_commit(archived(tmp_path, release(git)), "vendor/llama.cpp")
    assert found == Vendored(commit=NEW, timestamp=0)


def test_without_a_git_folder_the_change_log_is_read(tmp_path: Path) -> None:
    changes = b"## [2]\n- feat: update llama.cpp to ggml-org/llama.cpp@4df29be4f\n- @someone\n"
    found = vendored_commit(archived(tmp_path, release(changes=changes)), "vendor/llama.cpp")
    assert found == Vendored(commit="4df29be4f", timestamp=0)


def test_a_bomb_in_the_git_folder_is_not_unpacked_into_memory(tmp_path: Path) -> None:
    commit = NEW
    bomb = zlib.compress(b"commit 9\0" + bytes(64 << 20))
    git = {"HEAD": f"{commit}\n".encode(), f"objects/aa/{commit[2:]}": bomb}
    found = vendored_commit(archived(tmp_path, release(git)), "vendor/llama.cpp")
    assert found.timestamp == 0


def test_links_in_the_git_folder_lead_nowhere(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo(f"{GIT}/HEAD")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    path = archived(tmp_path, buffer.getvalue())
    assert vendored_commit(path, "vendor/llama.cpp") == Vendored()


def test_the_listing_passes_over_wheels_yanked_files_and_folders(web: Site) -> None:
    files = [
        {"filename": "llama_cpp_python-1.tar.gz", "url": "a", "hashes": {}, "yanked": "bad"},
        {"filename": "llama_cpp_python-2-py3-none-any.whl", "url": "b", "hashes": {}},
        {"filename": "llama_cpp_python-3.tar.gz", "url": "c", "hashes": {"sha256": "d"}},
    ]
    page = {"meta": {"api-version": "1.0"}, "name": "llama-cpp-python", "files": files}
    web.routes["/simple/llama-cpp-python/"] = Reply(body=json.dumps(page).encode(), headers=JSON)
    settings = IndexSettings(indexes=("file:///nowhere", web.url("/simple/")))
    (only,) = list_files_of("llama-cpp-python", settings=settings)
    assert (only.version, only.sha256, only.size, only.uploaded) == ("3", "d", 0, None)


def test_an_index_that_is_none_is_told_with_every_place(web: Site) -> None:
    web.routes["/simple/llama-cpp-python/"] = Reply(body=b"{", headers=JSON)
    settings = IndexSettings(indexes=(web.url("/empty/"), web.url("/simple/")))
    with pytest.raises(DownloadError, match="lists llama-cpp-python") as absent:
        list_files_of("llama-cpp-python", settings=settings)
    assert "/empty/llama-cpp-python/" in absent.value.why
    assert "not an index page" in absent.value.why
    with pytest.raises(DownloadError) as nothing:
        list_files_of("llama-cpp-python", settings=IndexSettings())
    assert nothing.value.why == "no index is configured"


def test_the_newest_comes_last_whatever_the_index_thinks(web: Site) -> None:
    versions = ("0.3.9", "0.3.36", "0.3.4", "0.3.10rc1", "dev-of-someone")
    files = [{"filename": f"x-{v}.tar.gz", "url": v, "hashes": {}} for v in versions]
    page = {"meta": {"api-version": "1.0"}, "name": "x", "files": files}
    web.routes["/simple/x/"] = Reply(body=json.dumps(page).encode(), headers=JSON)
    settings = IndexSettings(indexes=(web.url("/simple/"),))
    found = [f.version for f in list_files_of("x", settings=settings)]
    assert [v for v in found if "." in v] == ["0.3.4", "0.3.9", "0.3.10rc1", "0.3.36"]
