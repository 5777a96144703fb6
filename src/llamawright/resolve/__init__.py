"""The resolve room: a request and an inventory to a plan, or all conflicts with cures."""

from __future__ import annotations

from llamawright.resolve.differences import Difference, explain
from llamawright.resolve.plan import pin_source, resolve, source_pin

__all__ = ["Difference", "explain", "pin_source", "resolve", "source_pin"]
