"""What a check found, part by part, and what follows for the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from llamawright.errors import LlamawrightError, PackageError, VerificationError


class Part(StrEnum):
    """What a file is shown with."""

    ARCHIVE = "archive"
    CHECKSUM = "sha256"
    SBOM = "sbom"
    PROVENANCE = "provenance"
    VERDICT = "verdict"
    STATEMENTS = "statements"


class Standing(StrEnum):
    """How a part stands. Not there, not true and not known are three different things.

    ``refused``: the verdict is genuine and does not say what is asked for.
    """

    VALID = "valid"
    INVALID = "invalid"
    MISSING = "missing"
    UNSIGNED = "unsigned"
    UNKNOWN_SIGNER = "unknown signer"
    NOT_CHECKED = "not checked"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of a check: what was seen, and what it proves.

    ``signature``: it is about the signature of the part. ``payload`` is the digest of the
    signed bytes then, so that several signatures of one statement are known as such.
    """

    part: Part
    standing: Standing
    seen: str
    proves: str = ""
    signature: bool = False
    payload: str = ""

    @property
    def name(self) -> str:
        """Return what the line is about."""
        return f"{self.part} signature" if self.signature else str(self.part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What must hold besides that nothing present is wrong.

    ``trust``: every statement must be signed by somebody trusted. ``parts`` must be there;
    the verdict always is one of them.
    """

    trust: bool = False
    parts: frozenset[Part] = frozenset()


def conclude(name: str, findings: Iterable[Finding], demand: Demand) -> LlamawrightError | None:
    """Return why a file is not accepted, the gravest reason first; ``None``: it is."""
    faults = list(_faults(name, tuple(findings), demand))
    return faults[0] if faults else None


def _faults(name: str, findings: tuple[Finding, ...], demand: Demand) -> Iterator[LlamawrightError]:
    for found in findings:
        if found.standing is Standing.INVALID:
            kind = "bad-signature" if found.signature else f"invalid-{found.part}"
            hint = "do not use it; fetch the file and its statements again from where they are made"
            yield _error(found.part, f"the {found.name} of {name} is wrong", found.seen, hint, kind)
    for found in findings:
        if found.standing is Standing.REFUSED:
            yield _error(
                found.part, f"{name} is not verified as asked", found.seen,
                f"prove it here: llamawright verify {name}", "not-verified",
            )  # fmt: skip
    proved = {f.part for f in findings if f.standing is Standing.VALID and not f.signature}
    # Not "is missing": whatever could not be looked at must not pass either.
    for part in sorted({*demand.parts, Part.ARCHIVE, Part.VERDICT} - proved):
        yield _missing(name, part)
    if demand.trust:
        yield from _untrusted(name, findings)


def _untrusted(name: str, findings: tuple[Finding, ...]) -> Iterator[LlamawrightError]:
    signatures = [f for f in findings if f.signature]
    trusted = {f.payload for f in signatures if f.standing is Standing.VALID}
    for found in signatures:
        if found.payload in trusted:
            continue
        what = f"the {found.part} of {name} is not signed by anybody you trust"
        if found.standing is Standing.UNSIGNED:
            hint = f"sign it: llamawright attest {name} --key FILE"
            yield _error(found.part, what, found.seen, hint, "unsigned")
        else:
            hint = (
                "get the signer's public key from a place you trust, and name it: --trust KEY.pub"
            )
            yield _error(found.part, what, found.seen, hint, "unknown-signer")


def _missing(name: str, part: Part) -> LlamawrightError:
    hint = {
        Part.VERDICT: f"prove it here (llamawright verify {name}), then llamawright attest {name}",
        Part.CHECKSUM: f"fetch {name}.sha256 from where the file came from",
    }.get(part, f"fetch it from where the file came from, or llamawright attest {name}")
    why = "the statements beside a file have its name with .intoto.jsonl and .cdx.json behind it"
    return _error(part, f"{name} has no {part}", why, hint, f"missing-{part}")


def _error(part: Part, what: str, why: str, hint: str, kind: str) -> LlamawrightError:
    of = VerificationError if part is Part.VERDICT else PackageError
    return of(what, why=why, hint=hint, kind=kind)
