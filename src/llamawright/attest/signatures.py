"""Whose signature an envelope carries."""

from __future__ import annotations

from llamawright.attest.dsse import Envelope, Signature
from llamawright.attest.findings import Standing
from llamawright.attest.keys import PublicKey

_SHORT = 16


def judge(envelope: Envelope, trust: tuple[PublicKey, ...]) -> tuple[Standing, str]:
    """Return how an envelope's signatures stand, and the words for it.

    One that is false counts more than any number that are good; one by a stranger counts
    for nothing, for or against.
    """
    if not envelope.signatures:
        return Standing.UNSIGNED, "nobody signed it"
    if not trust:
        names = ", ".join(_short(s.keyid) for s in envelope.signatures)
        return Standing.NOT_CHECKED, f"signer not checked: key {names}; --trust KEY.pub checks it"
    good: list[str] = []
    for signature in envelope.signatures:
        found = _judge_one(signature, envelope.signed, trust)
        if isinstance(found, str):
            return Standing.INVALID, found
        good += [f"{key.name} ({_short(key.keyid)})" for key in found]
    if good:
        return Standing.VALID, f"signed by {', '.join(good)}"
    names = ", ".join(_short(s.keyid) for s in envelope.signatures)
    return Standing.UNKNOWN_SIGNER, f"signed by key {names}, which is none of those you trust"


def _judge_one(
    signature: Signature, data: bytes, trust: tuple[PublicKey, ...]
) -> tuple[PublicKey, ...] | str:
    """Return the trusted key that signed, none, or why the signature is false.

    The name in the envelope is signed by nobody: it must agree with what the keys say.
    """
    fitting = tuple(k for k in trust if k.fits(signature.sig, data))[:1]
    named = next((k for k in trust if k.keyid == signature.keyid), None)
    if named is not None and named not in fitting:
        return f"the signature is not that of {named.name} over these bytes"
    if fitting and signature.keyid and named is None:
        return f"it names the key {_short(signature.keyid)}, but {fitting[0].name} made it"
    return fitting


def _short(keyid: str) -> str:
    return keyid[:_SHORT] if keyid else "without a name"
