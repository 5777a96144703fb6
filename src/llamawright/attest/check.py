"""A packed file and everything said about it, checked without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from llamawright.attest import claim, dsse, provenance, sbom, signatures, strict
from llamawright.attest.claim import CLOCK_SKEW, VerdictRule
from llamawright.attest.findings import Finding, Part, Standing
from llamawright.attest.keyless import BundleReader
from llamawright.attest.keys import PublicKey
from llamawright.attest.making import BUNDLES, SBOM, STATEMENTS
from llamawright.attest.opening import Subject, open_subject
from llamawright.attest.statement import (
    PROVENANCE_TYPE,
    SBOM_TYPE,
    VERDICT_TYPE,
    Statement,
    decode,
)
from llamawright.digest import Plain, sha256_bytes, sha256_file
from llamawright.errors import PackageError

CHECKSUM = ".sha256"
PARTS = {SBOM_TYPE: Part.SBOM, PROVENANCE_TYPE: Part.PROVENANCE, VERDICT_TYPE: Part.VERDICT}
STATEMENT_LIMIT = 64
"""Each is opened, and checked with every key; nobody proves a file on so many devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whom the one who checks trusts: keys, and an identity in a hosted CI."""

    keys: tuple[PublicKey, ...] = ()
    identity: BundleReader | None = None

    @property
    def named(self) -> bool:
        """Whether anybody was named at all."""
        return bool(self.keys) or self.identity is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One statement as it lay there, with what is known of its signature."""

    statement: Statement
    part: Part
    signature: Finding


def check(path: Path, *, trust: Trust, rule: VerdictRule) -> tuple[Finding, ...]:
    """Return what is found of a file, part by part; raises ``PackageError`` if there is none."""
    if not path.is_file():
        raise PackageError(
            f"there is no file {path}",
            why="no such file" if not path.exists() else "it is not a file",
            hint="name the .tar.zst, .zip or .whl file",
            kind="absent",
        )
    sha256 = sha256_file(path)
    subject, archive = _archive(path)
    shown, broken = read_statements(path, trust)
    view = View(path=path, sha256=sha256, subject=subject, shown=shown, rule=rule)
    return (
        archive,
        _checksum(path, sha256),
        *broken,
        *view.sbom(),
        *view.provenance(),
        *view.verdict(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A file and the statements about it, judged part by part."""

    path: Path
    sha256: str
    subject: Subject | None
    shown: tuple[Shown, ...]
    rule: VerdictRule

    def sbom(self) -> Iterator[Finding]:
        """Judge the SBOM beside the file, and what is signed about it."""
        place = self.path.with_name(f"{self.path.name}{SBOM}")
        mine = self._of(Part.SBOM)
        if place.is_file():
            yield self._judged(Part.SBOM, partial(self._sbom_file, place, mine))
            if not mine:
                seen = "no statement is about it"
                yield Finding(part=Part.SBOM, standing=Standing.UNSIGNED, seen=seen, signature=True)
        elif mine:
            yield self._judged(Part.SBOM, partial(self._sbom_statements, mine))
        else:
            yield _missing(Part.SBOM, place)
        yield from (s.signature for s in mine)

    def provenance(self) -> Iterator[Finding]:
        """Judge every provenance statement."""
        mine = self._of(Part.PROVENANCE)
        for one in mine:
            yield self._judged(Part.PROVENANCE, partial(self._provenance, one.statement))
            yield one.signature
        if not mine:
            yield _missing(Part.PROVENANCE, self.path.with_name(f"{self.path.name}{STATEMENTS}"))

    def verdict(self) -> Iterator[Finding]:
        """Judge every verdict statement: one for each device that the file was proved on."""
        mine = self._of(Part.VERDICT)
        for one in mine:
            yield self._judged(Part.VERDICT, partial(self._verdict, one.statement))
            yield one.signature
        if not mine:
            yield _missing(Part.VERDICT, self.path.with_name(f"{self.path.name}{STATEMENTS}"))

    def _of(self, part: Part) -> tuple[Shown, ...]:
        return tuple(s for s in self.shown if s.part is part)

    def _judged(self, part: Part, judge: Callable[[], Finding]) -> Finding:
        try:
            return judge()
        except (ValueError, OSError) as error:
            return Finding(part=part, standing=Standing.INVALID, seen=str(error))

    def _sbom_file(self, place: Path, mine: tuple[Shown, ...]) -> Finding:
        document = strict.load(strict.read_limited(place))
        for one in mine:
            if strict.compact(document) != strict.compact(one.statement.predicate):
                raise ValueError(f"{place.name} is not the SBOM that the statement speaks of")
        self._require_subject(mine)
        return self._sbom(document)

    def _sbom_statements(self, mine: tuple[Shown, ...]) -> Finding:
        self._require_subject(mine)
        return [self._sbom(s.statement.predicate) for s in mine][-1]

    def _sbom(self, document: Plain) -> Finding:
        if self.subject is None:
            return _unopened(Part.SBOM)
        wrong = sbom.faults(document, self.subject)
        if wrong:
            raise ValueError("; ".join(wrong[:5]))
        count = sum(1 for f in self.subject.manifest.files if not f.link)
        return Finding(
            part=Part.SBOM,
            standing=Standing.VALID,
            seen=f"agrees with the manifest: {count} files, source, patches, tools",
            proves="what is inside, and what it was made from",
        )

    def _provenance(self, statement: Statement) -> Finding:
        self._require_own(statement)
        started, finished = provenance.told_times(statement.predicate)
        times = [claim.moment(t, "the build's time") for t in (started, finished) if t]
        if any(t > self.rule.now + CLOCK_SKEW for t in times):
            raise ValueError("the build is dated in the future")
        if times != sorted(times):
            raise ValueError("the build ended before it began")
        if self.subject is None:
            return _unopened(Part.PROVENANCE)
        manifest = self.subject.manifest
        wrong = provenance.faults(statement.predicate, manifest)
        if wrong:
            raise ValueError("; ".join(wrong))
        return Finding(
            part=Part.PROVENANCE,
            standing=Standing.VALID,
            seen=f"{manifest.upstream} {manifest.commit[:9]}, {len(manifest.patches)} patches, "
            f"by {provenance.builder_of(statement.predicate)}",
            proves="from what and how it was built, as the builder tells it",
        )

    def _verdict(self, statement: Statement) -> Finding:
        self._require_own(statement)
        return claim.judge(
            statement, self.sha256, self.subject, built=self._built(), rule=self.rule
        )

    def _built(self) -> datetime | None:
        """Return when the build began, if anybody tells."""
        said = (provenance.told_times(s.statement.predicate)[0] for s in self._of(Part.PROVENANCE))
        starts = [claim.moment(text, "the build's time") for text in said if text]
        return max(starts, default=None)

    def _require_subject(self, mine: tuple[Shown, ...]) -> None:
        for one in mine:
            self._require_own(one.statement)

    def _require_own(self, statement: Statement) -> None:
        if statement.sha256 != self.sha256:
            raise ValueError(
                f"it was said of another file: {statement.name[:100]}, sha256 {statement.sha256}"
            )


def _archive(path: Path) -> tuple[Subject | None, Finding]:
    try:
        subject = open_subject(path)
    except PackageError as error:
        if error.kind == "sidecar-mismatch":
            seen = "the sha256 file speaks of another file"
            return None, Finding(part=Part.ARCHIVE, standing=Standing.NOT_CHECKED, seen=seen)
        lines = f"{error.what}: {error.why}".splitlines()
        seen = lines[0] + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")
        return None, Finding(part=Part.ARCHIVE, standing=Standing.INVALID, seen=seen)
    return subject, Finding(
        part=Part.ARCHIVE,
        standing=Standing.VALID,
        seen=f"{len(subject.manifest.files)} files, each with the digest in the manifest",
        proves="nothing is cut off, changed or added since it was packed",
    )


def _checksum(path: Path, sha256: str) -> Finding:
    place = path.with_name(f"{path.name}{CHECKSUM}")
    if not place.is_file():
        return _missing(Part.CHECKSUM, place)
    try:
        words = strict.read_limited(place).decode("utf-8").split()
    except ValueError as error:
        return Finding(part=Part.CHECKSUM, standing=Standing.INVALID, seen=str(error))
    if not words or words[0].lower() != sha256:
        said = words[0][:64] if words else "nothing"
        seen = f"it says {said}, the file has {sha256}"
        return Finding(part=Part.CHECKSUM, standing=Standing.INVALID, seen=seen)
    return Finding(
        part=Part.CHECKSUM,
        standing=Standing.VALID,
        seen=sha256,
        proves="the file came over whole; not who made it",
    )


def read_statements(path: Path, trust: Trust) -> tuple[tuple[Shown, ...], tuple[Finding, ...]]:
    """Read both files of statements; what cannot be read is a finding of its own."""
    shown: list[Shown] = []
    broken: list[Finding] = []
    readers: dict[str, Callable[[Plain], Shown]] = {
        STATEMENTS: lambda value: _enveloped(value, trust),
        BUNDLES: lambda value: _bundled(value, trust),
    }
    for suffix, read in readers.items():
        place = path.with_name(f"{path.name}{suffix}")
        if not place.is_file():
            continue
        try:
            for number, line in enumerate(_lines(place), start=1):
                shown.append(_numbered(read, line, number))
        except (ValueError, OSError) as error:
            seen = f"{place.name}: {error}"
            broken.append(Finding(part=Part.STATEMENTS, standing=Standing.INVALID, seen=seen))
    return tuple(shown), tuple(broken)


def _lines(place: Path) -> list[bytes]:
    # Not splitlines: that also ends a line at characters that JSON allows in a text.
    lines = strict.read_limited(place).removesuffix(b"\n").split(b"\n")
    if len(lines) > STATEMENT_LIMIT:
        raise ValueError(f"it holds {len(lines)} statements")
    return lines


def _numbered(read: Callable[[Plain], Shown], line: bytes, number: int) -> Shown:
    try:
        return read(strict.load(line))
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error


def _enveloped(value: Plain, trust: Trust) -> Shown:
    envelope = dsse.decode(value)
    standing, seen = signatures.judge(envelope, trust.keys)
    return _statement(envelope.payload, standing, seen)


def _bundled(value: Plain, trust: Trust) -> Shown:
    """Read a Sigstore bundle; who signed it is only known to Sigstore's library."""
    if not isinstance(value, dict) or "dsseEnvelope" not in value:
        raise ValueError("it is no Sigstore bundle of a statement")
    envelope = dsse.decode(value["dsseEnvelope"])
    if trust.identity is None:
        told = "signer not checked: by Sigstore; --identity NAME --issuer URL checks it"
        return _statement(envelope.payload, Standing.NOT_CHECKED, told)
    try:
        payload = trust.identity.payload(strict.compact(value).decode("utf-8"))
    except ValueError as error:
        return _statement(envelope.payload, Standing.INVALID, str(error))
    if payload != envelope.payload:
        return _statement(envelope.payload, Standing.INVALID, "the signature is over other bytes")
    return _statement(payload, Standing.VALID, f"signed by {trust.identity.signer}")


def _statement(payload: bytes, standing: Standing, seen: str) -> Shown:
    statement = decode(payload)
    part = PARTS.get(statement.predicate_type)
    if part is None:
        raise ValueError(f"{statement.predicate_type[:80]!r} is no statement that is known here")
    signature = Finding(
        part=part,
        standing=standing,
        seen=seen,
        proves="the signer says so, and nobody changed it" if standing is Standing.VALID else "",
        signature=True,
        payload=sha256_bytes(payload),
    )
    return Shown(statement=statement, part=part, signature=signature)


def _missing(part: Part, place: Path) -> Finding:
    return Finding(part=part, standing=Standing.MISSING, seen=f"not in {place.name}")


def _unopened(part: Part) -> Finding:
    seen = "the file it speaks of could not be opened"
    return Finding(part=part, standing=Standing.NOT_CHECKED, seen=seen)
