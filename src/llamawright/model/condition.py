"""Conditions of a patch, such as ``vulkan-headers < 272`` or ``backend == vulkan``."""

from __future__ import annotations

import re
from collections.abc import Mapping

# What a plan can be asked about: the last part of the header version, the backend's name.
NUMBERS = ("vulkan-headers",)
WORDS = ("backend",)
_CONDITION = re.compile(r"\s*(?P<name>[\w-]+)\s*(?P<sign><=|>=|==|<|>)\s*(?P<value>\S+)\s*")


def fault(condition: str) -> str:
    """Return what is wrong with a condition, or nothing: one that nobody can ask is a typo."""
    parts = _CONDITION.fullmatch(condition)
    if parts is None:
        return f"'{condition}' is no condition; write e.g. vulkan-headers < 272"
    if parts["name"] in WORDS:
        return "" if parts["sign"] == "==" else f"'{parts['name']}' is a word: compare it with =="
    if parts["name"] not in NUMBERS:
        return f"'{parts['name']}' is unknown; one of: {', '.join((*NUMBERS, *WORDS))}"
    whole = parts["value"].isascii() and parts["value"].isdigit()
    return "" if whole else f"'{parts['value']}' is no whole number"


def holds(condition: str, facts: Mapping[str, str]) -> bool:
    """Return whether the condition holds; one about an absent fact never does.

    Raises ``ValueError`` for a condition that has a ``fault``.
    """
    wrong = fault(condition)
    parts = _CONDITION.fullmatch(condition)
    if wrong or parts is None:
        raise ValueError(wrong)
    if parts["name"] not in facts:
        return False
    have, want = facts[parts["name"]], parts["value"]
    if parts["name"] in WORDS:
        return have == want
    a, b = int(have), int(want)
    return {"<": a < b, "<=": a <= b, "==": a == b, ">": a > b, ">=": a >= b}[parts["sign"]]
