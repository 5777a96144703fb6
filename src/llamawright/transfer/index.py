"""Files of the Python index that pip is configured for, found by exact name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from llamawright.errors import DownloadError
from llamawright.model.ports import Reporter
from llamawright.model.recipe import IndexOrigin
from llamawright.store import Store
from llamawright.transfer import refusals
from llamawright.transfer.download import download, find_blob
from llamawright.transfer.pipconfig import IndexSettings, user_settings
from llamawright.transfer.request import DownloadRequest, Failure, Fault, worst
from llamawright.transfer.retry import Clock, Exhausted, try_in_turn

if TYPE_CHECKING:
    import requests
    from pypi_simple import ProjectPage


@dataclass(frozen=True, slots=True)
class _Place:
    """One index or find-links entry; ``url`` is empty for the library's default index."""

    url: str
    is_index: bool


def download_index_file(
    origin: IndexOrigin,
    store: Store,
    *,
    offline: bool,
    reporter: Reporter,
    settings: IndexSettings | None = None,
    clock: Clock | None = None,
) -> Path:
    """Return the blob of an index file, looking it up and downloading it when needed.

    Only the file itself is fetched: no build backend runs, no dependency is resolved.
    Raises ``DownloadError`` when no configured index has that very file.
    """
    request = DownloadRequest(
        urls=(), size=origin.size, sha256=origin.sha256, label=origin.filename
    )
    if blob := find_blob(request, store, reporter=reporter):
        return blob
    if offline:
        raise refusals.not_in_store(request, store)
    chosen = settings or user_settings()
    time = clock or Clock()
    urls = locate(origin, settings=chosen, reporter=reporter, clock=time)
    located = replace(request, urls=urls)
    return download(located, store, offline=False, reporter=reporter, http=chosen.http, clock=time)


def locate(
    origin: IndexOrigin, *, settings: IndexSettings, reporter: Reporter, clock: Clock
) -> tuple[str, ...]:
    """Return the addresses of a file by its exact name, from the first place that has it.

    Local folders are looked at first, then the indexes in their order. Entries whose
    published sha256 is another one are passed over. Raises ``DownloadError``.
    """
    search = _Search(origin, settings)
    outcome = try_in_turn(_places(settings), search.look, clock=clock, tell=reporter.info)
    if not isinstance(outcome, Exhausted):
        return outcome
    told = [f.told for f in outcome.failures if not _is_silent(f)]
    fault = worst(outcome.failures)
    raise DownloadError(
        f"the configured Python index does not have {origin.filename}"
        if fault is Fault.ABSENT
        else f"{origin.filename} could not be looked up on the configured Python index",
        why="\n".join(told) or "no index and no folder is configured that could have it",
        hint="check `pip config list` and PIP_INDEX_URL, or choose another source "
        "(--source archive, git or path:/folder)",
        kind=fault.value,
    )


def _places(settings: IndexSettings) -> tuple[_Place, ...]:
    links = [_Place(url, is_index=False) for url in settings.find_links]
    indexes = [_Place(url, is_index=True) for url in settings.indexes]
    places = [*links, *indexes]
    # A look at the disk is cheap; the sha256 makes every place as good as another.
    return tuple([p for p in places if _is_local(p)] + [p for p in places if not _is_local(p)])


def _is_local(place: _Place) -> bool:
    return bool(place.url) and _local_path(place.url) is not None


def _is_silent(failure: Failure) -> bool:
    """Local folders that merely lack the file are not worth a line."""
    return failure.fault is Fault.ABSENT and _local_path(failure.url) is not None


def _local_path(url: str) -> Path | None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    # A path, or a Windows drive that looks like a scheme of one letter.
    return Path(url).expanduser() if len(parts.scheme) <= 1 else None


class _Search:
    """The look-up of one file; ``look`` is its only verb."""

    def __init__(self, origin: IndexOrigin, settings: IndexSettings) -> None:
        self.origin = origin
        self.http = settings.http
        self.session: requests.Session | None = None

    def look(self, place: _Place) -> tuple[str, ...] | Failure:
        """Return the addresses one place has, or why it has none."""
        local = _local_path(place.url) if place.url else None
        if local is not None:
            found = tuple(self._in_folder(local, place))
        else:
            pages = self._ask(place)
            if isinstance(pages, Failure):
                return pages
            found = tuple(self._matching(pages, place.url))
        why = f"it lists no {self.origin.filename}"
        shown = place.url or "the default index"
        return found or Failure(fault=Fault.ABSENT, url=shown, why=why)

    def _in_folder(self, folder: Path, place: _Place) -> Iterator[str]:
        if place.is_index:
            from packaging.utils import canonicalize_name  # noqa: PLC0415 - only when looking

            folder = folder / canonicalize_name(self.origin.project)
        page = folder / "index.html" if place.is_index else folder
        if (folder / self.origin.filename).is_file():
            yield (folder / self.origin.filename).absolute().as_uri()
        elif page.is_file():
            parsed = self._parse(page.read_bytes(), page.absolute().as_uri())
            yield from self._matching(parsed, place.url)

    def _parse(self, html: bytes, base: str) -> ProjectPage:
        from pypi_simple import ProjectPage  # noqa: PLC0415 - takes 0.6 s

        return ProjectPage.from_html(self.origin.project, html, base_url=base)

    def _ask(self, place: _Place) -> ProjectPage | Failure:
        from pypi_simple import (  # noqa: PLC0415 - takes 0.6 s
            ACCEPT_ANY,
            PYPI_SIMPLE_ENDPOINT,
            ProjectPage,
            PyPISimple,
        )

        from llamawright.transfer import http  # noqa: PLC0415 - see http's docstring

        if self.session is None:
            self.session = http.open_session(self.http)
        url = place.url or PYPI_SIMPLE_ENDPOINT
        if place.is_index:
            url = PyPISimple(url, session=self.session).get_project_url(self.origin.project)
        response = http.get(
            self.session, url, settings=self.http, headers={"Accept": ACCEPT_ANY}, stream=False
        )
        if isinstance(response, Failure):
            return response
        if response.status_code != HTTPStatus.OK:
            return Failure(fault=Fault.REFUSED, url=url, why=f"HTTP {response.status_code}")
        try:
            return ProjectPage.from_response(response, self.origin.project)
        except Exception as error:  # noqa: BLE001 - whatever a broken page makes the parser raise
            return Failure(fault=Fault.REFUSED, url=url, why=f"not an index page: {error}")

    def _matching(self, page: ProjectPage, index: str) -> Iterator[str]:
        for package in page.packages:
            published = package.digests.get("sha256", self.origin.sha256)
            if package.filename == self.origin.filename and published == self.origin.sha256:
                yield _with_login(urlunsplit((*urlsplit(package.url)[:4], "")), index)


def _with_login(url: str, index: str) -> str:
    """Give the file's address the index's user name and password when both share a host."""
    file, page = urlsplit(url), urlsplit(index)
    login, at, host = page.netloc.rpartition("@")
    if not at or file.netloc != host or file.scheme != page.scheme:
        return url
    return urlunsplit((file.scheme, f"{login}@{host}", *file[2:]))
