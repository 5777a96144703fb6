"""Writing statements: all of them or none, and never a half one; what a file is opened as."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attest_kit import BSD, Shelf, key, packed, payload, tree, verdict, wheel
from llamawright import codec
from llamawright.attest import Invocation, attestation, open_subject, read_claim, write
from llamawright.attest.keys import PrivateKey
from llamawright.attest.making import Attestation
from llamawright.attest.opening import Subject
from llamawright.attest.statement import PROVENANCE_TYPE, SBOM_TYPE, VERDICT_TYPE
from llamawright.digest import sha256_file
from llamawright.errors import PackageError

as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="modes do not bind this user"
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module")
def subject(original: Path) -> Subject:
    return open_subject(original)


@pytest.fixture(scope="module")
def made(subject: Subject) -> Attestation:
    return attestation(subject, None, Invocation())


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    return key(tmp_path_factory.mktemp("mine"))


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_there_is_one_statement_for_each_matter(subject: Subject) -> None:
    claim = read_claim(codec.encode(verdict(subject.sha256)).encode(), subject, what="v")
    told = attestation(subject, claim, Invocation())
    said = [json.loads(p) for p in told.payloads]
    assert [s["predicateType"] for s in said] == [PROVENANCE_TYPE, SBOM_TYPE, VERDICT_TYPE]
    for one in said:
        assert one["subject"] == [{"name": subject.name, "digest": {"sha256": subject.sha256}}]
    assert said[1]["predicate"] == json.loads(told.sbom)


def test_without_a_verdict_nothing_is_said_about_one(made: Attestation) -> None:
    kinds = [json.loads(p)["predicateType"] for p in made.payloads]
    assert kinds == [PROVENANCE_TYPE, SBOM_TYPE]


def test_the_files_have_the_name_of_the_file_with_more_behind_it(
    tmp_path: Path, made: Attestation
) -> None:
    files = write(tmp_path / "a.tar.zst", made, signers=(), keyless=None)
    assert [f.name for f in files] == ["a.tar.zst.cdx.json", "a.tar.zst.intoto.jsonl"]
    assert names(tmp_path) == {f.name for f in files}


def test_each_statement_is_one_line_that_ends(
    tmp_path: Path, made: Attestation, mine: PrivateKey
) -> None:
    write(tmp_path / "a", made, signers=(mine,), keyless=None)
    data = (tmp_path / "a.intoto.jsonl").read_bytes()
    assert data.endswith(b"\n")
    assert b"\r" not in data
    assert data.count(b"\n") == len(made.payloads)
    for line in data.splitlines():
        assert payload(json.loads(line))


def test_what_lay_there_is_replaced_and_not_added_to(
    tmp_path: Path, made: Attestation, mine: PrivateKey
) -> None:
    place = tmp_path / "a"
    for signers in ((), (mine,), (mine,)):
        write(place, made, signers=signers, keyless=None)
        lines = (tmp_path / "a.intoto.jsonl").read_bytes().splitlines()
        assert len(lines) == 2
        assert all(len(json.loads(x)["signatures"]) == len(signers) for x in lines)


def test_a_key_that_fails_leaves_what_was_there(tmp_path: Path, made: Attestation) -> None:
    class Broken:
        keyid = "k"

        def sign(self, _data: bytes) -> bytes:
            raise OSError("the token was pulled out")

    write(tmp_path / "a", made, signers=(), keyless=None)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(OSError, match="pulled out"):
        write(tmp_path / "a", made, signers=(Broken(),), keyless=None)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, made: Attestation, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    write(tmp_path / "a", made, signers=(), keyless=None)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    calls: list[int] = []

    def full(_handle: int) -> None:
        calls.append(1)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    changed = Attestation(sbom="{}", payloads=made.payloads[:1])
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "a", changed, signers=(), keyless=None)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_run_killed_between_the_two_renames_is_seen_and_mended(
    tmp_path: Path, mine: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(path=packed(tmp_path), keys=(mine,)).attest()
    shelf.sbom.write_text("{}")  # the SBOM of another run; the statements are still the old ones
    assert shelf.kind() == "9 invalid-sbom"
    assert shelf.attest().kind() == ""


def test_parts_of_a_killed_run_do_no_harm(tmp_path: Path, mine: PrivateKey) -> None:
    shelf = Shelf(path=packed(tmp_path), keys=(mine,))
    shelf.path.with_name(f".{shelf.statements.name}.1234.part").write_text("half")
    assert shelf.attest().kind() == ""


def test_an_archive_is_opened_with_its_licences(subject: Subject, original: Path) -> None:
    assert subject.sha256 == sha256_file(original)
    assert subject.size == original.stat().st_size
    texts = dict(subject.licenses)
    assert texts["licenses/vendor-x-LICENSE"] == BSD
    assert set(texts) == {
        "licenses/LICENSE", "licenses/AUTHORS", "licenses/vendor-x-LICENSE",
    }  # fmt: skip


def test_opening_leaves_nothing_behind(tmp_path: Path) -> None:
    path = packed(tmp_path)
    before = names(tmp_path)
    open_subject(path)
    assert names(tmp_path) == before


def test_opening_what_is_damaged_leaves_nothing_behind(tmp_path: Path) -> None:
    path = packed(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    before = names(tmp_path)
    with pytest.raises(PackageError):
        open_subject(path)
    assert names(tmp_path) == before


@as_root
def test_a_folder_that_cannot_be_written_into_is_no_hindrance(tmp_path: Path) -> None:
    path = packed(tmp_path / "ro")
    path.parent.chmod(0o555)
    try:
        assert open_subject(path).name == path.name
    finally:
        path.parent.chmod(0o755)


@pytest.mark.parametrize("make", [packed, wheel])
def test_only_the_beginning_of_a_long_licence_is_read(
    tmp_path: Path, make: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def long(root: Path) -> Path:
        made = tree(root)
        (made / "licenses" / "LICENSE").write_text("MIT License\n" + "x" * 100_000)
        return made

    monkeypatch.setattr("attest_kit.tree", long)
    texts = dict(open_subject(make(tmp_path)).licenses)
    assert len(texts["licenses/LICENSE"]) == 16 << 10


def test_a_licence_in_another_encoding_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def latin(root: Path) -> Path:
        made = tree(root)
        (made / "licenses" / "LICENSE").write_bytes(b"MIT License\n\nCopyright Ren\xe9\n")
        return made

    monkeypatch.setattr("attest_kit.tree", latin)
    shelf = Shelf(path=packed(tmp_path)).attest(prove=False)
    assert '"id": "MIT"' in shelf.sbom.read_text()


def test_a_claim_is_kept_as_it_was_written(subject: Subject) -> None:
    """Not decoded and written anew: a number's spelling is part of what was said."""
    text = codec.encode(verdict(subject.sha256, seconds=47.600000000000001)).encode()
    assert read_claim(text, subject, what="v") == json.loads(text)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "invalid-verdict"), (b"[]", "invalid-verdict"), (b"\xff", "invalid-verdict"),
        (b'{"state":"verified"}', "invalid-verdict"), (b"[" * 99_999, "invalid-verdict"),
        (codec.encode(verdict("e" * 64)).encode(), "other-artifact"),
        (codec.encode(verdict("")).encode(), "other-artifact"),
    ],
)  # fmt: skip
def test_a_claim_that_is_none_or_another_file_s_is_refused(
    subject: Subject, data: bytes, kind: str
) -> None:
    with pytest.raises(PackageError) as caught:
        read_claim(data, subject, what="v.json")
    assert caught.value.kind == kind
    assert "v.json" in caught.value.what
    assert caught.value.hint
