"""Envelopes: the published vectors, the round trip, and everything that is no envelope."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attest_kit import Json, key
from llamawright.attest import dsse, signatures, strict
from llamawright.attest.dsse import Envelope, Signature
from llamawright.attest.findings import Standing
from llamawright.attest.keys import PrivateKey

BODY = b'{"x":1}'


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    return key(tmp_path_factory.mktemp("mine"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    return key(tmp_path_factory.mktemp("theirs"))


def test_the_signed_bytes_are_those_of_the_specification() -> None:
    """The test vector of github.com/secure-systems-lab/dsse, protocol.md."""
    told = dsse.encoded_for_signing("http://example.com/HelloWorld", b"hello world")
    assert told == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_count_bytes_and_not_characters() -> None:
    assert dsse.encoded_for_signing("ä", b"") == b"DSSEv1 2 \xc3\xa4 0 "


@given(st.text(max_size=8), st.binary(max_size=8), st.text(max_size=8), st.binary(max_size=8))
def test_no_two_documents_share_their_signed_bytes(a: str, x: bytes, b: str, y: bytes) -> None:
    """Payload type confusion: bytes signed as one kind are never another kind's."""
    try:
        same = dsse.encoded_for_signing(a, x) == dsse.encoded_for_signing(b, y)
    except UnicodeEncodeError:
        return
    assert same is ((a, x) == (b, y))


@given(st.binary(max_size=60), st.lists(st.binary(max_size=64), max_size=3))
def test_an_envelope_comes_back_as_it_was(payload: bytes, sigs: list[bytes]) -> None:
    made = Envelope(
        payload=payload,
        signatures=tuple(Signature(keyid=str(n), sig=s) for n, s in enumerate(sigs)),
    )
    assert dsse.decode(strict.load(dsse.encode(made))) == made


def envelope(**changes: object) -> Json:
    told: dict[str, object] = {
        "payload": base64.b64encode(BODY).decode(),
        "payloadType": dsse.PAYLOAD_TYPE,
        "signatures": [{"keyid": "k", "sig": "QUI="}],
        **changes,
    }
    return told  # type: ignore[return-value]


def test_a_signature_may_come_without_a_name() -> None:
    assert dsse.decode(envelope(signatures=[{"sig": "QUI="}])).signatures[0].keyid == ""


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (envelope(payloadType="application/json"), "not application/vnd.in-toto"),
        (envelope(payloadType="application/vnd.in-toto+json "), "not application/vnd.in-toto"),
        (envelope(payloadType=None), "payloadType is no text"),
        (envelope(payload="QUI"), "the payload is no base64"),
        (envelope(payload=None), "the payload is no text"),
        (envelope(signatures={}), "no list"),
        (envelope(signatures=[{"sig": "QUI="}] * 17), "at most 16"),
        (envelope(signatures=["QUI="]), "a signature is no object"),
        (envelope(signatures=[{"keyid": "k"}]), "a signature has no sig"),
        (envelope(signatures=[{"sig": "QUI=", "cert": "x"}]), "an unknown 'cert'"),
        (envelope(signatures=[{"sig": "QUJ="}]), "stray bits"),
        (envelope(signatures=[{"sig": "QUI=", "keyid": 1}]), "keyid is no text"),
        (envelope(more=1), "an unknown 'more'"),
        ({"payload": "QUI="}, "no payloadType"),
        ([], "no object"),
        (None, "no object"),
    ],
)
def test_what_is_no_envelope_is_refused_with_its_reason(value: Json, why: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        dsse.decode(value)
    assert why in str(caught.value)


def judge(made: Envelope, *trust: PrivateKey) -> Standing:
    return signatures.judge(made, tuple(k.public for k in trust))[0]


def test_valid_unknown_unsigned_and_not_checked_are_four_words(
    mine: PrivateKey, theirs: PrivateKey
) -> None:
    signed = dsse.seal(BODY, (mine,))
    assert judge(signed, mine) is Standing.VALID
    assert judge(signed, theirs, mine) is Standing.VALID
    assert judge(signed, theirs) is Standing.UNKNOWN_SIGNER
    assert judge(signed) is Standing.NOT_CHECKED
    assert judge(dsse.seal(BODY, ()), mine) is Standing.UNSIGNED
    assert judge(dsse.seal(BODY, ())) is Standing.UNSIGNED


def test_one_of_two_signers_is_enough_and_the_stranger_does_no_harm(
    mine: PrivateKey, theirs: PrivateKey
) -> None:
    both = dsse.seal(BODY, (mine, theirs))
    assert judge(both, mine) is Standing.VALID
    assert judge(both, theirs) is Standing.VALID
    standing, told = signatures.judge(both, (mine.public, theirs.public))
    assert standing is Standing.VALID
    assert told.count("(") == 2


def test_a_false_signature_beside_a_good_one_is_false(mine: PrivateKey, theirs: PrivateKey) -> None:
    good = dsse.seal(BODY, (mine,)).signatures[0]
    false = Signature(keyid=theirs.keyid, sig=theirs.sign(b"something else"))
    made = Envelope(payload=BODY, signatures=(good, false))
    assert judge(made, mine, theirs) is Standing.INVALID
    # To somebody who does not know the second key it is a stranger's.
    assert judge(made, mine) is Standing.VALID


def test_a_signature_over_the_same_bytes_as_another_type_is_false(mine: PrivateKey) -> None:
    other = mine.sign(dsse.encoded_for_signing("application/json", BODY))
    bare = mine.sign(BODY)
    for sig in (other, bare):
        made = Envelope(payload=BODY, signatures=(Signature(keyid=mine.keyid, sig=sig),))
        assert judge(made, mine) is Standing.INVALID


def test_a_name_that_the_key_does_not_have_is_false(mine: PrivateKey, theirs: PrivateKey) -> None:
    sig = dsse.seal(BODY, (mine,)).signatures[0].sig
    wrong = Envelope(payload=BODY, signatures=(Signature(keyid="f" * 64, sig=sig),))
    assert judge(wrong, mine) is Standing.INVALID
    swapped = Envelope(payload=BODY, signatures=(Signature(keyid=theirs.keyid, sig=sig),))
    assert judge(swapped, mine, theirs) is Standing.INVALID
    nameless = Envelope(payload=BODY, signatures=(Signature(keyid="", sig=sig),))
    assert judge(nameless, mine) is Standing.VALID
    assert judge(nameless, theirs) is Standing.UNKNOWN_SIGNER


@given(st.integers(0, 63), st.integers(0, 7))
def test_every_bit_of_a_signature_counts(mine: PrivateKey, at: int, bit: int) -> None:
    good = dsse.seal(BODY, (mine,)).signatures[0]
    flipped = bytearray(good.sig)
    flipped[at] ^= 1 << bit
    made = Envelope(payload=BODY, signatures=(Signature(keyid=good.keyid, sig=bytes(flipped)),))
    assert judge(made, mine) is Standing.INVALID


@pytest.mark.parametrize("length", [0, 1, 63, 65, 1000])
def test_a_signature_of_another_length_is_false(mine: PrivateKey, length: int) -> None:
    made = Envelope(payload=BODY, signatures=(Signature(keyid=mine.keyid, sig=b"x" * length),))
    assert judge(made, mine) is Standing.INVALID


def test_a_key_signs_the_same_way_each_time(mine: PrivateKey, tmp_path: Path) -> None:
    assert dsse.encode(dsse.seal(BODY, (mine,))) == dsse.encode(dsse.seal(BODY, (mine,)))
