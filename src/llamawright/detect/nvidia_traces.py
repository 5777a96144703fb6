"""What NVIDIA's driver leaves on a machine when it does not answer: only to tell why."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

VENDOR = "0x10de"
DISPLAY = "0x03"
LIBRARY = "libnvidia-ml.so.1"
DRIVER_CURE = "install NVIDIA's driver: https://www.nvidia.com/drivers"
# WSL keeps Windows' own nvidia-smi there, Windows' old drivers theirs.
SMI_FOLDERS = ("usr/lib/wsl/lib", "usr/bin", "usr/local/nvidia/bin")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib",
             "usr/lib/wsl/lib", "usr/local/nvidia/lib64")  # fmt: skip
_VERSION = re.compile(r"NVRM version:.*?\s(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\s")


def find_smi(env: Mapping[str, str], root: Path) -> Path | None:
    """Return ``nvidia-smi`` from PATH, or from where drivers put it beside PATH."""
    names = ("nvidia-smi", "nvidia-smi.exe")
    folders = [Path(f) for f in env.get("PATH", "").split(os.pathsep) if f]
    windows = [v for k, v in env.items() if k.upper() == "PROGRAMFILES"]
    folders += [Path(v) / "NVIDIA Corporation" / "NVSMI" for v in windows]
    folders += [root / f for f in SMI_FOLDERS]
    files = (f / n for f in folders if f.is_absolute() for n in names)
    return next((p for p in files if p.is_file()), None)


def device_files(root: Path) -> bool:
    """Whether the driver has made ``/dev/nvidia0`` or its like."""
    return any(re.fullmatch(r"nvidia\d+", p.name) for p in (root / "dev").glob("nvidia*"))


def kernel_driver(root: Path) -> str:
    """Return the version of the loaded kernel module, or nothing."""
    with contextlib.suppress(OSError):
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
        found = _VERSION.search(text)
        return found[1] if found else ""
    return ""


def pci_cards(root: Path) -> tuple[str, ...]:
    """Return the places of NVIDIA's display and 3D controllers on the PCI bus."""
    found: list[str] = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        with contextlib.suppress(OSError):
            vendor = (device / "vendor").read_text(encoding="ascii", errors="replace").strip()
            kind = (device / "class").read_text(encoding="ascii", errors="replace").strip()
            if vendor == VENDOR and kind.startswith(DISPLAY):
                found.append(device.name)
    return tuple(found)


def no_card(root: Path) -> bool:
    """Whether the bus can be read and surely holds no card of NVIDIA's."""
    return any((root / "sys/bus/pci/devices").glob("*")) and not pci_cards(root)


def has_library(env: Mapping[str, str], root: Path) -> bool:
    """Whether ``libnvidia-ml`` lies where the loader looks."""
    folders = [root / f for f in LIBRARIES]
    folders += [Path(f) for f in env.get("LD_LIBRARY_PATH", "").split(os.pathsep) if f]
    return any((f / LIBRARY).exists() for f in folders)


def in_container(env: Mapping[str, str], root: Path) -> bool:
    """Whether this looks like a container, above all one with NVIDIA's hook."""
    marks = (".dockerenv", "run/.containerenv")
    return "NVIDIA_VISIBLE_DEVICES" in env or any((root / m).exists() for m in marks)
