"""GitHub's releases on this machine: its answers' shapes, its states, and its bad days."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

REPO = "someone/tiny"
TOKEN = "ghp_right"
READ_ONLY = "ghp_reads"
HOUR = 3600.0


@dataclass(frozen=True)
class Fault:
    """One bad moment: what the server does at the next request that matches.

    ``act`` is ``status`` (an answer of its own, with ``headers`` and ``body``), ``drop`` (the
    connection ends unanswered), ``lose`` (the work is done, the answer is lost), ``cut`` (half
    of the answer comes), ``tear`` (half of an upload is kept as it is), ``starter`` (an
    upload leaves an empty asset and 502), ``flip`` (other bytes are kept) or ``late`` (the
    digest is not told yet).
    """

    method: str
    path: str
    act: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None

    def fits(self, method: str, path: str) -> bool:
        return method == self.method and re.search(self.path, path) is not None


@dataclass
class Kept:
    """An asset as the server keeps it."""

    id: int
    name: str
    data: bytes
    state: str = "uploaded"
    told: bool = True

    def as_json(self, base: str) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(self.data).hexdigest()}"
        return {
            "url": f"{base}/repos/{REPO}/releases/assets/{self.id}",
            "browser_download_url": f"{base}/{REPO}/releases/download/v1/{self.name}",
            "id": self.id,
            "node_id": "RA_kwDOAAAA",
            "name": self.name,
            "label": "",
            "state": self.state,
            "content_type": "application/octet-stream",
            "size": len(self.data),
            "digest": digest if self.told and self.state == "uploaded" else None,
            "download_count": 0,
            "created_at": "2026-11-01T00:00:00Z",
            "updated_at": "2026-11-01T00:00:00Z",
            "uploader": {"login": "octocat", "id": 1},
        }


@dataclass
class KeptRelease:
    """A release as the server keeps it."""

    id: int
    tag: str
    name: str
    body: str
    draft: bool
    prerelease: bool = False
    commitish: str = "main"
    assets: list[Kept] = field(default_factory=list)

    def as_json(self, base: str) -> dict[str, object]:
        return {
            "url": f"{base}/repos/{REPO}/releases/{self.id}",
            "assets_url": f"{base}/repos/{REPO}/releases/{self.id}/assets",
            "upload_url": f"{base}/uploads/repos/{REPO}/releases/{self.id}/assets{{?name,label}}",
            "html_url": f"https://github.com/{REPO}/releases/tag/{self.tag}",
            "id": self.id,
            "author": {"login": "octocat", "id": 1},
            "node_id": "RE_kwDOAAAA",
            "tag_name": self.tag,
            "target_commitish": self.commitish,
            "name": self.name,
            "draft": self.draft,
            "prerelease": self.prerelease,
            "immutable": False,
            "created_at": "2026-11-01T00:00:00Z",
            "published_at": None if self.draft else "2026-11-01T00:00:00Z",
            "assets": [a.as_json(base) for a in self.assets],
            "body": self.body,
        }


class FakeGitHub:
    """A server with one repository; ``faults`` are used up one by one as they match."""

    def __init__(self) -> None:
        self.releases: list[KeptRelease] = []
        self.faults: list[Fault] = []
        self.log: list[str] = []
        self.agents: set[str] = set()
        self.renames: dict[str, str] = {}
        self.number = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def public(self) -> list[KeptRelease]:
        return [r for r in self.releases if not r.draft]

    def next_id(self) -> int:
        self.number += 1
        return self.number

    def add(self, tag: str, *, draft: bool = True, body: str = "") -> KeptRelease:
        made = KeptRelease(id=self.next_id(), tag=tag, name=tag, body=body, draft=draft)
        self.releases.append(made)
        return made

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def count(self, method: str, path: str) -> int:
        return sum(1 for line in self.log if re.search(f"^{method} .*{path}", line))


@contextlib.contextmanager
def github() -> Iterator[FakeGitHub]:
    opened = FakeGitHub()
    try:
        yield opened
    finally:
        opened.close()


def _handler(server: FakeGitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _Exchange(server, self).run()

        def log_message(self, *_args: object) -> None:
            pass

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as http.server calls them

    return Handler


class _DroppedError(Exception):
    pass


@dataclass
class _Exchange:
    """One request: its fault if there is one, else what GitHub would do."""

    server: FakeGitHub
    http: BaseHTTPRequestHandler
    body: bytes = b""

    def run(self) -> None:
        method, path = self.http.command, self.http.path
        self.server.log.append(f"{method} {path}")
        self.server.agents.add(self.http.headers.get("User-Agent", ""))
        fault = next((f for f in self.server.faults if f.fits(method, path)), None)
        if fault is not None:
            self.server.faults.remove(fault)
        with contextlib.suppress(OSError):
            if fault is not None and fault.act == "drop":
                self._hang_up()
                return
            self.body = self.http.rfile.read(int(self.http.headers.get("Content-Length") or 0))
            self._answer(fault)

    def _answer(self, fault: Fault | None) -> None:
        act = fault.act if fault else ""
        if fault is not None and act == "status":
            self._send(fault.status, fault.body, fault.headers)
            return
        status, data = self._work(act)
        if act == "lose":
            self._hang_up()
        else:
            self._send(status, data, {}, cut=act == "cut")

    def _send(
        self, status: int, data: object, headers: Mapping[str, str], *, cut: bool = False
    ) -> None:
        raw = isinstance(data, str)
        text = str(data) if raw else "" if data is None else json.dumps(data)
        self.http.send_response(status)
        self.http.send_header("Content-Type", "text/html" if raw else "application/json")
        usual = {"X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": "4102444800"}
        for name, value in {**usual, **headers}.items():
            self.http.send_header(name, value)
        self.http.send_header("Content-Length", str(len(text)))
        self.http.end_headers()
        self.http.wfile.write(text.encode()[: len(text) // 2 if cut else None])
        self.http.wfile.flush()
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        # A reset, not an orderly end: that is how a lost connection looks.
        linger = struct.pack("ii", 1, 0)
        self.http.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.http.close_connection = True
        self.http.connection.close()

    def _work(self, act: str) -> tuple[int, object]:  # noqa: C901, PLR0911 - a router
        token = self.http.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in {TOKEN, READ_ONLY}:
            return 401, _problem("Bad credentials")
        parts = urlsplit(self.http.path)
        query = {k: v[0] for k, v in parse_qs(parts.query).items()}
        path = parts.path.removeprefix("/uploads")
        if not path.startswith(f"/repos/{REPO}/"):
            return 404, _problem("Not Found")
        if token == READ_ONLY and self.http.command != "GET":
            return 403, _problem("Resource not accessible by personal access token")
        rest = path.removeprefix(f"/repos/{REPO}/releases").strip("/").split("/")
        match (self.http.command, rest):
            case ("GET", [""]):
                return 200, _page([r.as_json(self.server.url) for r in self.server.releases], query)
            case ("POST", [""]):
                return self._create()
            case ("GET", ["tags", tag]):
                found = [r for r in self.server.public if r.tag == tag]
                return self._one(found[0] if found else None)
            case ("GET", [number]):
                return self._one(self._release(number))
            case ("PATCH", [number]):
                return self._patch(number)
            case ("GET", [number, "assets"]):
                release = self._release(number)
                assets = [a.as_json(self.server.url) for a in release.assets] if release else []
                return 200, _page(assets, query)
            case ("POST", [number, "assets"]):
                return self._upload(number, query["name"], act)
            case ("DELETE", ["assets", number]):
                return self._delete(number)
        return 404, _problem("Not Found")

    def _release(self, number: str) -> KeptRelease | None:
        return next((r for r in self.server.releases if str(r.id) == number), None)

    def _one(self, release: KeptRelease | None) -> tuple[int, object]:
        if release is None:
            return 404, _problem("Not Found")
        return 200, release.as_json(self.server.url)

    def _create(self) -> tuple[int, object]:
        said = json.loads(self.body)
        made = self.server.add(said["tag_name"], draft=said["draft"], body=said["body"])
        made.name, made.prerelease = said["name"], said["prerelease"]
        made.commitish = said.get("target_commitish", "main")
        return 201, made.as_json(self.server.url)

    def _patch(self, number: str) -> tuple[int, object]:
        release = self._release(number)
        if release is None:
            return 404, _problem("Not Found")
        said = json.loads(self.body)
        release.draft, release.body = said["draft"], said["body"]
        return 200, release.as_json(self.server.url)

    def _upload(self, number: str, name: str, act: str) -> tuple[int, object]:
        release = self._release(number)
        if release is None:
            return 404, _problem("Not Found")
        name = self.server.renames.get(name, name)
        if any(a.name == name for a in release.assets):
            return 422, _problem("Validation Failed", code="already_exists")
        asset = Kept(id=self.server.next_id(), name=name, data=self.body)
        match act:
            case "tear":
                asset.data = self.body[: len(self.body) // 2]
            case "flip":
                asset.data = bytes([self.body[0] ^ 1]) + self.body[1:]
            case "starter":
                asset.data, asset.state = b"", "starter"
            case "late":
                asset.told = False
        release.assets.append(asset)
        if act == "starter":
            return 502, _problem("Bad Gateway")
        return 201, asset.as_json(self.server.url)

    def _delete(self, number: str) -> tuple[int, object]:
        for release in self.server.releases:
            for asset in release.assets:
                if str(asset.id) == number:
                    release.assets.remove(asset)
                    return 204, None
        return 404, _problem("Not Found")


def _page(listed: list[dict[str, object]], query: Mapping[str, str]) -> list[dict[str, object]]:
    size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
    return listed[(page - 1) * size : page * size]


def _problem(message: str, *, code: str = "") -> dict[str, object]:
    errors = {"errors": [{"resource": "ReleaseAsset", "code": code, "field": "name"}]}
    return {
        "message": message,
        "documentation_url": "https://docs.github.com/rest",
        **(errors if code else {}),
    }
