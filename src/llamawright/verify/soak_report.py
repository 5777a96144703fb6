"""A soak for people and programs: lines, JSON, one page with three plots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from llamawright import codec
from llamawright.model.soak import SOAK_SCHEMA, Drift, SoakReport, Tie
from llamawright.model.verdict import Outcome
from llamawright.paths import write_whole
from llamawright.verify.pages import render_page
from llamawright.verify.report import OUTCOMES, STATES, artifact_stem
from llamawright.verify.soak_judge import amount, drift_words
from llamawright.verify.soak_plot import plots

MINUTE, HOUR = 60.0, 3600.0


def soak_lines(report: SoakReport) -> Iterator[str]:
    """Return the outcome as lines, what speaks against the device first."""
    mark, word, _ = STATES[report.state]
    failure = f" ({report.failure})" if report.failure else ""
    yield (
        f"{mark} {word}{failure}: {report.count} rounds in {length(report.soaked_s)} of "
        f"{length(report.asked_s)} on {report.device.name}{_sessions(report)}"
    )
    if report.why:
        yield f"  why: {report.why}"
    if report.hint:
        yield f"  hint: {report.hint}"
    yield from (f"  {OUTCOMES[d.outcome][0]} {drift_words(d)}" for d in report.drifts)
    yield f"  {events_words(report)}"


def _sessions(report: SoakReport) -> str:
    return f", in {report.sessions} sessions" if report.sessions > 1 else ""


def events_words(report: SoakReport) -> str:
    """Return what the kernel's log showed, or that nobody could look."""
    if not report.kernel_read:
        return f"? kernel's log: unknown ({report.kernel_log})"
    ours = sum(e.tie is Tie.OURS for e in report.events)
    more = len(report.events) - ours
    other = f", {more} of others" if more else ""
    mark = "✗" if ours else "✓"
    return f"{mark} kernel's log ({report.kernel_log}): {ours} events of this device{other}"


def soak_schema() -> str:
    """Return the JSON schema of ``<name>.soak.json`` as text, the same for the same types."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    head = {"$id": SOAK_SCHEMA, "$schema": draft, "title": "llamawright soak"}
    whole = {**codec.schema(SoakReport), **head}
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_soak(report: SoakReport, dest: Path) -> tuple[Path, Path]:
    """Write ``<name>.soak.json`` and ``<name>.soak.html`` into ``dest``; return both."""
    name = artifact_stem(report.artifact)
    dest.mkdir(parents=True, exist_ok=True)
    data, page = dest / f"{name}.soak.json", dest / f"{name}.soak.html"
    write_whole(data, codec.encode(report))
    write_whole(page, render_soak(report))
    return data, page


def render_soak(report: SoakReport) -> str:
    """Return the page. Everything that came out of a program or a log is escaped."""
    return render_page(
        "soak.html",
        {"length": length, "amount": amount, "signed": _signed},
        s=report,
        name=artifact_stem(report.artifact),
        state=STATES[report.state],
        outcomes=OUTCOMES,
        plots=plots(report.rounds),
        events_told=events_words(report),
        tone={Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.UNKNOWN: "wait"},
        judged=[d for d in report.drifts if d.outcome is not Outcome.UNKNOWN],
        unknown=[d for d in report.drifts if d.outcome is Outcome.UNKNOWN],
    )


def _signed(value: float, drift: Drift) -> str:
    return amount(value, drift.unit, signed=True)


def length(seconds: float) -> str:
    """Return a length of time: ``42 s``, ``20 min``, ``1 h 05 min``."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    minutes = round(seconds / MINUTE)
    if seconds < HOUR:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
