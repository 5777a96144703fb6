"""The upstream room: what two source trees tell about themselves, and how they differ."""

from llamawright.upstream.compare import Expected, compare_trees
from llamawright.upstream.report import pin_block, report_page, with_pin
from llamawright.upstream.survey import Survey, survey

__all__ = [
    "Expected",
    "Survey",
    "compare_trees",
    "pin_block",
    "report_page",
    "survey",
    "with_pin",
]
