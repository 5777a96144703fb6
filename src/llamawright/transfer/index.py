"""Files of the Python index that pip is configured for, found by exact name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlunsplit
from urllib.request import url2pathname

from llamawright.errors import DownloadError
from llamawright.model.ports import Reporter
from llamawright.model.recipe import IndexOrigin
from llamawright.store import Store
from llamawright.transfer import refusals
from llamawright.transfer.download import download, find_blob
from llamawright.transfer.pipconfig import IndexSettings, user_settings
from llamawright.transfer.request import DownloadRequest, Failure, Fault, parts_of, worst
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
    lookup = _Lookup(_Search(origin, chosen), reporter, clock or Clock())
    return lookup.download(request, store, _places(chosen))


def locate(
    origin: IndexOrigin, *, settings: IndexSettings, reporter: Reporter, clock: Clock | None = None
) -> tuple[str, ...]:
    """Return the addresses of a file by its exact name, from the first place that has it.

    Local folders are looked at first, then the indexes in their order. Entries whose
    published sha256 is another one are passed over. Raises ``DownloadError``.
    """
    lookup = _Lookup(_Search(origin, settings), reporter, clock or Clock())
    return lookup.find(_places(settings), ()).urls


@dataclass(frozen=True, slots=True)
class _Hit:
    """Where a file is listed, and the addresses given there."""

    place: _Place
    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Finds a file and downloads it from the first place whose bytes are the right ones."""

    search: _Search
    reporter: Reporter
    clock: Clock

    def download(self, request: DownloadRequest, store: Store, places: tuple[_Place, ...]) -> Path:
        """Go on to the next place when one lists the file and does not give its bytes."""
        errors: tuple[DownloadError, ...] = ()
        while True:
            hit = self.find(places, errors)
            try:
                return download(
                    replace(request, urls=hit.urls),
                    store,
                    offline=False,
                    reporter=self.reporter,
                    http=self.search.http,
                    clock=self.clock,
                )
            except DownloadError as error:
                errors = (*errors, error)
                places = tuple(p for p in places if p != hit.place)

    def find(self, places: tuple[_Place, ...], errors: tuple[DownloadError, ...]) -> _Hit:
        """Return the first place that lists the file; ``errors`` are of places before."""
        outcome = try_in_turn(places, self.search.look, clock=self.clock, tell=self.reporter.info)
        if isinstance(outcome, Exhausted):
            raise _not_found(self.search.origin, outcome.failures, errors)
        return outcome


def _not_found(
    origin: IndexOrigin, failures: tuple[Failure, ...], errors: tuple[DownloadError, ...]
) -> DownloadError:
    told = [f.told for f in failures if not _is_silent(f)]
    if errors:
        # It was listed, so what came of that tells more than who else does not list it.
        why = "\n".join([*(e.why for e in errors), *told])
        return DownloadError(errors[0].what, why=why, hint=errors[0].hint, kind=errors[0].kind)
    fault = worst(failures)
    absent = fault is Fault.ABSENT
    return DownloadError(
        f"the configured Python index does not have {origin.filename}"
        if absent
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
    parts = parts_of(url)
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

    def look(self, place: _Place) -> _Hit | Failure:
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
        return _Hit(place, found) if found else Failure(fault=Fault.ABSENT, url=shown, why=why)

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
                yield _with_login(urlunsplit((*parts_of(package.url)[:4], "")), index)


def _with_login(url: str, index: str) -> str:
    """Give the file's address the index's user name and password when both share a host."""
    file, page = parts_of(url), parts_of(index)
    login, at, host = page.netloc.rpartition("@")
    if not at or file.netloc != host or file.scheme != page.scheme:
        return url
    return urlunsplit((file.scheme, f"{login}@{host}", *file[2:]))
