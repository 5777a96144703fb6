"""Conditions of a patch, such as ``vulkan-headers < 272``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CONDITION = re.compile(r"\s*(?P<name>[\w-]+)\s*(?P<sign><=|>=|==|<|>)\s*(?P<value>\S+)\s*")


def holds(condition: str, facts: Mapping[str, str]) -> bool:
    """Return whether the condition holds; one about an absent fact never does."""
    parts = _CONDITION.fullmatch(condition)
    if parts is None or parts["name"] not in facts:
        return False
    have, want = facts[parts["name"]], parts["value"]
    if parts["sign"] == "==":
        return have == want
    a, b = int(have), int(want)
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[parts["sign"]]
