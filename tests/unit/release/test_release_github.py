"""Publishing on GitHub: whatever the server does, a release is public whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from github_kit import HOUR, READ_ONLY, REPO, TOKEN, FakeGitHub, Fault, github
from llamawright.errors import ExitCode, PublishError
from llamawright.release.github import (
    MARK,
    Publication,
    Publisher,
    differences,
    fault_of,
    local_file,
)
from llamawright.release.github_api import Asset, GitHubApi, Place
from llamawright.transfer import HttpSettings
from llamawright.transfer.retry import PAUSES_S
from reporter_kit import Told
from transfer_kit import Slept

FILES = {"tiny.tar.zst": b"programs" * 500, "tiny-1.0+cpu.whl": b"wheel" * 300, "SHA256SUMS": b"s"}


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with github() as opened:
        yield opened


@pytest.fixture
def wanted(tmp_path: Path) -> Publication:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    files = tuple(local_file(tmp_path / name) for name in FILES)
    return Publication(tag="v1", title="v1", notes="# v1\n", files=files, commitish="main")


def publisher(
    server: FakeGitHub, *, token: str = TOKEN, repo: str = REPO, slept: Slept | None = None
) -> Publisher:
    place = Place(repo=repo, token=token, api=server.url)
    api = GitHubApi(place, HttpSettings(timeout_s=5.0), now=lambda: 1_000.0)
    return Publisher(server=api, reporter=Told(), clock=(slept or Slept()).clock)


def refused(
    server: FakeGitHub, wanted: Publication, *, token: str = TOKEN, repo: str = REPO
) -> PublishError:
    with pytest.raises(PublishError) as caught:
        publisher(server, token=token, repo=repo).publish(wanted)
    assert server.public == []
    assert caught.value.hint
    assert caught.value.code is ExitCode.DOWNLOAD
    return caught.value


def whole(server: FakeGitHub) -> None:
    """One public release with every byte, and no draft beside it."""
    assert [r.draft for r in server.releases] == [False]
    assert {a.name: a.data for a in server.public[0].assets} == FILES
    assert all(a.state == "uploaded" for a in server.public[0].assets)


def test_a_release_is_published_with_its_files_and_notes(
    server: FakeGitHub, wanted: Publication
) -> None:
    page = publisher(server).publish(wanted)
    whole(server)
    assert page == f"https://github.com/{REPO}/releases/tag/v1"
    release = server.public[0]
    assert release.body == f"# v1\n\n{MARK}\n"
    assert release.commitish == "main"
    assert all(agent.startswith("llamawright/") for agent in server.agents)


def test_it_is_public_only_after_everything_was_compared(
    server: FakeGitHub, wanted: Publication
) -> None:
    publisher(server).publish(wanted)
    patch = next(i for i, line in enumerate(server.log) if line.startswith("PATCH"))
    uploads = [i for i, line in enumerate(server.log) if line.startswith("POST /uploads")]
    compared = [i for i, line in enumerate(server.log[:patch]) if "assets?per_page" in line]
    assert max(uploads) < max(compared) < patch


def test_changes_are_a_second_apart(server: FakeGitHub, wanted: Publication) -> None:
    slept = Slept()
    publisher(server, slept=slept).publish(wanted)
    assert slept.pauses == [1.0] * len(FILES)


SPENT = {"message": "API rate limit exceeded"}
RATE = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1030"}
BAD_DAYS = {
    "a server error at the first look": [Fault("GET", "tags/v1", "status", 503)],
    "an answer that ends early": [Fault("GET", r"releases\?", "cut")],
    "a page of a proxy": [Fault("GET", r"releases\?", "status", 200, body="<html>log in</html>")],
    "a draft whose answer is lost": [Fault("POST", "/releases$", "lose")],
    "a draft that was not made": [Fault("POST", "/releases$", "drop")],
    "an upload that is cut": [Fault("POST", "tiny.tar.zst", "drop")],
    "an upload whose answer is lost": [Fault("POST", "tiny.tar.zst", "lose")],
    "an upload whose answer is cut": [Fault("POST", "tiny.tar.zst", "cut")],
    "an upload that leaves an empty file": [Fault("POST", "tiny.tar.zst", "starter")],
    "half an upload is kept": [Fault("POST", "tiny.tar.zst", "tear")],
    "other bytes are kept": [Fault("POST", "tiny.tar.zst", "flip")],
    "half is kept and the answer is cut": [
        Fault("POST", "tiny.tar.zst", "tear"), Fault("GET", "assets", "cut"),
    ],
    "all of it twice": [
        Fault("POST", "tiny.tar.zst", "starter"), Fault("POST", "tiny.tar.zst", "tear"),
        Fault("POST", "tiny.tar.zst", "drop"), Fault("DELETE", "assets", "lose"),
    ],
    "the hour's share is used up": [Fault("POST", "whl", "status", 403, RATE, SPENT)],
    "too many at once": [Fault("POST", "whl", "status", 429, {"Retry-After": "7"})],
    "a second limit without a time": [
        Fault("POST", "whl", "status", 403,
              body={"message": "You have exceeded a secondary rate limit."}),
    ],
    "a deletion that is lost": [
        Fault("POST", "SHA256SUMS", "tear"), Fault("DELETE", "assets", "lose"),
    ],
    "the comparison fails once": [Fault("GET", "assets", "status", 500)] * 2,
    "the publication is lost": [Fault("PATCH", "releases", "lose")],
    "the publication was not made": [Fault("PATCH", "releases", "drop")],
    "the publication meets an error": [Fault("PATCH", "releases", "status", 502)],
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DAYS)
def test_a_bad_day_ends_with_a_whole_release(
    server: FakeGitHub, wanted: Publication, name: str
) -> None:
    server.faults = list(BAD_DAYS[name])
    publisher(server).publish(wanted)
    assert server.faults == [], "the day was not as bad as it should have been"
    whole(server)


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Fault("POST", "whl", "status", 403, RATE, SPENT), 30.0),
        (Fault("POST", "whl", "status", 429, {"Retry-After": "7"}), 7.0),
        (Fault("POST", "whl", "status", 403, {"Retry-After": "11"}), 11.0),
        (Fault("POST", "whl", "status", 403, body={"message": "secondary rate limit"}), 60.0),
        (Fault("POST", "whl", "status", 500), PAUSES_S[0]),
    ],
)
def test_it_waits_as_long_as_it_is_asked_to(
    server: FakeGitHub, wanted: Publication, fault: Fault, wait: float
) -> None:
    server.faults = [fault]
    slept = Slept()
    publisher(server, slept=slept).publish(wanted)
    assert [p for p in slept.pauses if p != 1.0 or wait == 1.0][:1] == [wait]
    whole(server)


def test_a_limit_of_an_hour_ends_the_run_and_the_draft_is_resumed(
    server: FakeGitHub, wanted: Publication
) -> None:
    late = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(1_000 + HOUR))}
    server.faults = [Fault("POST", "SHA256SUMS", "status", 403, late, {"message": "rate limit"})]
    error = refused(server, wanted)
    assert error.kind == "rate-limit"
    assert "asks to wait 3600 s" in error.why
    assert "goes on with the draft" in error.hint
    sent = server.count("POST", "uploads")
    publisher(server).publish(wanted)
    whole(server)
    assert server.count("POST", "uploads") == sent + 1


def test_a_server_that_stays_down_leaves_a_draft_at_most(
    server: FakeGitHub, wanted: Publication
) -> None:
    server.faults = [Fault("POST", "whl", "status", 503)] * (len(PAUSES_S) + 1)
    error = refused(server, wanted)
    assert error.kind == "server-error"
    assert "HTTP 503" in error.why
    assert [r.draft for r in server.releases] == [True]
    publisher(server).publish(wanted)
    whole(server)


def test_a_run_killed_before_publishing_is_resumed_without_a_second_draft(
    server: FakeGitHub, wanted: Publication
) -> None:
    server.faults = [Fault("PATCH", "releases", "status", 500)] * (len(PAUSES_S) + 1)
    refused(server, wanted)
    sent = server.count("POST", "uploads")
    publisher(server).publish(wanted)
    whole(server)
    assert server.count("POST", "uploads") == sent


def test_a_draft_of_another_build_gets_our_files_and_loses_its_own(
    server: FakeGitHub, wanted: Publication, tmp_path: Path
) -> None:
    (tmp_path / "old.bin").write_bytes(b"old")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "SHA256SUMS").write_bytes(b"other sums")
    old = (local_file(tmp_path / "old.bin"), local_file(tmp_path / "other" / "SHA256SUMS"))
    server.faults = [Fault("PATCH", "releases", "status", 500)] * (len(PAUSES_S) + 1)
    refused(server, Publication(tag="v1", title="v1", notes="old", files=old))
    publisher(server).publish(wanted)
    whole(server)
    assert server.public[0].body.startswith("# v1")


def test_a_draft_of_a_person_is_not_touched(server: FakeGitHub, wanted: Publication) -> None:
    server.add("v1", body="written by hand")
    error = refused(server, wanted)
    assert error.kind == "foreign-draft"
    assert server.releases[0].assets == []
    assert server.releases[0].body == "written by hand"


def test_two_drafts_of_ours_are_one_too_many(server: FakeGitHub, wanted: Publication) -> None:
    for _ in range(2):
        server.add("v1", body=MARK)
    assert refused(server, wanted).kind == "foreign-draft"


def test_drafts_of_other_tags_do_not_matter(server: FakeGitHub, wanted: Publication) -> None:
    for number in range(120):
        server.add(f"old{number}", draft=number % 2 == 0)
    server.add("v1", body=MARK)
    publisher(server).publish(wanted)
    found = [r for r in server.public if r.tag == "v1"]
    assert {a.name: a.data for a in found[0].assets} == FILES
    assert sum(1 for r in server.releases if r.tag == "v1") == 1


def test_a_published_release_is_never_changed(
    server: FakeGitHub, wanted: Publication, tmp_path: Path
) -> None:
    publisher(server).publish(wanted)
    (tmp_path / "SHA256SUMS").write_bytes(b"t")
    other = Publication(
        tag="v1", title="v1", notes="", files=tuple(local_file(tmp_path / n) for n in FILES)
    )
    before = server.count("(POST|PATCH|DELETE)", "")
    with pytest.raises(PublishError) as caught:
        publisher(server).publish(other)
    assert caught.value.kind == "already-published"
    assert "SHA256SUMS: the server has sha256:" in caught.value.why
    assert server.count("(POST|PATCH|DELETE)", "") == before


def test_published_before_with_the_same_files_is_a_success(
    server: FakeGitHub, wanted: Publication
) -> None:
    first = publisher(server).publish(wanted)
    before = server.count("(POST|PATCH|DELETE)", "")
    assert publisher(server).publish(wanted) == first
    assert server.count("(POST|PATCH|DELETE)", "") == before


def test_a_wrong_token_is_told_at_once(server: FakeGitHub, wanted: Publication) -> None:
    slept = Slept()
    with pytest.raises(PublishError) as caught:
        publisher(server, token="ghp_wrong", slept=slept).publish(wanted)
    assert caught.value.kind == "bad-token"
    assert "wrong, expired or revoked" in caught.value.why
    assert "GITHUB_TOKEN" in caught.value.hint
    assert slept.pauses == []
    assert server.releases == []


def test_a_token_that_only_reads_is_told_what_it_lacks(
    server: FakeGitHub, wanted: Publication
) -> None:
    error = refused(server, wanted, token=READ_ONLY)
    assert error.kind == "no-permission"
    assert "Resource not accessible by personal access token" in error.why
    assert "contents: write" in error.hint


def test_a_repository_that_is_not_seen(server: FakeGitHub, wanted: Publication) -> None:
    error = refused(server, wanted, repo="someone/else")
    assert error.kind == "no-repository"
    assert "someone/else" in error.what


def test_a_repository_that_has_moved_is_not_followed(
    server: FakeGitHub, wanted: Publication
) -> None:
    to = {"Location": f"{server.url}/repositories/1/releases"}
    server.faults = [Fault("POST", "/releases$", "status", 307, to, {"message": "moved"})]
    error = refused(server, wanted)
    assert error.kind == "repository-moved"
    assert "repositories/1" in error.why


def test_a_name_that_github_changes_is_refused(server: FakeGitHub, wanted: Publication) -> None:
    server.renames = {"tiny-1.0+cpu.whl": "tiny-1.0.cpu.whl"}
    error = refused(server, wanted)
    assert error.kind == "renamed"
    assert all(a.name != "tiny-1.0.cpu.whl" for a in server.releases[0].assets)


def test_a_tag_that_is_refused_is_told_with_its_reason(
    server: FakeGitHub, wanted: Publication
) -> None:
    body = {"message": "Validation Failed", "errors": [{"code": "custom", "field": "tag_name"}]}
    server.faults = [Fault("POST", "/releases$", "status", 422, body=body)]
    error = refused(server, wanted)
    assert error.kind == "refused"
    assert "Validation Failed, custom" in error.why


def test_a_digest_that_comes_late_is_waited_for(server: FakeGitHub, wanted: Publication) -> None:
    def tell(_pause: int) -> None:
        for asset in server.releases[0].assets:
            asset.told = True

    server.faults = [Fault("POST", "SHA256SUMS", "late")]
    slept = Slept(during=lambda pause: tell(pause) if pause > len(FILES) else None)
    publisher(server, slept=slept).publish(wanted)
    whole(server)
    assert len(slept.pauses) == len(FILES) + 1


def test_a_digest_that_never_comes_leaves_a_draft(server: FakeGitHub, wanted: Publication) -> None:
    server.faults = [Fault("POST", "tiny.tar.zst", "late")]
    error = refused(server, wanted)
    assert "no digest yet of tiny.tar.zst" in error.why


def test_a_file_that_github_does_not_take_is_told_before_anything_is_sent(
    server: FakeGitHub, wanted: Publication
) -> None:
    large = replace(wanted.files[0], size=2 << 30)
    error = refused(server, replace(wanted, files=(large, *wanted.files[1:])))
    assert error.kind == "too-large"
    assert "tiny.tar.zst: 2147483648 bytes" in error.why
    assert server.log == []


def test_what_is_no_api_is_told_as_such(server: FakeGitHub, wanted: Publication) -> None:
    server.faults = [Fault("GET", "tags/v1", "status", 200, body={"hello": "world"})]
    error = refused(server, wanted)
    assert error.kind == "strange-answer"
    assert "--github-api" in error.hint


def test_the_token_is_in_no_text(server: FakeGitHub, wanted: Publication) -> None:
    place = Place(repo=REPO, token="ghp_secret", api=server.url)
    assert "ghp_secret" not in repr(place)
    error = refused(server, wanted, token="ghp_secret")
    assert "ghp_secret" not in f"{error.what}{error.why}{error.hint}"


def test_a_netrc_does_not_replace_the_token(
    server: FakeGitHub, wanted: Publication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    publisher(server).publish(wanted)
    whole(server)


@pytest.mark.parametrize(
    ("asset", "said"),
    [
        ({"state": "starter"}, "did not end"),
        ({"size": 0}, "0 bytes instead of 1"),
        ({"digest": "sha256:" + "0" * 64}, "the server has sha256:000"),
        ({"digest": None}, ""),
        ({}, ""),
    ],
)
def test_what_is_wrong_with_an_asset(tmp_path: Path, asset: dict[str, object], said: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    file = local_file(path)
    right = {"id": 1, "name": "a", "size": 1, "state": "uploaded"}
    fields = {**right, "digest": f"sha256:{file.sha256}", **asset}
    seen = fault_of(Asset(**fields), file)  # type: ignore[arg-type]
    assert said in seen
    assert bool(said) == bool(seen)


def test_more_files_than_a_page_holds(server: FakeGitHub, tmp_path: Path) -> None:
    names = [f"f{number:03}.txt" for number in range(130)]
    for name in names:
        (tmp_path / name).write_text(name)
    files = tuple(local_file(tmp_path / name) for name in names)
    wanted = Publication(tag="v1", title="v1", notes="", files=files)
    publisher(server).publish(wanted)
    assert {a.name: a.data.decode() for a in server.public[0].assets} == {n: n for n in names}
    before = server.count("POST", "uploads")
    publisher(server).publish(wanted)
    assert server.count("POST", "uploads") == before == len(names)


def test_differences_name_both_sides(tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(b"x")
    theirs = Asset(id=1, name="theirs", size=1, state="uploaded")
    assert differences([local_file(tmp_path / "ours")], [theirs]) == [
        "ours: not on the server", "theirs: only on the server",
    ]  # fmt: skip
