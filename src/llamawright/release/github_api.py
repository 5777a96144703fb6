"""GitHub's REST API for releases: one request at a time, every answer sorted.

https://docs.github.com/en/rest/releases and .../using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from llamawright.errors import PublishError
from llamawright.transfer import HttpSettings
from llamawright.transfer.request import Failure, Fault

if TYPE_CHECKING:
    import requests

API = "https://api.github.com"
API_VERSION = "2022-11-28"
DIGEST = "sha256:"
# What GitHub asks for when it limits without saying for how long.
LIMIT_WAIT_S = 60.0
PAGE = 100
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file of a release as the server tells it; ``state`` is ``uploaded`` when it is whole.

    ``digest`` is ``sha256:…``, ``None`` on servers that do not compute it.
    """

    id: int
    name: str
    size: int
    state: str
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRelease:
    """A release on the server; ``upload_url`` is a URI template."""

    id: int
    tag_name: str
    draft: bool
    html_url: str
    upload_url: str
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where releases go: ``repo`` is ``owner/name``. The token is never shown."""

    repo: str
    token: str = field(repr=False)
    api: str = API

    @property
    def releases(self) -> str:
        """Return the address of the repository's releases."""
        return f"{self.api.rstrip('/')}/repos/{self.repo}/releases"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status of the server's and its JSON, ``None`` without a body."""

    status: int
    data: object


@dataclass(slots=True)
class GitHubApi:
    """A session with one place. ``ask`` never waits and never tries twice."""

    place: Place
    http: HttpSettings = field(default_factory=HttpSettings)
    now: Callable[[], float] = time.time
    _session: requests.Session | None = None

    def ask(
        self, method: str, url: str, *, body: object = None, file: Path | None = None
    ) -> Answer | Failure:
        """Send one request; a ``Failure`` is worth another try if it says so.

        Raises ``PublishError`` for a token that is refused or may not do this: no patience
        helps there.
        """
        from llamawright.transfer import http  # noqa: PLC0415 - see http's docstring

        try:
            response = self._send(method, url, body, file)
            text = response.text
        except http.BROKEN as error:
            return http.failure_of(url, error)
        return self._sorted(url, response, text)

    def _send(self, method: str, url: str, body: object, file: Path | None) -> requests.Response:
        session = self._opened()
        timeout = (self.http.timeout_s, self.http.timeout_s)
        # A redirected POST becomes a GET of another place: no write follows a redirect.
        follow = method == "GET"
        if file is None:
            return session.request(method, url, json=body, timeout=timeout, allow_redirects=follow)
        with file.open("rb") as stream:
            return session.request(
                method,
                url,
                data=stream,
                headers={"Content-Type": "application/octet-stream"},
                timeout=timeout,
                allow_redirects=False,
            )

    def _opened(self) -> requests.Session:
        from llamawright.transfer import http  # noqa: PLC0415

        if self._session is None:
            session = http.open_session(self.http)
            session.headers["Accept"] = "application/vnd.github+json"
            session.headers["X-GitHub-Api-Version"] = API_VERSION
            # As a callable: a .netrc entry for the host would replace a plain header.
            session.auth = _Bearer(self.place.token)
            self._session = session
        return self._session

    def _sorted(self, url: str, response: requests.Response, text: str) -> Answer | Failure:
        status = response.status_code
        if status == HTTPStatus.UNAUTHORIZED:
            raise bad_token(self.place)
        limited = self._limited(url, response, text)
        if limited is not None:
            return limited
        if status == HTTPStatus.FORBIDDEN:
            raise no_permission(self.place, _message(text))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            why = f"HTTP {status} {response.reason or ''}".strip()
            return Failure(fault=Fault.SERVER_ERROR, url=url, why=why, again=True)
        if response.is_redirect:
            raise moved(self.place, response.headers.get("Location", ""))
        if not text:
            return Answer(status, None)
        try:
            return Answer(status, response.json())
        except ValueError:
            why = f"HTTP {status} with something else than JSON"
            return Failure(fault=Fault.HTML_PAGE, url=url, why=why, again=True)

    def _limited(self, url: str, response: requests.Response, text: str) -> Failure | None:
        from llamawright.transfer import http  # noqa: PLC0415

        status, headers = response.status_code, response.headers
        if status not in {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}:
            return None
        spent = headers.get("X-RateLimit-Remaining", "").strip() == "0"
        told = "Retry-After" in headers or "rate limit" in text.lower()
        if status == HTTPStatus.FORBIDDEN and not spent and not told:
            return None
        # The hour's reset is in every answer; it counts only when the hour's share is spent.
        asked = spent or "Retry-After" in headers
        known = http.retry_after_s(headers, self.now()) if asked else None
        wait = LIMIT_WAIT_S if known is None else known
        until = time.strftime("%H:%M", time.localtime(self.now() + wait))
        why = f"HTTP {status}: rate limit, it asks to wait {wait:.0f} s (until {until})"
        return Failure(fault=Fault.RATE_LIMIT, url=url, why=why, again=True, wait_s=wait)


class _Bearer:
    """The token for every request to the API's own host; requests drops it on others."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def read(kind: type[T], data: object, url: str) -> T:
    """Return an answer as ``kind``, unknown fields ignored; ``PublishError`` when it is not."""
    try:
        return TypeAdapter(kind).validate_python(data, extra="ignore")
    except ValidationError as error:
        raise PublishError(
            "the server's answer makes no sense",
            why=f"{url}: {error.errors()[0]['msg']}",
            hint="check that --github-api is the address of a GitHub REST API",
            kind="strange-answer",
        ) from error


def upload_address(release: RemoteRelease, name: str) -> str:
    """Return where a file of that name is sent: the URI template without its options."""
    return f"{release.upload_url.partition('{')[0]}?name={quote(name, safe='')}"


def bad_token(place: Place) -> PublishError:
    """Return the error of a token that the server does not know."""
    return PublishError(
        f"GitHub does not accept the token for {place.repo}",
        why="HTTP 401: it is wrong, expired or revoked",
        hint="put a valid token into GITHUB_TOKEN, then run the same command",
        kind="bad-token",
    )


def no_permission(place: Place, said: str) -> PublishError:
    """Return the error of a token that may not write releases."""
    return PublishError(
        f"the token may not make releases of {place.repo}",
        why=f"HTTP 403: {said}" if said else "HTTP 403",
        hint="give it the permission 'contents: write' (in Actions: permissions: contents: write)",
        kind="no-permission",
    )


def no_repository(place: Place) -> PublishError:
    """Return the error of a repository that the token does not see."""
    return PublishError(
        f"there is no repository {place.repo}, or the token may not see it",
        why="HTTP 404: GitHub does not tell which",
        hint="check the name after --github, and that the token has 'contents: write' there",
        kind="no-repository",
    )


def moved(place: Place, location: str) -> PublishError:
    """Return the error of a repository that has another name now."""
    return PublishError(
        f"{place.repo} has moved",
        why=f"the server leads to {location}",
        hint="name the repository by its new name: --github OWNER/NAME",
        kind="repository-moved",
    )


def _message(text: str) -> str:
    import json  # noqa: PLC0415 - only for a refusal

    try:
        data = json.loads(text)
    except ValueError:
        return ""
    said = data.get("message") if isinstance(data, dict) else None
    return said if isinstance(said, str) else ""
