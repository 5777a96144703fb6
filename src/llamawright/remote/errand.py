"""The errand as a whole: look, send what is missing, run, bring back, tidy up."""

from __future__ import annotations

import contextlib
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
from llamawright.remote.plan import PIECE, Piece, missing, pieces, read_machine, require_fit

RESULT = "result.json"
# A proof has limits of its own; this one is for a machine that stops answering.
RUN_S = 6 * 3600.0
FAREWELL = ("Connection to ", "Shared connection to ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is to be run on another machine.

    ``tool`` is llamawright itself; ``parcels`` lie in the run's folder under their names.
    ``argv`` are the words after ``llamawright``, ``@ROOM@`` in them is that folder; ``keep``
    are patterns of the files that are brought back, beside the result.
    """

    tool: Parcel
    parcels: tuple[Parcel, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    keep: tuple[str, ...]
    platform: Platform


def send_and_run(errand: Errand, host: Host, folder: Path, reporter: Reporter) -> FarRun:
    """Run the errand and return its end; what it brings back lies in ``folder``.

    Raises ``DownloadError`` for a host that is not reached, ``LockedError`` (12) for a lost
    connection, ``ToolMissingError``, ``NoDeviceError`` or ``DiskError`` for a machine that
    cannot do it. What was sent stays there: the next errand does not send it again.
    """
    connection = Connection.to(host)
    every = (errand.tool, *errand.parcels)
    with reporter.step(f"look at {host.name}"):
        far = _look(connection, every)
    lacking = missing(every, far)
    waiting = pieces(lacking, far)
    require_fit(far, errand.platform, sum(p.size for p in waiting), host)
    if lacking:
        with reporter.step(f"send to {host.name}"):
            _send(connection, far, waiting, reporter)
            _join(connection, lacking, host)
    else:
        reporter.info(f"{host.name} has everything that is needed: nothing is sent")
    name = secrets.token_hex(8)
    try:
        with reporter.step(f"verify on {host.name}"):
            ended = _run(connection, errand, name, reporter)
            for pattern in (RESULT, *errand.keep):
                with contextlib.suppress(DownloadError):
                    connection.get(f"{far.folder}/runs/{name}", pattern, folder)
            files = tuple(sorted(p for p in folder.iterdir() if p.is_file()))
            return replace(ended, files=files)
    finally:
        with contextlib.suppress(LlamawrightError):
            connection.ask("tidy", {"id": name})


def _look(connection: Connection, every: Sequence[Parcel]) -> FarMachine:
    answer = connection.ask("look", {"wanted": [p.sha256 for p in every]})
    return read_machine(answer)


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
    answer = connection.ask("join", {"parcels": [p.sha256 for p in lacking]})
    bad = answer.get("bad")
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
    result = connection.stream(order, tell=tell, limit_s=RUN_S)
    return FarRun(code=result.returncode, files=(), last=last[0] if last else "")
