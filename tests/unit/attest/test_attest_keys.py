"""Keys: made once, read strictly, refused with a sentence when they are something else."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)

from llamawright.attest.keys import PRIVATE_NAME, PUBLIC_NAME, generate, load_private, load_public
from llamawright.digest import sha256_bytes
from llamawright.errors import UsageError

PrivateKey = (
    rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed448.Ed448PrivateKey | x25519.X25519PrivateKey
)
OTHERS: dict[str, PrivateKey] = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "ecdsa": ec.generate_private_key(ec.SECP256R1()),
    "ed448": ed448.Ed448PrivateKey.generate(),
    "x25519": x25519.X25519PrivateKey.generate(),
}


def kind(call: object, *arguments: object) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments)  # type: ignore[operator]
    assert int(caught.value.code) == 2
    assert caught.value.hint
    return caught.value.kind


def test_a_pair_signs_and_checks(tmp_path: Path) -> None:
    private, public = generate(tmp_path / "deep" / "keys", None)
    assert (private.name, public.name) == (PRIVATE_NAME, PUBLIC_NAME)
    mine, known = load_private(private, None), load_public(public)
    assert known.fits(mine.sign(b"x"), b"x")
    assert not known.fits(mine.sign(b"x"), b"y")
    assert mine.keyid == known.keyid
    assert known.name == PUBLIC_NAME


def test_the_name_of_a_key_is_the_digest_of_its_der(tmp_path: Path) -> None:
    _, public = generate(tmp_path, None)
    der = load_pem_public_key(public.read_bytes()).public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    assert load_public(public).keyid == sha256_bytes(der)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_only_the_owner_can_read_the_private_key(tmp_path: Path) -> None:
    private, public = generate(tmp_path, None)
    assert stat.S_IMODE(private.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(public.stat().st_mode) & 0o200


@pytest.mark.parametrize("name", [PRIVATE_NAME, PUBLIC_NAME])
@pytest.mark.parametrize("link", [False, True])
def test_nothing_is_ever_overwritten(tmp_path: Path, name: str, link: bool) -> None:
    place = tmp_path / name
    place.symlink_to(tmp_path / "nowhere") if link else place.write_text("precious")
    assert kind(generate, tmp_path, None) == "key-exists"
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]
    assert link or place.read_text() == "precious"


def test_a_key_that_came_up_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / PUBLIC_NAME).write_text("precious")
    monkeypatch.setattr(Path, "exists", lambda _self: False)
    assert kind(generate, tmp_path, None) == "key-exists"
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == [PUBLIC_NAME]
    assert (tmp_path / PUBLIC_NAME).read_text() == "precious"


def test_an_encrypted_key_needs_its_passphrase(tmp_path: Path) -> None:
    private, public = generate(tmp_path, b"open sesame")
    assert b"ENCRYPTED PRIVATE KEY" in private.read_bytes()
    assert load_private(private, b"open sesame").keyid == load_public(public).keyid
    assert kind(load_private, private, None) == "key-encrypted"
    assert kind(load_private, private, b"") == "key-encrypted"
    assert kind(load_private, private, b"open barley") == "wrong-passphrase"


def test_a_passphrase_for_a_key_without_one_does_no_harm(tmp_path: Path) -> None:
    private, _ = generate(tmp_path, None)
    assert load_private(private, b"not needed").sign(b"")


@pytest.mark.parametrize("name", OTHERS)
def test_keys_of_another_kind_are_refused_by_name(tmp_path: Path, name: str) -> None:
    other = OTHERS[name]
    private, public = tmp_path / "other.key", tmp_path / "other.pub"
    private.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(
        other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    assert kind(load_private, private, None) == "wrong-key-type"
    assert kind(load_public, public) == "wrong-key-type"


def test_the_halves_are_not_taken_for_each_other(tmp_path: Path) -> None:
    private, public = generate(tmp_path, None)
    assert kind(load_private, public, None) == "wrong-key-type"
    assert kind(load_public, private) == "wrong-key-type"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"hello", b"\x00" * 100, b"-----BEGIN PRIVATE KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMq me@here",
    ],
)  # fmt: skip
def test_what_is_no_key_is_told_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "k"
    path.write_bytes(data)
    assert kind(load_private, path, None) in {"bad-key", "wrong-key-type"}
    assert kind(load_public, path) in {"bad-key", "wrong-key-type"}


def test_a_cut_or_damaged_encrypted_key_is_told_so(tmp_path: Path) -> None:
    private, _ = generate(tmp_path, b"x")
    lines = private.read_bytes().splitlines(keepends=True)
    private.write_bytes(b"".join([lines[0], lines[1], *lines[3:]]))
    assert kind(load_private, private, b"x") == "wrong-passphrase"


def test_no_file_and_a_folder_are_no_key(tmp_path: Path) -> None:
    assert kind(load_private, tmp_path / "none", None) == "no-key"
    assert kind(load_public, tmp_path) == "no-key"


def test_a_huge_file_is_no_key(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.truncate(40 << 20)
    assert kind(load_public, huge) == "bad-key"
