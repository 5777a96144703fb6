"""The machine itself: platform, cores, memory, system ids, C library, processor."""

from __future__ import annotations

import contextlib
import math
import os
import platform as interpreter
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from llamawright.digest import sha256_bytes
from llamawright.errors import ToolchainConflictError
from llamawright.model.platform import Platform, System
from llamawright.process import ask

SYSTEMS = {"linux": System.LINUX, "win32": System.WINDOWS, "darwin": System.MACOS}
MACHINES = {"amd64": "x86_64", "x64": "x86_64", "aarch64": "arm64"}
LINUX_MACHINES = {"arm64": "aarch64"}
POINTER_BITS = 64
CUDA_KEY = r"SOFTWARE\NVIDIA Corporation\GPU Computing Toolkit\CUDA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What this process may use: cores, bytes of memory in all and free just now."""

    cores: int
    memory: int
    memory_free: int


def detect_platform() -> Platform:
    """Return the platform of this process; refuse one that cannot build for it."""
    return platform_of(
        system=sys.platform,
        machine=interpreter.machine(),
        bits=8 * struct.calcsize("P"),
        translated=sys.platform == "darwin" and _is_translated(),
    )


def platform_of(*, system: str, machine: str, bits: int, translated: bool = False) -> Platform:
    """Return the platform by the interpreter's own words (``sys.platform``, ``uname``).

    Raises ``ToolchainConflictError`` for a 32-bit or translated Python: the tools it starts
    and the libraries it loads are not the machine's own (cases W6, P18).
    """
    if bits < POINTER_BITS:
        raise ToolchainConflictError(
            f"this Python is a {bits}-bit program",
            why="llama.cpp is built for 64-bit systems; a 32-bit Python cannot load the result",
            hint="install the 64-bit Python and run llamawright with it",
            kind="32-bit-python",
        )
    if translated:
        raise ToolchainConflictError(
            "this Python is an x86_64 program on an Apple Silicon Mac",
            why="everything it starts runs translated, and would build for x86_64 without Metal",
            hint="run llamawright with an arm64 Python: `file $(which python3)` shows which it is",
            kind="translated-python",
        )
    if system not in SYSTEMS:
        raise ToolchainConflictError(
            f"llamawright does not know the system '{system}'",
            why=f"it builds on {', '.join(SYSTEMS)}",
            kind="unknown-system",
        )
    name = MACHINES.get(machine.lower(), machine.lower())
    names = LINUX_MACHINES if SYSTEMS[system] is System.LINUX else {}
    return Platform(SYSTEMS[system], names.get(name, name))


def _is_translated() -> bool:
    return ask(("/usr/sbin/sysctl", "-in", "sysctl.proc_translated")).stdout.strip() == "1"


def system_ids(platform: Platform, *, root: Path = Path("/")) -> tuple[str, ...]:
    """Return the os-release ID and its ID_LIKE words; ``macos`` or ``windows`` elsewhere."""
    if platform.system is not System.LINUX:
        return (str(platform.system),)
    for name in ("etc/os-release", "usr/lib/os-release"):
        with contextlib.suppress(OSError):
            lines = (root / name).read_text(encoding="utf-8", errors="replace").splitlines()
            pairs = dict(line.partition("=")[::2] for line in lines if "=" in line)
            words = f"{pairs.get('ID', '')} {pairs.get('ID_LIKE', '')}".replace('"', "").split()
            return tuple(dict.fromkeys(words))
    return ()


def cuda_registry() -> tuple[tuple[str, str], ...]:
    """Return the CUDA toolkits of Windows' registry, version and folder; none elsewhere."""
    found: list[tuple[str, str]] = []
    if sys.platform == "win32":
        import winreg  # noqa: PLC0415 - Windows has it alone

        with (
            contextlib.suppress(OSError),
            winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, CUDA_KEY) as key,
        ):
            for number in range(winreg.QueryInfoKey(key)[0]):
                name = winreg.EnumKey(key, number)
                with contextlib.suppress(OSError), winreg.OpenKey(key, name) as entry:
                    found.append((name, str(winreg.QueryValueEx(entry, "InstallDir")[0])))
    return tuple(sorted(found, reverse=True))


def libc_version() -> str:
    """Return ``glibc 2.36``, or nothing where the C library does not tell."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return ""


def processor(*, root: Path = Path("/")) -> str:
    """Return the processor's name and a digest of its features, for native builds."""
    with contextlib.suppress(OSError):
        text = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        first = text.split("\n\n", maxsplit=1)[0]
        facts = {k.strip(): v.strip() for k, _, v in (x.partition(":") for x in first.splitlines())}
        name = facts.get("model name") or facts.get("CPU part", "")
        features = facts.get("flags") or facts.get("Features", "")
        return f"{name} {sha256_bytes(features.encode())[:12]}".strip()
    return interpreter.processor()


def measure(*, root: Path = Path("/")) -> Measure:
    """Return the cores and memory that affinity and control groups leave to this process."""
    memory = psutil.virtual_memory()
    cores = float(psutil.cpu_count() or 1)
    with contextlib.suppress(AttributeError, OSError):
        cores = float(len(os.sched_getaffinity(0)))
    total, free = memory.total, memory.available
    for group in _control_groups(root):
        cores = min(cores, _quota(group))
        limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
        if limit is None:
            continue
        used = _number(group / "memory.current") or _number(group / "memory.usage_in_bytes") or 0
        total, free = min(total, limit), min(free, max(0, limit - used))
    return Measure(cores=max(1, math.floor(cores)), memory=total, memory_free=free)


def _control_groups(root: Path) -> Iterator[Path]:
    """Yield this process's control groups and their parents, version 2 and version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    base = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, place = (*line.split(":", 2), "", "")[:3]
        mounts = [base / c for c in controllers.split(",") if c in ("cpu", "memory")]
        for mount in mounts if controllers else [base]:
            group = mount / place.lstrip("/")
            yield from (p for p in (group, *group.parents) if p == mount or mount in p.parents)


def _quota(group: Path) -> float:
    """Return the cores a group may use; infinity for no limit and for nonsense."""
    quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
    with contextlib.suppress(OSError, ValueError):
        words = (group / "cpu.max").read_text(encoding="utf-8").split()
        quota, period = (int(w) for w in words)
    return quota / period if quota and period and min(quota, period) > 0 else math.inf


def _number(path: Path) -> int | None:
    """Return a limit in bytes or microseconds; ``None`` for none, ``max`` and nonsense."""
    with contextlib.suppress(OSError, ValueError):
        value = int(path.read_text(encoding="utf-8").strip())
        return value if value > 0 else None
    return None
