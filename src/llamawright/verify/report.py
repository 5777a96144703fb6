"""The verdict for people and programs: summary lines, JSON, one self-contained page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from llamawright import codec
from llamawright.model.artifact import Manifest
from llamawright.model.verdict import Check, Outcome, State, Verdict
from llamawright.paths import write_whole
from llamawright.verify.pages import render_page
from llamawright.verify.plot import divergence_chart, token_chart

MIB = 1 << 20

# A mark, a word and a sentence for each state: never colour alone.
STATES = {
    State.VERIFIED: ("✓", "verified", "It computes the right numbers on this hardware device."),
    State.VERIFIED_SOFTWARE: (
        "✓",
        "verified in software",
        "It computes the right numbers on a software device. No hardware was proved.",
    ),
    State.UNVERIFIED: ("○", "unverified", "No device of its kind is here; nothing was proved."),
    State.CANNOT_VERIFY: (
        "○",
        "cannot verify",
        "This machine or device cannot run the proof; the artifact is not to blame.",
    ),
    State.FAILED: ("✗", "failed", "The proof failed: do not use this artifact on this device."),
    State.QUARANTINED: (
        "!",
        "quarantined",
        "The machine went down during an earlier proof of this artifact.",
    ),
}
OUTCOMES = {
    Outcome.PASS: ("✓", "pass"),
    Outcome.FAIL: ("✗", "fail"),
    Outcome.UNKNOWN: ("?", "unknown"),
}


def summary(verdict: Verdict) -> Iterator[str]:
    """Return the verdict as lines of text, what speaks against the artifact first."""
    mark, word, meaning = STATES[verdict.state]
    failure = f" ({verdict.failure})" if verdict.failure else ""
    device = f" on {verdict.device.name}" if verdict.device else ""
    yield f"{mark} {word}{failure}{device}"
    yield f"  {meaning}"
    if verdict.why:
        yield f"  why: {verdict.why}"
    if verdict.hint:
        yield f"  hint: {verdict.hint}"
    for check in _failed_first(verdict.checks):
        wanted = "" if check.outcome is Outcome.PASS else f" (expected {check.expected})"
        yield f"  {OUTCOMES[check.outcome][0]} {check.name}: {check.seen}{wanted}"
    if verdict.speed.generation_tps:
        yield (
            f"  speed: prompt {verdict.speed.prompt_tps:.1f} tok/s, generation "
            f"{verdict.speed.generation_tps:.1f} tok/s, first token after "
            f"{verdict.speed.first_token_s:.2f} s"
        )
    if verdict.speed.jit_s:
        yield f"  JIT: {verdict.speed.jit_s:.1f} s once, before the first token; not in the speed"


def _failed_first(checks: Sequence[Check]) -> Iterator[Check]:
    for outcome in (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS):
        yield from (c for c in checks if c.outcome is outcome)


def write_report(verdict: Verdict, manifest: Manifest | None, dest: Path) -> tuple[Path, Path]:
    """Write ``<name>.verdict.json`` and ``<name>.report.html`` into ``dest``; return both.

    ``manifest`` is the artifact's, when it could be read.
    """
    name = manifest.name if manifest else artifact_stem(verdict.artifact)
    dest.mkdir(parents=True, exist_ok=True)
    data, page = dest / f"{name}.verdict.json", dest / f"{name}.report.html"
    write_whole(data, codec.encode(verdict))
    write_whole(page, render(verdict, manifest))
    return data, page


def artifact_stem(file_name: str) -> str:
    """Return an archive's name without its endings; the version's dots stay."""
    for ending in (".tar.zst", ".zip"):
        file_name = file_name.removesuffix(ending)
    return file_name


def render(verdict: Verdict, manifest: Manifest | None) -> str:
    """Return the page. Everything that came out of a program or a file is escaped."""
    limit = next((x.value for x in verdict.limits if "divergence" in x.name), 0.0)
    charts = (divergence_chart(verdict.numbers, limit), token_chart(verdict.token_s))
    mark, word, meaning = STATES[verdict.state]
    return render_page(
        "report.html",
        {"mib": _mib, "command": shlex.join},
        v=verdict,
        manifest=manifest,
        name=manifest.name if manifest else artifact_stem(verdict.artifact),
        mark=mark,
        word=word,
        meaning=meaning,
        outcomes=OUTCOMES,
        charts=[c for c in charts if c],
        lost=[c for c in manifest.capabilities if not c.present] if manifest else [],
        checks=tuple(_failed_first(verdict.checks)),
        failures=[c for c in verdict.checks if c.outcome is Outcome.FAIL],
    )


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"
