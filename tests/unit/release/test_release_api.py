"""One request to GitHub: every answer sorted, nothing followed, nothing shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from github_kit import REPO, TOKEN, FakeGitHub, Fault, github
from llamawright.errors import PublishError
from llamawright.release.github_api import (
    API,
    LIMIT_WAIT_S,
    Answer,
    Asset,
    GitHubApi,
    Place,
    RemoteRelease,
    read,
    upload_address,
)
from llamawright.transfer import HttpSettings
from llamawright.transfer.request import Failure
from llamawright.transfer.request import Fault as Class

NOW = 1_000.0


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with github() as opened:
        yield opened


def api(server: FakeGitHub, *, token: str = TOKEN, timeout_s: float = 5.0) -> GitHubApi:
    place = Place(repo=REPO, token=token, api=server.url)
    return GitHubApi(place, HttpSettings(timeout_s=timeout_s), now=lambda: NOW)


def asked(server: FakeGitHub, fault: Fault | None = None) -> Answer | Failure:
    if fault is not None:
        server.faults = [fault]
    opened = api(server)
    return opened.ask("GET", opened.place.releases)


def failure(server: FakeGitHub, fault: Fault) -> Failure:
    seen = asked(server, fault)
    assert isinstance(seen, Failure)
    return seen


def status(code: int, headers: Mapping[str, str] | None = None, body: object = None) -> Fault:
    return Fault("GET", "releases", "status", code, headers or {}, body)


def test_an_answer_is_its_status_and_its_data(server: FakeGitHub) -> None:
    server.add("v1")
    seen = asked(server)
    assert isinstance(seen, Answer)
    assert seen.status == 200
    listed = read(tuple[RemoteRelease, ...], seen.data, "url")
    assert [(r.tag_name, r.draft) for r in listed] == [("v1", True)]


def test_an_answer_without_a_body_has_no_data(server: FakeGitHub) -> None:
    assert asked(server, status(204)) == Answer(204, None)


@pytest.mark.parametrize("code", [404, 409, 422])
def test_a_refusal_that_has_a_meaning_is_an_answer(server: FakeGitHub, code: int) -> None:
    seen = asked(server, status(code, body={"message": "no"}))
    assert seen == Answer(code, {"message": "no"})


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_servers_trouble_is_worth_another_try(server: FakeGitHub, code: int) -> None:
    seen = failure(server, status(code))
    assert seen.fault is Class.SERVER_ERROR
    assert seen.again
    assert f"HTTP {code}" in seen.why


@pytest.mark.parametrize("act", ["drop", "lose", "cut"])
def test_a_lost_connection_is_worth_another_try(server: FakeGitHub, act: str) -> None:
    server.add("v1", body="b" * 2000)
    seen = failure(server, Fault("GET", "releases", act))
    assert seen.fault is Class.NETWORK
    assert seen.again


def test_a_server_that_is_not_there(server: FakeGitHub) -> None:
    place = Place(repo=REPO, token=TOKEN, api="http://127.0.0.1:9")
    seen = GitHubApi(place, HttpSettings(timeout_s=2.0)).ask("GET", place.releases)
    assert isinstance(seen, Failure)
    assert seen.fault is Class.NETWORK


def test_a_web_page_is_no_answer(server: FakeGitHub) -> None:
    seen = failure(server, status(200, body="<html>please log in</html>"))
    assert seen.fault is Class.HTML_PAGE


@pytest.mark.parametrize(
    ("code", "headers", "message", "wait"),
    [
        (429, {}, "", LIMIT_WAIT_S),
        (429, {"Retry-After": "5"}, "", 5.0),
        (403, {"Retry-After": "5"}, "", 5.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1042"}, "", 42.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "900"}, "", 0.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, "", LIMIT_WAIT_S),
        (403, {}, "You have exceeded a secondary rate limit", LIMIT_WAIT_S),
        (403, {"X-RateLimit-Reset": "999999999"}, "secondary RATE LIMIT", LIMIT_WAIT_S),
        (429, {"Retry-After": "tomorrow"}, "", LIMIT_WAIT_S),
    ],
)
def test_how_long_a_limit_asks_to_wait(
    server: FakeGitHub, code: int, headers: Mapping[str, str], message: str, wait: float
) -> None:
    seen = failure(server, status(code, headers, {"message": message}))
    assert seen.fault is Class.RATE_LIMIT
    assert seen.again
    assert seen.wait_s == wait


def test_a_403_that_is_no_limit_is_told_with_githubs_words(server: FakeGitHub) -> None:
    server.faults = [status(403, body={"message": "Must have admin rights to Repository."})]
    with pytest.raises(PublishError) as caught:
        api(server).ask("GET", api(server).place.releases)
    assert caught.value.kind == "no-permission"
    assert "Must have admin rights" in caught.value.why


@pytest.mark.parametrize("body", ["<html>forbidden</html>", "[]", "", '{"message": 5}'])
def test_a_403_without_words_is_told_too(server: FakeGitHub, body: str) -> None:
    server.faults = [status(403, body=body)]
    with pytest.raises(PublishError) as caught:
        api(server).ask("GET", api(server).place.releases)
    assert caught.value.why == "HTTP 403"


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_no_change_follows_a_redirect(server: FakeGitHub, method: str, code: int) -> None:
    elsewhere = {"Location": f"{server.url}/repos/other/name/releases"}
    server.faults = [Fault(method, "releases", "status", code, elsewhere)]
    opened = api(server)
    with pytest.raises(PublishError) as caught:
        opened.ask(method, opened.place.releases, body={})
    assert caught.value.kind == "repository-moved"
    assert "other/name" in caught.value.why
    assert len(server.log) == 1


def test_looking_follows_a_redirect_on_the_same_host(server: FakeGitHub) -> None:
    server.add("v1")
    there = {"Location": f"{server.url}/repos/{REPO}/releases?page=1"}
    server.faults = [status(301, there)]
    seen = api(server).ask("GET", api(server).place.releases)
    assert isinstance(seen, Answer)
    assert len(server.log) == 2


def test_the_token_does_not_follow_to_another_host(
    server: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """127.0.0.1 and localhost are two hosts for this."""
    with github() as other:
        far = other.url.replace("127.0.0.1", "localhost")
        server.faults = [status(302, {"Location": f"{far}/repos/{REPO}/releases"})]
        with pytest.raises(PublishError) as caught:
            api(server).ask("GET", api(server).place.releases)
        assert caught.value.kind == "bad-token"
        assert other.log


def test_a_file_is_sent_as_it_is(server: FakeGitHub, tmp_path: Path) -> None:
    release = server.add("v1")
    data = bytes(range(256)) * 999
    (tmp_path / "a+b.whl").write_bytes(data)
    opened = api(server)
    remote = read(RemoteRelease, release.as_json(server.url), "url")
    seen = opened.ask("POST", upload_address(remote, "a+b.whl"), file=tmp_path / "a+b.whl")
    assert isinstance(seen, Answer)
    asset = read(Asset, seen.data, "url")
    assert (asset.name, asset.size, asset.state) == ("a+b.whl", len(data), "uploaded")
    assert release.assets[0].data == data


def test_a_second_file_of_the_name_is_refused_by_the_server(
    server: FakeGitHub, tmp_path: Path
) -> None:
    remote = read(RemoteRelease, server.add("v1").as_json(server.url), "url")
    (tmp_path / "a").write_bytes(b"x")
    opened = api(server)
    for code in (201, 422):
        seen = opened.ask("POST", upload_address(remote, "a"), file=tmp_path / "a")
        assert isinstance(seen, Answer)
        assert seen.status == code


def test_the_public_address_is_githubs() -> None:
    place = Place(repo="a/b", token="t")
    assert place.releases == f"{API}/repos/a/b/releases"
    assert Place(repo="a/b", token="t", api="https://hub.example/api/v3/").releases == (
        "https://hub.example/api/v3/repos/a/b/releases"
    )
