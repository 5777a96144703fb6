"""The report of a new upstream release, its pin as TOML, and a recipe with that pin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import assert_never

from llamawright.errors import UsageError
from llamawright.model.bump import BumpReport, Change, NewPin, Weight
from llamawright.model.recipe import (
    ArchiveOrigin,
    GitOrigin,
    IndexOrigin,
    Origin,
    PathOrigin,
    SourcePin,
)

TITLES = {
    Weight.BLOCKS: "Must be solved first",
    Weight.LOOK: "Worth a look",
    Weight.INFO: "Also different",
}
_HEADER = re.compile(r"^\s*\[")
_KEY = re.compile(r"^(\s*)(\w+)(\s*=\s*)(\"[^\"]*\"|\d+)(.*)$")


def report_page(report: BumpReport) -> str:
    """Return the report as Markdown, for a pull request or an issue."""
    return "\n".join(_page(report)) + "\n"


def pin_block(new: NewPin) -> str:
    """Return the pin as TOML tables that can replace those of the recipe."""
    pin = new.pin
    lines = ["[source]", *(f"{k} = {json.dumps(v)}" for k, v in _scalars(pin).items())]
    lines += ["include = [", *(f"    {json.dumps(part)}," for part in pin.include), "]"]
    for origin in pin.origins:
        kind, values = _table(origin)
        lines += ["", f"[[source.{kind}]]", *(f"{k} = {json.dumps(v)}" for k, v in values.items())]
    return "\n".join(lines) + "\n"


def with_pin(text: str, new: NewPin) -> str:
    """Return a recipe's text with the new pin; comments stay, those of changed lines go.

    Raises ``UsageError`` when something of the pin is unknown: half a pin is none.
    """
    if new.unknown:
        raise UsageError(
            "the new pin is not complete",
            why="; ".join(new.unknown),
            hint="give --commit and --build-number, or edit the TOML block of the report by hand",
            kind="incomplete-pin",
        )
    tables = {"source": _scalars(new.pin)}
    tables.update({f"source.{kind}": values for kind, values in map(_table, new.pin.origins)})
    out, table = [], ""
    for line in text.splitlines():
        if _HEADER.match(line):
            table = line.partition("#")[0].strip().strip("[]").strip()
        out.append(_renewed(line, tables.get(table, {})))
    return "\n".join(out) + "\n"


def _renewed(line: str, values: dict[str, str | int]) -> str:
    match = _KEY.match(line)
    if match is None or match[2] not in values:
        return line
    value = json.dumps(values[match[2]])
    return line if value == match[4] else f"{match[1]}{match[2]}{match[3]}{value}"


def _scalars(pin: SourcePin) -> dict[str, str | int]:
    return {
        "upstream": pin.upstream,
        "commit": pin.commit,
        "build_number": pin.build_number,
        "version": pin.version,
        "timestamp": pin.timestamp,
        "tree": pin.tree or "",
    }


def _table(origin: Origin) -> tuple[str, dict[str, str | int]]:
    values: dict[str, str | int | None]
    match origin:
        case IndexOrigin():
            kind = "index"
            values = {
                "project": origin.project, "version": origin.version,
                "filename": origin.filename, "size": origin.size, "sha256": origin.sha256,
                "subdir": origin.subdir,
            }  # fmt: skip
        case ArchiveOrigin():
            kind = "archive"
            values = {
                "url": origin.url, "size": origin.size, "sha256": origin.sha256,
                "subdir": origin.subdir,
            }  # fmt: skip
        case GitOrigin():
            kind = "git"
            values = {"url": origin.url, "commit": origin.commit, "subdir": origin.subdir}
        case PathOrigin():
            raise ValueError("a folder is no pin")
        case _:
            assert_never(origin)
    return kind, {k: v for k, v in values.items() if v}


def _page(report: BumpReport) -> Iterator[str]:
    old, new = report.old, report.new
    yield f"# {report.recipe}: {new.version}"
    yield ""
    blocking = report.blocking
    yield (
        f"**{len(blocking)} things must be solved before the pin can be changed.**"
        if blocking
        else "**Nothing stands against the new pin; it was not built yet.**"
    )
    yield ""
    yield "| | pinned | new |"
    yield "| --- | --- | --- |"
    before, after = _scalars(old), _scalars(new.pin)
    for key in before:
        yield f"| {key} | `{before[key]}` | `{after[key]}` |"
    age = "unknown" if new.age_days is None else f"{new.age_days:.1f} days"
    yield f"| age | | {age} |"
    yield ""
    yield from (f"- unknown: {text}" for text in new.unknown)
    yield from _patches(report)
    for weight, group in groupby(report.changes, key=lambda c: c.weight):
        yield from _changes(TITLES[weight], tuple(group))
    yield ""
    yield "## The new pin"
    yield ""
    yield "```toml"
    yield pin_block(new).rstrip()
    yield "```"


def _patches(report: BumpReport) -> Iterator[str]:
    yield ""
    yield "## Patches"
    yield ""
    for patch in report.patches:
        yield f"- **{patch.state}** {patch.name}"
        yield from (f"  - {line}" for line in patch.lines if patch.state != "applies")
    if not report.patches:
        yield "The recipe has none."


def _changes(title: str, changes: tuple[Change, ...]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    for topic, group in groupby(changes, key=lambda c: c.topic):
        yield ""
        yield f"### {topic}"
        yield ""
        for change in group:
            yield f"- {_told(change)}"


def _told(change: Change) -> str:
    if not change.before:
        what = f"new: `{change.name}`" + (f" = `{change.after}`" if change.after else "")
    elif not change.after:
        what = f"gone: `{change.name}` (was `{change.before}`)"
    else:
        what = f"`{change.name}`: `{change.before}` → `{change.after}`"
    return f"{what}: {change.why}" if change.why else what
