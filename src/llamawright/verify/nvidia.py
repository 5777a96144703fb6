"""NVIDIA's own account of its devices, through ``nvidia-smi`` in a child with limits."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.process import Command, Limits, Line, ask, base_environment, run

QUERY = "--query-gpu=pci.bus_id,name,memory.used,memory.total,driver_version"
PROCESSES = "--query-compute-apps=gpu_bus_id,pid,used_memory"
FORMAT = "--format=csv,noheader,nounits"
EVERY_MS = 100
FIRST_S = 10.0
MONITOR_S = 3600.0
MIB = 1 << 20
_COLUMNS = 5
_PROCESS_COLUMNS = 3
_PCI_PARTS = 3
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card as NVIDIA's management library sees it; memory in bytes."""

    pci: str
    name: str
    used: int
    total: int
    driver: str


def read_cards(text: str) -> tuple[Card, ...]:
    """Return the cards of ``nvidia-smi``'s CSV; lines of anything else are left out."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    cards = []
    for row in rows:
        if len(row) == _COLUMNS and is_number(row[2]) and is_number(row[3]):
            place, name, used, total, driver = row
            cards.append(
                Card(
                    pci=normal_pci(place),
                    name=name,
                    used=int(used) * MIB,
                    total=int(total) * MIB,
                    driver=driver,
                )
            )
    return tuple(cards)


def read_processes(text: str) -> tuple[tuple[str, int, int], ...]:
    """Return PCI place, pid and bytes of each computing process; what is hidden is left out.

    In a container the pids are the host's, or there are none.
    """
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == _PROCESS_COLUMNS and is_number(cells[1]) and is_number(cells[2]):
            found.append((normal_pci(cells[0]), int(cells[1]), int(cells[2]) * MIB))
    return tuple(found)


def is_number(text: str) -> bool:
    """Whether a text is a number that ``int`` takes: ``²`` is a digit too, and none."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def normal_pci(text: str) -> str:
    """Return a PCI place as ``dddd:bb:dd.f``: tools pad the domain to eight digits or none."""
    parts = text.strip().lower().split(":")
    if len(parts) == _PCI_PARTS - 1:
        parts = ["0", *parts]
    if len(parts) != _PCI_PARTS:
        return ""
    try:
        return f"{int(parts[0], 16):04x}:{int(parts[1], 16):02x}:{parts[2]}"
    except ValueError:
        return ""


def find_smi() -> Path | None:
    """Return ``nvidia-smi``, or ``None`` where there is none."""
    found = shutil.which("nvidia-smi")
    return Path(found) if found else None


def list_cards(smi: Path | None) -> tuple[Card, ...]:
    """Return the cards; none when the program is absent, fails or hangs."""
    if smi is None:
        return ()
    try:
        result = ask((str(smi), QUERY, FORMAT), seconds=FIRST_S)
    except ToolMissingError:
        return ()
    return read_cards(result.stdout) if result.ok else ()


@dataclass(slots=True)
class Monitor:
    """Used memory by PCI place: the first reading, and the peak of all later ones.

    ``processes`` are the peaks of computing processes by PCI place and pid.
    """

    before: dict[str, int] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)
    processes: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Take one line of the running ``nvidia-smi``."""
        for card in read_cards(line):
            self.before.setdefault(card.pci, card.used)
            self.peak[card.pci] = max(self.peak.get(card.pci, 0), card.used)

    def take_process(self, line: str) -> None:
        """Take one line of the running list of processes."""
        for place, pid, used in read_processes(line):
            key = place, pid
            self.processes[key] = max(self.processes.get(key, 0), used)

    def used_by(self, pids: Iterable[int], pci: str) -> int | None:
        """Return the most bytes that one of the processes had on a card, ``None`` unread."""
        seen = [self.processes[pci, pid] for pid in pids if (pci, pid) in self.processes]
        return max(seen, default=None)


@contextlib.contextmanager
def monitoring(smi: Path | None, *, processes: bool = False) -> Iterator[Monitor]:
    """Read the cards' memory ten times a second while the block runs.

    The block starts after the first reading, or without one after ten seconds.
    ``processes``: read what each computing process has on them as well.
    """
    monitor = Monitor()
    if smi is None:
        yield monitor
        return
    stop, first = threading.Event(), threading.Event()
    follow = [_follow(smi, QUERY, monitor.take, stop, first)]
    if processes:
        follow.append(_follow(smi, PROCESSES, monitor.take_process, stop, threading.Event()))
    first.wait(FIRST_S)
    try:
        yield monitor
    finally:
        stop.set()
        for thread in follow:
            thread.join(FIRST_S)


def _follow(
    smi: Path,
    query: str,
    take: Callable[[str], None],
    stop: threading.Event,
    first: threading.Event,
) -> threading.Thread:
    """Let ``nvidia-smi`` repeat a query, and take its lines until told to stop."""

    def watch(line: Line) -> bool | None:
        take(line.text)
        first.set()
        return stop.is_set() or None

    def loop() -> None:
        command = Command(
            argv=(str(smi), query, FORMAT, "-lms", str(EVERY_MS)),
            cwd=Path.cwd(),
            env=base_environment(),
        )
        with contextlib.suppress(ToolMissingError):
            run(
                command,
                limits=Limits(total_s=MONITOR_S),
                watch=watch,
                tick=lambda _pid: stop.is_set() or None,
            )
        first.set()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return thread
