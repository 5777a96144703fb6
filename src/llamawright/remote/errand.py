"""The errand as a whole: look, send what is missing, run, bring back, tidy up."""

from __future__ import annotations

import contextlib
import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.errors import DownloadError, LlamawrightError
from llamawright.model.platform import Platform
from llamawright.model.ports import Reporter
from llamawright.model.remote import FarMachine, FarRun, Host, Parcel
from llamawright.remote.connection import Connection
from llamawright.remote.packages import fetch_packages, index_of_folder, lacks_packages
from llamawright.remote.plan import (
    PIECE,
    ROOM,
    Piece,
    missing,
    pieces,
    read_machine,
    require_fit,
)

RESULT = "result.json"
# A proof has limits of its own; this one is for a machine that stops answering.
RUN_S = 6 * 3600.0
# Joining reads and writes every byte of a model twice.
JOIN_S = 1800.0
FAREWELL = ("Connection to ", "Shared connection to ")
# A colour, a title, a moved cursor (ECMA-48): whatever comes from there moves nothing here.
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is to be run on another machine.

    ``tool`` is llamawright itself; ``parcels`` lie in the run's folder under their names.
    ``argv`` are the words after ``llamawright``, ``@ROOM@`` in them is that folder; ``keep``
    are the names of the files that are brought back, beside the result. ``lock`` pins the
    tool's packages, which are sent to a machine that cannot get them by itself.
    """

    tool: Parcel
    parcels: tuple[Parcel, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    keep: tuple[str, ...]
    platform: Platform
    lock: Path | None = None


def send_and_run(errand: Errand, host: Host, folder: Path, reporter: Reporter) -> FarRun:
    """Run the errand and return its end; what it brings back lies in ``folder``.

    Raises ``DownloadError`` for a host that is not reached, ``LockedError`` (12) for a lost
    connection, ``ToolMissingError``, ``NoDeviceError`` or ``DiskError`` for a machine that
    cannot do it. What was sent stays there: the next errand does not send it again.
    """
    connection = Connection.to(host)
    far = _deliver(connection, errand, reporter)
    ended = _attempt(connection, errand, far, folder, reporter)
    if errand.lock is None or not lacks_packages(ended):
        return ended
    with tempfile.TemporaryDirectory(prefix="llamawright-") as name:
        with reporter.step(f"fetch the tool's packages for {host.name}: it reaches no index"):
            found = fetch_packages(errand.lock, far, host, Path(name))
        own = index_of_folder(ROOM)
        more = replace(errand, parcels=(*errand.parcels, *found), env={**errand.env, **own})
        far = _deliver(connection, more, reporter)
    return _attempt(connection, more, far, folder, reporter)


def _deliver(connection: Connection, errand: Errand, reporter: Reporter) -> FarMachine:
    """Make everything that the errand needs lie there; return what the machine said."""
    host, every = connection.host, (errand.tool, *errand.parcels)
    with reporter.step(f"look at {host.name}"):
        answer = connection.ask("look", {"wanted": [p.sha256 for p in every]})
        far = read_machine(answer, host)
    lacking = missing(every, far)
    waiting = pieces(lacking, far)
    # Pieces lie there beside the file that is made of them.
    room = sum(p.size for p in waiting) + sum(p.size for p in lacking)
    require_fit(far, errand.platform, room, host)
    if lacking:
        with reporter.step(f"send to {host.name}"):
            _send(connection, far, waiting, reporter)
            _join(connection, lacking, host)
    else:
        reporter.info(f"{host.name} has everything that is needed: nothing is sent")
    return far


def _attempt(
    connection: Connection, errand: Errand, far: FarMachine, folder: Path, reporter: Reporter
) -> FarRun:
    name = secrets.token_hex(8)
    try:
        with reporter.step(f"verify on {connection.host.name}"):
            ended = _run(connection, errand, name, reporter)
            for kept in (RESULT, *errand.keep):
                with contextlib.suppress(DownloadError):
                    connection.get(f"{far.folder}/runs/{name}/{kept}", folder / kept)
            files = tuple(sorted(p for p in folder.iterdir() if p.is_file()))
            return replace(ended, files=files)
    finally:
        with contextlib.suppress(LlamawrightError):
            connection.ask("tidy", {"id": name})


def _send(
    connection: Connection, far: FarMachine, waiting: Sequence[Piece], reporter: Reporter
) -> None:
    """Send piece by piece: what has arrived stays when the line breaks."""
    total, done = sum(p.size for p in waiting), 0
    with (
        tempfile.TemporaryDirectory(prefix="llamawright-") as name,
        reporter.meter("sending", total=float(total), unit="bytes") as meter,
    ):
        cut = Path(name, "piece")
        for piece in waiting:
            with piece.parcel.path.open("rb") as stream:
                stream.seek(piece.number * PIECE)
                cut.write_bytes(stream.read(piece.size))
            connection.put(cut, f"{far.folder}/incoming/{piece.name}")
            done += piece.size
            meter.update(float(done), note=piece.parcel.name)


def _join(connection: Connection, lacking: Sequence[Parcel], host: Host) -> None:
    order = {"parcels": [p.sha256 for p in lacking]}
    bad = connection.ask("join", order, limit_s=JOIN_S).get("bad")
    names = [p.name for p in lacking if isinstance(bad, list) and p.sha256 in bad]
    if names:
        raise DownloadError(
            f"{', '.join(names)} did not arrive whole on {host.name}",
            why="its sha256 is not the one that was sent",
            hint="run the same command again: it is sent anew",
            kind="sent-damaged",
        )


def _run(connection: Connection, errand: Errand, name: str, reporter: Reporter) -> FarRun:
    last: list[str] = []

    def tell(text: str) -> None:
        if text and not text.startswith(FAREWELL):
            last[:] = [text]
            reporter.info(f"{connection.host.name}: {text}")

    order = {
        "id": name,
        "tool": errand.tool.sha256,
        "links": [[p.sha256, p.name] for p in errand.parcels],
        "argv": list(errand.argv),
        "env": dict(errand.env),
    }
    result = connection.stream(order, tell=lambda line: tell(printable(line)), limit_s=RUN_S)
    return FarRun(code=result.returncode, files=(), last=last[0] if last else "")


def printable(text: str) -> str:
    """Return a line from there without what a terminal takes for a command."""
    bare = ESCAPES.sub("", text).expandtabs()
    return "".join(c for c in bare if c.isprintable())
