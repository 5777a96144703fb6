"""The statements about a packed file, made and written beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from llamawright.attest import dsse, strict
from llamawright.attest.keyless import BundleSigner
from llamawright.attest.opening import Subject
from llamawright.attest.provenance import Invocation, provenance
from llamawright.attest.sbom import sbom
from llamawright.attest.statement import (
    PROVENANCE_TYPE,
    SBOM_TYPE,
    VERDICT_TYPE,
    Statement,
    encode,
)
from llamawright.digest import Plain

STATEMENTS = ".intoto.jsonl"
BUNDLES = ".sigstore.jsonl"
SBOM = ".cdx.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """Everything said about one file: the SBOM's text, and the statements' signed bytes."""

    sbom: str
    payloads: tuple[bytes, ...]


def attestation(subject: Subject, claim: dict[str, Plain] | None, run: Invocation) -> Attestation:
    """Return what there is to say; the same inputs give the same bytes."""
    text = sbom(subject)
    bill = strict.load(text.encode("utf-8"))
    said: list[tuple[str, Plain]] = [
        (PROVENANCE_TYPE, provenance(subject.manifest, run)),
        (SBOM_TYPE, bill),
    ]
    said += [(VERDICT_TYPE, claim)] if claim is not None else []
    statements = [
        Statement(predicate_type=kind, name=subject.name, sha256=subject.sha256, predicate=value)
        for kind, value in said
        if isinstance(value, dict)
    ]
    return Attestation(sbom=text, payloads=tuple(map(encode, statements)))


def write(
    beside: Path,
    made: Attestation,
    *,
    signers: tuple[dsse.Signer, ...],
    keyless: BundleSigner | None,
) -> tuple[Path, ...]:
    """Sign and write; no file appears before all of them are whole.

    What lies there already is replaced, never added to.
    """
    files = {f"{beside.name}{SBOM}": made.sbom.encode("utf-8")}
    envelopes = [dsse.encode(dsse.seal(p, signers)) for p in made.payloads]
    if signers or keyless is None:
        files[f"{beside.name}{STATEMENTS}"] = b"".join(e + b"\n" for e in envelopes)
    if keyless is not None:
        bundles = [strict.compact(_object(keyless.bundle(p))) for p in made.payloads]
        files[f"{beside.name}{BUNDLES}"] = b"".join(b + b"\n" for b in bundles)
    _replace(beside.parent, files)
    return tuple(beside.parent / name for name in files)


def _replace(folder: Path, files: dict[str, bytes]) -> None:
    parts = {folder / f".{name}.{os.getpid()}.part": folder / name for name in files}
    try:
        for part, data in zip(parts, files.values(), strict=True):
            with part.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        for part, place in parts.items():
            part.replace(place)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _object(bundle: str) -> Plain:
    return strict.load(bundle.encode("utf-8"))
