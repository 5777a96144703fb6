"""The conditions by which a plan selects patches."""

from __future__ import annotations

import pytest

from llamawright.model.condition import holds

FACTS = {"vulkan-headers": "239", "backend": "vulkan"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("vulkan-headers < 272", True),
        ("vulkan-headers < 239", False),
        ("vulkan-headers <= 239", True),
        ("vulkan-headers >= 240", False),
        ("vulkan-headers == 239", True),
        ("backend == vulkan", True),
        ("backend == cuda", False),
        ("cuda-toolkit < 13", False),
    ],
)
def test_a_condition_is_asked_of_the_facts(condition: str, expected: bool) -> None:
    assert holds(condition, FACTS) is expected


def test_numbers_are_compared_as_numbers() -> None:
    assert holds("vulkan-headers < 1000", FACTS)
