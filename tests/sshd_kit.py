"""A real sshd on loopback, of this user's own: key, configuration and cache in one folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from llamawright.errors import LlamawrightError
from llamawright.model.remote import Host
from llamawright.remote import Errand, pack_tool, send_and_run
from remote_kit import LINUX, checkout, parcel
from reporter_kit import Told

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin"
SERVER = os.environ.get("LLAMAWRIGHT_TEST_SSHD") or shutil.which("sshd", path=PLACES)
LACKING = (
    "no sshd here: install openssh-server, or unpack Debian's package and name its sshd in "
    "LLAMAWRIGHT_TEST_SSHD"
)
CONFIG = """Port {port}
ListenAddress 127.0.0.1
HostKey "{root}/host"
AuthorizedKeysFile "{root}/user.pub"
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
PermitRootLogin yes
Subsystem sftp internal-sftp
SetEnv XDG_CACHE_HOME="{cache}"
"""
CLIENT = """Host real
  HostName 127.0.0.1
  Port {port}
  IdentityFile "{root}/user"
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile "{root}/known"
"""


@dataclass(frozen=True)
class Sshd:
    """The server, and the folder with everything of both sides."""

    root: Path
    pid: int

    @property
    def far(self) -> Path:
        return self.root / CACHE / "llamawright" / "remote"

    def sessions(self) -> list[psutil.Process]:
        """Return the server's processes for connections that are open."""
        return psutil.Process(self.pid).children()

    def running(self) -> list[psutil.Process]:
        """Return what runs of llamawright over there."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if process.pid != os.getpid() and any(str(self.far) in word for word in words):
                found.append(process)
        return [p for p in found if p.status() != psutil.STATUS_ZOMBIE]

    def empty(self, *, within_s: float = 25.0) -> bool:
        """Whether nothing of llamawright runs over there, now or soon."""
        return within(lambda: not self.running(), within_s)


# What a path may have that a shell, sftp's patterns or pip could take for something else.
CACHE = "far [x]* 'ü"


def within(true: Callable[[], object], seconds: float) -> bool:
    """Whether a question has the answer yes, now or soon."""
    end = time.monotonic() + seconds
    while not (answer := bool(true())) and time.monotonic() < end:
        time.sleep(0.1)
    return answer


@contextmanager
def serving(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """Run the server, and let ``ssh`` and ``sftp`` of this process know it as ``real``."""
    if SERVER is None:
        pytest.skip(LACKING)
    for name in ("host", "user"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)]
        subprocess.run(made, check=True, timeout=30)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    values = {"port": port, "root": root, "cache": root / CACHE}
    (root / "sshd_config").write_text(CONFIG.format(**values))
    (root / "ssh_config").write_text(CLIENT.format(**values))
    key = " ".join((root / "host.pub").read_text().split()[:2])
    (root / "known").write_text(f"[127.0.0.1]:{port} {key}\n")
    (root / "bin").mkdir()
    for name in ("ssh", "sftp"):
        script = root / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {shutil.which(name)} -F "{root}/ssh_config" "$@"\n')
        script.chmod(0o755)
    patch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
    with (root / "sshd.log").open("wb") as log:
        server = subprocess.Popen(
            [SERVER, "-D", "-e", "-f", str(root / "sshd_config")], env=_libraries(Path(SERVER)),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            assert within(lambda: _listens(port), 10), (root / "sshd.log").read_text()
            yield Sshd(root=root, pid=server.pid)
        finally:
            server.terminate()
            server.wait(timeout=20)


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def _libraries(server: Path) -> dict[str, str]:
    """Return the environment for a server of an unpacked package, with its libraries."""
    root = server.parents[2]
    folders = [*root.glob("lib/*-linux-*"), *root.glob("usr/lib/*-linux-*")]
    own = {"LD_LIBRARY_PATH": ":".join(map(str, folders))} if root != Path("/") else {}
    return {**os.environ, **own}


def errand(folder: Path, **env: str) -> Errand:
    """Return an errand with a stand-in for the tool."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / "checkout"
    return Errand(
        tool=pack_tool(root if root.is_dir() else checkout(root), folder),
        parcels=(parcel(folder / "in" / "x.tar.zst", b"artifact" * 9999),),
        argv=("verify", "@ROOM@/x.tar.zst"),
        env=env,
        keep=("x.verdict.json",),
        platform=LINUX,
    )


class Aloud(Told):
    """A reporter whose lines another process reads."""

    def info(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def main() -> int:
    """Run one errand in a process of its own, for tests that end it."""
    folder = Path(sys.argv[1])
    found = folder / "found"
    found.mkdir()
    told = Aloud()
    try:
        ended = send_and_run(errand(folder, LINGER="60"), Host(name="real"), found, told)
    except LlamawrightError as error:
        told.info(f"error {error.kind}")
        return int(error.code)
    told.info(f"ended {ended.code} {[p.name for p in ended.files]} {ended.last}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
