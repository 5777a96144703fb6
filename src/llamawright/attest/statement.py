"""The in-toto Statement, version 1: who says what about which bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llamawright.attest import strict
from llamawright.digest import Plain

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
SBOM_TYPE = "https://cyclonedx.org/bom"
VERDICT_TYPE = "https://llamawright.dev/verdict/v1"
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A predicate about one file; the file's name is told, its ``sha256`` is what counts."""

    predicate_type: str
    name: str
    sha256: str
    predicate: dict[str, Plain]


def encode(statement: Statement) -> bytes:
    """Return the bytes that are signed."""
    subject: Plain = {"name": statement.name, "digest": {"sha256": statement.sha256}}
    return strict.compact(
        {
            "_type": STATEMENT_TYPE,
            "subject": [subject],
            "predicateType": statement.predicate_type,
            "predicate": statement.predicate,
        }
    )


def decode(payload: bytes) -> Statement:
    """Read a statement about exactly one file; raises ``ValueError``."""
    told = strict.fields(
        strict.load(payload), "the statement", "_type", "subject", "predicateType", "predicate"
    )
    if told["_type"] != STATEMENT_TYPE:
        raise ValueError(f"its type is {str(told['_type'])[:60]!r}, not {STATEMENT_TYPE}")
    subjects = told["subject"]
    # One about many files could be shown for a file that nobody looked at.
    if not isinstance(subjects, list) or len(subjects) != 1:
        raise ValueError("it does not speak of exactly one file")
    subject = strict.fields(subjects[0], "its subject", "name", "digest")
    digest = strict.fields(subject["digest"], "its subject's digest", "sha256")
    sha256 = strict.text(digest["sha256"], "its subject's sha256")
    if not _SHA256.fullmatch(sha256):
        raise ValueError("its subject's sha256 is not 64 hex digits")
    predicate = told["predicate"]
    if not isinstance(predicate, dict):
        raise ValueError("its predicate is no object")  # noqa: TRY004 - bad data
    return Statement(
        predicate_type=strict.text(told["predicateType"], "predicateType"),
        name=strict.text(subject["name"], "its subject's name"),
        sha256=sha256,
        predicate=predicate,
    )
