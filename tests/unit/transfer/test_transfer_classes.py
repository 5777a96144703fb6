"""Answers, exceptions and sizes sorted into classes: no server needed."""

from __future__ import annotations

from email.utils import formatdate

import pytest
import requests
import urllib3

from llamawright.transfer import DownloadRequest, HttpSettings, http, refusals
from llamawright.transfer.request import Failure, Fault, parts_of, redact, worst

URL = "https://files.example/a.tar.gz"


def failure(fault: Fault, url: str = URL) -> Failure:
    return Failure(fault=fault, url=url, why="x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("https://user:pw@a.example:8443/x?token=1#frag", "https://a.example:8443/x"),
        ("https://token@a.example/x", "https://a.example/x"),
        ("file:///home/x/a%20b", "file:///home/x/a%20b"),
        ("http://[::1", "(no readable address)"),
        ("", "(no readable address)"),
        ("the default index", "the default index"),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_an_unreadable_address_has_empty_parts() -> None:
    assert parts_of("http://[::1").scheme == ""
    assert parts_of("http://a/b").netloc == "a"


def test_the_most_telling_fault_names_the_error() -> None:
    assert worst((failure(Fault.ABSENT), failure(Fault.RATE_LIMIT))) is Fault.RATE_LIMIT
    assert worst((failure(Fault.NETWORK), failure(Fault.WRONG_SHA256))) is Fault.WRONG_SHA256
    assert worst((failure(Fault.PROXY), failure(Fault.ABSENT))) is Fault.PROXY
    assert worst(()) is Fault.ABSENT


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_has_a_hint(fault: Fault) -> None:
    request = DownloadRequest(urls=(URL,), size=1, sha256=None, label="a")
    error = refusals.all_failed(request, (failure(fault),), kept=0)
    assert error.kind == fault.value
    assert len(error.hint) > 20
    assert "files.example" in error.why


@pytest.mark.parametrize(
    ("error", "fault", "again"),
    [
        (requests.exceptions.ConnectTimeout("x"), Fault.NETWORK, True),
        (requests.exceptions.ReadTimeout("x"), Fault.NETWORK, True),
        (requests.exceptions.ConnectionError("x"), Fault.NETWORK, True),
        (requests.exceptions.ChunkedEncodingError("x"), Fault.NETWORK, True),
        (urllib3.exceptions.ProtocolError("broken"), Fault.NETWORK, True),
        (urllib3.exceptions.IncompleteRead(1, 2), Fault.NETWORK, True),
        (ConnectionResetError(104, "reset"), Fault.NETWORK, True),
        (requests.exceptions.ProxyError("cannot connect"), Fault.PROXY, True),
        (
            requests.exceptions.ProxyError("Tunnel connection failed: 407 Proxy Authentication"),
            Fault.PROXY,
            False,
        ),
        (requests.exceptions.SSLError("CERTIFICATE_VERIFY_FAILED"), Fault.TLS, False),
        (requests.exceptions.SSLError("EOF occurred"), Fault.NETWORK, True),
        (requests.exceptions.TooManyRedirects("x"), Fault.REFUSED, False),
        (requests.exceptions.InvalidURL("x"), Fault.REFUSED, False),
        (requests.exceptions.MissingSchema("x"), Fault.REFUSED, False),
        (requests.exceptions.InvalidSchema("x"), Fault.REFUSED, False),
    ],
)
def test_exceptions_have_their_class(error: Exception, fault: Fault, again: bool) -> None:
    found = http.failure_of(URL, error)
    assert (found.fault, found.again) == (fault, again)
    assert found.why


def test_the_innermost_reason_is_told() -> None:
    inner = OSError(111, "Connection refused")
    middle = urllib3.exceptions.MaxRetryError(None, "/x", inner)  # type: ignore[arg-type]
    found = http.failure_of(URL, requests.exceptions.ConnectionError(middle))
    assert found.why == "[Errno 111] Connection refused"


def test_an_exception_without_text_is_told_by_its_name() -> None:
    assert http.failure_of(URL, requests.exceptions.ReadTimeout()).why == "ReadTimeout"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": formatdate(1060, usegmt=True)}, 60.0),
        ({"Retry-After": formatdate(900, usegmt=True)}, 0.0),
        ({"Retry-After": "next week"}, None),
        ({"X-RateLimit-Reset": "1030"}, 30.0),
        ({"X-RateLimit-Reset": "soon"}, None),
        ({"Retry-After": "5", "X-RateLimit-Reset": "1030"}, 5.0),
    ],
)
def test_how_long_a_server_wants_us_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert http.retry_after_s(headers, 1000.0) == seconds


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"ETag": '"a"'}, '"a"'),
        ({"ETag": '"a"', "Last-Modified": "yesterday"}, '"a"'),
        ({"ETag": 'W/"a"', "Last-Modified": "yesterday"}, ""),
        ({"Last-Modified": "yesterday"}, "yesterday"),
        ({}, ""),
    ],
)
def test_only_a_strong_tag_or_a_date_guards_a_resume(
    headers: dict[str, str], validator: str
) -> None:
    assert refusals.validator(headers) == validator


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("bytes 5-9/10", 5),
        ("bytes 0-9/*", 0),
        ("bytes */10", None),
        ("", None),
        ("items 1-2/3", None),
    ],
)
def test_the_start_of_a_range_is_read(text: str, start: int | None) -> None:
    assert refusals.range_start({"Content-Range": text}) == start


@pytest.mark.parametrize(
    ("headers", "resumed", "fault"),
    [
        ({"Content-Length": "10"}, False, None),
        ({"Content-Length": "9"}, False, Fault.SIZE_MISMATCH),
        ({}, False, None),
        ({"Content-Length": "5", "Content-Range": "bytes 5-9/10"}, True, None),
        ({"Content-Length": "5", "Content-Range": "bytes 5-9/*"}, True, None),
        ({"Content-Length": "6", "Content-Range": "bytes 5-10/11"}, True, Fault.SIZE_MISMATCH),
        ({"Content-Length": "10", "Content-Type": "text/html"}, False, Fault.HTML_PAGE),
        ({"Content-Length": "10", "Content-Type": "text/plain"}, False, None),
    ],
)
def test_an_answer_is_judged_by_its_headers(
    headers: dict[str, str], resumed: bool, fault: Fault | None
) -> None:
    request = DownloadRequest(urls=(URL,), size=10, sha256="0" * 64, label="a")
    found = refusals.unfit_answer(URL, request, headers, resumed=resumed)
    assert (found.fault if found else None) == fault


def test_a_cap_lets_smaller_sizes_pass() -> None:
    request = DownloadRequest(urls=(URL,), size=10, sha256=None, label="a", exact_size=False)
    assert refusals.unfit_size(URL, request, 9) is None
    found = refusals.unfit_size(URL, request, 11)
    assert found is not None
    assert found.fault is Fault.TOO_LARGE


def test_a_session_has_our_name_proxy_and_certificate() -> None:
    session = http.open_session(HttpSettings(proxy="http://p:1", client_cert="/me.pem"))
    assert session.headers["User-Agent"] == http.USER_AGENT
    assert session.proxies == {"http": "http://p:1", "https": "http://p:1"}
    assert session.cert == "/me.pem"
    assert http.open_session(HttpSettings()).trust_env
