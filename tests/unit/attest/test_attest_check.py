"""Check: what each part proves, and that not there, not true and not known are three things."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import cli_kit
from attest_kit import (
    NOW,
    PROVED,
    Json,
    Shelf,
    key,
    on_software,
    packed,
    payload,
    seen,
    standing,
    statement_bytes,
    verdict,
    wheel,
)
from llamawright.attest import Demand, Invocation, Part, Standing, Trust, conclude, dsse
from llamawright.attest.claim import told_age
from llamawright.attest.keys import PrivateKey
from llamawright.attest.statement import PROVENANCE_TYPE, SBOM_TYPE, VERDICT_TYPE
from llamawright.errors import PackageError
from llamawright.model.verdict import Check, Outcome, State

ACCEPTED = ""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    return key(tmp_path_factory.mktemp("mine"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    return key(tmp_path_factory.mktemp("theirs"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture
def shelf(tmp_path: Path, original: Path, mine: PrivateKey) -> Shelf:
    path = tmp_path / original.name
    shutil.copyfile(original, path)
    return Shelf(path=path, keys=(mine,))


def sidecar(shelf: Shelf, digest: str = "") -> Path:
    place = shelf.path.with_name(f"{shelf.path.name}.sha256")
    place.write_text(f"{digest or shelf.sha256}  {shelf.path.name}\n")
    return place


def test_everything_there_and_true_is_accepted(shelf: Shelf) -> None:
    sidecar(shelf)
    found = shelf.attest().check()
    assert {f.standing for f in found} == {Standing.VALID}
    assert [f.name for f in found] == [
        "archive", "sha256", "sbom", "sbom signature", "provenance", "provenance signature",
        "verdict", "verdict signature",
    ]  # fmt: skip
    assert all(f.proves for f in found)
    assert seen(found, Part.VERDICT) == "verified on Imaginary GPU 9000, 3 days ago"
    assert shelf.kind() == ACCEPTED


def test_nothing_is_left_beside_the_file(shelf: Shelf) -> None:
    shelf.attest().check()
    names = {shelf.path.name, shelf.sbom.name, shelf.statements.name}
    assert {p.name for p in shelf.path.parent.iterdir()} == names


def test_the_same_inputs_give_the_same_signed_bytes(shelf: Shelf) -> None:
    first = shelf.attest().statements.read_bytes()
    assert shelf.attest().statements.read_bytes() == first


def test_a_wheel_is_checked_the_same_way(tmp_path: Path, mine: PrivateKey) -> None:
    shelf = Shelf(path=wheel(tmp_path), keys=(mine,)).attest()
    assert shelf.kind() == ACCEPTED
    sidecar(shelf, "0" * 64)
    assert shelf.kind() == "9 invalid-sha256"


def test_without_a_trusted_key_the_signer_is_not_checked(shelf: Shelf) -> None:
    found = shelf.attest().check(Trust())
    assert standing(found, Part.VERDICT, signature=True) is Standing.NOT_CHECKED
    told = next(f.seen for f in found if f.signature)
    assert told.startswith("signer not checked: key ")
    assert "--trust" in told
    assert shelf.kind(Trust()) == ACCEPTED


def test_a_stranger_is_unknown_and_not_wrong(shelf: Shelf, theirs: PrivateKey) -> None:
    trust = Trust(keys=(theirs.public,))
    found = shelf.attest().check(trust)
    assert standing(found, Part.VERDICT, signature=True) is Standing.UNKNOWN_SIGNER
    assert standing(found, Part.VERDICT) is Standing.VALID
    assert shelf.kind(trust) == "9 unknown-signer"


def test_unsigned_is_a_word_of_its_own(shelf: Shelf, mine: PrivateKey) -> None:
    bare = replace(shelf, keys=()).attest()
    trust = Trust(keys=(mine.public,))
    assert standing(bare.check(trust), Part.VERDICT, signature=True) is Standing.UNSIGNED
    assert bare.kind(trust) == "9 unsigned"
    assert bare.kind(Trust()) == ACCEPTED


def test_two_signers_each_satisfy_those_who_trust_them(
    shelf: Shelf, mine: PrivateKey, theirs: PrivateKey
) -> None:
    both = replace(shelf, keys=(mine, theirs)).attest()
    for keys in ((mine.public,), (theirs.public,), (mine.public, theirs.public)):
        assert both.kind(Trust(keys=keys)) == ACCEPTED


def test_a_file_without_anything_beside_it_misses_its_verdict(shelf: Shelf) -> None:
    found = shelf.check()
    missing = {f.part for f in found if f.standing is Standing.MISSING}
    assert missing == {Part.CHECKSUM, Part.SBOM, Part.PROVENANCE, Part.VERDICT}
    assert standing(found, Part.ARCHIVE) is Standing.VALID
    error = shelf.judged()
    assert error is not None
    assert (int(error.code), error.kind) == (10, "missing-verdict")
    assert "llamawright verify" in error.hint


def test_a_missing_verdict_is_missing_and_the_rest_is_valid(shelf: Shelf) -> None:
    found = shelf.attest(prove=False).check()
    assert standing(found, Part.PROVENANCE) is Standing.VALID
    assert standing(found, Part.VERDICT) is Standing.MISSING
    assert shelf.kind() == "10 missing-verdict"


@pytest.mark.parametrize("part", [Part.SBOM, Part.PROVENANCE, Part.CHECKSUM])
def test_other_parts_may_be_missing_until_they_are_asked_for(shelf: Shelf, part: Part) -> None:
    shelf.attest()
    lines = [x for x in shelf.lines() if payload(x)["predicateType"] == VERDICT_TYPE]
    shelf.rewrite(lines)
    shelf.sbom.unlink()
    found = shelf.check()
    name = shelf.path.name
    assert conclude(name, found, Demand(trust=True)) is None
    error = conclude(name, found, Demand(trust=True, parts=frozenset({part})))
    assert error is not None
    assert (int(error.code), error.kind) == (9, f"missing-{part}")
    assert error.hint


def test_there_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.tar.zst", tmp_path):
        with pytest.raises(PackageError) as caught:
            Shelf(path=path).check(Trust())
        assert caught.value.kind == "absent"


@pytest.mark.parametrize("at", [0, 5, 0.3, 0.7, -1])
def test_a_changed_byte_of_the_archive_is_told(shelf: Shelf, at: float) -> None:
    shelf.attest()
    data = bytearray(shelf.path.read_bytes())
    data[int(at if at in {0, 5, -1} else at * len(data))] ^= 0x10
    shelf.path.write_bytes(data)
    found = shelf.check()
    assert standing(found, Part.ARCHIVE) is Standing.INVALID or at == 5
    for part in (Part.SBOM, Part.PROVENANCE, Part.VERDICT):
        assert standing(found, part) is Standing.INVALID
        assert "said of another file" in seen(found, part)
        # What was signed is as it was: only the file is another.
        assert standing(found, part, signature=True) is Standing.VALID
    error = shelf.judged()
    assert error is not None
    assert error.kind.startswith("invalid-")


def test_a_cut_archive_is_told(shelf: Shelf) -> None:
    shelf.attest()
    shelf.path.write_bytes(shelf.path.read_bytes()[:-3])
    assert shelf.kind() == "9 invalid-archive"
    shelf.path.write_bytes(b"")
    assert shelf.kind() == "9 invalid-archive"


@pytest.mark.parametrize("text", ["", "\n", "0" * 64, "zz  x", "\x00"])
def test_a_wrong_sha256_file_is_told_as_that(shelf: Shelf, text: str) -> None:
    shelf.attest()
    shelf.path.with_name(f"{shelf.path.name}.sha256").write_text(text)
    found = shelf.check()
    assert standing(found, Part.CHECKSUM) is Standing.INVALID
    assert standing(found, Part.ARCHIVE) is Standing.NOT_CHECKED
    assert standing(found, Part.VERDICT) is Standing.VALID
    assert shelf.kind() == "9 invalid-sha256"


def test_another_file_s_verdict_is_not_this_one_s(
    shelf: Shelf, tmp_path: Path, mine: PrivateKey
) -> None:
    """A replay: a genuine, signed verdict laid beside a file that nobody proved."""
    (tmp_path / "other").mkdir()
    other = Shelf(path=packed(tmp_path / "other", build_number=9), keys=(mine,)).attest()
    assert other.sha256 != shelf.sha256
    shelf.attest(prove=False)
    shelf.rewrite([*shelf.lines(), other.lines()[-1]])
    found = shelf.check()
    assert standing(found, Part.VERDICT, signature=True) is Standing.VALID
    assert "said of another file" in seen(found, Part.VERDICT)
    assert shelf.kind() == "10 invalid-verdict"


def test_a_good_verdict_does_not_cover_a_replayed_one(
    shelf: Shelf, tmp_path: Path, mine: PrivateKey
) -> None:
    (tmp_path / "other").mkdir()
    other = Shelf(path=packed(tmp_path / "other", build_number=9), keys=(mine,)).attest()
    shelf.attest()
    shelf.rewrite([*shelf.lines(), other.lines()[-1]])
    assert shelf.kind() == "10 invalid-verdict"


def test_a_subject_that_lies_about_its_verdict_is_told(shelf: Shelf) -> None:
    """The signer binds another file's verdict to this one: the verdict itself knows better."""
    shelf.attest()

    def lie(said: Json) -> None:
        said["predicate"]["artifact_sha256"] = "e" * 64  # type: ignore[index,call-overload]

    shelf.resign(lie, kind=VERDICT_TYPE)
    assert "said of another file" in seen(shelf.check(), Part.VERDICT)
    assert shelf.kind() == "10 invalid-verdict"


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("2023-11-14T22:00:00+00:00", "before the source of the file"),
        ("1970-01-01T00:00:00+00:00", "before the source of the file"),
        ("2026-03-04T12:06:00+00:00", "dated in the future"),
        ("9999-12-31T23:59:59+00:00", "dated in the future"),
        ("2026-03-01T12:00:00", "no time zone"),
        ("yesterday", "is no time"),
        ("", "is no time"),
        ("0001-01-01T00:00:00+23:59", "is no time"),
    ],
)
def test_a_verdict_with_an_impossible_date_is_wrong(shelf: Shelf, date: str, words: str) -> None:
    shelf.attest()

    def dated(said: Json) -> None:
        said["predicate"]["date"] = date  # type: ignore[index,call-overload]

    shelf.resign(dated, kind=VERDICT_TYPE)
    assert words in seen(shelf.check(), Part.VERDICT)
    assert shelf.kind() == "10 invalid-verdict"


def test_clocks_may_differ_by_minutes(shelf: Shelf) -> None:
    date = (NOW + timedelta(minutes=4)).isoformat()
    shelf.attest(verdict(shelf.sha256, date=date))
    assert "0 minutes ago" in seen(shelf.check(), Part.VERDICT)
    assert shelf.kind() == ACCEPTED


@pytest.mark.parametrize(
    ("started", "finished", "kind"),
    [
        ("2026-03-01T11:00:00Z", "2026-03-01T11:30:00Z", ACCEPTED),
        ("2026-03-01T11:00:00Z", "", ACCEPTED),
        ("2026-03-02T00:00:00Z", "", "10 invalid-verdict"),  # the verdict is a day older
        ("2026-03-01T11:30:00Z", "2026-03-01T11:00:00Z", "9 invalid-provenance"),
        ("2027-03-01T11:00:00Z", "", "9 invalid-provenance"),
        ("", "2027-03-01T11:00:00Z", "9 invalid-provenance"),
        ("noon", "", "9 invalid-provenance"),
    ],
)
def test_a_build_has_times_that_fit(shelf: Shelf, started: str, finished: str, kind: str) -> None:
    shelf.run = Invocation(started=started, finished=finished)
    assert shelf.attest().kind() == kind


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"failure": "wrong-numbers"}, "this failed: wrong-numbers"),
        ({"device": None}, "names no device"),
        ({"device": replace(cli_kit.DEVICE, software=True)}, "its device is software"),
        ({"state": State.VERIFIED_SOFTWARE}, "its device is hardware"),
        (
            {"checks": (Check(name="tokens", outcome=Outcome.FAIL, expected="a", seen="b",
                              source="log"),)},
            "this failed: tokens",
        ),
        ({"schema": "https://llamawright.dev/schema/verdict-9.json"}, "this version reads"),
    ],
)  # fmt: skip
def test_a_verdict_that_contradicts_itself_is_wrong(
    shelf: Shelf, changes: dict[str, object], words: str
) -> None:
    shelf.attest(verdict(shelf.sha256, **changes))
    assert words in seen(shelf.check(), Part.VERDICT)
    assert shelf.kind() == "10 invalid-verdict"


@pytest.mark.parametrize(
    "state", [State.UNVERIFIED, State.CANNOT_VERIFY, State.FAILED, State.QUARANTINED]
)
def test_a_genuine_verdict_that_says_no_is_refused_and_not_wrong(
    shelf: Shelf, state: State
) -> None:
    shelf.attest(verdict(shelf.sha256, state=state, why="the card was busy"))
    found = shelf.check()
    assert standing(found, Part.VERDICT) is Standing.REFUSED
    assert "the card was busy" in seen(found, Part.VERDICT)
    assert shelf.kind() == "10 not-verified"


def test_software_counts_until_hardware_is_asked_for(shelf: Shelf) -> None:
    shelf.attest(on_software(shelf.sha256))
    found = shelf.check()
    assert "verified-software on llvmpipe" in seen(found, Part.VERDICT)
    assert any("no hardware was there" in f.proves for f in found)
    assert shelf.kind() == ACCEPTED
    assert shelf.kind(hardware=True) == "10 not-verified"


@pytest.mark.parametrize(("days", "kind"), [(0, ACCEPTED), (3.5, ACCEPTED), (2, "10 not-verified")])
def test_an_old_verdict_is_refused_when_asked(shelf: Shelf, days: float, kind: str) -> None:
    assert shelf.attest().kind(max_age_days=days) == kind


def test_several_devices_have_a_line_each(shelf: Shelf, mine: PrivateKey) -> None:
    shelf.attest()
    second = statement_bytes(VERDICT_TYPE, shelf.sha256, on_software(shelf.sha256))
    line = json.loads(dsse.encode(dsse.seal(second, (mine,))))
    shelf.rewrite([*shelf.lines(), line])
    found = shelf.check()
    told = [f.seen for f in found if f.part is Part.VERDICT and not f.signature]
    assert [t.split(",")[0] for t in told] == [
        "verified on Imaginary GPU 9000", "verified-software on llvmpipe",
    ]  # fmt: skip
    assert shelf.kind() == ACCEPTED


def test_one_statement_without_a_trusted_signature_is_enough_to_refuse(
    shelf: Shelf, theirs: PrivateKey
) -> None:
    shelf.attest()
    shelf.resign(lambda _said: None, kind=VERDICT_TYPE, by=theirs)
    assert shelf.kind() == "10 unknown-signer"


def test_the_sbom_beside_must_be_the_signed_one(shelf: Shelf) -> None:
    shelf.attest()
    told = json.loads(shelf.sbom.read_text())
    # Nothing that the manifest could contradict: only the signature knows.
    told["components"][0]["licenses"] = []
    shelf.sbom.write_text(json.dumps(told))
    assert "not the SBOM that the statement speaks of" in seen(shelf.check(), Part.SBOM)
    assert shelf.kind() == "9 invalid-sbom"


def test_the_sbom_beside_may_be_laid_out_otherwise(shelf: Shelf) -> None:
    shelf.attest()
    shelf.sbom.write_text(json.dumps(json.loads(shelf.sbom.read_text()), indent=7))
    assert shelf.kind() == ACCEPTED


def test_a_signed_sbom_that_disagrees_with_the_file_is_wrong(shelf: Shelf) -> None:
    shelf.attest()

    def forget(said: Json) -> None:
        said["predicate"]["components"].pop()  # type: ignore[index,union-attr,call-overload]

    shelf.resign(forget, kind=SBOM_TYPE)
    shelf.sbom.unlink()
    assert "left out" in seen(shelf.check(), Part.SBOM)
    assert shelf.kind() == "9 invalid-sbom"


def test_an_sbom_without_a_statement_is_unsigned(shelf: Shelf) -> None:
    shelf.attest()
    shelf.rewrite([x for x in shelf.lines() if payload(x)["predicateType"] != SBOM_TYPE])
    found = shelf.check()
    assert standing(found, Part.SBOM) is Standing.VALID
    assert standing(found, Part.SBOM, signature=True) is Standing.UNSIGNED
    assert shelf.kind() == "9 unsigned"
    assert shelf.kind(Trust()) == ACCEPTED


def test_a_provenance_of_another_build_is_wrong(shelf: Shelf) -> None:
    shelf.attest()

    def other(said: Json) -> None:
        said["predicate"]["buildDefinition"]["internalParameters"]["key"] = "0" * 64  # type: ignore[index,call-overload]

    shelf.resign(other, kind=PROVENANCE_TYPE)
    assert seen(shelf.check(), Part.PROVENANCE) == "internalParameters is not that of the manifest"
    assert shelf.kind() == "9 invalid-provenance"


def test_invalid_comes_before_missing_and_unknown(shelf: Shelf, theirs: PrivateKey) -> None:
    shelf.attest(prove=False)
    shelf.sbom.write_text("{}")
    assert shelf.kind(Trust(keys=(theirs.public,))) == "9 invalid-sbom"


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (-3, "0 minutes"), (0, "0 minutes"), (1, "1 minute"), (59, "59 minutes"), (60, "1 hour"),
        (1439, "23 hours"), (1440, "1 day"), (1440 * 400, "400 days"),
    ],
)  # fmt: skip
def test_ages_are_told_in_their_largest_unit(minutes: int, words: str) -> None:
    assert told_age(timedelta(minutes=minutes)) == words


def test_the_kit_s_dates_are_what_the_tests_think(shelf: Shelf) -> None:
    assert NOW.isoformat() > PROVED
