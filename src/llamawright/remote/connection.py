"""The user's own ssh and sftp: keys, agents, jump hosts and aliases work as they do by hand."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.errors import DiskError, DownloadError, LockedError, ToolMissingError
from llamawright.model.remote import Host
from llamawright.process import Command, Ending, Limits, Line, Result, base_environment, run
from llamawright.remote.plan import DISK_WORDS, LOST_STATUS, far_command, read_answer, refusal

# Nothing is asked on a terminal; a dead line is noticed within a minute.
OPTIONS = (
    "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15",
    "-o", "ServerAliveCountMax=4", "-o", "LogLevel=INFO",
)  # fmt: skip
KEPT = ("SSH_AUTH_SOCK", "SSH_AGENT_PID")
ASK_S, SEND_S = 120.0, 1800.0
NOT_FOUND = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One host with the programs that reach it."""

    host: Host
    ssh: str
    sftp: str

    @classmethod
    def to(cls, host: Host) -> Connection:
        """Return the connection; ``ToolMissingError`` where OpenSSH is not installed."""
        found = {name: shutil.which(name) for name in ("ssh", "sftp")}
        ssh, sftp = found["ssh"], found["sftp"]
        if ssh is None or sftp is None:
            raise ToolMissingError(
                "OpenSSH is not installed here",
                why="ssh and sftp are not on PATH",
                hint="install it (Debian, Ubuntu: apt install openssh-client)",
                kind="no-ssh",
            )
        return cls(host=host, ssh=ssh, sftp=sftp)

    def ask(
        self, verb: str, order: Mapping[str, object], *, limit_s: float = ASK_S
    ) -> dict[str, object]:
        """Let the other side do one short thing and return its answer."""
        result = self._ssh(far_command(verb, order), "-T", limits=Limits(total_s=limit_s))
        answer = read_answer(result.stdout) if result.ok else None
        if answer is None:
            raise self._failure(result)
        return answer

    def stream(
        self, order: Mapping[str, object], *, tell: Callable[[str], None], limit_s: float
    ) -> Result:
        """Run the tool over there; ``tell`` gets its lines as they come.

        It runs on a terminal of its own, so that it is told when this side goes away.
        """
        own: list[str] = []

        def watch(line: Line) -> None:
            # On a terminal everything from there is stdout: the rest is ssh's own.
            if line.stream == "stderr":
                own.append(line.text)
            tell(line.text.rstrip())

        limits = Limits(total_s=limit_s)
        result = self._ssh(far_command("run", order), "-tt", limits=limits, watch=watch)
        if result.ending is Ending.TIMED_OUT:
            raise LockedError(
                f"the proof on {self.host.name} took more than {limit_s / 60:.0f} min",
                hint="see there what it waits for; the next run sends nothing again",
                kind="far-time-limit",
            )
        if result.returncode == LOST_STATUS:
            raise self._failure(replace(result, output="\n".join(own), tail=tuple(own)))
        return result

    def put(self, source: Path, target: str) -> None:
        """Send one file; it has its name over there only when all of it is there."""
        part = f"{target}.part"
        rename = f"rename {_quoted(part)} {_quoted(target)}"
        self._sftp([f"put {_quoted(str(source))} {_quoted(part)}", rename])

    def get(self, source: str, target: Path) -> None:
        """Bring one file here."""
        self._sftp([f"get {_quoted(source)} {_quoted(str(target))}"])

    def _ssh(
        self,
        command: str,
        terminal: str,
        *,
        limits: Limits,
        watch: Callable[[Line], None] | None = None,
    ) -> Result:
        port = ("-p", str(self.host.port)) if self.host.port else ()
        argv = (self.ssh, terminal, *OPTIONS, *port, "--", self.host.destination, command)
        return run(self._command(argv), limits=limits, watch=watch)

    def _sftp(self, lines: Sequence[str]) -> None:
        port = ("-P", str(self.host.port)) if self.host.port else ()
        with tempfile.TemporaryDirectory(prefix="llamawright-") as name:
            batch = Path(name, "batch")
            batch.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            argv = (self.sftp, "-q", "-b", str(batch), *OPTIONS, *port, self.host.destination)
            result = run(self._command(argv), limits=Limits(total_s=SEND_S))
        if not result.ok:
            raise self._failure(result)

    def _command(self, argv: tuple[str, ...]) -> Command:
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        return Command(argv=argv, cwd=Path.cwd(), env=base_environment(own))

    def _failure(self, result: Result) -> Exception:
        """Return the error for a call that did not do what it was to do."""
        said, name = result.output, self.host.name
        known = refusal(self.host, said)
        if known is not None and result.returncode in (LOST_STATUS, 1):
            return known
        if any(words in said for words in DISK_WORDS):
            return DiskError(
                f"the disk of {name} is full",
                hint="free some there; XDG_CACHE_HOME names another place",
                kind="far-disk-full",
            )
        if result.returncode == NOT_FOUND or "python3: not found" in said:
            return ToolMissingError(
                f"{name} has no python3",
                why="llamawright needs Python 3.11 or newer there",
                hint="install it there (Debian, Ubuntu: apt install python3)",
                kind="far-no-python",
            )
        last = result.tail[-1] if result.tail else "nothing"
        if result.returncode == LOST_STATUS or result.ending is not Ending.EXITED:
            return LockedError(
                f"the connection to {name} was lost",
                why=last,
                hint="run the same command again: what was sent is not sent again",
                kind="connection-lost",
            )
        error = DownloadError(
            f"{name} could not do its part",
            why=f"status {result.returncode}: {last}",
            hint=f"try it by hand: ssh {self.host.destination} python3 --version",
            kind="far-side-failed",
        )
        error.tail = result.tail[-8:]
        return error


def _quoted(path: str) -> str:
    """Return a path as sftp's batch file takes it: in quotes no star means anything.

    A line that begins with ``!`` is a command for this machine's shell, so what the other
    side calls a path must not end a line.
    """
    if not path.isprintable():
        raise DownloadError(
            f"{path!r} is no path that sftp is given",
            why="it has characters that end a line or move a cursor",
            hint="use a folder without them; XDG_CACHE_HOME names another place there",
            kind="odd-path",
        )
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
