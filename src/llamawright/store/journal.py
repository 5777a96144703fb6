"""The journal: one fsynced JSON line before and after every phase that can kill a machine.

A phase that was begun and never ended, by a process that no longer runs, is how the next
start knows that something was killed, froze or lost power. Every process writes a file of
its own, so lines of two runs never mix and old files can be dropped whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil

from llamawright.store.locks import Holder

# Boot times are computed from two clocks, so the same boot's time wanders by seconds.
_SAME_BOOT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A phase without an end. ``began`` in seconds of the Unix clock.

    ``rebooted``: the machine was started again since, so it froze, lost power or was reset.
    """

    token: str
    phase: str
    began: float
    rebooted: bool
    facts: Mapping[str, object]


class Journal:
    """Append-only JSON lines below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, phase: str, **facts: object) -> str:
        """Note that a phase starts, on the disk before this returns; gives its token."""
        token = uuid4().hex
        process = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": psutil.Process().create_time(),
            "boot": psutil.boot_time(),
        }
        self._append({"begin": token, "phase": phase, "process": process, "facts": facts})
        return token

    def end(self, token: str, **facts: object) -> None:
        """Note that the phase of ``token`` came to an end, whatever its outcome.

        Another process may do so too: that is how a found ``Unfinished`` is settled.
        """
        self._append({"end": token, "facts": facts})

    @contextlib.contextmanager
    def phase(self, phase: str, **facts: object) -> Iterator[str]:
        """Begin and end a phase around a block; an exception ends it as well."""
        token = self.begin(phase, **facts)
        ending = "raised"
        try:
            yield token
            ending = "done"
        finally:
            self.end(token, ending=ending)

    def records(self) -> Iterator[dict[str, object]]:
        """Yield every whole line of every file; a line torn by a crash is left out."""
        for _path, record in self._named_records():
            yield record

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Return the phases whose process is gone and that never came to an end."""
        records = list(self.records())
        ended = {str(r["end"]) for r in records if "end" in r}
        begun = [r for r in records if "begin" in r and str(r["begin"]) not in ended]
        found = [u for u in map(_unfinished, begun) if u is not None]
        return tuple(sorted(found, key=lambda u: u.began))

    def settled(self) -> tuple[Path, ...]:
        """Return the files of ended processes in which no phase is left without an end."""
        records = list(self._named_records())
        ended = {str(r["end"]) for _, r in records if "end" in r}
        needed = {p for p, r in records if "begin" in r and str(r["begin"]) not in ended}
        own = self._own_file()
        return tuple(p for p in self._files() if p not in needed and p != own)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def _named_records(self) -> Iterator[tuple[Path, dict[str, object]]]:
        for path in self._files():
            with path.open("rb") as stream:
                for line in stream:
                    with contextlib.suppress(ValueError):
                        value = json.loads(line)
                        if isinstance(value, dict):
                            yield path, value

    def _own_file(self) -> Path:
        return self.folder / f"{os.getpid()}-{int(psutil.Process().create_time())}.jsonl"

    def _append(self, record: Mapping[str, object]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        line = json.dumps({**record, "time": time.time()}, sort_keys=True, default=str)
        with self._own_file().open("ab") as stream:
            stream.write(f"{line}\n".encode())
            stream.flush()
            os.fsync(stream.fileno())


def _unfinished(record: Mapping[str, object]) -> Unfinished | None:
    process, facts = record.get("process"), record.get("facts")
    if not isinstance(process, dict) or not isinstance(facts, dict):
        return None
    holder = Holder(
        pid=int(_number(process.get("pid"))),
        host=str(process.get("host")),
        started=_number(process.get("started")),
        since=0.0,
        what="",
        thread=0,
    )
    if holder.alive:
        return None
    shift = abs(_number(process.get("boot")) - psutil.boot_time())
    return Unfinished(
        token=str(record["begin"]),
        phase=str(record.get("phase")),
        began=_number(record.get("time")),
        rebooted=shift > _SAME_BOOT_S,
        facts=facts,
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
