"""The same comparison twice on the same device: a healthy one says the same twice. Pure."""

from __future__ import annotations

import math

from llamawright.model.verdict import Numbers
from llamawright.verify.evidence import Evidence, Kind, grade, make_evidence


def same_again(
    label: str, first: Numbers | None, second: Numbers | None, *, most: float
) -> Evidence:
    """Judge whether a repeated run gave the same numbers, ``most`` nats apart in any chunk.

    Two runs that are wrong in the same way are not flaky: NaN twice is the same twice.
    """
    gap = _gap(first, second)
    return make_evidence(
        Kind.REPEAT,
        f"the same again, {label}",
        grade(readable=gap is not None, passed=gap is not None and gap <= most),
        expected=f"no chunk's KL divergence differs by more than {most:g} nats",
        seen=_told(first, second, gap),
        source="llama-perplexity, run twice",
    )


def _gap(first: Numbers | None, second: Numbers | None) -> float | None:
    """Return the largest difference of any chunk, ``None`` when a table is missing or short."""
    if first is None or second is None or len(first.per_chunk) != len(second.per_chunk):
        return None
    gaps = [_apart(a, b) for a, b in zip(first.per_chunk, second.per_chunk, strict=True)]
    return max(gaps, default=None)


def _apart(a: float, b: float) -> float:
    if math.isfinite(a) and math.isfinite(b):
        # Means of the printed rows: their last digit decides nothing.
        return round(abs(a - b), 6)
    same = a == b or (math.isnan(a) and math.isnan(b))
    return 0.0 if same else math.inf


def _told(first: Numbers | None, second: Numbers | None, gap: float | None) -> str:
    if gap is None:
        return "a table is missing or short"
    if gap == 0 and first is not None and second is not None and first.top1 == second.top1:
        return "the same to the last digit"
    return f"{gap:.5f} nats apart"
