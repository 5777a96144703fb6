"""The kernel's log from a moment on: ``/dev/kmsg``, the journal or ``dmesg``.

Which of them a user may read differs: root all, members of ``adm`` or ``systemd-journal`` the
journal, and ``dmesg`` is everybody's where ``kernel.dmesg_restrict`` is 0.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from llamawright.errors import ToolMissingError
from llamawright.process import Result, ask

KMSG = Path("/dev/kmsg")
RECORD = 8192
MOST_RECORDS = 100_000
ASK_S = 20.0
CURSOR = re.compile(r"^-- cursor: (\S+)$", re.MULTILINE)
STAMP = re.compile(r"^\[\s*(\d+\.\d+)\]")


class KernelLog(Protocol):
    """What came into the kernel's log since the last look. ``told`` says how it is read."""

    @property
    def told(self) -> str:
        """Return what is read, or why nothing can be."""

    @property
    def readable(self) -> bool:
        """Whether there is anything to be read at all."""

    def new(self) -> tuple[str, ...]:
        """Return the lines since the last call, or since it was opened."""

    def close(self) -> None:
        """Let go of it."""


@dataclass(slots=True)
class Kmsg:
    """The kernel's own device: each read gives one record, and it waits for nobody."""

    handle: int
    told: str = "/dev/kmsg"
    readable: bool = True

    def new(self) -> tuple[str, ...]:
        """Read until there is no more; records that were overwritten meanwhile are told."""
        return tuple(self._records())

    def _records(self) -> Iterator[str]:
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(self.handle, RECORD)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EPIPE:
                    self.told, self.readable = f"/dev/kmsg stopped: {error.strerror}", False
                    return
                continue
            if not record:
                return
            yield kmsg_text(record.decode(errors="replace"))

    def close(self) -> None:
        """Close the device."""
        os.close(self.handle)


@dataclass(slots=True)
class Journal:
    """systemd's journal of the kernel, read from a cursor on."""

    program: str
    cursor: str
    told: str = "journalctl -k"
    readable: bool = True

    def new(self) -> tuple[str, ...]:
        """Ask for what follows the cursor, and move it."""
        result = _ask(self.program, "-k", "-q", "--no-pager", "--show-cursor", "-o", "cat",
                      f"--after-cursor={self.cursor}")  # fmt: skip
        if result is None or not result.ok:
            self.told, self.readable = "journalctl -k stopped answering", False
            return ()
        found = CURSOR.search(result.stdout)
        self.cursor = found[1] if found else self.cursor
        return tuple(x for x in result.stdout.splitlines() if not CURSOR.match(x))

    def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class Dmesg:
    """The ring buffer's print; lines carry seconds since the start of the machine."""

    program: str
    last: float = -1.0
    seen: set[str] = field(default_factory=set)
    told: str = "dmesg"
    readable: bool = True

    def new(self) -> tuple[str, ...]:
        """Return the lines that are younger than the youngest that was seen."""
        result = _ask(self.program, "--color=never")
        if result is None or not result.ok:
            self.told, self.readable = "dmesg stopped answering", False
            return ()
        fresh = [
            (stamp, line)
            for line in result.stdout.splitlines()
            if (stamp := _stamp(line)) >= self.last and line not in self.seen
        ]
        youngest = max([self.last, *(stamp for stamp, _ in fresh)])
        if youngest > self.last:
            self.seen = set()
        self.last = youngest
        self.seen |= {line for stamp, line in fresh if stamp == youngest}
        return tuple(line for _, line in fresh)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No log: ``told`` says why."""

    told: str
    readable: bool = False

    def new(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def close(self) -> None:
        """Nothing is held."""


def open_kernel_log(device: Path = KMSG) -> KernelLog:
    """Open the first log that can be read here; what it holds already is left out."""
    reasons: list[str] = []
    log = _open_kmsg(device, reasons) or _open_journal(reasons) or _open_dmesg(reasons)
    return log or Unreadable("; ".join(reasons))


def _open_kmsg(device: Path, reasons: list[str]) -> KernelLog | None:
    try:
        handle = os.open(device, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        reasons.append(f"{device}: {error.strerror}")
        return None
    try:
        os.lseek(handle, 0, os.SEEK_END)
        # Opening is not enough: some containers show the device and refuse to read it.
        with contextlib.suppress(BlockingIOError):
            os.read(handle, RECORD)
    except OSError as error:
        os.close(handle)
        reasons.append(f"{device}: {error.strerror}")
        return None
    return Kmsg(handle)


def _open_journal(reasons: list[str]) -> KernelLog | None:
    program = shutil.which("journalctl")
    if program is None:
        reasons.append("journalctl: not installed")
        return None
    result = _ask(program, "-k", "-q", "--no-pager", "-n", "1", "-o", "cat", "--show-cursor")
    found = CURSOR.search(result.stdout) if result is not None and result.ok else None
    # Every boot logs something: an empty answer means that this user may not see it.
    if result is None or found is None or not CURSOR.sub("", result.stdout).strip():
        reasons.append("journalctl -k: shows nothing to this user")
        return None
    return Journal(program, found[1])


def _open_dmesg(reasons: list[str]) -> KernelLog | None:
    program = shutil.which("dmesg")
    if program is None:
        reasons.append("dmesg: not installed")
        return None
    log = Dmesg(program)
    if not log.new():
        reasons.append("dmesg: shows nothing to this user (kernel.dmesg_restrict)")
        return None
    return log


def kmsg_text(record: str) -> str:
    """Return a record's words, led by the PCI place in its DEVICE line when it has one.

    The format is the kernel's Documentation/ABI/testing/dev-kmsg.
    """
    head, *more = record.splitlines() or [""]
    text = head.partition(";")[2] or head
    place = next((x.partition("+pci:")[2] for x in more if x.startswith(" DEVICE=+pci:")), "")
    return f"{place} {text}" if place and place not in text else text


def _stamp(line: str) -> float:
    match = STAMP.match(line)
    return float(match[1]) if match else -1.0


def _ask(*argv: str) -> Result | None:
    try:
        return ask(argv, seconds=ASK_S)
    except ToolMissingError:
        return None
