"""The HTTP side: sessions, requests, and every failure sorted into its class.

Imported only when a byte is really asked for: ``requests`` takes 0.2 s to import.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import requests
import urllib3

from llamawright import __version__
from llamawright.transfer.request import Failure, Fault, HttpSettings, parts_of

# What the library raises when a connection breaks, is refused or makes no sense.
BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
USER_AGENT = f"llamawright/{__version__}"
_CONNECT_S = 15.0
_ANSWERS = frozenset(
    {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}
)
_PROXY_AUTH = str(int(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED))


def open_session(settings: HttpSettings) -> requests.Session:
    """Return a session with our user agent and the user's proxy, certificates and netrc."""
    session = requests.Session()
    session.headers["User-Agent"] = USER_AGENT
    # Some servers compress archives again, or label them so that clients unpack them.
    session.headers["Accept-Encoding"] = "identity"
    if settings.proxy:
        session.proxies = {"http": settings.proxy, "https": settings.proxy}
    if settings.client_cert:
        session.cert = settings.client_cert
    return session


def get(
    session: requests.Session,
    url: str,
    *,
    settings: HttpSettings,
    headers: Mapping[str, str],
    stream: bool,
) -> requests.Response | Failure:
    """Ask for an address; an answer other than 200, 206 or 416 is a ``Failure``."""
    verify = _verify(url, settings)
    try:
        with warnings.catch_warnings():
            if verify is False:
                # The user named the host trusted; what it sends is still checked by sha256.
                warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
            response = session.get(
                url,
                headers=dict(headers),
                stream=stream,
                timeout=(min(_CONNECT_S, settings.timeout_s), settings.timeout_s),
                verify=verify,
            )
    except BROKEN as error:
        return failure_of(url, error)
    refused = _refusal(url, response)
    if refused:
        response.close()
        return refused
    return response


def failure_of(url: str, error: Exception, *, advanced: bool = False) -> Failure:
    """Sort an exception of the HTTP library into its class."""
    text = _root_text(error)
    if isinstance(error, requests.exceptions.ProxyError):
        final = _PROXY_AUTH in str(error)
        return Failure(fault=Fault.PROXY, url=url, why=f"the proxy: {text}", again=not final)
    if isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE" in str(error).upper():
        return Failure(fault=Fault.TLS, url=url, why=f"certificate refused: {text}")
    if isinstance(error, requests.exceptions.TooManyRedirects):
        return Failure(fault=Fault.REFUSED, url=url, why="it redirects in a circle")
    if isinstance(error, ValueError) and not isinstance(
        error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError
    ):
        return Failure(fault=Fault.REFUSED, url=url, why=f"not a usable address: {text}")
    return Failure(fault=Fault.NETWORK, url=url, why=text, again=True, advanced=advanced)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how many seconds a server wants us to wait, if it says so."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    if value:
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except ValueError:
            return None
    reset = headers.get("X-RateLimit-Reset", "").strip()
    return max(0.0, float(reset) - now) if reset.isdigit() else None


def _refusal(url: str, response: requests.Response) -> Failure | None:
    status, headers = response.status_code, response.headers
    if status in _ANSWERS:
        return None
    wait = retry_after_s(headers, time.time())
    said = f"HTTP {status} {response.reason or ''}".strip()
    fault, more, again = Fault.REFUSED, "", False
    match status:
        case HTTPStatus.TOO_MANY_REQUESTS:
            fault, more, again = Fault.RATE_LIMIT, _until(wait), True
        case HTTPStatus.FORBIDDEN if _is_limited(headers):
            fault, more = Fault.RATE_LIMIT, f": its rate limit is used up{_until(wait)}"
        case HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            fault, more = Fault.PROXY, ": the proxy wants a user name and password"
        case HTTPStatus.NOT_FOUND | HTTPStatus.GONE:
            fault = Fault.ABSENT
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            fault, again = Fault.SERVER_ERROR, True
        case _:
            pass
    return Failure(fault=fault, url=url, why=f"{said}{more}", again=again, wait_s=wait)


def _is_limited(headers: Mapping[str, str]) -> bool:
    spent = any(
        headers.get(name, "").strip() == "0"
        for name in ("X-RateLimit-Remaining", "RateLimit-Remaining")
    )
    return spent or "Retry-After" in headers


def _until(wait_s: float | None) -> str:
    if wait_s is None:
        return ""
    at = time.strftime("%H:%M", time.localtime(time.time() + wait_s))
    return f", it asks to wait {wait_s:.0f} s (until {at})"


def _verify(url: str, settings: HttpSettings) -> bool | str:
    parts = parts_of(url)
    if {parts.hostname, parts.netloc.rpartition("@")[2]} & set(settings.trusted_hosts):
        return False
    bundles = (settings.cert, *(os.environ.get(n, "") for n in ("REQUESTS_CA_BUNDLE",
               "CURL_CA_BUNDLE", "SSL_CERT_FILE")))  # fmt: skip
    return next((b for b in bundles if b and os.path.exists(b)), True)  # noqa: PTH110 - plain text


def _root_text(error: BaseException) -> str:
    """Return the innermost reason: the outer ones repeat addresses and object names."""
    seen: BaseException = error
    while True:
        inner = getattr(seen, "reason", None) or next(
            (a for a in seen.args if isinstance(a, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            break
        seen = inner
    text = str(seen) or type(seen).__name__
    return text.rpartition(">: ")[2] if ">: " in text else text
