from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fetch_fakes import all_files, repository, run_git, write

from llamawright.errors import DownloadError
from llamawright.fetch.git import check_out
from llamawright.model.recipe import GitOrigin
from transfer_kit import Listener, Reply, Site, Slept, files_below, site

COMMIT = "1" * 40


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as opened:
        yield opened


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def failing(url: str, scratch: Path, slept: Slept) -> DownloadError:
    origin = GitOrigin(url=url, commit=COMMIT)
    with pytest.raises(DownloadError) as caught:
        check_out(origin, scratch, reporter=Listener(), clock=slept.clock)
    return caught.value


def quick(scratch: Path) -> Slept:
    """A clock that ends the patience after two pauses: each try starts processes."""

    def stop(pauses: int) -> None:
        if pauses >= 2:
            raise TimeoutError

    del scratch
    return Slept(stop)


def test_the_files_of_the_commit_are_there(tmp_path: Path, scratch: Path) -> None:
    (origin,) = repository(tmp_path / "repo", all_files())
    listener = Listener()
    tree = check_out(origin, scratch, reporter=listener)
    assert files_below(tree).items() >= all_files().items()
    assert tree.is_relative_to(scratch)
    assert origin.commit[:9] in listener.infos[0]


def test_line_ends_are_as_they_were_committed(tmp_path: Path, scratch: Path) -> None:
    files = {"unix": b"a\nb\n", "dos": b"a\r\nb\r\n"}
    (origin,) = repository(tmp_path / "repo", files)
    tree = check_out(origin, scratch, reporter=Listener())
    assert (tree / "unix").read_bytes() == files["unix"]
    assert (tree / "dos").read_bytes() == files["dos"]


def test_hooks_of_a_template_do_not_run(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    hook = template / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/evil\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template.parent))
    (origin,) = repository(tmp_path / "repo", all_files())
    check_out(origin, scratch, reporter=Listener())
    assert not (tmp_path / "evil").exists()


def test_nobody_is_asked_for_a_password(web: Site, scratch: Path) -> None:
    web.routes["/x/info/refs?service=git-upload-pack"] = Reply(
        status=401, headers={"WWW-Authenticate": 'Basic realm="x"'}
    )
    slept = Slept()
    error = failing(web.url("/x"), scratch, slept)
    assert error.kind == "refused"
    assert slept.pauses == []


def test_a_repository_that_is_not_on_the_server_is_absent(web: Site, scratch: Path) -> None:
    slept = Slept()
    assert failing(web.url("/x"), scratch, slept).kind == "absent"
    assert slept.pauses == []


def test_a_server_with_a_problem_is_asked_again(web: Site, scratch: Path) -> None:
    web.routes["/x/info/refs?service=git-upload-pack"] = Reply(status=503)
    slept = quick(scratch)
    with pytest.raises(TimeoutError):
        check_out(
            GitOrigin(url=web.url("/x"), commit=COMMIT),
            scratch,
            reporter=Listener(),
            clock=slept.clock,
        )
    assert slept.pauses == [1.0, 2.0]
    assert len(web.seen) == 2


def test_nobody_listening_is_asked_again(scratch: Path) -> None:
    with site() as gone:
        url = gone.url("/x")
    slept = quick(scratch)
    with pytest.raises(TimeoutError):
        check_out(
            GitOrigin(url=url, commit=COMMIT), scratch, reporter=Listener(), clock=slept.clock
        )
    assert slept.pauses == [1.0, 2.0]


def test_secrets_of_an_address_are_not_repeated(web: Site, scratch: Path) -> None:
    url = web.url("/x").replace("http://", "http://me:hunter2@")
    error = failing(url, scratch, Slept())
    assert "hunter2" not in f"{error.what}{error.why}{error.hint}"


def test_a_server_that_gives_no_single_commits_is_fetched_whole(
    tmp_path: Path, scratch: Path
) -> None:
    """The old protocol refuses what no branch names; the branch that holds it is fetched."""
    first, _second = repository(tmp_path / "repo", all_files(), {"LICENSE": b"2"})
    run_git(tmp_path / "repo", "config", "uploadpack.allowAnySHA1InWant", "false")
    tree = check_out(first, scratch, reporter=Listener())
    assert (tree / "LICENSE").read_bytes() == b"MIT\n"


def test_submodules_are_not_fetched(tmp_path: Path, scratch: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    write(root, {".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = https://example.com/x\n'})
    run_git(root, "init", "-q")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "x")
    origin = GitOrigin(url=root.as_uri(), commit=run_git(root, "rev-parse", "HEAD"))
    tree = check_out(origin, scratch, reporter=Listener())
    assert not (tree / "x").exists()
