from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import DownloadError, ExitCode
from llamawright.store import Store
from llamawright.transfer import DownloadRequest, HttpSettings, download
from llamawright.transfer.part import Part
from transfer_kit import Listener, Reply, Seen, Site, Slept, files_below, noise, sha, site

BODY = noise(300_000)
OTHER = noise(300_000, seed=2)
HTML = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>"


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def wanted(*urls: str, body: bytes = BODY) -> DownloadRequest:
    return DownloadRequest(urls=urls, size=len(body), sha256=sha(body), label="llama.tar.gz")


def unpinned(*urls: str, cap: int = 1 << 20) -> DownloadRequest:
    return DownloadRequest(urls=urls, size=cap, sha256=None, label="any", exact_size=False)


def get(
    request: DownloadRequest,
    store: Store,
    *,
    offline: bool = False,
    listener: Listener | None = None,
    slept: Slept | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    http: HttpSettings | None = None,
) -> Path:
    return download(
        request,
        store,
        offline=offline,
        reporter=listener or Listener(),
        clock=(slept or Slept()).clock,
        headers=headers,
        http=http or HttpSettings(timeout_s=5),
    )


def failing(request: DownloadRequest, store: Store, slept: Slept | None = None) -> DownloadError:
    with pytest.raises(DownloadError) as caught:
        get(request, store, slept=slept)
    assert caught.value.code is ExitCode.DOWNLOAD
    return caught.value


def part_of(request: DownloadRequest, store: Store) -> Path:
    blob = store.blob(request.sha256 or "")
    return blob.with_name(f"{blob.name}.part")


def plant(request: DownloadRequest, store: Store, content: bytes, *, tag: str = "") -> Part:
    """Leave a part file behind as a killed run does."""
    part = Part(part_of(request, store))
    with part.begin(request.urls[0], tag) as sink:
        sink.write(content)
    return part


def test_the_bytes_come_to_the_blob_of_their_sha256(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    blob = get(wanted(web.url("/f")), store)
    assert blob == store.blob(sha(BODY))
    assert files_below(store.root / "blobs") == {f"sha256/{sha(BODY)[:2]}/{sha(BODY)}": BODY}


def test_the_second_time_nothing_is_asked(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    get(wanted(web.url("/f")), store)
    get(wanted(web.url("/f")), store)
    get(wanted(web.url("/f")), store, offline=True)
    assert len(web.seen) == 1


def test_the_meter_shows_bytes_and_their_total(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    listener = Listener()
    get(wanted(web.url("/f")), store, listener=listener)
    assert listener.meters == [("downloading llama.tar.gz", len(BODY), "bytes")]
    assert listener.updates == sorted(listener.updates)
    assert listener.updates[-1] == len(BODY)
    assert set(listener.totals) == {len(BODY)}


def test_the_user_agent_is_ours_and_nothing_is_compressed_on_the_way(
    web: Site, store: Store
) -> None:
    web.routes["/f"] = Reply(body=BODY)
    get(wanted(web.url("/f")), store, headers=(("X-Token", "abc"),))
    (seen,) = web.seen
    assert seen.headers["User-Agent"].startswith("llamawright/")
    assert seen.headers["Accept-Encoding"] == "identity"
    assert seen.headers["X-Token"] == "abc"


def test_an_archive_labelled_as_compressed_is_kept_as_it_is(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY, headers={"Content-Encoding": "gzip"})
    assert get(wanted(web.url("/f")), store).read_bytes() == BODY


def test_a_redirect_is_followed(web: Site, store: Store) -> None:
    web.routes["/old"] = Reply(status=302, headers={"Location": web.url("/new")})
    web.routes["/new"] = Reply(body=BODY)
    assert get(wanted(web.url("/old")), store).read_bytes() == BODY


def test_redirects_in_a_circle_are_refused_at_once(web: Site, store: Store) -> None:
    web.routes["/a"] = Reply(status=302, headers={"Location": web.url("/a")})
    slept = Slept()
    assert failing(wanted(web.url("/a")), store, slept).kind == "refused"
    assert slept.pauses == []


def test_the_rest_is_asked_for_with_the_tag_it_had(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY, etag='"one"')
    request = wanted(web.url("/f"))
    plant(request, store, BODY[:100_000], tag='"one"')
    assert get(request, store).read_bytes() == BODY
    (seen,) = web.seen
    assert seen.headers["Range"] == "bytes=100000-"
    assert seen.headers["If-Range"] == '"one"'


def test_when_the_file_changed_there_it_starts_over(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY, etag='"two"')
    request = wanted(web.url("/f"))
    plant(request, store, OTHER[:100_000], tag='"one"')
    assert get(request, store).read_bytes() == BODY
    assert len(web.seen) == 1


def test_a_server_without_ranges_is_started_over(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY, ranges=False)
    request = wanted(web.url("/f"))
    plant(request, store, BODY[:100_000])
    assert get(request, store).read_bytes() == BODY
    assert len(web.seen) == 1


def test_a_part_of_wrong_bytes_is_found_out_and_fetched_afresh(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    request = wanted(web.url("/f"))
    plant(request, store, OTHER[:100_000])
    assert get(request, store).read_bytes() == BODY
    assert ["Range" in s.headers for s in web.seen] == [True, False]


def test_a_whole_part_is_verified_without_asking(web: Site, store: Store) -> None:
    request = wanted(web.url("/f"))
    plant(request, store, BODY)
    assert get(request, store).read_bytes() == BODY
    assert web.seen == []


def test_a_part_that_is_too_long_is_dropped(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    request = wanted(web.url("/f"))
    plant(request, store, BODY + b"more")
    assert get(request, store).read_bytes() == BODY
    assert "Range" not in web.seen[0].headers


def test_a_refused_rest_starts_over(web: Site, store: Store) -> None:
    web.routes["/f"] = [Reply(status=416), Reply(body=BODY)]
    request = wanted(web.url("/f"))
    plant(request, store, BODY[:1000])
    assert get(request, store).read_bytes() == BODY
    assert "Range" not in web.seen[1].headers


def test_another_range_than_the_one_asked_for_is_not_appended(web: Site, store: Store) -> None:
    lie = {"Content-Range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}"}
    web.routes["/f"] = [Reply(status=206, body=BODY, headers=lie), Reply(body=BODY)]
    request = wanted(web.url("/f"))
    plant(request, store, BODY[:1000])
    assert get(request, store).read_bytes() == BODY
    assert len(web.seen) == 2


def test_a_broken_connection_goes_on_where_it_stopped(web: Site, store: Store) -> None:
    whole = Reply(body=BODY, etag='"one"')
    web.routes["/f"] = [replace(whole, cut=200_000), whole]
    listener, slept = Listener(), Slept()
    assert get(wanted(web.url("/f")), store, listener=listener, slept=slept).read_bytes() == BODY
    assert slept.pauses == [1.0]
    assert int(web.seen[1].headers["Range"].removeprefix("bytes=").rstrip("-")) > 100_000
    assert "trying again in 1 s" in listener.infos[0]


def test_a_connection_that_ends_early_without_a_length_is_noticed(web: Site, store: Store) -> None:
    web.routes["/f"] = [Reply(body=BODY[:5000], length=False), Reply(body=BODY)]
    slept = Slept()
    assert get(wanted(web.url("/f")), store, slept=slept).read_bytes() == BODY
    assert slept.pauses == [1.0]


def test_a_server_that_always_starts_over_and_breaks_is_given_up(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY, cut=150_000, ranges=False)
    slept = Slept()
    error = failing(wanted(web.url("/f")), store, slept)
    assert error.kind == "network"
    assert len(slept.pauses) <= 13


def test_progress_renews_the_patience(web: Site, store: Store) -> None:
    steps = iter(range(1, 20))

    def slowly(seen: Seen) -> Reply:
        start = int(seen.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        next(steps)
        return Reply(body=BODY, etag='"one"', cut=min(70_000, len(BODY) - start))

    web.routes["/f"] = slowly
    slept = Slept()
    assert get(wanted(web.url("/f")), store, slept=slept).read_bytes() == BODY
    assert set(slept.pauses) == {1.0}


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_outage_of_a_minute_is_waited_out(web: Site, store: Store, status: int) -> None:
    web.routes["/f"] = Reply(status=status)

    def recover(pauses: int) -> None:
        if sum(slept.pauses) >= 60:
            web.routes["/f"] = Reply(body=BODY)
        del pauses

    slept = Slept(recover)
    assert get(wanted(web.url("/f")), store, slept=slept).read_bytes() == BODY
    assert sum(slept.pauses) >= 60
    assert slept.pauses == sorted(slept.pauses)


def test_an_outage_that_does_not_end_is_an_error_in_the_end(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(status=503)
    slept = Slept()
    error = failing(wanted(web.url("/f")), store, slept)
    assert error.kind == "server-error"
    assert "HTTP 503" in error.why
    assert len(web.seen) == 7
    assert sum(slept.pauses) >= 60


def test_nobody_listening_is_waited_out_too(web: Site, store: Store, tmp_path: Path) -> None:
    with site() as gone:
        dead = gone.url("/f")
    slept = Slept()
    error = failing(wanted(dead), store, slept)
    assert error.kind == "network"
    assert "refused" in error.why.lower()
    assert sum(slept.pauses) >= 60


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 410, 418, 451])
def test_other_refusals_are_final(web: Site, store: Store, status: int) -> None:
    web.routes["/f"] = Reply(status=status)
    slept = Slept()
    error = failing(wanted(web.url("/f")), store, slept)
    assert len(web.seen) == 1
    assert slept.pauses == []
    assert error.kind == ("absent" if status in {404, 410} else "refused")
    assert f"HTTP {status}" in error.why


def test_too_many_requests_wait_as_long_as_asked(web: Site, store: Store) -> None:
    web.routes["/f"] = [Reply(status=429, headers={"Retry-After": "7"}), Reply(body=BODY)]
    slept = Slept()
    get(wanted(web.url("/f")), store, slept=slept)
    assert slept.pauses == [7.0]


def test_too_many_requests_for_an_hour_are_an_error(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(status=429, headers={"Retry-After": "3600"})
    slept = Slept()
    error = failing(wanted(web.url("/f")), store, slept)
    assert error.kind == "rate-limit"
    assert "3600 s" in error.why
    assert slept.pauses == []


@pytest.mark.parametrize(
    "headers",
    [{"X-RateLimit-Remaining": "0"}, {"RateLimit-Remaining": "0"}, {"Retry-After": "60"}],
)
def test_a_used_up_rate_limit_is_no_missing_file(
    web: Site, store: Store, headers: dict[str, str]
) -> None:
    web.routes["/f"] = Reply(status=403, headers=headers)
    error = failing(wanted(web.url("/f")), store)
    assert error.kind == "rate-limit"
    assert "rate limit" in error.why
    assert "wait" in error.hint
    assert len(web.seen) == 1


def test_a_proxy_that_wants_a_password_is_named(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(status=407)
    error = failing(wanted(web.url("/f")), store)
    assert error.kind == "proxy"
    assert "HTTPS_PROXY" in error.hint


def test_a_proxy_of_the_settings_is_used(web: Site, store: Store) -> None:
    web.routes["http://files.example/f"] = Reply(body=BODY)
    http = HttpSettings(proxy=web.url(""), timeout_s=5)
    assert get(wanted("http://files.example/f"), store, http=http).read_bytes() == BODY


def test_a_proxy_that_is_not_there_is_named(store: Store) -> None:
    with site() as gone:
        proxy = gone.url("")
    slept = Slept()
    with pytest.raises(DownloadError) as caught:
        get(
            wanted("http://files.example/f"), store, slept=slept,
            http=HttpSettings(proxy=proxy, timeout_s=5),
        )  # fmt: skip
    assert caught.value.kind == "proxy"


def test_a_web_page_instead_of_the_file_is_recognised_by_its_type(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=HTML, headers={"Content-Type": "text/html; charset=utf-8"})
    error = failing(wanted(web.url("/f")), store)
    assert error.kind == "html-page"
    assert "web page" in error.what
    assert files_below(store.root / "blobs") == {}


def test_a_web_page_is_recognised_by_its_bytes(web: Site, store: Store) -> None:
    page = b"\n  " + HTML
    web.routes["/f"] = Reply(body=page)
    request = DownloadRequest(
        urls=(web.url("/f"),), size=len(page), sha256=sha(BODY), label="a.zip"
    )
    assert failing(request, store).kind == "html-page"
    assert failing(unpinned(web.url("/f")), store).kind == "html-page"


def test_a_wrong_sha256_keeps_nothing_and_tells_both(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=OTHER)
    slept = Slept()
    error = failing(wanted(web.url("/f")), store, slept)
    assert error.kind == "wrong-sha256"
    assert "wrong sha256" in error.what
    assert sha(BODY) in error.why
    assert sha(OTHER) in error.why
    assert files_below(store.root / "blobs") == {}
    assert slept.pauses == []


def test_a_wrong_size_is_seen_before_the_bytes_come(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY[:-1])
    error = failing(wanted(web.url("/f")), store)
    assert error.kind == "size-mismatch"
    assert f"expected {len(BODY)} bytes, got {len(BODY) - 1}" in error.why
    assert files_below(store.root / "blobs") == {}


def test_a_server_that_does_not_stop_is_stopped(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY * 4, length=False)
    error = failing(wanted(web.url("/f")), store)
    assert error.kind == "too-large"
    assert files_below(store.root / "blobs") == {}


def test_an_unpinned_file_has_a_cap(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    assert failing(unpinned(web.url("/f"), cap=1000), store).kind == "too-large"


def test_an_unpinned_file_is_kept_by_what_it_is(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY, length=False)
    request = unpinned(web.url("/f"))
    assert get(request, store) == store.blob(sha(BODY))
    assert get(request, store, offline=True) == store.blob(sha(BODY))
    assert len(web.seen) == 1


def test_an_unpinned_part_without_a_tag_is_not_resumed(web: Site, store: Store) -> None:
    web.routes["/f"] = [Reply(body=BODY, cut=100_000), Reply(body=BODY)]
    get(unpinned(web.url("/f")), store)
    assert "Range" not in web.seen[1].headers


def test_an_unpinned_part_with_a_tag_is_resumed(web: Site, store: Store) -> None:
    whole = Reply(body=BODY, etag='"one"')
    web.routes["/f"] = [replace(whole, cut=100_000), whole]
    assert get(unpinned(web.url("/f")), store).read_bytes() == BODY
    assert web.seen[1].headers["If-Range"] == '"one"'


def test_addresses_are_tried_in_their_order(web: Site, store: Store) -> None:
    web.routes["/permanent"] = Reply(body=BODY)
    slept = Slept()
    get(wanted(web.url("/mirror"), web.url("/permanent")), store, slept=slept)
    assert web.paths() == ["/mirror", "/permanent"]
    assert slept.pauses == []


def test_a_lying_mirror_does_not_keep_the_right_bytes_away(web: Site, store: Store) -> None:
    web.routes["/mirror"] = Reply(body=OTHER)
    web.routes["/permanent"] = Reply(body=BODY)
    request = wanted(web.url("/mirror"), web.url("/permanent"))
    assert get(request, store).read_bytes() == BODY


def test_a_broken_mirror_is_continued_at_the_next_address(web: Site, store: Store) -> None:
    web.routes["/mirror"] = Reply(body=BODY, cut=200_000, etag='"m"')
    web.routes["/permanent"] = Reply(body=BODY, etag='"p"')
    request = wanted(web.url("/mirror"), web.url("/permanent"))
    assert get(request, store).read_bytes() == BODY
    assert "Range" in web.seen[1].headers
    assert "If-Range" not in web.seen[1].headers


def test_all_addresses_failures_are_listed(web: Site, store: Store) -> None:
    web.routes["/a"] = Reply(status=403, headers={"X-RateLimit-Remaining": "0"})
    web.routes["/b"] = Reply(body=OTHER)
    error = failing(wanted(web.url("/a"), web.url("/b"), web.url("/c")), store)
    assert error.kind == "wrong-sha256"
    lines = error.why.splitlines()
    assert len(lines) == 3
    assert "rate limit" in lines[0]
    assert "expected sha256" in lines[1]
    assert "HTTP 404" in lines[2]


def test_a_final_failure_is_not_asked_again_while_another_recovers(web: Site, store: Store) -> None:
    web.routes["/b"] = [Reply(status=503), Reply(status=503), Reply(body=BODY)]
    get(wanted(web.url("/a"), web.url("/b")), store)
    assert web.paths() == ["/a", "/b", "/b", "/b"]


def test_what_came_is_said_to_be_kept(web: Site, store: Store) -> None:
    body = noise(3 << 20)
    web.routes["/f"] = [Reply(body=body, cut=2 << 20, etag='"x"'), Reply(status=404)]
    request = wanted(web.url("/f"), body=body)
    error = failing(request, store)
    assert "MiB that came are kept" in error.hint
    assert part_of(request, store).exists()
    web.routes["/f"] = Reply(body=body, etag='"x"')
    assert get(request, store).read_bytes() == body
    assert "Range" in web.seen[-1].headers


def test_secrets_of_an_address_are_not_repeated(web: Site, store: Store) -> None:
    url = web.url("/f?token=secret").replace("http://", "http://user:hunter2@")
    error = failing(wanted(url), store)
    told = f"{error.what} {error.why} {error.hint}"
    assert "hunter2" not in told
    assert "secret" not in told
    assert "127.0.0.1" in told


def test_passwords_in_an_address_are_used(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    get(wanted(web.url("/f").replace("http://", "http://user:pw@")), store)
    assert web.seen[0].headers["Authorization"].startswith("Basic ")


def test_no_address_is_written_to_the_disk(web: Site, store: Store) -> None:
    web.routes["/f"] = [Reply(body=BODY, cut=100_000), Reply(status=404)]
    url = web.url("/f").replace("http://", "http://user:hunter2@")
    failing(wanted(url), store)
    everything = b"".join(files_below(store.root).values())
    assert b"hunter2" not in everything


@pytest.mark.parametrize("url", ["ftp://host/x", "nonsense", "http://", "http://[::1"])
def test_an_address_that_cannot_be_used_is_final(store: Store, url: str) -> None:
    slept = Slept()
    assert failing(wanted(url), store, slept).kind == "refused"
    assert slept.pauses == []


def test_a_local_file_is_copied_and_verified(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "with space.tar"
    source.write_bytes(BODY)
    assert get(wanted(source.as_uri()), store).read_bytes() == BODY
    assert source.read_bytes() == BODY


def test_a_local_file_with_other_bytes_is_refused(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "x.tar"
    source.write_bytes(OTHER)
    assert failing(wanted(source.as_uri()), store).kind == "wrong-sha256"
    source.write_bytes(BODY[:-1])
    assert failing(wanted(source.as_uri()), store).kind == "size-mismatch"
    source.unlink()
    assert failing(wanted(source.as_uri()), store).kind == "absent"
    source.mkdir()
    assert failing(wanted(source.as_uri()), store).kind == "absent"


def test_offline_says_exactly_what_is_missing_and_what_to_do(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    with pytest.raises(DownloadError) as caught:
        get(wanted(web.url("/f")), store, offline=True)
    error = caught.value
    assert error.kind == "offline"
    assert error.code is ExitCode.DOWNLOAD
    assert "llama.tar.gz" in error.what
    assert f"{len(BODY)} bytes" in error.why
    assert sha(BODY) in error.why
    assert "without --offline" in error.hint
    assert str(store.blob(sha(BODY))) in error.hint
    assert web.seen == []


def test_offline_an_unpinned_file_is_told_by_its_cap(web: Site, store: Store) -> None:
    with pytest.raises(DownloadError, match="any is not in the store") as caught:
        get(unpinned(web.url("/f")), store, offline=True)
    assert "at most 1048576 bytes" in caught.value.why


def test_a_file_copied_in_by_hand_is_taken(store: Store) -> None:
    blob = store.blob(sha(BODY))
    blob.parent.mkdir(parents=True)
    blob.write_bytes(BODY)
    assert get(wanted("http://nowhere.invalid/f"), store, offline=True) == blob


def test_a_stored_file_with_other_bytes_is_removed_and_fetched(web: Site, store: Store) -> None:
    web.routes["/f"] = Reply(body=BODY)
    blob = store.blob(sha(BODY))
    blob.parent.mkdir(parents=True)
    blob.write_bytes(OTHER)
    listener = Listener()
    assert get(wanted(web.url("/f")), store, listener=listener).read_bytes() == BODY
    assert len(listener.warnings) == 1
    assert "does not have its sha256" in listener.warnings[0]


def test_a_stored_file_with_other_bytes_is_not_used_offline(store: Store) -> None:
    blob = store.blob(sha(BODY))
    blob.parent.mkdir(parents=True)
    blob.write_bytes(OTHER)
    with pytest.raises(DownloadError) as caught:
        get(wanted("http://nowhere.invalid/f"), store, offline=True)
    assert caught.value.kind == "offline"
