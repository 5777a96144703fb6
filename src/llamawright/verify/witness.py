"""Which devices the machine itself shows, asked without the artifact, each in a child."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.model.platform import Backend
from llamawright.process import Ending, Result, ask
from llamawright.verify.patterns import CPU_DEVICE_TYPE, SOFTWARE_DRIVER_IDS, SOFTWARE_NAMES

PROBE = Path(__file__).with_name("vulkan_probe.py")
NO_LOADER_STATUS = 3
NO_DRIVER = "vkCreateInstance: -9"
LOADER_ERROR = re.compile(r"^ERROR[^:]*:\s*(.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A device as the driver shows it; ``index`` is its place in the loader's own order.

    ``capability`` is CUDA's compute capability without its dot, 0 where nobody tells it.
    """

    index: int
    name: str
    software: bool
    driver: str
    pci: str
    memory: int
    usable: bool = True
    capability: int = 0
    uuid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What was seen. ``problem`` is a class word when nothing could be seen, else empty.

    ``driver`` is the version of the one driver of all devices, where there is but one;
    ``hidden`` are devices, in words, that a variable of the user keeps from the programs.
    """

    devices: tuple[Witness, ...] = ()
    problem: str = ""
    told: str = ""
    cure: str = ""
    driver: str = ""
    hidden: tuple[str, ...] = ()

    @property
    def hardware(self) -> tuple[Witness, ...]:
        """Return the devices that are no CPU in disguise and that ggml can use."""
        return tuple(d for d in self.devices if d.usable and not d.software)


def look(backend: Backend, env: Mapping[str, str], *, seconds: float) -> Sighting:
    """Ask the machine for its devices of one backend; ``cuda_cards`` does it for CUDA."""
    match backend:
        case Backend.VULKAN:
            argv = (sys.executable, "-I", str(PROBE))
            told = {**env, "VK_LOADER_DEBUG": "error"}
            return read_vulkan(ask(argv, seconds=seconds, env=told))
        case Backend.CUDA | Backend.CPU | Backend.METAL:
            return Sighting(problem="no-witness", told="nothing but the artifact can be asked")


def read_vulkan(result: Result) -> Sighting:
    """Return what the Vulkan probe printed, or why it could not."""
    if result.ok:
        devices = _decode(result.stdout)
        if devices is not None:
            return Sighting(devices=devices)
    last = result.tail[-1] if result.tail else ""
    if result.ending is not Ending.EXITED:
        return Sighting(problem="probe-hung", told=f"the Vulkan loader or a driver {result.ending}")
    if result.returncode == NO_LOADER_STATUS:
        return Sighting(problem="no-loader", told=f"there is no Vulkan loader: {last}")
    if NO_DRIVER in last:
        told = "the Vulkan loader found no driver (ICD) that works"
        return Sighting(problem="no-driver", told=": ".join((told, *_loader_errors(result.tail))))
    if result.returncode < 0:
        told = f"a Vulkan driver crashed the probe (signal {-result.returncode})"
        return Sighting(problem="probe-crashed", told=told)
    return Sighting(problem="probe-failed", told=f"the Vulkan probe failed: {last}")


def _loader_errors(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the loader's own words on a driver that it could not use, the last one."""
    found = [m[1].strip() for m in map(LOADER_ERROR.match, lines) if m]
    return tuple(f for f in found if "Found no drivers" not in f)[-1:]


def _decode(text: str) -> tuple[Witness, ...] | None:
    try:
        data = json.loads(text)
        return tuple(_vulkan_witness(entry) for entry in data)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _vulkan_witness(entry: Mapping[str, object]) -> Witness:
    name, driver_name = str(entry["name"]), str(entry["driver_name"])
    software = (
        entry["type"] == CPU_DEVICE_TYPE
        or entry["driver_id"] in SOFTWARE_DRIVER_IDS
        or SOFTWARE_NAMES.search(f"{name} {driver_name}") is not None
    )
    return Witness(
        index=int(str(entry["index"])),
        name=name,
        software=software,
        driver=f"{driver_name} {entry['driver_info']}".strip(),
        pci=str(entry["pci"]),
        memory=int(str(entry["memory"])),
        usable=bool(entry["storage16"]),
    )
