"""The verdict as a statement: exactly what the proof wrote, bound to the file by its digest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from llamawright import codec
from llamawright.attest import strict
from llamawright.attest.findings import Finding, Part, Standing
from llamawright.attest.opening import Subject
from llamawright.attest.statement import Statement
from llamawright.digest import Plain
from llamawright.errors import PackageError
from llamawright.model.verdict import VERDICT_SCHEMA, Outcome, State, Verdict

# Clocks of two machines differ by minutes; NTP keeps them within a second.
CLOCK_SKEW = timedelta(minutes=5)
PROVES = {
    State.VERIFIED: "this very file computed rightly on that device",
    State.VERIFIED_SOFTWARE: "this very file computed rightly in software; no hardware was there",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRule:
    """What a verdict must say; ``max_age_days`` zero: any age."""

    now: datetime
    hardware: bool = False
    max_age_days: float = 0.0


def read_claim(data: bytes, subject: Subject, *, what: str) -> dict[str, Plain]:
    """Return a verdict file's data, unchanged; raises ``PackageError``.

    It must be a verdict on exactly this file.
    """
    try:
        told = strict.load(data)
        verdict = codec.decode(Verdict, told, what=what)
    except ValueError as error:
        raise PackageError(
            f"{what} is no verdict",
            why=str(error),
            hint=f"make one: llamawright verify {subject.name}",
            kind="invalid-verdict",
        ) from error
    if verdict.artifact_sha256 != subject.sha256 or not isinstance(told, dict):
        raise PackageError(
            f"{what} is the verdict on another file than {subject.name}",
            why=f"it speaks of sha256 {verdict.artifact_sha256}, the file has {subject.sha256}",
            hint=f"llamawright verify {subject.name}, or name the right one: --verdict FILE",
            kind="other-artifact",
        )
    return told


def judge(
    statement: Statement,
    sha256: str,
    subject: Subject | None,
    *,
    built: datetime | None,
    rule: VerdictRule,
) -> Finding:
    """Judge one verdict statement; ``built`` is when the provenance says the build began."""
    try:
        verdict = codec.decode(Verdict, statement.predicate, what="the verdict")
        wrong = _contradiction(verdict) or _foreign(verdict, sha256)
        date = moment(verdict.date, "the verdict's date")
        wrong = wrong or _misdated(date, subject, built, rule.now)
    except ValueError as error:
        return Finding(part=Part.VERDICT, standing=Standing.INVALID, seen=str(error))
    if wrong:
        return Finding(part=Part.VERDICT, standing=Standing.INVALID, seen=wrong)
    age = told_age(rule.now - date)
    device = verdict.device.name if verdict.device else "no device"
    driver = f" ({verdict.device.driver})" if verdict.device and verdict.device.driver else ""
    seen = f"{verdict.state} on {device}{driver}, {age} ago"
    refused = _refusal(verdict, rule.now - date, rule)
    if refused:
        return Finding(part=Part.VERDICT, standing=Standing.REFUSED, seen=f"{seen}: {refused}")
    return Finding(
        part=Part.VERDICT, standing=Standing.VALID, seen=seen, proves=PROVES[verdict.state]
    )


def moment(written: str, what: str) -> datetime:
    """Return a time as RFC 3339 writes it; one without a zone is no time."""
    try:
        found = datetime.fromisoformat(written)
        zoned = found.tzinfo is not None
        moved = found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{what} {written[:40]!r} is no time: {error}") from error
    if not zoned:
        raise ValueError(f"{what} {written[:40]!r} has no time zone")
    return moved


def told_age(age: timedelta) -> str:
    """Return an age for people, in its largest unit."""
    minutes = max(0, int(age.total_seconds() // 60))
    for unit, size in (("day", 1440), ("hour", 60)):
        if minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{minutes} minute{'s' if minutes != 1 else ''}"


def _foreign(verdict: Verdict, sha256: str) -> str:
    if verdict.schema != VERDICT_SCHEMA:
        return f"its schema is {verdict.schema[:80]}, this version reads {VERDICT_SCHEMA}"
    if verdict.artifact_sha256 != sha256:
        return f"it was said of another file: sha256 {verdict.artifact_sha256[:64]}"
    return ""


def _contradiction(verdict: Verdict) -> str:
    """Return why a verdict cannot mean what its state says; empty when it can."""
    if verdict.state not in PROVES:
        return ""
    failed = [c.name for c in verdict.checks if c.outcome is Outcome.FAIL]
    if failed or verdict.failure:
        return f"it says {verdict.state}, but this failed: {', '.join(failed) or verdict.failure}"
    if verdict.device is None:
        return f"it says {verdict.state} and names no device"
    if verdict.device.software is (verdict.state is State.VERIFIED):
        kind = "software" if verdict.device.software else "hardware"
        return f"it says {verdict.state}, and its device is {kind}"
    return ""


def _misdated(
    date: datetime, subject: Subject | None, built: datetime | None, now: datetime
) -> str:
    if date > now + CLOCK_SKEW:
        return f"it is dated in the future: {date.isoformat()}"
    source = datetime.fromtimestamp(subject.manifest.timestamp, UTC) if subject else None
    if source and date < source:
        return (
            f"it is dated {date.isoformat()}, before the source of the file: {source.isoformat()}"
        )
    if built and date < built - CLOCK_SKEW:
        return f"it is dated {date.isoformat()}, before the build: {built.isoformat()}"
    return ""


def _refusal(verdict: Verdict, age: timedelta, rule: VerdictRule) -> str:
    if verdict.state not in PROVES:
        return verdict.why or verdict.failure or "nothing was proved"
    if rule.hardware and verdict.state is not State.VERIFIED:
        return "hardware is required"
    if rule.max_age_days and age > timedelta(days=rule.max_age_days):
        return f"older than {rule.max_age_days:g} days"
    return ""
