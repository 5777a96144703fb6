"""What is asked for, over which connection, and how a place failed to give it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit, urlunsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadRequest:
    """One file and every address that has it, best first.

    ``size`` in bytes is exact, or a cap when ``exact_size`` is false. Without ``sha256``
    the caller must check the content by other means.
    """

    urls: tuple[str, ...]
    size: int
    sha256: str | None
    label: str
    exact_size: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How to connect: what pip calls ``cert``, ``client-cert``, ``proxy``, ``trusted-host``.

    Empty values leave it to the environment (``HTTPS_PROXY``, ``REQUESTS_CA_BUNDLE``,
    ``.netrc``). ``timeout_s`` bounds the wait for a connection and for the next byte.
    """

    cert: str = ""
    client_cert: str = ""
    proxy: str = ""
    trusted_hosts: tuple[str, ...] = ()
    timeout_s: float = 30.0


class Fault(StrEnum):
    """Why a place did not give the file; the value is the error's ``kind``."""

    WRONG_SHA256 = "wrong-sha256"
    HTML_PAGE = "html-page"
    SIZE_MISMATCH = "size-mismatch"
    TOO_LARGE = "too-large"
    RATE_LIMIT = "rate-limit"
    PROXY = "proxy"
    TLS = "tls"
    REFUSED = "refused"
    SERVER_ERROR = "server-error"
    NETWORK = "network"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One place's answer. ``again``: worth another try, after ``wait_s`` if it says so.

    ``advanced``: new bytes came before it failed, so patience starts afresh.
    """

    fault: Fault
    url: str
    why: str
    again: bool = False
    wait_s: float | None = None
    advanced: bool = False

    @property
    def told(self) -> str:
        """Return the failure as one line, without credentials."""
        return f"{redact(self.url)}: {self.why}"


def parts_of(url: str) -> SplitResult:
    """Return the parts of an address; all empty when it cannot be read."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def redact(url: str) -> str:
    """Return the address without user name, password and query: those may be secrets."""
    parts = parts_of(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")) or "(no readable address)"


def worst(failures: tuple[Failure, ...]) -> Fault:
    """Return the fault that tells a reader most: ``Fault`` lists them in that order."""
    order = list(Fault)
    return min((f.fault for f in failures), key=order.index, default=Fault.ABSENT)
