"""CUDA hygiene for doctor: leftovers, wrong variables, containers, a driver in a bad state."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from llamawright.detect.cuda_parts import STUBS, library_version
from llamawright.detect.cuda_roots import NAMED, VERSIONED
from llamawright.detect.nvcc import inner_nvcc, resolved
from llamawright.model.cuda import Gpus, Presence
from llamawright.model.inventory import Found, Inventory, Role
from llamawright.model.platform import System
from llamawright.model.toolchain import Fact

CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
# What NVIDIA's container hook hands in when the variable is not set.
DEFAULT = "compute,utility"
LOST = {
    "compute": "CUDA cannot run",
    "utility": "neither NVML nor nvidia-smi is there",
    "graphics": "Vulkan does not see the card",
}
_FOLDER = re.compile(r"(?:cuda-|CUDA/v)(\d{1,2}\.\d{1,2})(?:\.\d+)?(?=/|$)")
_CONSUMER = re.compile(r"GeForce|RTX|GTX|TITAN|Quadro|NVS|MX\d|Orin|Thor|GB10\b", re.IGNORECASE)


def cuda_notes(
    env: Mapping[str, str], seen: Inventory, *, root: Path = Path("/")
) -> tuple[str, ...]:
    """Return what a reader of ``doctor`` should know about CUDA here, one sentence each.

    ``seen`` must have been taken with the toolkits and cards in it; ``root`` is the folder
    of ``/dev`` and ``/run``.
    """
    toolkits = seen.having(Role.CUDA)
    windows = seen.platform.system is System.WINDOWS
    return (
        *_driver(seen.gpus),
        *_variables(env),
        *_programs(env, toolkits, seen.platform.program("nvcc")),
        *(() if windows else _libraries(env, toolkits, seen.gpus)),
        *_container(env, root),
        *_cards(seen.gpus, seen.platform.system),
    )


def _driver(gpus: Gpus) -> Iterator[str]:
    if gpus.presence in (Presence.BROKEN, Presence.UNKNOWN) and gpus.reason:
        yield f"NVIDIA driver {gpus.driver or 'of unknown version'}: {gpus.reason}: {gpus.cure}"
    elif gpus.presence is Presence.ABSENT and gpus.cure:
        yield f"NVIDIA: {gpus.reason}: {gpus.cure}"
    elif gpus.presence is Presence.PRESENT and gpus.reason:
        yield f"NVIDIA cards: {gpus.reason}: {gpus.cure or 'the other ones can be used'}"


def _variables(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(env.items()):
        path = value.strip().strip('"')
        named = name in NAMED or VERSIONED.fullmatch(name)
        if named and path and not Path(path).expanduser().is_dir():
            yield f"{name} leads nowhere: {path} is no folder; unset it, or let it name a toolkit"


def _programs(env: Mapping[str, str], toolkits: tuple[Found, ...], name: str) -> Iterator[str]:
    """Say which nvcc a shell would take, and which folders of other versions PATH holds."""
    newest = _newest(toolkits)
    if newest is None:
        return
    release, binary = _release(newest.version), Path(newest.fact(Fact.NVCC)).parent
    folders = _split(env.get("PATH", ""))
    versions = {f: _version_of(f, toolkits, name) for f in folders}
    others = {f: v for f, v in versions.items() if v and v != release}
    first = next((f for f in folders if (f / name).is_file()), None)
    wins = f"{release} wins"
    if first is not None and first in others:
        wins = f"{others[first]} wins"
        yield (
            f"the first nvcc on PATH is {others[first]} in {first}, the newest toolkit is "
            f"{release} in {newest.path}: put {binary} before it"
        )
    rest = [f"{v} in {f}" for f, v in others.items() if f != first]
    if rest:
        yield f"PATH also holds CUDA {', '.join(rest)} ({wins}): remove what you do not use"


def _libraries(env: Mapping[str, str], toolkits: tuple[Found, ...], gpus: Gpus) -> Iterator[str]:
    """Say what LD_LIBRARY_PATH puts before a program's own libraries and the driver's."""
    newest = _newest(toolkits)
    release = _release(newest.version) if newest else ""
    for folder in _split(env.get("LD_LIBRARY_PATH", "")):
        versions = {library_version(p) for p in folder.glob("libcudart.so*")}
        other = {_release(v) for v in versions if "." in v} - {release}
        if release and other:
            yield (
                f"LD_LIBRARY_PATH holds CUDA {', '.join(sorted(other))} in {folder}, which wins "
                f"over the libraries beside a program; the newest toolkit is {release}: remove it"
            )
        if folder.name == STUBS and any(folder.glob("libcuda.so*")):
            yield (
                f"LD_LIBRARY_PATH holds libcuda's stub in {folder}, with which nothing runs: "
                "remove it, stubs are for linking"
            )
        driver = library_version(folder / "libcuda.so.1")
        if "." in driver and gpus.driver and driver != gpus.driver:
            yield (
                f"LD_LIBRARY_PATH holds libcuda {driver} in {folder}, the driver is "
                f"{gpus.driver}: remove it, unless it is NVIDIA's forward compatibility on purpose"
            )


def _container(env: Mapping[str, str], root: Path) -> Iterator[str]:
    said = env.get(CAPABILITIES, "").strip()
    hooked = VISIBLE in env or (root / ".dockerenv").exists()
    if not said and not (VISIBLE in env and hooked):
        return
    words = {w.strip() for w in (said or DEFAULT).split(",")}
    missing = [] if "all" in words else [w for w in LOST if w not in words]
    if missing:
        effects = " and ".join(LOST[w] for w in missing)
        given = f"{CAPABILITIES}={said}" if said else f"{CAPABILITIES} is not set"
        yield (
            f"this container lacks {' and '.join(missing)} ({given}): {effects}; start it with "
            f"{CAPABILITIES}=compute,utility,graphics"
        )


def _cards(gpus: Gpus, system: System) -> Iterator[str]:
    idle = [c for c in gpus.cards if c.persistence is False and not _CONSUMER.search(c.name)]
    if idle and system is System.LINUX:
        names = ", ".join(f"{c.index} ({c.name})" for c in idle)
        yield (
            f"information: persistence mode is off on card {names}, so each first use waits for "
            "the driver; sudo nvidia-smi -pm 1"
        )
    for card in gpus.cards:
        if card.mig:
            yield (
                f"information: card {card.index} ({card.name}) is split into MIG instances, a "
                "program sees one of them; nvidia-smi -L lists them"
            )


def _version_of(folder: Path, toolkits: tuple[Found, ...], name: str) -> str:
    """Return the release of the toolkit that a folder of PATH belongs to, or nothing."""
    real, nvcc = resolved(folder), folder / name
    inner = inner_nvcc(nvcc).as_posix() if nvcc.is_file() else ""
    for toolkit in toolkits:
        if inner == toolkit.fact(Fact.NVCC) or toolkit.path in real.parents:
            return _release(toolkit.version)
    found = _FOLDER.search(real.as_posix())
    return found[1] if found else ""


def _newest(toolkits: tuple[Found, ...]) -> Found | None:
    return max(toolkits, key=lambda t: _number(t.version), default=None)


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d{1,9}", version))


def _split(text: str) -> list[Path]:
    return [p for w in dict.fromkeys(text.split(os.pathsep)) if w and (p := Path(w)).is_absolute()]
