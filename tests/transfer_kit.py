"""Stand-ins for the world of store, transfer and fetch: a person, a clock, a web server."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from llamawright.transfer import Clock

PROJECT = Path(__file__).resolve().parent.parent


class Listener:
    """A Reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.infos: list[str] = []
        self.warnings: list[str] = []
        self.meters: list[tuple[str, float | None, str]] = []
        self.updates: list[float] = []
        self.totals: list[float | None] = []

    def info(self, text: str) -> None:
        self.infos.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextlib.contextmanager
    def meter(self, label: str, *, total: float | None, unit: str) -> Iterator[Listener]:
        self.meters.append((label, total, unit))
        yield self

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        del note
        self.updates.append(done)
        self.totals.append(total)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.infos.append(title)
        yield


class Slept:
    """A clock that does not wait: it remembers the pauses, and may act during one."""

    def __init__(self, during: Callable[[int], None] | None = None) -> None:
        self.pauses: list[float] = []
        self.during = during

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.during:
            self.during(len(self.pauses))

    @property
    def clock(self) -> Clock:
        return Clock(sleep=self.sleep, spread=lambda: 0.0)


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it."""

    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """A scripted answer. ``cut``: the connection ends after that many bytes of the body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    ranges: bool = True
    etag: str = ""
    length: bool = True


Script = Reply | Sequence[Reply] | Callable[[Seen], Reply]


class Site:
    """A web server on this machine that answers as its routes say and keeps a log.

    A sequence of replies is used up one by one; its last one stays.
    """

    def __init__(self) -> None:
        self.routes: dict[str, Script] = {}
        self.seen: list[Seen] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def paths(self) -> list[str]:
        return [s.path for s in self.seen]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def reply(self, seen: Seen) -> Reply:
        script = self.routes.get(seen.path, Reply(status=404, body=b"no such page"))
        if isinstance(script, Reply):
            return script
        if callable(script):
            return script(seen)
        if len(script) > 1:
            self.routes[seen.path] = script[1:]
        return script[0]

    def _handler(site) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen = Seen(self.path, dict(self.headers.items()))
                site.seen.append(seen)
                with contextlib.suppress(OSError):
                    send(self, site.reply(seen), seen)

            def log_message(self, *_args: object) -> None:
                pass

        return Handler


def send(handler: BaseHTTPRequestHandler, reply: Reply, seen: Seen) -> None:
    """Send a reply as a web server does, with ranges and If-Range."""
    body, status, headers = reply.body, reply.status, dict(reply.headers)
    if reply.etag:
        headers["ETag"] = reply.etag
    wanted = seen.headers.get("Range", "")
    unless = seen.headers.get("If-Range", reply.etag)
    if status == 200 and reply.ranges and wanted and unless == reply.etag:
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start >= len(body):
            status, headers["Content-Range"], body = 416, f"bytes */{len(body)}", b""
        else:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            status, body = 206, body[start:]
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if reply.length:
        handler.send_header("Content-Length", str(len(body)))
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(body if reply.cut is None else body[: reply.cut])
    handler.wfile.flush()
    handler.close_connection = True


@contextlib.contextmanager
def site() -> Iterator[Site]:
    """Run a server for the time of a block."""
    opened = Site()
    try:
        yield opened
    finally:
        opened.close()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def noise(size: int, seed: int = 1) -> bytes:
    """Return bytes that do not compress and are the same every time."""
    block = hashlib.shake_256(str(seed).encode())
    return block.digest(size)


def tar_info(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime = 1_700_000_000
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def tar_bytes(
    members: Sequence[tuple[tarfile.TarInfo, bytes]], *, mode: str = "w:gz", form: int | None = None
) -> bytes:
    """Return a tar archive of exactly these members, however wicked."""
    buffer = io.BytesIO()
    kind = tarfile.PAX_FORMAT if form is None else form
    with tarfile.open(fileobj=buffer, mode=mode, format=kind) as tar:  # type: ignore[call-overload]
        for info, content in members:
            if info.isreg():
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def tar_of(files: Mapping[str, bytes | str], *, mode: str = "w:gz") -> bytes:
    """Return a tar archive of plain files; a ``str`` value makes a link to it."""
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    for name, content in files.items():
        if isinstance(content, str):
            members.append((tar_info(name, type=tarfile.SYMTYPE, linkname=content), b""))
        else:
            members.append((tar_info(name), content))
    return tar_bytes(members, mode=mode)


def zip_of(files: Mapping[str, bytes | str], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of plain files; a ``str`` value makes a link to it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as zipped:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, (2024, 2, 3, 4, 5, 6))
            info.compress_type = compression
            info.external_attr = (0o120777 if isinstance(content, str) else 0o100644) << 16
            zipped.writestr(info, content)
    return buffer.getvalue()


def deb_of(data: bytes, *, name: str = "data.tar.xz") -> bytes:
    """Return a Debian package with this ``data.tar``."""
    parts = {"debian-binary": b"2.0\n", "control.tar.gz": b"odd", name: data}
    packed = b"!<arch>\n"
    for member, content in parts.items():
        head = f"{member:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        packed += head + content + (b"\n" if len(content) % 2 else b"")
    return packed


def files_below(root: Path) -> dict[str, bytes]:
    """Return every regular file below a folder with its content."""
    return {
        p.relative_to(root).as_posix(): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and not p.is_symlink()
    }


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own, with the project and these kits importable."""
    path = os.pathsep.join([str(PROJECT / "src"), str(PROJECT / "tests")])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def was_killed(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == -signal.SIGKILL
