"""The one way a page is made: what came out of a program or a file is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A word or a line of a scale, at one coordinate."""

    at: float
    text: str


def render_page(template: str, filters: Mapping[str, Callable[..., str]], **values: object) -> str:
    """Return a page of ``templates/``; a name that has no value is an error, not a blank."""
    import jinja2  # noqa: PLC0415 - takes 60 ms; a run that finds all stamped writes no page

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(**values)
