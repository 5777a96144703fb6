"""The child program that asks NVIDIA's management library: run by path, prints one JSON object.

It runs apart because the library may hang or crash. It imports nothing of llamawright and
reports every refusal as ``{"error": {"stage", "code", "text"}}`` with NVML's own number.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def main() -> None:
    """Print what NVML says."""
    report: dict[str, object]
    try:
        report = examine(import_module("pynvml"))
    except ImportError as error:
        report = {"error": {"stage": "import", "code": -1, "text": str(error)}}
    sys.stdout.write(json.dumps(report) + "\n")


def examine(nvml: ModuleType) -> dict[str, object]:
    """Return the driver and its cards, or the error that ended it and where."""
    stage = "init"
    try:
        nvml.nvmlInit()
        stage = "driver"
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        stage = "count"
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        return {"error": _refusal(error, stage)}
    cuda = _tried(nvml, lambda: int(nvml.nvmlSystemGetCudaDriverVersion_v2()))
    cards: list[dict[str, object]] = []
    lost: list[dict[str, object]] = []
    for index in range(count):
        try:
            cards.append(_card(nvml, index))
        except nvml.NVMLError as error:
            lost.append({"index": index, **_refusal(error, "card")})
    return {"driver": driver, "cuda": cuda, "cards": cards, "lost": lost}


def _card(nvml: ModuleType, index: int) -> dict[str, object]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return {
        "index": index,
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "pci": _text(nvml.nvmlDeviceGetPciInfo(handle).busId),
        "capability": 10 * int(major) + int(minor),
        "memory": _tried(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        "uuid": _tried(nvml, lambda: _text(nvml.nvmlDeviceGetUUID(handle))),
        "persistence": _tried(nvml, lambda: bool(nvml.nvmlDeviceGetPersistenceMode(handle))),
        "mig": _tried(nvml, lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0])),
        "ecc": _tried(nvml, lambda: bool(nvml.nvmlDeviceGetEccMode(handle)[0])),
    }


def _tried(nvml: ModuleType, ask: Callable[[], object]) -> object:
    """Return an answer that some cards and drivers do not have, else nothing."""
    with contextlib.suppress(nvml.NVMLError, AttributeError):
        return ask()
    return None


def _refusal(error: Exception, stage: str) -> dict[str, object]:
    return {"stage": stage, "code": int(getattr(error, "value", -1)), "text": str(error)}


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    main()
