"""The detect room: the machine as it is, every candidate found or rejected with the reason."""

from __future__ import annotations

from llamawright.detect.host import detect_platform
from llamawright.detect.loader import usable_vulkan_drivers, vulkan_notes
from llamawright.detect.survey import take_inventory

__all__ = ["detect_platform", "take_inventory", "usable_vulkan_drivers", "vulkan_notes"]
