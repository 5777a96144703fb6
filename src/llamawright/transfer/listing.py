"""Which files an index lists for a project, with what it says about them."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from packaging.version import InvalidVersion, Version

from llamawright.errors import DownloadError
from llamawright.transfer.pipconfig import IndexSettings
from llamawright.transfer.request import Failure, redact

SDIST = ".tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One file of a project.

    ``uploaded`` in seconds since 1970, ``None`` when not told; ``size`` in bytes, 0 when not.
    """

    filename: str
    version: str
    sha256: str
    size: int
    uploaded: float | None


def list_files_of(project: str, *, settings: IndexSettings) -> tuple[Listed, ...]:
    """Return the source distributions that the first index with the project lists, newest last.

    The main index is asked first, then the extra ones. Raises ``DownloadError`` when none
    has the project.
    """
    from pypi_simple import (  # noqa: PLC0415 - takes 0.6 s
        ACCEPT_JSON_PREFERRED,
        PYPI_SIMPLE_ENDPOINT,
        ProjectPage,
        PyPISimple,
    )

    from llamawright.transfer import http  # noqa: PLC0415 - see http's docstring

    told: list[str] = []
    session = http.open_session(settings.http)
    for place in settings.indexes:
        if place.startswith("file:"):
            continue  # a folder says neither size nor date
        url = PyPISimple(place or PYPI_SIMPLE_ENDPOINT, session=session).get_project_url(project)
        headers = {"Accept": ACCEPT_JSON_PREFERRED}
        answer = http.get(session, url, settings=settings.http, headers=headers, stream=False)
        if isinstance(answer, Failure):
            told.append(answer.told)
        elif answer.status_code != HTTPStatus.OK:
            told.append(f"{redact(url)}: HTTP {answer.status_code}")
        else:
            try:
                return _listed(ProjectPage.from_response(answer, project))
            except Exception as error:  # noqa: BLE001 - whatever a broken page makes it raise
                told.append(f"{redact(url)}: not an index page: {error}")
    raise DownloadError(
        f"no configured Python index lists {project}",
        why="\n".join(told) or "no index is configured",
        hint="check `pip config list` and PIP_INDEX_URL",
        kind="absent",
    )


def _newness(listed: Listed) -> tuple[bool, Version]:
    try:
        return True, Version(listed.version)
    except InvalidVersion:
        return False, Version("0")


def _listed(page: object) -> tuple[Listed, ...]:
    from pypi_simple import ProjectPage  # noqa: PLC0415 - takes 0.6 s

    if not isinstance(page, ProjectPage):
        raise TypeError("no page of an index")
    found = (
        Listed(
            filename=package.filename,
            version=package.version,
            sha256=package.digests.get("sha256", ""),
            size=package.size or 0,
            uploaded=package.upload_time.timestamp() if package.upload_time else None,
        )
        for package in page.packages
        if package.version and package.filename.endswith(SDIST) and not package.is_yanked
    )
    return tuple(sorted(found, key=_newness))
