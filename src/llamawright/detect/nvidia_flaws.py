"""What can be wrong with NVIDIA's driver: by NVML's number, by nvidia-smi's words, with cures."""

from __future__ import annotations

import re

# NVML's own numbers (nvml.h, nvmlReturn_t).
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
NO_LIBRARY = 12
GPU_IS_LOST = 15
RESET_REQUIRED = 16
MISMATCH = 18
UNKNOWN_ERROR = 999
# The same in nvidia-smi's words; the first that fits counts.
SAYINGS = (
    (r"driver/library version mismatch", MISMATCH),
    (r"couldn't communicate with the nvidia driver", DRIVER_NOT_LOADED),
    (r"driver is not loaded|driver not loaded", DRIVER_NOT_LOADED),
    (r"couldn't find libnvidia-ml|nvml shared library not found", NO_LIBRARY),
    (r"insufficient permissions", NO_PERMISSION),
    (r"gpu is lost|fallen off the bus", GPU_IS_LOST),
    (r"requires reset|reset required", RESET_REQUIRED),
    (r"failed to initialize nvml: unknown error", UNKNOWN_ERROR),
)
FLAWS = {
    NO_PERMISSION: (
        "the driver refuses to answer this user (insufficient permissions)",
        "let this user open /dev/nvidia*: sudo usermod -aG video $USER, then log in again",
    ),
    DRIVER_NOT_LOADED: (
        "NVIDIA's libraries are here, but the driver's kernel module is not loaded",
        "sudo modprobe nvidia; when it fails, install the driver again for the running kernel",
    ),
    NO_LIBRARY: (
        "libnvidia-ml, the driver's own library, is missing",
        "install the driver's user libraries of the same version as its kernel module",
    ),
    GPU_IS_LOST: (
        "a card is lost: it fell off the bus or its driver stopped (see Xid in the kernel log)",
        "reboot; when it comes back, look at power and cooling",
    ),
    RESET_REQUIRED: ("a card must be reset", "sudo nvidia-smi --gpu-reset, or reboot"),
    MISMATCH: (
        "driver/library version mismatch: the driver was updated, the old kernel module still runs",
        "reboot",
    ),
    UNKNOWN_ERROR: (
        "NVML cannot be initialised (unknown error)",
        "start the container again: it loses its cards when the host reloads systemd",
    ),
}


def flaw_in(text: str) -> int | None:
    """Return the number of the flaw that ``nvidia-smi`` speaks of, ``None`` for none known."""
    said = (code for saying, code in SAYINGS if re.search(saying, text, re.IGNORECASE))
    return next(said, None)
