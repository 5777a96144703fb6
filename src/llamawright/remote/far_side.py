"""What runs on the other machine: it looks, joins what was sent, runs, tidies up.

It is sent with each call as ``python3 -c TEXT VERB ORDER`` and needs Python's standard library
alone; Python 3.8 must understand it, or it could not say that it is too old. ``ORDER`` is JSON.
Answers are one line of JSON on stdout; ``run`` hands through what the tool tells people.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TypedDict

PATIENCE_S = 15.0
STALE_S = 86_400.0
KEEP_S = 60 * 86_400.0
GUARD = ("src", "llamawright", "process_guard.py")
CHUNK = 1 << 20


class Order(TypedDict, total=False):
    """What one call is about: sha256s, the run's name, its files, words and variables."""

    wanted: list[str]
    parcels: list[str]
    id: str
    tool: str
    links: list[list[str]]
    argv: list[str]
    env: dict[str, str]


def place(*names: str) -> Path:
    """Return a path in llamawright's folder on this machine."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(named) if named.startswith("/") else Path.home() / ".cache"
    return home.joinpath("llamawright", "remote", *names)


def listed(folder: Path) -> list[str]:
    """Return the names in a folder, none when there is no such folder."""
    return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


def old(shelf: str, limit_s: float) -> list[Path]:
    """Return what was not used for so many seconds."""
    every = [place(shelf, name) for name in listed(place(shelf))]
    return [p for p in every if time.time() - p.stat().st_mtime > limit_s]


def c_library() -> str:
    """Return what decides which compiled packages fit here."""
    mac = platform.mac_ver()[0]
    return f"macos {mac}" if mac else " ".join(platform.libc_ver()).strip()


def digest_of(path: Path) -> str:
    """Return a file's sha256."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            found.update(chunk)
    return found.hexdigest()


def look(order: Order) -> dict[str, object]:
    """Tell what this machine is and what it has; make the folders that are sent to."""
    place("files").mkdir(parents=True, exist_ok=True)
    # What a run left that was killed with everything around it, and what nobody used for long.
    for shelf, limit_s in (("runs", STALE_S), ("tool", KEEP_S), ("incoming", KEEP_S)):
        for path in old(shelf, limit_s):
            shutil.rmtree(str(path), ignore_errors=True)
    for path in [*old("files", KEEP_S), *old("incoming", KEEP_S)]:
        path.unlink()
    for sha256 in order["wanted"]:
        if not place("files", sha256).exists():
            place("incoming", sha256).mkdir(parents=True, exist_ok=True)
    pieces = [
        [f"{sha256}/{name}", place("incoming", sha256, name).stat().st_size]
        for sha256 in listed(place("incoming"))
        for name in listed(place("incoming", sha256))
    ]
    return {
        "python": platform.python_version(),
        "system": platform.system().lower(),
        "machine": platform.machine(),
        "folder": str(place()),
        "free": shutil.disk_usage(str(place())).free,
        "whole": listed(place("files")),
        "pieces": pieces,
        "libc": c_library(),
    }


def join(order: Order) -> dict[str, object]:
    """Make a file of its pieces; one with other bytes is removed and told."""
    bad = []
    for sha256 in order["parcels"]:
        source, whole = place("incoming", sha256), place("files", sha256)
        if whole.exists():
            continue
        beside = place("incoming", f"{sha256}.whole")
        with beside.open("wb") as out:
            for name in sorted((n for n in listed(source) if n.isdigit()), key=int):
                with (source / name).open("rb") as piece:
                    shutil.copyfileobj(piece, out, CHUNK)
        if digest_of(beside) == sha256:
            beside.replace(whole)
        else:
            beside.unlink()
            bad.append(sha256)
        shutil.rmtree(str(source), ignore_errors=True)
    return {"bad": bad}


def unpacked(sha256: str) -> Path:
    """Return the folder of the tool, unpacked once."""
    folder = place("tool", sha256)
    if not folder.is_dir():
        beside = place("tool", f"{sha256}.{os.getpid()}")
        with tarfile.open(str(place("files", sha256))) as archive:
            # Our own file, its sha256 checked; Python 3.11.4 and later can check names as well.
            if hasattr(tarfile, "data_filter"):
                archive.extractall(str(beside), filter="data")
            else:
                archive.extractall(str(beside))  # noqa: S202 - regular files of our own
        with contextlib.suppress(OSError):
            beside.rename(folder)
        shutil.rmtree(str(beside), ignore_errors=True)
    return folder


class Child:
    """The tool while it runs; whoever goes away takes it along."""

    def __init__(
        self, argv: list[str], room: Path, env: Mapping[str, str], result: IO[bytes]
    ) -> None:
        self.process = subprocess.Popen(
            argv, cwd=str(room), env=dict(env), stdin=subprocess.DEVNULL, stdout=result,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.ending = False

    def end(self, *_given: object) -> None:
        """Tell the tool to end: it ends its own children in order; later all are killed."""
        if not self.ending:
            self.ending = True
            self.process.terminate()
            threading.Thread(target=self._kill_later, daemon=True).start()

    def _kill_later(self) -> None:
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def relay(self) -> int:
        """Hand through what it tells people, and return its exit code."""
        for line in self.process.stderr or ():
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except OSError:
                self.end()
        code = self.process.wait()
        if self.ending:
            # What it started itself and did not end: pip, while the environment is made.
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        return code if code >= 0 else 128 - code


@contextlib.contextmanager
def guard(tool: Path) -> Iterator[Callable[[str, int], None]]:
    """Yield what notes a group (``+``) or takes it back (``-``) with the tool's own guard.

    It ends the groups that are noted when this program is killed without a word.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(tool.joinpath(*GUARD))], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as program:  # fmt: skip

        def tell(sign: str, group: int) -> None:
            with contextlib.suppress(OSError):
                if program.stdin is not None:
                    program.stdin.write(f"{sign}{group}\n".encode())
                    program.stdin.flush()

        yield tell


def run(order: Order) -> int:
    """Run the tool; when the other side goes, or tells so, nothing stays behind."""
    room = place("runs", order["id"])
    shutil.rmtree(str(room), ignore_errors=True)
    room.mkdir(parents=True)
    for sha256, name in order["links"]:
        (room / name).parent.mkdir(exist_ok=True)
        (room / name).symlink_to(place("files", sha256))
        os.utime(place("files", sha256))
    tool = unpacked(order["tool"])
    os.utime(tool)
    argv = [sys.executable, str(tool / "bootstrap.py"), "llamawright"]
    argv += [word.replace("@ROOM@", str(room)) for word in order["argv"]]
    # pip takes a space for the end of a path, so variables name the room from bootstrap's folder.
    short = os.path.relpath(str(room), str(tool))
    env = {name: value.replace("@ROOM@", short) for name, value in order["env"].items()}
    with (room / "result.json").open("wb") as result, guard(tool) as tell:
        child = Child(argv, room, {**os.environ, **env}, result)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, child.end)
        tell("+", child.process.pid)
        code = child.relay()
        tell("-", child.process.pid)
        return code


def tidy(order: Order) -> dict[str, object]:
    """Remove what a run left; the files that were sent stay for the next one."""
    shutil.rmtree(str(place("runs", order["id"])), ignore_errors=True)
    return {}


def main(verb: str, text: str) -> int:
    """Do what one order says."""
    order: Order = json.loads(text)
    if verb == "run":
        return run(order)
    verbs = {"look": look, "join": join, "tidy": tidy}
    sys.stdout.write(f"\n@llamawright@{json.dumps(verbs[verb](order))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
