"""A package index of static files: PEP 503 pages, PEP 691 JSON, PEP 658/714 metadata.

Any web server can serve it. Each folder below ``index/`` is an index of its own: one for
each backend, because wheels of one project differ only by their local version, and
``all`` for everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from llamawright.digest import sha256_file
from llamawright.release.plan import COMBINED, INDEX
from llamawright.release.wheels import METADATA_SUFFIX, WheelFacts

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "text/html; charset=utf-8"
API_VERSION = "1.1"
CONTENT_TYPES = f"""\
# What a web server should send. The HTML pages are enough for pip and uv; the JSON pages
# are for servers that choose by the Accept header.
index.html   {HTML_TYPE}
index.json   {JSON_TYPE}
*.whl        application/octet-stream
*.metadata   application/octet-stream
"""


def write_index(
    root: Path, wheels: Mapping[str, Iterable[WheelFacts]], *, files_at: str = ""
) -> None:
    """Write the index below ``root``; ``wheels`` are those of each backend.

    ``files_at`` is the address of the wheels; empty: beside the index folder, by relative
    links. The metadata files are written beside the wheels.
    """
    found = {channel: tuple(w) for channel, w in wheels.items()}
    if not any(found.values()):
        return
    everything = {w.file: w for listed in found.values() for w in listed}
    for channel, listed in {**found, COMBINED: tuple(everything.values())}.items():
        write_channel(root / INDEX / channel, listed, files_at=files_at)
    (root / INDEX / "content-types.txt").write_text(CONTENT_TYPES, encoding="utf-8", newline="\n")


def write_channel(
    folder: Path, wheels: Iterable[WheelFacts], *, files_at: str = "", extra: Iterable[Path] = ()
) -> None:
    """Write one index folder; ``extra`` are files of every project that are no wheels."""
    projects: dict[str, list[WheelFacts]] = {}
    for wheel in sorted(wheels, key=lambda w: w.file):
        projects.setdefault(wheel.project, []).append(wheel)
    _write(folder, root_html(projects), root_json(projects))
    for project, listed in sorted(projects.items()):
        # index/<channel>/<project>/ is three folders below the wheels.
        base = f"{files_at.rstrip('/')}/" if files_at else "../../../"
        own = tuple(p for p in extra if p.name.startswith(f"{project.replace('-', '_')}-"))
        _write(
            folder / project,
            project_html(project, listed, base, own),
            project_json(project, listed, base, own),
        )


def root_html(projects: Iterable[str]) -> str:
    """Return the page that lists the projects."""
    links = (f'    <a href="{p}/">{escape(p)}</a><br>' for p in sorted(projects))
    return _page("Projects", links)


def root_json(projects: Iterable[str]) -> str:
    """Return the same list as PEP 691 JSON."""
    return _json({"meta": _META, "projects": [{"name": p} for p in sorted(projects)]})


def project_html(
    project: str, wheels: Iterable[WheelFacts], base: str, extra: Iterable[Path] = ()
) -> str:
    """Return a project's page: each wheel with its sha256, metadata and Python versions."""
    links = [_link(w, base) for w in wheels]
    links += [
        f'    <a href="../{quote(p.name)}#sha256={sha256_file(p)}">{escape(p.name)}</a><br>'
        for p in extra
    ]
    return _page(f"Files of {project}", links)


def project_json(
    project: str, wheels: Iterable[WheelFacts], base: str, extra: Iterable[Path] = ()
) -> str:
    """Return the same page as PEP 691 JSON, with sizes and versions (PEP 700)."""
    listed = tuple(wheels)
    others = [{"filename": p.name, "url": f"../{quote(p.name)}", "size": p.stat().st_size,
               "hashes": {"sha256": sha256_file(p)}} for p in extra]  # fmt: skip
    return _json({
        "meta": _META,
        "name": project,
        "versions": sorted({w.version for w in listed}),
        "files": [*(_entry(w, base) for w in listed), *others],
    })  # fmt: skip


_META = {"api-version": API_VERSION}


def _entry(wheel: WheelFacts, base: str) -> dict[str, object]:
    metadata = {"sha256": wheel.metadata_sha256}
    python = {"requires-python": wheel.requires_python} if wheel.requires_python else {}
    return {
        "filename": wheel.file,
        "url": f"{base}{quote(wheel.file)}",
        "hashes": {"sha256": wheel.sha256},
        "size": wheel.size,
        # Both names: PEP 714 renamed it, older tools read only the first.
        "dist-info-metadata": metadata,
        "core-metadata": metadata,
        "yanked": False,
        **python,
    }


def _link(wheel: WheelFacts, base: str) -> str:
    metadata = f"sha256={wheel.metadata_sha256}"
    python = (
        f' data-requires-python="{escape(wheel.requires_python)}"' if wheel.requires_python else ""
    )
    return (
        f'    <a href="{escape(base)}{quote(wheel.file)}#sha256={wheel.sha256}"{python} '
        f'data-dist-info-metadata="{metadata}" data-core-metadata="{metadata}">'
        f"{escape(wheel.file)}</a><br>"
    )


def _page(title: str, lines: Iterable[str]) -> str:
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en">',
        "  <head>",
        '    <meta charset="utf-8">',
        f'    <meta name="pypi:repository-version" content="{API_VERSION}">',
        f"    <title>{escape(title)}</title>",
        "  </head>",
        "  <body>",
        *lines,
        "  </body>",
        "</html>",
        "",
    ])  # fmt: skip


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def _write(folder: Path, html: str, data: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(html, encoding="utf-8", newline="\n")
    (folder / "index.json").write_text(data, encoding="utf-8", newline="\n")


def write_metadata(root: Path, wheel: WheelFacts) -> str:
    """Write a wheel's metadata file where installers look for it; return its name."""
    name = f"{wheel.file}{METADATA_SUFFIX}"
    (root / name).write_bytes(wheel.metadata)
    return name
