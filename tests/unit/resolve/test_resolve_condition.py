"""The conditions by which a plan selects patches."""

from __future__ import annotations

import re

import pytest

from llamawright.model.condition import fault, holds

FACTS = {"vulkan-headers": "239", "backend": "vulkan"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("vulkan-headers < 272", True),
        ("vulkan-headers < 239", False),
        ("vulkan-headers<=239", True),
        ("vulkan-headers >= 240", False),
        ("vulkan-headers > 238", True),
        ("vulkan-headers == 239", True),
        ("  backend == vulkan ", True),
        ("backend == cuda", False),
    ],
)
def test_a_condition_is_asked_of_the_facts(condition: str, expected: bool) -> None:
    assert holds(condition, FACTS) is expected
    assert fault(condition) == ""


def test_numbers_are_compared_as_numbers() -> None:
    assert holds("vulkan-headers < 1000", FACTS)


def test_a_fact_the_build_does_not_have_never_holds() -> None:
    assert not holds("vulkan-headers < 272", {"backend": "cpu"})


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("", "is no condition"),
        ("vulkan-headers", "is no condition"),
        ("vulkan-headers < 272 or more", "is no condition"),
        ("vulkan-header < 272", "'vulkan-header' is unknown; one of: vulkan-headers, backend"),
        ("vulkan-headers < new", "'new' is no whole number"),
        ("vulkan-headers < 1.3.272", "'1.3.272' is no whole number"),
        ("vulkan-headers < \u0663", "is no whole number"),
        ("backend < vulkan", "compare it with =="),
    ],
)
def test_a_condition_nobody_can_ask_is_a_fault(condition: str, said: str) -> None:
    assert said in fault(condition)
    with pytest.raises(ValueError, match=re.escape(said)):
        holds(condition, FACTS)
