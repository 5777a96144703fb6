"""The provided software Vulkan driver: how a program is led to it, and the proof that it is."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.process import ask, base_environment

PROBE = Path(__file__).with_name("vulkan_devices.py")
PROBE_S = 60.0
CPU_TYPE = 4
"""``VK_PHYSICAL_DEVICE_TYPE_CPU``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareDevice:
    """The device a driver shows; ``api`` such as ``1.3.230``."""

    name: str
    api: str


def driver_environment(root: Path) -> dict[str, str]:
    """Return the variables that lead a Vulkan program to the driver below ``root``, alone.

    Both names of the ICD variable are set, for loaders before and after 1.3.207. Layers that
    the machine loads by itself are switched off: they are libraries of another closure.
    """
    icd = _icd(root)
    folders = [p for p in sorted(root.glob("usr/lib/*-linux-*")) if p.is_dir()]
    folders += [p for p in sorted(root.glob("lib/*-linux-*")) if p.is_dir()]
    return {
        "VK_DRIVER_FILES": str(icd),
        "VK_ICD_FILENAMES": str(icd),
        "VK_LOADER_LAYERS_DISABLE": "~implicit~",
        "LD_LIBRARY_PATH": ":".join(str(f) for f in folders),
    }


def prove_driver(root: Path) -> SoftwareDevice:
    """Create a Vulkan instance in a child process and return the software device it lists.

    Raises ``ToolMissingError`` when there is none, or the driver kills the child.
    """
    env = base_environment(driver_environment(root))
    result = ask((sys.executable, "-I", str(PROBE)), seconds=PROBE_S, env=env)
    devices = _devices(result.stdout) if result.ok else []
    found = next((d for d in devices if d["type"] == CPU_TYPE), None)
    if found is None:
        raise ToolMissingError(
            "the provided software Vulkan driver does not work here",
            why=f"the probe ended {result.ending} with status {result.returncode} "
            f"and listed {len(devices)} devices",
            hint="the driver needs glibc 2.36 and libstdc++ of gcc 12 or newer; on other "
            "machines install the system's own (llamawright doctor names the command)",
            kind="driver-unusable",
            command=result.command.pasteable,
            tail=result.tail,
        )
    return SoftwareDevice(name=str(found["name"]), api=str(found["api"]))


def _devices(text: str) -> list[dict[str, object]]:
    try:
        data = json.loads(text)
    except ValueError:
        return []
    return [d for d in data if isinstance(d, dict)] if isinstance(data, list) else []


def _icd(root: Path) -> Path:
    found = sorted(root.glob("usr/share/vulkan/icd.d/*.json"))
    if len(found) != 1:
        raise ToolMissingError(
            f"{root} holds {len(found)} Vulkan drivers, not one",
            why="the folder is not a provided software driver, or something changed it",
            hint="llamawright gc --keep-days 0 removes it; the next run provides it again",
            kind="incomplete-set",
        )
    return found[0]
