"""What came back, believed only as far as it can be checked here. Reads files, runs nothing.

The other machine is asked to prove an artifact; it is not trusted to say which one, nor with
names of files here, nor with text for a page. Whether it really has that device nobody can
tell from here: see docs/how-to/verify-elsewhere.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from llamawright import codec
from llamawright.errors import (
    DiskError,
    DownloadError,
    ExitCode,
    InterruptedRunError,
    LlamawrightError,
    LockedError,
    ToolMissingError,
    VerificationError,
)
from llamawright.model.remote import FarRun, Host, Parcel
from llamawright.model.verdict import Verdict
from llamawright.remote.errand import RESULT

# A verdict of every type and batch size is 0.1 MB.
LARGEST = 32 << 20
LAST_LINE = re.compile(r"llamawright: exit (\d+) \([\w-]+: ([\w-]+)\)")
AGAIN = "run the same command again: what was sent is not sent again"
LOOK = "look at what answers there under that name, and run it again"
# What ends llamawright over there before it can say anything but its last line.
EARLY: Mapping[int, type[LlamawrightError]] = {
    int(kind.code): kind
    for kind in (ToolMissingError, DownloadError, LockedError, DiskError, InterruptedRunError)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FarResult:
    """The result of the other side: its JSON, its verdict, its exit code and class."""

    value: Mapping[str, object]
    verdict: Verdict | None
    code: ExitCode
    kind: str


def read_result(ended: FarRun, *, artifact: Parcel, page: str, host: Host) -> FarResult:
    """Return what the other side found out about ``artifact``; ``page`` is its verdict's file.

    Raises ``VerificationError`` for a verdict of another file or one that contradicts itself,
    ``LockedError`` where nothing came back, and the other side's own error when it ended early.
    """
    value = _json(ended, RESULT)
    if value is None:
        raise _early(ended, host)
    told = value.get("error")
    if isinstance(told, dict):
        return FarResult(
            value=value, verdict=None, code=_failed(told, host), kind=str(told.get("class"))
        )
    try:
        verdict = codec.decode(Verdict, value.get("verdict"), what="verdict")
    except (ValueError, RecursionError) as error:
        raise VerificationError(
            f"{host.name} sent no verdict", why=str(error), hint=LOOK, kind="far-bad-verdict"
        ) from None
    # Its name becomes the page's, so it must be this one as well.
    if (verdict.artifact, verdict.artifact_sha256) != (artifact.name, artifact.sha256):
        raise VerificationError(
            f"{host.name} proved another file than {artifact.name}",
            why=f"its verdict is of {verdict.artifact!r}, sha256 {verdict.artifact_sha256!r}",
            hint=LOOK,
            kind="other-artifact",
        )
    _require_page(ended, page, verdict, host)
    code = value.get("code")
    known = ExitCode(code) if code in {int(c) for c in ExitCode} else ExitCode.VERIFICATION
    return FarResult(value=value, verdict=verdict, code=known, kind=str(value.get("class", "")))


def _require_page(ended: FarRun, page: str, verdict: Verdict, host: Host) -> None:
    """Let the verdict's file be that verdict, byte for byte: it may be signed here."""
    path = next((f for f in ended.files if f.name == page), None)
    if path is None:
        raise LockedError(
            f"{page} did not come back from {host.name}",
            why="its result did: the connection was lost in between, or the disk there is full",
            hint=AGAIN,
            kind="far-no-result",
        )
    written = codec.encode(verdict).encode()
    if path.stat().st_size != len(written) or path.read_bytes() != written:
        raise VerificationError(
            f"{page} from {host.name} is not its verdict",
            why="the file differs from the result that came with it",
            hint=LOOK,
            kind="other-verdict",
        )


def _json(ended: FarRun, name: str) -> dict[str, object] | None:
    path = next((f for f in ended.files if f.name == name), None)
    if path is None or path.stat().st_size > LARGEST:
        return None
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _failed(told: Mapping[str, object], host: Host) -> ExitCode:
    code = told.get("code")
    if not isinstance(code, int) or code not in {int(c) for c in ExitCode} or not code:
        raise VerificationError(
            f"{host.name} sent no result",
            why=f"its error has code {code!r}",
            hint=LOOK,
            kind="far-bad-verdict",
        )
    return ExitCode(code)


def _early(ended: FarRun, host: Host) -> LlamawrightError:
    """Return the error of a run that left no result."""
    said = LAST_LINE.fullmatch(ended.last.strip())
    kind = EARLY.get(int(said[1])) if said else None
    if said and kind is not None and int(said[1]) == ended.code:
        return kind(
            f"llamawright could not start on {host.name}",
            why=ended.last.strip(),
            hint=f"its lines above name the cure; do it there: ssh {host.destination}",
            kind=said[2],
        )
    return LockedError(
        f"the proof on {host.name} ended without a result",
        why=f"status {ended.code}: {ended.last or 'it said nothing'}",
        hint="it was stopped there, or the machine went down: run the same command again",
        kind="far-no-result",
    )
