"""What the system says of a running child: mapped libraries, its memory, the device's memory.

Linux keeps all of it in ``/proc`` and ``/sys``; elsewhere nothing is read, and the checks
that need it say so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.verify.supervise import Phase

PROC = Path("/proc")
DRM = Path("/sys/class/drm")
EVERY_S = 0.1
KIB = 1 << 10
_PATH_COLUMN = 5
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(slots=True)
class ProcSampler:
    """Collects what ``/proc/PID`` shows while a child runs; call it with the pid.

    ``libraries`` are the files mapped at any time, ``private`` the peak in bytes of memory
    that is no file's (heap and shared memory), ``drm`` the peak of device memory by PCI
    place as the kernel's driver accounts it to this process. ``threads`` are the names of all
    threads: a software renderer gives its own away. ``settled``: some run was seen
    for a while with its backends loaded, so what was never mapped is not used. (A single look
    may come too late: a program that ends lets go of its driver first.)
    """

    proc: Path = PROC
    drm_class: Path = DRM
    libraries: set[str] = field(default_factory=set)
    private: int = 0
    drm: dict[str, int] = field(default_factory=dict)
    vram: dict[str, int] = field(default_factory=dict)
    settled: bool = False
    pids: set[int] = field(default_factory=set)
    threads: set[str] = field(default_factory=set)
    last: tuple[int, Phase] = (0, Phase.START)
    looks: int = 0
    next_at: float = 0.0

    def __call__(self, pid: int, phase: Phase) -> None:
        """Look at the child: at once when a phase begins, else at most ten times a second."""
        now, fresh = time.monotonic(), (pid, phase) != self.last
        if now < self.next_at and not fresh:
            return
        self.looks = 0 if fresh and pid != self.last[0] else self.looks
        self.last, self.next_at = (pid, phase), now + EVERY_S
        self.pids.add(pid)
        base = self.proc / str(pid)
        with contextlib.suppress(OSError):
            mapped = mapped_files((base / "maps").read_text(errors="replace"))
            self.libraries |= mapped
            # Looks at the start of a phase come in bursts; those in between are apart.
            self.looks += bool(mapped) and phase.has_backends and not fresh
            self.settled |= self.looks > 0
        with contextlib.suppress(OSError):
            self.private = max(self.private, private_bytes((base / "status").read_text()))
        self.threads |= thread_names(base / "task")
        _keep_peaks(self.drm, drm_memory(base / "fdinfo"))
        _keep_peaks(self.vram, vram_used(self.drm_class))


def mapped_files(text: str) -> set[str]:
    """Return the paths of ``/proc/PID/maps``, without what is no file."""
    rows = (line.split(None, _PATH_COLUMN) for line in text.splitlines())
    paths = (row[_PATH_COLUMN].strip() for row in rows if len(row) > _PATH_COLUMN)
    return {p.removesuffix(" (deleted)") for p in paths if p.startswith("/")}


def thread_names(folder: Path) -> set[str]:
    """Return the names of a process's threads, of ``/proc/PID/task``."""
    names: set[str] = set()
    with contextlib.suppress(OSError):
        for task in folder.iterdir():
            with contextlib.suppress(OSError):
                names.add((task / "comm").read_text(errors="replace").strip())
    return names


def private_bytes(text: str) -> int:
    """Return anonymous and shared resident bytes of ``/proc/PID/status``."""
    total = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssShmem"):
            total += int(value.split()[0]) * KIB
    return total


def drm_memory(folder: Path) -> dict[str, int]:
    """Return device memory by PCI place from ``/proc/PID/fdinfo``.

    The kernel documents these keys in Documentation/gpu/drm-usage-stats.rst; a client that
    shows up under several descriptors is counted once.
    """
    clients: dict[tuple[str, str], int] = {}
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError, ValueError):
                fields = _fields(path.read_text(errors="replace"))
                place = fields.get("drm-pdev")
                if place:
                    key = place.lower(), fields.get("drm-client-id", path.name)
                    clients[key] = max(clients.get(key, 0), _drm_bytes(fields))
    total: dict[str, int] = {}
    for (place, _client), size in clients.items():
        total[place] = total.get(place, 0) + size
    return total


def vram_used(drm_class: Path = DRM) -> dict[str, int]:
    """Return used device memory by PCI place where the driver shows it (amdgpu)."""
    found: dict[str, int] = {}
    for path in sorted(drm_class.glob("card*/device/mem_info_vram_used")):
        with contextlib.suppress(OSError, ValueError):
            fields = _fields((path.parent / "uevent").read_text(), separator="=")
            found[fields["PCI_SLOT_NAME"].lower()] = int(path.read_text())
    return found


def _drm_bytes(fields: Mapping[str, str]) -> int:
    resident = [v for k, v in fields.items() if k.startswith("drm-resident-")]
    total = [v for k, v in fields.items() if k.startswith(("drm-total-", "drm-memory-"))]
    return sum(_size(v) for v in resident or total)


def _size(text: str) -> int:
    number, _, unit = text.partition(" ")
    return int(number) * _UNITS[unit.strip()]


def _fields(text: str, separator: str = ":") -> dict[str, str]:
    rows: Iterable[tuple[str, str, str]] = (line.partition(separator) for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in rows}


def _keep_peaks(peaks: dict[str, int], seen: Mapping[str, int]) -> None:
    for key, value in seen.items():
        peaks[key] = max(peaks.get(key, 0), value)
