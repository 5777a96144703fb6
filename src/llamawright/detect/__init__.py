"""The detect room: the machine as it is, every candidate found or rejected with the reason."""

from __future__ import annotations

from llamawright.detect.cuda_notes import cuda_notes
from llamawright.detect.gpus import see_gpus
from llamawright.detect.host import detect_platform
from llamawright.detect.loader import usable_vulkan_drivers, vulkan_notes
from llamawright.detect.survey import take_inventory

__all__ = [
    "cuda_notes",
    "detect_platform",
    "see_gpus",
    "take_inventory",
    "usable_vulkan_drivers",
    "vulkan_notes",
]
