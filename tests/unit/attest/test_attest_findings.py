"""From findings to an exit code: a pure table, and what a person reads of it."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import pytest

from llamawright.attest import Demand, Finding, Part, Standing, conclude
from llamawright.cli.check import record, told
from llamawright.errors import LlamawrightError

EVERY = (Part.ARCHIVE, Part.CHECKSUM, Part.SBOM, Part.PROVENANCE, Part.VERDICT)
SIGNED = (Part.SBOM, Part.PROVENANCE, Part.VERDICT)


def part(of: Part, standing: Standing = Standing.VALID) -> Finding:
    return Finding(part=of, standing=standing, seen=f"{of} seen", proves="something")


def signature(of: Part, standing: Standing = Standing.VALID, payload: str = "") -> Finding:
    return Finding(
        part=of, standing=standing, seen=f"{of} signer", signature=True, payload=payload or str(of)
    )


GOOD = tuple(part(p) for p in EVERY) + tuple(signature(p) for p in SIGNED)


def with_one(changed: Finding) -> tuple[Finding, ...]:
    """Return the good findings with one of them in another standing."""
    return tuple(
        changed if (f.part, f.signature) == (changed.part, changed.signature) else f for f in GOOD
    )


def with_nothing_of(others: list[Finding]) -> tuple[Finding, ...]:
    """Return the good findings without those that others stand in for."""
    taken = {(f.part, f.signature) for f in others}
    return tuple(f for f in GOOD if (f.part, f.signature) not in taken)


def kind(
    found: tuple[Finding, ...], *, trust: bool = True, parts: frozenset[Part] = frozenset()
) -> str:
    error = conclude("a.tar.zst", found, Demand(trust=trust, parts=parts))
    if error is None:
        return ""
    assert error.what
    assert error.hint
    assert "a.tar.zst" in error.what
    return f"{int(error.code)} {error.kind}"


def test_all_good_is_accepted_whoever_is_trusted() -> None:
    assert kind(GOOD) == ""
    assert kind(GOOD, trust=False) == ""
    assert kind(GOOD, parts=frozenset(EVERY)) == ""


@pytest.mark.parametrize("of", EVERY)
@pytest.mark.parametrize("trust", [False, True])
def test_whatever_is_wrong_refuses_the_file(of: Part, trust: bool) -> None:
    expected = f"{10 if of is Part.VERDICT else 9} invalid-{of}"
    assert kind(with_one(part(of, Standing.INVALID)), trust=trust) == expected


@pytest.mark.parametrize("of", SIGNED)
@pytest.mark.parametrize("trust", [False, True])
def test_a_false_signature_refuses_the_file(of: Part, trust: bool) -> None:
    expected = f"{10 if of is Part.VERDICT else 9} bad-signature"
    assert kind(with_one(signature(of, Standing.INVALID)), trust=trust) == expected


@pytest.mark.parametrize(
    ("standing", "word"),
    [
        (Standing.UNSIGNED, "unsigned"),
        (Standing.UNKNOWN_SIGNER, "unknown-signer"),
        (Standing.NOT_CHECKED, "unknown-signer"),
    ],
)
@pytest.mark.parametrize("of", SIGNED)
def test_who_signed_matters_only_to_those_who_trust_somebody(
    standing: Standing, word: str, of: Part
) -> None:
    found = with_one(signature(of, standing))
    assert kind(found) == f"{10 if of is Part.VERDICT else 9} {word}"
    assert kind(found, trust=False) == ""


@pytest.mark.parametrize("of", [Part.CHECKSUM, Part.SBOM, Part.PROVENANCE])
def test_what_may_be_missing_may_be_missing(of: Part) -> None:
    found = with_one(part(of, Standing.MISSING))
    assert kind(found) == ""
    assert kind(found, parts=frozenset({of})) == f"9 missing-{of}"


def test_the_verdict_may_never_be_missing() -> None:
    assert kind(with_one(part(Part.VERDICT, Standing.MISSING)), trust=False) == "10 missing-verdict"


def test_a_refused_verdict_is_not_a_wrong_one() -> None:
    assert kind(with_one(part(Part.VERDICT, Standing.REFUSED))) == "10 not-verified"


def test_statements_that_cannot_be_read_refuse_the_file() -> None:
    broken = part(Part.STATEMENTS, Standing.INVALID)
    assert kind((*GOOD, broken), trust=False) == "9 invalid-statements"


def test_one_trusted_signature_covers_a_stranger_s_on_the_same_bytes_only() -> None:
    stranger = signature(Part.VERDICT, Standing.UNKNOWN_SIGNER)
    assert kind((*GOOD, stranger)) == ""
    other = signature(Part.VERDICT, Standing.UNKNOWN_SIGNER, payload="other bytes")
    assert kind((*GOOD, other)) == "10 unknown-signer"


def test_the_gravest_reason_is_told_first_in_any_order() -> None:
    """Wrong before not enough, not enough before not there, not there before by whom."""
    wrong = part(Part.PROVENANCE, Standing.INVALID)
    refused = part(Part.VERDICT, Standing.REFUSED)
    missing = part(Part.SBOM, Standing.MISSING)
    stranger = signature(Part.VERDICT, Standing.UNKNOWN_SIGNER)
    ranked = [
        (wrong, "9 invalid-provenance"), (refused, "10 not-verified"),
        (missing, "9 missing-sbom"), (stranger, "10 unknown-signer"),
    ]  # fmt: skip
    for start in range(len(ranked)):
        left = [f for f, _ in ranked[start:]]
        for order in permutations(left):
            rest = with_nothing_of(left)
            assert kind((*rest, *order), parts=frozenset({Part.SBOM})) == ranked[start][1]


def test_every_combination_ends_with_a_documented_code() -> None:
    """No finding, however strange, is passed over: only valid or harmless ones are accepted."""
    harmless = {Standing.VALID, Standing.NOT_CHECKED, Standing.UNSIGNED, Standing.UNKNOWN_SIGNER}
    for of, standing in product(EVERY, Standing):
        said = kind(with_one(part(of, standing)), trust=False)
        assert said == "" or said.split()[0] in {"9", "10"}
        optional = of not in {Part.ARCHIVE, Part.VERDICT}
        accepted = standing is Standing.VALID or (
            optional and standing in {*harmless, Standing.MISSING}
        )
        assert (said == "") is accepted


def test_nothing_found_is_nothing_proved() -> None:
    assert kind((), trust=False) == "9 missing-archive"
    assert kind(GOOD[:1], trust=False) == "10 missing-verdict"
    # A signature is no proof of what it is about.
    assert kind((GOOD[0], signature(Part.VERDICT))) == "10 missing-verdict"


def test_hints_are_the_next_command() -> None:
    cases = {
        "llamawright verify a.tar.zst": part(Part.VERDICT, Standing.MISSING),
        "--trust": signature(Part.VERDICT, Standing.UNKNOWN_SIGNER),
        "llamawright attest a.tar.zst --key": signature(Part.VERDICT, Standing.UNSIGNED),
        "fetch the file and its statements again": part(Part.SBOM, Standing.INVALID),
    }
    for words, finding in cases.items():
        error = conclude("a.tar.zst", with_one(finding), Demand(trust=True))
        assert error is not None
        assert words in error.hint


def test_a_person_reads_the_standing_the_part_and_the_proof() -> None:
    lines = list(told((part(Part.ARCHIVE), signature(Part.PROVENANCE, Standing.UNKNOWN_SIGNER))))
    assert lines == [
        "valid           archive               archive seen",
        "                                      proves: something",
        "unknown signer  provenance signature  provenance signer",
    ]


def test_no_meaning_is_by_colour_alone() -> None:
    found = tuple(part(Part.SBOM, s) for s in Standing)
    starts = [x.split("  ")[0] for x in told(found) if not x.startswith(" ")]
    assert starts == [str(s) for s in Standing]
    assert len(set(starts)) == len(Standing)


def test_a_program_reads_the_same() -> None:
    error = conclude("a", with_one(part(Part.SBOM, Standing.INVALID)), Demand())
    assert isinstance(error, LlamawrightError)
    said = record(Path("a"), with_one(part(Part.SBOM, Standing.INVALID)), error)
    assert said["accepted"] is False
    assert said["error"] == error.as_record()
    findings = said["findings"]
    assert isinstance(findings, list)
    assert len(findings) == len(GOOD)
    assert findings[2] == {
        "part": "sbom", "signature": False, "standing": "invalid", "seen": "sbom seen",
        "proves": "something",
    }  # fmt: skip
    assert record(Path("a"), GOOD, None)["accepted"] is True
