"""What is sent, and what the other machine is asked to do. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import (
    DiskError,
    DownloadError,
    LlamawrightError,
    NoDeviceError,
    ToolMissingError,
)
from llamawright.model.platform import Platform
from llamawright.model.remote import FarMachine, Host, Parcel

PIECE = 32 << 20
LEAST_PYTHON = (3, 11)
# The tool's environment unpacked, and what a proof writes: types of the model, logits.
ROOM_BYTES = 900 << 20
ANSWER = "@llamawright@"
# Where the run's folder stands in the words of a command: only the other side knows it.
ROOM = "@ROOM@"
MACHINES = {"amd64": "x86_64"}
PYTHON = re.compile(r"\d{1,3}\.\d{1,3}(\.\d{1,3})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a parcel: ``number`` from 0 on, ``size`` in bytes."""

    parcel: Parcel
    number: int
    size: int

    @property
    def name(self) -> str:
        """Return its name in the folder of what arrives."""
        return f"{self.parcel.sha256}/{self.number}"


def missing(parcels: Sequence[Parcel], far: FarMachine) -> tuple[Parcel, ...]:
    """Return the parcels that do not lie there whole, each once."""
    wanted = {p.sha256: p for p in parcels}
    return tuple(p for sha256, p in wanted.items() if sha256 not in far.whole)


def pieces(parcels: Sequence[Parcel], far: FarMachine) -> tuple[Piece, ...]:
    """Return what has to be sent of them: a piece that lies there with its size is left out."""
    there = dict(far.pieces)
    every = (
        Piece(parcel=p, number=n, size=min(PIECE, p.size - n * PIECE))
        for p in parcels
        for n in range(max(1, -(-p.size // PIECE)))
    )
    return tuple(piece for piece in every if there.get(piece.name) != piece.size)


def require_fit(far: FarMachine, platform: Platform, sent: int, host: Host) -> None:
    """Refuse a machine that cannot run the proof, before anything is sent."""
    if tuple(int(n) for n in far.python.split(".")[:2]) < LEAST_PYTHON:
        raise ToolMissingError(
            f"{host.name} has Python {far.python}",
            why=f"llamawright needs {'.'.join(map(str, LEAST_PYTHON))} or newer there",
            hint=f"install a newer one there and name it first on PATH: ssh {host.destination} "
            "python3 --version",
            kind="far-python-too-old",
        )
    machine = MACHINES.get(far.machine.casefold(), far.machine.casefold())
    if (far.system, machine) != (str(platform.system), platform.machine):
        raise NoDeviceError(
            f"{host.name} is {far.system}_{machine}, the artifact is for {platform.tag}",
            why="it could not run there",
            hint="name a machine of that kind, or build on one like it",
            kind="far-other-platform",
        )
    if far.free < sent + ROOM_BYTES:
        raise DiskError(
            f"{host.name} has not enough room in {far.folder}",
            why=f"{far.free >> 20} MiB are free, {(sent + ROOM_BYTES) >> 20} MiB are needed",
            hint="free some there; XDG_CACHE_HOME names another place",
            kind="far-disk-full",
        )


def far_command(verb: str, order: Mapping[str, object]) -> str:
    """Return the line for the other machine's shell: every word is quoted for it."""
    text = Path(__file__).with_name("far_side.py").read_text(encoding="utf-8")
    return shlex.join(("python3", "-c", text, verb, json.dumps(order, sort_keys=True)))


def read_answer(stdout: str) -> dict[str, object] | None:
    """Return the answer in what was printed: a login script may have said more."""
    for line in reversed(stdout.splitlines()):
        if line.startswith(ANSWER):
            try:
                value = json.loads(line.removeprefix(ANSWER))
            except (ValueError, RecursionError):
                return None
            return value if isinstance(value, dict) else None
    return None


def read_machine(answer: Mapping[str, object], host: Host) -> FarMachine:
    """Return what the other machine said of itself; ``DownloadError`` for what no machine says.

    Its folder becomes a word of commands here, so it must be a path that can be one.
    """

    def text(name: str) -> str:
        value = answer.get(name)
        return value if isinstance(value, str) else ""

    python, folder = PYTHON.match(text("python")), text("folder")
    if python is None or not folder.startswith("/") or not folder.isprintable():
        raise DownloadError(
            f"{host.name} does not say what it is",
            why=f"its Python is {text('python')!r}, its folder {folder!r}",
            hint=f"look there by hand: ssh {host.destination} python3 --version",
            kind="far-odd-answer",
        )
    free, whole = answer.get("free"), answer.get("whole")
    return FarMachine(
        python=python[0],
        system={"darwin": "macos"}.get(text("system"), text("system")),
        machine=text("machine"),
        folder=folder,
        free=free if isinstance(free, int) else 0,
        whole=frozenset(map(str, whole if isinstance(whole, list) else ())),
        pieces=tuple(_pieces(answer.get("pieces"))),
        libc=text("libc"),
    )


def _pieces(told: object) -> Iterator[tuple[str, int]]:
    for entry in told if isinstance(told, list) else ():
        match entry:
            case [str(name), int(size)]:
                yield name, size


# What ssh says, in the order in which it is looked for: words, class, sentence, hint.
REFUSALS: tuple[tuple[str, str, str, str], ...] = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "host-key-changed",
     "the key of {host} is not the one that this machine knows",
     "make sure that it is the right machine, then: ssh-keygen -R {name}"),
    ("Host key verification failed", "host-key-unknown",
     "the key of {host} is not known here", "meet it once by hand: ssh {host}"),
    ("Permission denied", "ssh-permission", "{host} does not let this user in",
     "ssh-copy-id {host}, or start an agent: the connection may ask nothing"),
    ("Could not resolve hostname", "host-unknown", "there is no host {name}",
     "check the name, or give it an address in ~/.ssh/config"),
    ("Connection refused", "ssh-refused", "{name} lets nobody connect",
     "start sshd there, or name its port: ssh://{host}:2222"),
    ("timed out", "host-unreachable", "{name} does not answer", "check network and firewall"),
    ("No route to host", "host-unreachable", "{name} is not reached", "check network and firewall"),
    ("Network is unreachable", "host-unreachable", "there is no network to {name}",
     "check the network"),
)  # fmt: skip
DISK_WORDS = ("No space left on device", "Disk quota exceeded")
LOST_STATUS = 255


def refusal(host: Host, said: str) -> LlamawrightError | None:
    """Return the error for what ssh itself said, ``None`` when it says nothing known."""
    words = {"host": host.destination, "name": host.name}
    for sign, kind, what, hint in REFUSALS:
        if sign in said:
            return DownloadError(
                what.format(**words), why=_last(said), hint=hint.format(**words), kind=kind
            )
    return None


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""
