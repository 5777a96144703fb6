"""Lines of the kernel's log to events of a device. Pure.

The words are those of the drivers themselves: ``NVRM: Xid`` (NVIDIA's Xid catalogue),
``amdgpu_device_gpu_recover`` and ``amdgpu_job_timedout`` (amdgpu), ``GPU HANG`` and
``Resetting`` (i915), ``reset started`` (xe), ``wedged`` (drm_dev_wedged_event, Linux 6.15),
``killed`` (nouveau).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llamawright.model.soak import KernelEvent, Tie
from llamawright.verify.nvidia import normal_pci

MOST_TEXT = 240
MOST_LINE = 1000
WORDS = (
    ("xid", re.compile(r"NVRM: Xid \(")),
    (
        "lost",
        re.compile(
            r"NVRM: .*fallen off the bus"
            r"|(?:NVRM|nvidia|amdgpu|radeon|i915|xe|nouveau|drm|GPU).*"
            r"\bdevice (?:is )?(?:lost|wedged)",
            re.IGNORECASE,
        ),
    ),
    (
        "reset",
        re.compile(
            r"(?:amdgpu|radeon)\b.*\bGPU (?:soft ?)?reset|VRAM is lost"
            r"|\bi915\b.*\bResetting (?:chip|[rbv]cs\d|ccs\d|vecs\d)"
            r"|\bxe\b.*\bGT\d+: .*\breset started|NVRM: .*\bGPU reset",
            re.IGNORECASE,
        ),
    ),
    (
        "hang",
        re.compile(
            r"\bGPU HANG\b|\*ERROR\* ring \S+ timeout|amdgpu.*\bring \S+ timeout"
            r"|\bxe\b.*\bTimedout job|\bnouveau\b.*\bchannel \d+.*\bkilled"
        ),
    ),
)
# With or without its function: NVIDIA's Xid lines leave that out.
PLACE = re.compile(r"\b([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?\b", re.IGNORECASE)


def read_events(lines: Iterable[str], *, pci: str, at: float) -> tuple[KernelEvent, ...]:
    """Return the events of a log's lines; ``pci`` is the device's place, empty if unknown."""
    found = []
    for whole in lines:
        # The kernel's own lines are shorter than this; patterns over more would take minutes.
        line = whole[:MOST_LINE]
        kind = next((k for k, pattern in WORDS if pattern.search(line)), "")
        if kind:
            place = place_of(line)
            text = line.strip()[:MOST_TEXT]
            found.append(KernelEvent(kind=kind, text=text, pci=place, tie=tie(place, pci), at=at))
    return tuple(found)


def place_of(line: str) -> str:
    """Return the PCI place that a line names, function 0 where it leaves that out."""
    match = PLACE.search(line)
    return normal_pci(f"{match[1]}{match[2] or '.0'}") if match else ""


def tie(place: str, pci: str) -> Tie:
    """Tell whose event it is: functions of one card (its sound, its USB) are one device."""
    if not place or not pci:
        return Tie.UNNAMED
    same = place.rpartition(".")[0] == normal_pci(pci).rpartition(".")[0]
    return Tie.OURS if same else Tie.OTHER
