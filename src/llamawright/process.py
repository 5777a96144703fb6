"""The only place that starts a process: lists, clean environment, limits, whole-tree kill."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

import psutil

from llamawright.errors import InterruptedRunError, ToolMissingError

TAIL_LINES = 40
POLL_S = 0.25
GRACE_S = 3.0
SHORT_S = 60.0
KEPT_OUTPUT = 16 << 20
ALLOWED = (
    "HOME", "LANG", "LOGNAME", "PATH", "TEMP", "TMP", "TMPDIR", "USER", "XDG_RUNTIME_DIR",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "LOCALAPPDATA",
    "APPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
    "NUMBER_OF_PROCESSORS", "DEVELOPER_DIR", "SDKROOT",
)  # fmt: skip
FIXED = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}


class Ending(StrEnum):
    """How a run came to its end."""

    EXITED = "exited"
    TIMED_OUT = "timed-out"
    STALLED = "stalled"
    OUTPUT_CAP = "output-cap"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run: seconds in all, seconds without output and CPU, bytes of output."""

    total_s: float
    stall_s: float | None = None
    output_cap: int = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program with its whole environment; ``argv[0]`` is an absolute path."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def pasteable(self) -> str:
        """Return a shell line that repeats the run."""
        extra = [
            f"{k}={shlex.quote(v)}"
            for k, v in sorted(self.env.items())
            if os.environ.get(k) != v and k not in FIXED
        ]
        line = shlex.join(self.argv)
        return f"cd {shlex.quote(str(self.cwd))} && {' '.join([*extra, line])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run did. ``returncode`` is negative for a signal; output may be cut at 16 MiB."""

    command: Command
    returncode: int
    ending: Ending
    seconds: float
    output: str
    stdout: str
    tail: tuple[str, ...]
    log: Path | None

    @property
    def ok(self) -> bool:
        """Whether the program ended by itself with exit status 0."""
        return self.ending is Ending.EXITED and self.returncode == 0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output as it came: which stream, text without its end."""

    stream: str
    text: str


Watcher = Callable[[Line], bool | None]


def base_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the allow-listed environment, fixed locale and zone, ``extra`` last."""
    kept = {k: v for k, v in os.environ.items() if k.upper() in ALLOWED}
    return {**kept, **FIXED, **(extra or {})}


def run(
    command: Command,
    *,
    limits: Limits,
    log: Path | None = None,
    watch: Watcher | None = None,
    tick: Callable[[int], bool | None] | None = None,
) -> Result:
    """Run a program to its end or a limit, and leave nothing of it running.

    ``watch`` sees every line and may return ``True`` to stop the run; ``tick`` is called
    about four times a second with the child's pid and may do the same. Output goes to
    ``log`` as it comes. Raises ``ToolMissingError`` when the program cannot be started.
    """
    return _Run(command, limits, log, watch, tick).go()


def ask(argv: tuple[str, ...], *, seconds: float = 20.0, env: Mapping[str, str] | None = None,
        cwd: Path | None = None) -> Result:  # fmt: skip
    """Run a short probe in a clean environment; limits of ``seconds`` and 4 MiB."""
    command = Command(argv=argv, cwd=cwd or Path.cwd(), env=dict(env or base_environment()))
    return run(command, limits=Limits(total_s=seconds, output_cap=4 << 20))


class _Run:
    def __init__(
        self,
        command: Command,
        limits: Limits,
        log: Path | None,
        watch: Watcher | None,
        tick: Callable[[int], bool | None] | None,
    ) -> None:
        self.command, self.limits, self.log = command, limits, log
        self.watch, self.tick = watch, tick
        self.parts: dict[str, list[bytes]] = {"stdout": [], "all": []}
        self.pending = {"stdout": b"", "stderr": b""}
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.total = 0
        self.ending: Ending | None = None
        self.last_sign = time.monotonic()
        self.last_cpu = -1.0

    def go(self) -> Result:
        start = time.monotonic()
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(self.log.open("ab")) if self.log else None
            child = self._start()
            stack.callback(kill_tree, child)
            stack.enter_context(_registered(child, guarded=self.limits.total_s > SHORT_S))
            try:
                self._pump(child, sink, start)
            except KeyboardInterrupt:
                kill_tree(child)
                raise InterruptedRunError(
                    f"interrupted while {Path(self.command.argv[0]).name} was running",
                    hint="run the same command again: finished stages are kept",
                ) from None
            code = self._reap(child)
        return Result(
            command=self.command,
            returncode=code,
            ending=self.ending or Ending.EXITED,
            seconds=time.monotonic() - start,
            output=b"".join(self.parts["all"]).decode(errors="replace"),
            stdout=b"".join(self.parts["stdout"]).decode(errors="replace"),
            tail=tuple(self.tail),
            log=self.log,
        )

    def _start(self) -> subprocess.Popen[bytes]:
        program = self.command.argv[0]
        try:
            if not os.access(program, os.X_OK):
                Path(program).stat()
                raise PermissionError(errno.EACCES, "it is not executable")
            return subprocess.Popen(
                _bound_to_parent(self.command, self.limits),
                cwd=self.command.cwd,
                env=dict(self.command.env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolMissingError(
                f"{self.command.argv[0]} could not be started",
                why=f"{error.strerror or error}",
                hint="check that the file exists, is executable and is made for this machine",
                kind="cannot-start",
            ) from error

    def _pump(self, child: subprocess.Popen[bytes], sink: IO[bytes] | None, start: float) -> None:
        for name, chunk in _chunks(child):
            now = time.monotonic()
            if chunk:
                self.last_sign = now
                self._take(name, chunk, sink)
            self._judge(child, now - start, now)
            if self.ending is not None:
                kill_tree(child)
                return
        for name in ("stdout", "stderr"):
            self._lines(name, final=True)

    def _take(self, name: str, chunk: bytes, sink: IO[bytes] | None) -> None:
        self.total += len(chunk)
        if sink:
            sink.write(chunk)
            sink.flush()
        if self.total <= KEPT_OUTPUT:
            self.parts["all"].append(chunk)
            if name == "stdout":
                self.parts["stdout"].append(chunk)
        if self.total > self.limits.output_cap:
            self.ending = Ending.OUTPUT_CAP
        self.pending[name] += chunk
        self._lines(name, final=False)

    def _lines(self, name: str, *, final: bool) -> None:
        *whole, rest = self.pending[name].replace(b"\r\n", b"\n").split(b"\n")
        if (final and rest) or len(rest) > 1 << 16:
            whole, rest = [*whole, rest], b""
        self.pending[name] = rest
        for raw in whole:
            text = raw.decode(errors="replace")
            self.tail.append(text)
            if self.watch and self.watch(Line(name, text)) and self.ending is None:
                self.ending = Ending.STOPPED

    def _judge(self, child: subprocess.Popen[bytes], elapsed: float, now: float) -> None:
        if self.ending is not None:
            return
        if elapsed > self.limits.total_s:
            self.ending = Ending.TIMED_OUT
        elif self.tick and self.tick(child.pid):
            self.ending = Ending.STOPPED
        elif self.limits.stall_s and now - self.last_sign > self.limits.stall_s / 4:
            cpu = tree_cpu_seconds(child.pid)
            if cpu - self.last_cpu > 0.05 * POLL_S or self.last_cpu < 0:
                self.last_cpu = cpu
                self.last_sign = max(self.last_sign, now - self.limits.stall_s / 4)
            elif now - self.last_sign > self.limits.stall_s:
                self.ending = Ending.STALLED

    def _reap(self, child: subprocess.Popen[bytes]) -> int:
        try:
            return child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            kill_tree(child)
            return child.wait()


def _chunks(child: subprocess.Popen[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield output as it comes, and an empty chunk about every quarter second.

    One thread reads each pipe: that works for pipes on every system. A grandchild may keep
    a pipe open after the child ended, so the wait for the rest is bounded.
    """
    pipe: queue.Queue[tuple[str, bytes]] = queue.Queue(maxsize=256)

    def pump(name: str, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), 1 << 16):
                pipe.put((name, chunk))
        pipe.put((name, b""))

    streams = [("stdout", child.stdout), ("stderr", child.stderr)]
    for name, stream in streams:
        if stream is not None:
            threading.Thread(target=pump, args=(name, stream), daemon=True).start()
    unread, closing = len(streams), math.inf
    while unread and time.monotonic() < closing:
        try:
            name, chunk = pipe.get(timeout=POLL_S)
            unread -= not chunk
        except queue.Empty:
            name, chunk = "stdout", b""
        yield name, chunk
        if closing == math.inf and child.poll() is not None:
            closing = time.monotonic() + GRACE_S
    while child.poll() is None:
        time.sleep(0.01)
        yield "stdout", b""


def tree_cpu_seconds(pid: int) -> float:
    """Return user and system seconds of a process and all its living descendants."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total


def kill_tree(child: subprocess.Popen[bytes]) -> None:
    """End a child, its process group and every descendant; return when they are gone."""
    victims: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        victims = psutil.Process(child.pid).children(recursive=True)
    if child.poll() is None:
        _signal_group(child, gentle=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_S / 3)
    _signal_group(child, gentle=False)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    psutil.wait_procs(victims, timeout=GRACE_S)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_S)


def _signal_group(child: subprocess.Popen[bytes], *, gentle: bool) -> None:
    if sys.platform == "win32":
        if not gentle:
            child.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM if gentle else signal.SIGKILL)


def _bound_to_parent(command: Command, limits: Limits) -> tuple[str, ...]:
    """Return the argument list that makes a long run die with this process.

    ``setpriv`` (util-linux) sets the parent-death signal and then becomes the program:
    SIGTERM lets ninja end its own children even when this process was killed by SIGKILL;
    what programs do not end themselves, the guard does.
    """
    setpriv = shutil.which("setpriv") if limits.total_s > SHORT_S else None
    return (setpriv, "--pdeathsig", "TERM", "--", *command.argv) if setpriv else command.argv


class _Guard:
    """The program that ends our long children's groups when we are killed; started once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: subprocess.Popen[bytes] | None = None

    def tell(self, word: str) -> None:
        """Note or take back a group; a guard that cannot be had costs nothing but the guard."""
        with self.lock, contextlib.suppress(OSError):
            if self.child is None or self.child.poll() is not None:
                script = Path(__file__).with_name("process_guard.py")
                self.child = subprocess.Popen(
                    (sys.executable, "-I", "-S", str(script)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            if self.child.stdin is not None:
                self.child.stdin.write(f"{word}\n".encode())
                self.child.stdin.flush()


_GUARD = _Guard()
_LIVE: dict[int, subprocess.Popen[bytes]] = {}


@contextlib.contextmanager
def _registered(child: subprocess.Popen[bytes], *, guarded: bool) -> Iterator[None]:
    """Note a child for signal handlers, and a long one for the case that we are killed."""
    _LIVE[child.pid] = child
    guarded = guarded and sys.platform != "win32"
    if guarded:
        _GUARD.tell(f"+{child.pid}")
    try:
        yield
    finally:
        _LIVE.pop(child.pid, None)
        if guarded:
            _GUARD.tell(f"-{child.pid}")


def kill_all() -> None:
    """End every child that is still running; for signal handlers."""
    for child in list(_LIVE.values()):
        kill_tree(child)
