"""The Dead Simple Signing Envelope, version 1.0.2 (github.com/secure-systems-lab/dsse).

What is signed is the payload *and its type*, so that bytes signed as one kind of document
can never be shown as another.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Protocol

from llamawright.attest import strict
from llamawright.digest import Plain

PAYLOAD_TYPE = "application/vnd.in-toto+json"
# Nobody signs one statement with more keys; each costs a verification.
SIGNATURE_LIMIT = 16


class Signer(Protocol):
    """A key that can sign; ``keyid`` is the sha256 of its public half in DER."""

    @property
    def keyid(self) -> str:
        """Return the name that the signature carries."""

    def sign(self, data: bytes) -> bytes:
        """Return the signature over ``data``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One signature; ``keyid`` is only a hint until the key it names has checked ``sig``."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A payload with its type and signatures; none when it was made with ``--unsigned``."""

    payload: bytes
    payload_type: str = PAYLOAD_TYPE
    signatures: tuple[Signature, ...] = ()

    @property
    def signed(self) -> bytes:
        """Return the bytes that a signature is over."""
        return encoded_for_signing(self.payload_type, self.payload)


def encoded_for_signing(payload_type: str, payload: bytes) -> bytes:
    """Return the specification's pre-authentication encoding (PAE)."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload: bytes, signers: tuple[Signer, ...]) -> Envelope:
    """Sign a payload with every key; with none it stays unsigned."""
    data = encoded_for_signing(PAYLOAD_TYPE, payload)
    made = tuple(Signature(keyid=s.keyid, sig=s.sign(data)) for s in signers)
    return Envelope(payload=payload, signatures=made)


def encode(envelope: Envelope) -> bytes:
    """Return the envelope as one line of JSON, without its end."""
    signatures: list[Plain] = [
        {"keyid": s.keyid, "sig": base64.b64encode(s.sig).decode()} for s in envelope.signatures
    ]
    return strict.compact(
        {
            "payload": base64.b64encode(envelope.payload).decode(),
            "payloadType": envelope.payload_type,
            "signatures": signatures,
        }
    )


def decode(value: Plain) -> Envelope:
    """Read an envelope; raises ``ValueError`` for a field too many, too few or misspelt."""
    told = strict.fields(value, "the envelope", "payload", "payloadType", "signatures")
    signatures = told["signatures"]
    if not isinstance(signatures, list) or len(signatures) > SIGNATURE_LIMIT:
        raise ValueError(f"its signatures are no list of at most {SIGNATURE_LIMIT}")
    payload_type = strict.text(told["payloadType"], "payloadType")
    if payload_type != PAYLOAD_TYPE:
        raise ValueError(f"its payload is {payload_type[:60]!r}, not {PAYLOAD_TYPE}")
    return Envelope(
        payload=strict.base64_bytes(told["payload"], "the payload"),
        signatures=tuple(map(_signature, signatures)),
    )


def _signature(value: Plain) -> Signature:
    told = strict.fields(value, "a signature", "sig", optional=("keyid",))
    return Signature(
        keyid=strict.text(told.get("keyid", ""), "keyid"),
        sig=strict.base64_bytes(told["sig"], "a signature"),
    )
