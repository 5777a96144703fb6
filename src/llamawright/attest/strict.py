"""JSON and base64 as a signature needs them: one reading of every byte, or none.

Two readers that disagree about a document (a key that is there twice, base64 with stray
bits) are how a signature is made to speak of something else than what was signed.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from pathlib import Path

from llamawright.digest import Plain

# A verdict with all its runs is 100 KiB, an SBOM of a CUDA artifact 60 KiB.
SIZE_LIMIT = 32 << 20


def read_limited(path: Path) -> bytes:
    """Return a small file's bytes; raises ``ValueError`` when it is none."""
    with path.open("rb") as stream:
        data = stream.read(SIZE_LIMIT + 1)
    if len(data) > SIZE_LIMIT:
        raise ValueError(f"it is larger than {SIZE_LIMIT >> 20} MiB")
    return data


def load(data: bytes) -> Plain:
    """Read JSON; raises ``ValueError`` for what two readers could take differently."""
    try:
        value: Plain = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refused,
            parse_float=_finite,
        )
        # Half a surrogate pair is JSON and no text.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def compact(value: Plain) -> bytes:
    """Return JSON in the one form that is signed: sorted, without spaces, UTF-8."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8")


def fields(
    value: Plain, what: str, *names: str, optional: tuple[str, ...] = ()
) -> dict[str, Plain]:
    """Return an object that has exactly these fields."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")  # noqa: TRY004 - bad data
    missing = [n for n in names if n not in value]
    strange = sorted(set(value) - {*names, *optional})
    if missing or strange:
        told = [f"no {n}" for n in missing] + [f"an unknown {n[:40]!r}" for n in strange]
        raise ValueError(f"{what} has {', '.join(told)}")
    return value


def text(value: Plain, what: str) -> str:
    """Return a text; raises ``ValueError`` for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is no text")  # noqa: TRY004 - bad data
    return value


def base64_bytes(value: Plain, what: str) -> bytes:
    """Return what base64 stands for; only the one spelling of it is taken."""
    written = text(value, what)
    try:
        data = base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{what} is no base64: {error}") from error
    if base64.b64encode(data).decode() != written:
        raise ValueError(f"{what} is base64 with stray bits")
    return data


def _unique(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:40]!r} is there twice")
        found[name] = value
    return found


def _refused(word: str) -> Plain:
    raise ValueError(f"{word} is no number of JSON")


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written[:40]} is too large a number")
    return number
