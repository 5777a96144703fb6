"""The rounds of a soak in the store: one line each, on the disk before the next round starts.

A run that was interrupted, killed or lost with its machine goes on where the last whole line
ends. A line that was torn in the middle counts as never written.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.digest import digest_data, plain
from llamawright.model.soak import KernelEvent, SoakRound
from llamawright.model.verdict import Device

SHELF = "soaks"
KEY_DIGITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a record holds: rounds, events, and whether it came to an end."""

    rounds: tuple[SoakRound, ...] = ()
    events: tuple[KernelEvent, ...] = ()
    ended: bool = False


def soak_key(*, artifact: str, model: str, device: Device, work: Mapping[str, object]) -> str:
    """Return what tells one soak from another: digests, device with driver, the work."""
    place = {"id": device.id, "name": device.name, "pci": device.pci, "driver": device.driver}
    told = {"artifact": artifact, "model": model, "device": place, "work": dict(work)}
    return digest_data(told)[:KEY_DIGITS]


@dataclass(frozen=True, slots=True)
class Record:
    """One soak's file of JSON lines."""

    path: Path

    def read(self) -> Past:
        """Return the past; a line that cannot be read ends it, as after a crash."""
        rounds: list[SoakRound] = []
        events: list[KernelEvent] = []
        ended = False
        for line in self._lines():
            try:
                value = json.loads(line)
                if "round" in value:
                    rounds.append(codec.decode(SoakRound, value["round"], what=self.path.name))
                elif "event" in value:
                    events.append(codec.decode(KernelEvent, value["event"], what=self.path.name))
                ended = "end" in value
            except (ValueError, TypeError):
                break
        return Past(rounds=tuple(rounds), events=tuple(events), ended=ended)

    def begin(self, past: Past) -> None:
        """Make the file hold exactly ``past``: what was torn off is cut away."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        lines = [_line("round", r) for r in past.rounds]
        lines += [_line("event", e) for e in past.events]
        with beside.open("wb") as stream:
            stream.write(b"".join(lines))
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(self.path)

    def add_round(self, done: SoakRound) -> None:
        """Keep a round."""
        self._append(_line("round", done))

    def add_event(self, event: KernelEvent) -> None:
        """Keep an event."""
        self._append(_line("event", event))

    def end(self, failure: str) -> None:
        """Note that the soak is over: the next one begins anew."""
        self._append(_line("end", {"failure": failure}))

    def _lines(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            whole, _, _torn = self.path.read_bytes().rpartition(b"\n")
            return whole.decode(errors="replace").splitlines() if whole else []
        return []

    def _append(self, line: bytes) -> None:
        with self.path.open("ab") as stream:
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())


def _line(kind: str, value: object) -> bytes:
    return f"{json.dumps({kind: plain(value)}, sort_keys=True)}\n".encode()
