"""Sigstore's part, with a library made of fakes: who may sign, what is checked, what is told."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Self

import pytest

from attest_kit import Shelf, key, packed, payload, standing
from llamawright.attest import (
    Invocation,
    Part,
    Standing,
    Trust,
    attestation,
    dsse,
    keyless,
    open_subject,
    write,
)
from llamawright.errors import DownloadError, LlamawrightError, ToolMissingError, UsageError

ME, ISSUER = "https://github.com/o/r/.github/workflows/x.yml@refs/tags/v1", "https://issuer"


@dataclass
class Fake:
    """The parts of the library that are used; each can be made to fail."""

    credential: Callable[[], object] = lambda: "token"
    signing: Exception | None = None
    signer: str = ME
    kind: str = dsse.PAYLOAD_TYPE
    other: bytes = b""
    roots: list[str] = field(default_factory=list)

    def install(self, patch: pytest.MonkeyPatch) -> Fake:
        parts: dict[str, object] = {
            "oidc": SimpleNamespace(
                detect_credential=lambda: self.credential(),  # noqa: PLW0108 - changed later
                IdentityToken=lambda t: t,
            ),
            "models": SimpleNamespace(
                ClientTrustConfig=SimpleNamespace(production=lambda: "config"),
                TrustedRoot=SimpleNamespace(from_file=self._root),
                Bundle=SimpleNamespace(from_json=json.loads),
            ),
            "sign": SimpleNamespace(
                SigningContext=SimpleNamespace(from_trust_config=lambda _c: self)
            ),
            "dsse": SimpleNamespace(Statement=lambda data: data),
            "verify": SimpleNamespace(Verifier=self._verifier()),
            "verify.policy": SimpleNamespace(Identity=lambda **who: who),
        }
        for name, part in parts.items():
            module = ModuleType(f"sigstore.{name}")
            module.__dict__.update(vars(part))
            patch.setitem(sys.modules, module.__name__, module)
        patch.setitem(sys.modules, "sigstore", ModuleType("sigstore"))
        return self

    def context_signer(self, _token: str) -> Fake:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def sign_dsse(self, data: bytes) -> object:
        if self.signing:
            raise self.signing
        return SimpleNamespace(to_json=lambda: self.bundle(data))

    def bundle(self, data: bytes) -> str:
        line = json.loads(dsse.encode(dsse.seal(data, ())))
        line["signatures"] = [{"sig": base64.b64encode(b"s" * 64).decode()}]
        return json.dumps({"mediaType": "x", "dsseEnvelope": line, "by": self.signer})

    def _root(self, path: str) -> str:
        self.roots.append(path)
        return path

    def _verifier(self) -> object:
        fake = self

        class Verifier:
            def __init__(self, *, trusted_root: str) -> None:
                self.root = trusted_root

            @classmethod
            def production(cls, *, offline: bool) -> Verifier:
                assert offline
                return cls(trusted_root="built in")

            def verify_dsse(self, bundle: dict[str, object], who: dict[str, str]) -> object:
                if bundle["by"] != who["identity"] or who["issuer"] != ISSUER:
                    raise RuntimeError("Certificate's SANs do not match")
                line = bundle["dsseEnvelope"]
                data = base64.b64decode(line["payload"])  # type: ignore[index]
                return fake.kind, fake.other or data

        return Verifier


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    made.install(monkeypatch)
    context = SimpleNamespace(signer=made.context_signer)
    module = sys.modules["sigstore.sign"]
    module.__dict__["SigningContext"] = SimpleNamespace(from_trust_config=lambda _c: context)
    return made


@pytest.fixture
def shelf(tmp_path: Path, fake: Fake) -> Shelf:
    made = Shelf(path=packed(tmp_path))
    write_keyless(made)
    return made


def write_keyless(shelf: Shelf) -> None:
    subject = open_subject(shelf.path)
    from attest_kit import verdict
    from llamawright import codec
    from llamawright.attest import read_claim

    text = codec.encode(verdict(subject.sha256)).encode()
    made = attestation(subject, read_claim(text, subject, what="v"), Invocation())
    write(shelf.path, made, signers=shelf.keys, keyless=keyless.ambient_signer())


def reader(**changes: object) -> Trust:
    words: dict[str, object] = {"identity": ME, "issuer": ISSUER, **changes}
    return Trust(identity=keyless.IdentityReader(**words))  # type: ignore[arg-type]


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigstore", None)
    for call in (keyless.ambient_signer, keyless.require_library):
        with pytest.raises(ToolMissingError) as caught:
            call()
        assert caught.value.kind == "no-sigstore"
        assert "llamawright[sigstore]" in caught.value.hint


def test_where_nobody_vouches_for_the_caller_it_is_refused(fake: Fake) -> None:
    for credential in (lambda: None, lambda: "", lambda: 1 / 0):
        fake.credential = credential
        with pytest.raises(UsageError) as caught:
            keyless.ambient_signer()
        assert caught.value.kind == "no-identity"
        assert "id-token: write" in caught.value.hint
        assert "--key" in caught.value.hint


def test_a_failure_of_the_service_is_a_download_error(fake: Fake) -> None:
    fake.signing = OSError("no route to host")
    with pytest.raises(DownloadError) as caught:
        keyless.ambient_signer().bundle(b"{}")
    assert (int(caught.value.code), caught.value.kind) == (6, "sigstore")
    assert "no route to host" in caught.value.why


def test_a_service_that_fails_leaves_no_file(fake: Fake, tmp_path: Path) -> None:
    shelf = Shelf(path=packed(tmp_path))
    fake.signing = OSError("no route to host")
    with pytest.raises(LlamawrightError):
        write_keyless(shelf)
    assert not shelf.sbom.exists()
    assert not shelf.bundles.exists()
    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".part")]


def test_bundles_lie_in_a_file_of_their_own(shelf: Shelf) -> None:
    assert not shelf.statements.exists()
    kinds = [payload(x["dsseEnvelope"])["predicateType"] for x in bundles(shelf)]  # type: ignore[arg-type]
    assert len(kinds) == len(set(kinds)) == 3


def bundles(shelf: Shelf) -> list[dict[str, object]]:
    return [json.loads(line) for line in shelf.bundles.read_bytes().splitlines()]


def test_the_identity_that_signed_is_accepted(shelf: Shelf) -> None:
    found = shelf.check(reader())
    assert standing(found, Part.VERDICT, signature=True) is Standing.VALID
    assert any(ME in f.seen for f in found)
    assert shelf.kind(reader()) == ""


def test_without_an_identity_the_signer_is_not_checked(shelf: Shelf) -> None:
    found = shelf.check(Trust())
    assert standing(found, Part.VERDICT, signature=True) is Standing.NOT_CHECKED
    assert shelf.kind(Trust()) == ""


def test_a_trusted_key_does_not_cover_what_only_sigstore_signed(
    shelf: Shelf, tmp_path: Path
) -> None:
    trust = Trust(keys=(key(tmp_path / "keys").public,))
    assert shelf.kind(trust) == "9 unknown-signer"


def test_another_identity_or_issuer_is_refused(shelf: Shelf) -> None:
    for trust in (reader(identity="somebody"), reader(issuer="https://elsewhere")):
        found = shelf.check(trust)
        assert standing(found, Part.VERDICT, signature=True) is Standing.INVALID
        assert "do not match" in next(f.seen for f in found if f.signature)
        assert shelf.kind(trust) == "9 bad-signature"


def test_a_signature_over_other_bytes_or_another_type_is_refused(shelf: Shelf, fake: Fake) -> None:
    fake.other = b"{}"
    assert shelf.kind(reader()) == "9 bad-signature"
    fake.other, fake.kind = b"", "text/plain"
    assert shelf.kind(reader()) == "9 bad-signature"


def test_a_root_of_one_s_own_is_used(shelf: Shelf, fake: Fake, tmp_path: Path) -> None:
    assert shelf.kind(reader(root=tmp_path / "root.json")) == ""
    assert set(fake.roots) == {str(tmp_path / "root.json")}


@pytest.mark.parametrize("line", ["{}", "[]", "{", '{"messageSignature":{}}', '{"dsseEnvelope":1}'])
def test_what_is_no_bundle_is_told(shelf: Shelf, line: str) -> None:
    shelf.bundles.write_text(line)
    assert shelf.kind(reader()) == "9 invalid-statements"


def test_key_and_sigstore_together_satisfy_either(fake: Fake, tmp_path: Path) -> None:
    shelf = Shelf(path=packed(tmp_path), keys=(key(tmp_path / "keys"),))
    write_keyless(shelf)
    assert shelf.statements.exists()
    assert shelf.bundles.exists()
    assert shelf.kind() == ""
    assert shelf.kind(reader()) == ""
