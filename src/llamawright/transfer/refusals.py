"""The sentences of a failed download, and the pure decisions behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from llamawright.errors import DownloadError
from llamawright.store import Store
from llamawright.transfer.request import DownloadRequest, Failure, Fault, worst

_MIB = 1 << 20
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

_HINTS = {
    Fault.WRONG_SHA256: "nothing was kept; if the publisher replaced the file, the pin must be "
    "reviewed and renewed, otherwise ask who changed it on the way",
    Fault.HTML_PAGE: "log in at the network's portal or proxy page, then run the same command",
    Fault.SIZE_MISMATCH: "nothing was kept; the address serves another file than the pinned one",
    Fault.TOO_LARGE: "nothing was kept; the address serves another file than the pinned one",
    Fault.RATE_LIMIT: "wait until the limit is lifted, then run the same command",
    Fault.PROXY: "check HTTPS_PROXY, HTTP_PROXY and the proxy's user name and password",
    Fault.TLS: "name your organisation's certificate file in REQUESTS_CA_BUNDLE",
    Fault.REFUSED: "check that this machine may use the address (login, licence, country)",
    Fault.SERVER_ERROR: "the server has a problem: run the same command later",
    Fault.NETWORK: "check the network connection, then run the same command",
    Fault.ABSENT: "the address no longer has the file: name a mirror or another source",
}


def all_failed(
    request: DownloadRequest, failures: tuple[Failure, ...], *, kept: int
) -> DownloadError:
    """Return the error of a download that no address could serve; all failures listed."""
    fault = worst(failures)
    what = {
        Fault.WRONG_SHA256: f"{request.label} has the wrong sha256",
        Fault.HTML_PAGE: f"a web page came instead of {request.label}",
        Fault.SIZE_MISMATCH: f"{request.label} has the wrong size",
        Fault.TOO_LARGE: f"{request.label} is larger than it may be",
    }.get(fault, f"{request.label} could not be downloaded")
    hint = _HINTS[fault]
    if kept:
        hint += f" (the {kept / _MIB:.1f} MiB that came are kept)"
    return DownloadError(what, why="\n".join(f.told for f in failures), hint=hint, kind=fault.value)


def not_in_store(request: DownloadRequest, store: Store) -> DownloadError:
    """Return the error of an offline run that lacks a file: exactly which, and the cure."""
    pinned = f", sha256 {request.sha256}" if request.sha256 else ""
    by_hand = f", or copy the file to {store.blob(request.sha256)}" if request.sha256 else ""
    bound = "" if request.exact_size else "at most "
    return DownloadError(
        f"{request.label} is not in the store, and --offline forbids to download it",
        why=f"missing: {request.label}, {bound}{request.size} bytes{pinned}",
        hint=f"run the same command once without --offline{by_hand}",
        kind="offline",
    )


def html(url: str) -> Failure:
    """Return the failure of an address that answers with a web page."""
    why = "it sent a web page (a login, portal or error page), not the file"
    return Failure(fault=Fault.HTML_PAGE, url=url, why=why)


def wrong_size(url: str, expected: int, actual: int) -> Failure:
    """Return the failure of a file with another size."""
    why = f"expected {expected} bytes, got {actual}"
    return Failure(fault=Fault.SIZE_MISMATCH, url=url, why=why)


def too_large(url: str, cap: int) -> Failure:
    """Return the failure of a file that does not end where it should."""
    return Failure(fault=Fault.TOO_LARGE, url=url, why=f"it sends more than {cap} bytes")


def wrong_sha256(url: str, expected: str, actual: str, *, again: bool) -> Failure:
    """Return the failure of a file with other content."""
    why = f"expected sha256 {expected}, got {actual}"
    return Failure(fault=Fault.WRONG_SHA256, url=url, why=why, again=again)


def cut_short(url: str, done: int, size: int, *, advanced: bool) -> Failure:
    """Return the failure of a connection that ended early."""
    why = f"the connection ended after {done} of {size} bytes"
    return Failure(fault=Fault.NETWORK, url=url, why=why, again=True, advanced=advanced)


def unfit_size(url: str, request: DownloadRequest, size: int) -> Failure | None:
    """Judge the size a place announces, before a byte is taken."""
    if request.exact_size and size != request.size:
        return wrong_size(url, request.size, size)
    return too_large(url, request.size) if size > request.size else None


def unfit_answer(
    url: str, request: DownloadRequest, headers: Mapping[str, str], *, resumed: bool
) -> Failure | None:
    """Judge an answer by its headers, before a byte is taken."""
    if headers.get("Content-Type", "").startswith("text/html"):
        return html(url)
    if resumed:
        match = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
        total = match.group(2) if match else "*"
    else:
        total = headers.get("Content-Length", "*")
    return unfit_size(url, request, int(total)) if total.isdigit() else None


def range_start(headers: Mapping[str, str]) -> int | None:
    """Return the first byte's position in a partial answer."""
    match = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
    return int(match.group(1)) if match else None


def validator(headers: Mapping[str, str]) -> str:
    """Return what ``If-Range`` may carry: a strong ETag, or else the date."""
    tag = headers.get("ETag", "")
    if tag and not tag.startswith("W/"):
        return tag
    return "" if tag else headers.get("Last-Modified", "")
