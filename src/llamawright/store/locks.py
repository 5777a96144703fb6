"""Locks between processes. The system's own lock decides, a record names the holder.

The kernel drops a dead process's lock, so nobody ever waits for the dead; the record
beside it is only for the sentence a waiting person reads.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from llamawright.errors import LockedError
from llamawright.model.ports import Reporter
from llamawright.store.files import read_json, write_json

if TYPE_CHECKING:
    from filelock import BaseFileLock

POLL_S = 0.2
_START_TOLERANCE_S = 2.0
_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock. ``started`` and ``since`` are seconds of the Unix clock."""

    pid: int
    host: str
    started: float
    since: float
    what: str
    thread: int

    @property
    def told(self) -> str:
        """Return the holder as a phrase: who, where, since when, doing what."""
        at = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} since {at} ({self.what})"

    @property
    def alive(self) -> bool:
        """Whether that very process runs on this host (a recycled pid does not count)."""
        if self.host != socket.gethostname():
            return True
        try:
            created = psutil.Process(self.pid).create_time()
        except psutil.Error:
            return False
        return abs(created - self.started) < _START_TOLERANCE_S


def lock_path(folder: Path, name: str) -> Path:
    """Return the lock file of a name; anything unsafe in a file name becomes ``_``."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._+-]', '_', name)[:150]}.lock"


@contextlib.contextmanager
def hold(
    folder: Path, name: str, *, reporter: Reporter | None, wait_s: float | None, what: str = ""
) -> Iterator[None]:
    """Hold the lock ``name``; while waiting, tell ``reporter`` once whom for.

    Raises ``LockedError`` after ``wait_s`` seconds (``None``: wait for ever), and at once
    when this thread holds the lock already.
    """
    import filelock  # noqa: PLC0415 - takes 70 ms; a run that finds all stamped never locks

    folder.mkdir(parents=True, exist_ok=True)
    path = lock_path(folder, name)
    record = path.with_suffix(".json")
    lock = filelock.FileLock(path)
    _acquire(lock, record, name, reporter, wait_s)
    try:
        with contextlib.suppress(OSError):
            _write_holder(record, what or name)
        yield
    finally:
        record.unlink(missing_ok=True)
        lock.release()


def _acquire(
    lock: BaseFileLock, record: Path, name: str, reporter: Reporter | None, wait_s: float | None
) -> None:
    import filelock  # noqa: PLC0415 - see hold

    start = time.monotonic()
    told = False
    while True:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            holder = read_holder(record)
            waited = time.monotonic() - start
            if _is_own(holder) or (wait_s is not None and waited >= wait_s):
                raise _locked(name, holder, waited) from None
        else:
            return
        if reporter and not told and holder:
            reporter.info(f"waiting for {name}: held by {holder.told}")
            told = True
        time.sleep(POLL_S)


def _is_own(holder: Holder | None) -> bool:
    return (
        holder is not None
        and (holder.pid, holder.thread) == (os.getpid(), threading.get_ident())
        and holder.host == socket.gethostname()
    )


def _locked(name: str, holder: Holder | None, waited: float) -> LockedError:
    who = holder.told if holder else "another process"
    end = f"end it with `kill {holder.pid}`" if holder else "end the other run"
    return LockedError(
        f"{name} is locked",
        why=f"held by {who}; waited {waited:.0f} s",
        hint=f"wait for that run, or {end}",
        kind="locked",
    )


def _write_holder(record: Path, what: str) -> None:
    write_json(
        record,
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": psutil.Process().create_time(),
            "since": time.time(),
            "what": what,
            "thread": threading.get_ident(),
            "program": Path(sys.argv[0]).name if sys.argv else "",
        },
    )


def read_holder(record: Path) -> Holder | None:
    """Return the holder a record names, or ``None`` when it is absent, broken or dead."""
    data = read_json(record)
    if data is None:
        return None
    try:
        holder = Holder(
            pid=int(str(data["pid"])),
            host=str(data["host"]),
            started=float(str(data["started"])),
            since=float(str(data["since"])),
            what=str(data["what"]),
            thread=int(str(data["thread"])),
        )
    except (KeyError, ValueError):
        return None
    return holder if holder.alive else None


def holders(folder: Path) -> tuple[tuple[str, Holder], ...]:
    """Return every lock that a living process holds, as (name, holder)."""
    named = [(p.stem, read_holder(p)) for p in sorted(folder.glob("*.json"))]
    return tuple((name, holder) for name, holder in named if holder)
