"""A comparison for people and programs: a table of lines, JSON, one self-contained page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from llamawright import codec
from llamawright.model.comparison import (
    COMPARISON_SCHEMA,
    Comparison,
    Finding,
    Measure,
    MetricKind,
)
from llamawright.paths import write_whole
from llamawright.verify.compare_plot import by_length, by_round, overview
from llamawright.verify.compare_words import (
    GATES,
    figure,
    finding_words,
    gate_words,
    headline,
    p_words,
    ratio_words,
    title,
)
from llamawright.verify.pages import render_page
from llamawright.verify.report import artifact_stem

TONES = {
    Finding.FASTER: "outcome good",
    Finding.LESS: "outcome good",
    Finding.SLOWER: "outcome bad",
    Finding.MORE: "outcome bad",
    Finding.SAME: "",
    Finding.UNKNOWN: "wait",
}
HEAD = ("", "A", "B", "B/A (95 % interval)", "p", "B is")
KEY_DIGITS = 9
MINUTE = 60.0
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def comparison_schema() -> str:
    """Return the JSON schema of ``*.comparison.json``, the same for the same types."""
    schema = codec.schema(Comparison)
    whole = {
        **schema,
        "$id": COMPARISON_SCHEMA,
        "$schema": _DRAFT,
        "title": "llamawright comparison",
    }
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Return the comparison as lines of text: both sides, the table, notes, the gate."""
    for side in (comparison.a, comparison.b):
        digest = f"  sha256 {side.sha256[:12]}" if side.sha256 else ""
        yield f"{side.letter}  {side.name}  ({side.backend}, {side.device.name}){digest}"
    rows = [HEAD, *map(_row, comparison.measures)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    for row in rows:
        yield "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
    yield from (f"note: {note}" for note in comparison.notes)
    yield headline(comparison)
    if comparison.gate is not None:
        yield gate_words(comparison.gate)


def _row(m: Measure) -> tuple[str, ...]:
    unit = m.metric.unit
    sides = figure(m.median_a, unit), figure(m.median_b, unit)
    return (title(m.metric), *sides, ratio_words(m), p_words(m.p), finding_words(m))


def write_comparison(comparison: Comparison, dest: Path) -> tuple[Path, Path]:
    """Write ``<name>.comparison.json`` and ``.comparison.html`` into ``dest``; return both."""
    name = pair_name(comparison)
    data, page = dest / f"{name}.comparison.json", dest / f"{name}.comparison.html"
    write_whole(data, codec.encode(comparison))
    write_whole(page, render_comparison(comparison))
    return data, page


def pair_name(comparison: Comparison) -> str:
    """Return the name of a pair: B against A; where the names are one, digests tell them apart."""
    a, b = comparison.a, comparison.b
    if a.name != b.name:
        return f"{artifact_stem(b.name)}-against-{artifact_stem(a.name)}"
    digests = [s.sha256[:KEY_DIGITS] or "folder" for s in (b, a)]
    return f"{artifact_stem(a.name)}-{'-against-'.join(digests)}"


def render_comparison(comparison: Comparison) -> str:
    """Return the page. Everything that came out of a program or a file is escaped."""
    filters: dict[str, Callable[..., str]] = {
        "command": shlex.join,
        "duration": _duration,
        "figure": figure,
        "finding": finding_words,
        "p": p_words,
        "ratio": ratio_words,
        "title_of": title,
    }
    rates = [m for m in comparison.measures if m.metric.kind is MetricKind.RATE]
    plots = (by_length(comparison), *map(by_round, rates))
    return render_page(
        "comparison.html",
        filters,
        c=comparison,
        headline=headline(comparison),
        overview=overview(comparison),
        plots=[p for p in plots if p],
        tones=TONES,
        gates=GATES,
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), round(MINUTE))
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"
