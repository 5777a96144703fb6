"""The verbs keygen, attest and check: what is written, what is printed, how they end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from attest_kit import on_software, packed, payload, verdict, wheel
from cli_kit import Line, line, write_json
from llamawright.attest.statement import PROVENANCE_TYPE, VERDICT_TYPE
from llamawright.cli.attest import stem
from llamawright.digest import sha256_file

__all__ = ["line"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture
def file(line: Line, original: Path) -> Path:
    """A packed file with its verdict beside it, and a pair of keys in ``keys``."""
    path = line.root / original.name
    shutil.copyfile(original, path)
    write_json(line.root / f"{stem(path.name)}.verdict.json", verdict(sha256_file(path)))
    assert line("keygen", "keys") == 0
    return path


KEY, PUB = "keys/llamawright.key", "keys/llamawright.pub"


def statements(path: Path) -> list[dict[str, object]]:
    text = path.with_name(f"{path.name}.intoto.jsonl").read_text()
    return [payload(json.loads(x)) for x in text.splitlines()]  # type: ignore[misc]


def test_keygen_tells_what_to_keep_and_what_to_give(line: Line) -> None:
    assert line("keygen", "keys", "--json") == 0
    told = json.loads(line.out)
    assert Path(told["private"]).is_file()
    assert Path(told["public"]).is_file()
    assert len(told["keyid"]) == 64
    assert "NOT encrypted; keep it to yourself" in line.err
    assert "give it to everybody" in line.err


def test_keygen_never_overwrites(line: Line) -> None:
    assert line("keygen", "keys") == 0
    before = Path(KEY).read_bytes()
    assert line("keygen", "keys") == 2
    assert line.last == "llamawright: exit 2 (usage: key-exists)"
    assert Path(KEY).read_bytes() == before


def test_an_encrypted_key_signs_with_its_passphrase(
    line: Line, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("phrase").write_text("open sesame\n")
    assert line("keygen", "secret", "--passphrase-file", "phrase") == 0
    assert "encrypted; keep" in line.err
    key = "secret/llamawright.key"
    assert line("attest", file, "--key", key) == 2
    assert line.last.endswith("(usage: key-encrypted)")
    assert "LLAMAWRIGHT_KEY_PASSPHRASE" in line.err
    monkeypatch.setenv("LLAMAWRIGHT_KEY_PASSPHRASE", "wrong")
    assert line("attest", file, "--key", key) == 2
    assert line.last.endswith("(usage: wrong-passphrase)")
    assert "open" not in line.err.replace("open (", "")
    monkeypatch.setenv("LLAMAWRIGHT_KEY_PASSPHRASE", "open sesame")
    assert line("attest", file, "--key", key) == 0
    monkeypatch.delenv("LLAMAWRIGHT_KEY_PASSPHRASE")
    assert line("attest", file, "--key", key, "--passphrase-file", "phrase") == 0
    assert line("attest", file, "--key", key, "--passphrase-file", "none") == 2
    assert line.last.endswith("(usage: unreadable-file)")
    assert line("check", file, "--trust", "secret/llamawright.pub") == 0


def test_attest_and_check_from_end_to_end(line: Line, file: Path) -> None:
    assert line("attest", file, "--key", KEY, "--json") == 0
    told = json.loads(line.out)
    assert [Path(f).name for f in told["files"]] == [
        f"{file.name}.cdx.json", f"{file.name}.intoto.jsonl",
    ]  # fmt: skip
    assert told["verdict"] is True
    assert line("check", file, "--trust", PUB, "--json") == 0
    told = json.loads(line.out)
    assert told["accepted"] is True
    assert told["error"] is None
    by_part = {(f["part"], f["signature"]): f["standing"] for f in told["findings"]}
    assert by_part.pop(("sha256", False)) == "missing"
    assert set(by_part.values()) == {"valid"}
    assert len(by_part) == 7


def test_check_says_line_by_line_what_each_part_proves(line: Line, file: Path) -> None:
    line("attest", file, "--key", KEY)
    assert line("check", file, "--trust", PUB) == 0
    lines = line.err.splitlines()
    assert any(x.startswith("valid") and "archive" in x for x in lines)
    assert any(x.startswith("missing") and "sha256" in x for x in lines)
    assert any("verdict" in x and "verified on Imaginary GPU 9000" in x for x in lines)
    assert sum("proves: " in x for x in lines) == 7
    assert lines[-1] == f"accepted  {file.name}"


def test_without_trust_it_says_so(line: Line, file: Path) -> None:
    line("attest", file, "--key", KEY)
    assert line("check", file) == 0
    assert "signer not checked" in line.err
    assert "nobody was named to trust" in line.last


def test_a_stranger_s_key_ends_with_its_own_class(line: Line, file: Path) -> None:
    line("attest", file, "--key", KEY)
    line("keygen", "theirs")
    assert line("check", file, "--trust", "theirs/llamawright.pub", "--json") == 9
    told = json.loads(line.out)
    assert told["accepted"] is False
    assert told["error"]["class"] == "unknown-signer"
    assert "hint:" in line.err
    assert line.last == "llamawright: exit 9 (package: unknown-signer)"
    both = ("--trust", "theirs/llamawright.pub", "--trust", PUB)
    assert line("check", file, *both) == 0


def test_two_keys_sign_at_once(line: Line, file: Path) -> None:
    line("keygen", "theirs")
    assert line("attest", file, "--key", KEY, "--key", "theirs/llamawright.key") == 0
    for public in (PUB, "theirs/llamawright.pub"):
        assert line("check", file, "--trust", public) == 0


def test_unsigned_only_when_asked(line: Line, file: Path) -> None:
    assert line("attest", file) == 2
    assert line.last.endswith("(usage: no-signer)")
    assert "--unsigned" in line.err
    assert line("attest", file, "--unsigned", "--key", KEY) == 2
    assert line.last.endswith("(usage: flags-conflict)")
    assert line("attest", file, "--unsigned") == 0
    assert "UNSIGNED" in line.err
    assert line("check", file) == 0
    assert line("check", file, "--trust", PUB) == 9
    assert line.last.endswith("(package: unsigned)")


def test_sigstore_is_refused_where_nobody_vouches(line: Line, file: Path) -> None:
    code = line("attest", file, "--sigstore")
    assert (code, line.last) in {
        (4, "llamawright: exit 4 (tool-missing: no-sigstore)"),
        (2, "llamawright: exit 2 (usage: no-identity)"),
    }
    assert not file.with_name(f"{file.name}.cdx.json").exists()


def test_an_identity_needs_its_issuer(line: Line, file: Path) -> None:
    assert line("check", file, "--identity", "me") == 2
    assert line.last.endswith("(usage: flags-conflict)")


def test_another_file_s_verdict_is_not_signed(line: Line, file: Path) -> None:
    write_json(line.root / "other.json", verdict("e" * 64))
    assert line("attest", file, "--key", KEY, "--verdict", "other.json") == 9
    assert line.last.endswith("(package: other-artifact)")
    assert not file.with_name(f"{file.name}.intoto.jsonl").exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", "<html>", '{"a":1,"a":2}'])
def test_what_is_no_verdict_is_not_signed(line: Line, file: Path, text: str) -> None:
    (line.root / "v.json").write_text(text)
    assert line("attest", file, "--key", KEY, "--verdict", "v.json") == 9
    assert line.last.endswith("(package: invalid-verdict)")


def test_a_named_verdict_must_be_there_the_one_beside_need_not(line: Line, file: Path) -> None:
    assert line("attest", file, "--key", KEY, "--verdict", "none.json") == 2
    assert line.last.endswith("(usage: missing-file)")
    (line.root / f"{stem(file.name)}.verdict.json").unlink()
    assert line("attest", file, "--key", KEY) == 0
    assert "no verdict" in line.err
    assert line("check", file, "--trust", PUB) == 10
    assert line.last == "llamawright: exit 10 (verification: missing-verdict)"


def test_the_verdict_is_signed_as_it_was_written(line: Line, file: Path) -> None:
    line("attest", file, "--key", KEY)
    said = next(s for s in statements(file) if s["predicateType"] == VERDICT_TYPE)
    written = (line.root / f"{stem(file.name)}.verdict.json").read_text()
    assert said["predicate"] == json.loads(written)


def test_builder_times_and_byproducts_are_told(line: Line, file: Path) -> None:
    mine = line.root / f"{stem(file.name)}.result.json"
    mine.write_text(json.dumps({"sha256": sha256_file(file)}))
    (line.root / f"{stem(file.name)}.report.html").write_text("of an older file")
    words = ("--builder", "https://ci/1", "--invocation", "job 7")
    times = ("--started", "2026-01-01T00:00:00Z", "--finished", "2026-01-01T01:00:00Z")
    assert line("attest", file, "--key", KEY, *words, *times) == 0
    said = next(s for s in statements(file) if s["predicateType"] == PROVENANCE_TYPE)
    details = said["predicate"]["runDetails"]  # type: ignore[index]
    assert details["builder"]["id"] == "https://ci/1"
    assert details["metadata"] == {
        "invocationId": "job 7", "startedOn": "2026-01-01T00:00:00Z",
        "finishedOn": "2026-01-01T01:00:00Z",
    }  # fmt: skip
    assert [b["name"] for b in details["byproducts"]] == [mine.name]


def test_hardware_age_and_parts_can_be_required(line: Line, file: Path) -> None:
    soft = on_software(sha256_file(file))
    write_json(line.root / f"{stem(file.name)}.verdict.json", soft)
    line("attest", file, "--key", KEY)
    assert line("check", file, "--trust", PUB) == 0
    assert line("check", file, "--require-hardware") == 10
    assert line.last.endswith("(verification: not-verified)")
    assert line("check", file, "--max-age", "0.0001") == 10
    assert line("check", file, "--require", "sbom", "--require", "provenance") == 0
    assert line("check", file, "--require", "sha256") == 9
    assert line.last.endswith("(package: missing-sha256)")


def test_a_damaged_file_is_refused_by_check_and_not_attested(line: Line, file: Path) -> None:
    line("attest", file, "--key", KEY)
    file.write_bytes(file.read_bytes()[:-5])
    assert line("check", file, "--trust", PUB) == 9
    assert line.last.endswith("(package: invalid-archive)")
    assert line("attest", file, "--key", KEY) == 9
    assert line.last.endswith("(package: truncated)")


def test_no_file_ends_with_nine_and_no_key_with_two(line: Line, file: Path) -> None:
    assert line("check", "none.tar.zst") == 9
    assert line.last.endswith("(package: absent)")
    assert line("attest", "none.tar.zst", "--unsigned") == 9
    assert line("check", file, "--trust", "none.pub") == 2
    assert line.last.endswith("(usage: no-key)")
    assert line("check", file, "--trust", KEY) == 2
    assert line.last.endswith("(usage: wrong-key-type)")
    assert line("attest", file, "--key", PUB) == 2
    assert line.last.endswith("(usage: wrong-key-type)")


def test_a_wheel_from_end_to_end(line: Line, file: Path) -> None:
    path = wheel(line.root / "w")
    write_json(path.with_name(f"{stem(path.name)}.verdict.json"), verdict(sha256_file(path)))
    assert line("attest", path, "--key", KEY) == 0
    assert line("check", path, "--trust", PUB) == 0
    assert (path.parent / f"{path.name}.cdx.json").is_file()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-0.1.tar.zst", "a-0.1"), ("a-0.1.zip", "a-0.1"),
        ("a-0.1-py3-none-any.whl", "a-0.1-py3-none-any"), ("other.bin", "other.bin"),
    ],
)  # fmt: skip
def test_a_stem_keeps_the_dots_of_a_version(name: str, expected: str) -> None:
    assert stem(name) == expected
