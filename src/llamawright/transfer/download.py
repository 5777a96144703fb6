"""Downloads: to a part file, resumed, verified, renamed into the store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import url2pathname

from llamawright.digest import sha256_bytes, sha256_file
from llamawright.errors import DiskError
from llamawright.model.ports import Meter, Reporter
from llamawright.paths import STORE_VARIABLE
from llamawright.store import Store, disk_guard
from llamawright.store.files import touch_used
from llamawright.transfer import refusals
from llamawright.transfer.part import Part
from llamawright.transfer.request import DownloadRequest, Failure, Fault, HttpSettings, parts_of
from llamawright.transfer.retry import Clock, Exhausted, try_in_turn

if TYPE_CHECKING:
    import requests

_CHUNK = 1 << 16
# Fewer new bytes than this are no progress: patience with the server is not renewed.
_PROGRESS = 1 << 16
_MIB = 1 << 20


def download(
    request: DownloadRequest,
    store: Store,
    *,
    offline: bool,
    reporter: Reporter,
    headers: tuple[tuple[str, str], ...] = (),
    http: HttpSettings | None = None,
    clock: Clock | None = None,
) -> Path:
    """Return the blob of the requested file, downloading it when it is not in the store.

    Raises ``DownloadError`` with every address's failure, ``DiskError`` when there is no
    room. A killed download goes on where it stopped; wrong bytes are never kept.
    """
    if blob := find_blob(request, store, reporter=reporter):
        return blob
    if offline:
        raise refusals.not_in_store(request, store)
    name = request.sha256 or sha256_bytes(request.urls[0].encode())
    with (
        disk_guard(store.root),
        store.lock(f"blob-{name}", reporter=reporter, what=f"download of {request.label}"),
    ):
        if blob := find_blob(request, store, reporter=reporter):
            return blob
        folder = store.blob(name).parent if request.sha256 else store.root / "blobs" / "by-address"
        part = Part(folder / f"{name}.part")
        _need_room(request, part, store)
        job = _Job(request, part, dict(headers), http or HttpSettings())
        return _finish(job, store, _run(job, reporter, clock or Clock()))


def find_blob(request: DownloadRequest, store: Store, *, reporter: Reporter) -> Path | None:
    """Return the blob when the store has it; one whose bytes are not right any more is dropped.

    Reading it again costs 0.7 s a GiB and finds a failing disk, and a file copied in by hand.
    """
    known = request.sha256 or _recorded(request, store)
    if not known or not store.has_blob(known, request.size if request.exact_size else None):
        return None
    blob = store.blob(known)
    if sha256_file(blob) != known:
        reporter.warn(f"{request.label} in the store does not have its sha256: removed {blob}")
        with disk_guard(store.root):
            blob.unlink(missing_ok=True)
        return None
    touch_used(blob)
    return blob


def _run(job: _Job, reporter: Reporter, clock: Clock) -> str:
    """Return the sha256 of the verified part file."""
    label = f"downloading {job.request.label}"
    with reporter.meter(label, total=job.request.size, unit="bytes") as meter:
        job.meter = meter
        outcome = try_in_turn(job.request.urls, job.attempt, clock=clock, tell=reporter.info)
    if isinstance(outcome, Exhausted):
        raise refusals.all_failed(job.request, outcome.failures, kept=job.part.size)
    return outcome


def _finish(job: _Job, store: Store, sha256: str) -> Path:
    blob = store.blob(sha256)
    job.part.settle(blob)
    if job.request.sha256 is None:
        size = blob.stat().st_size
        name = sha256_bytes(job.request.urls[0].encode())
        store.write_record("blobs", name, "content", {"sha256": sha256, "size": size})
    return blob


def _recorded(request: DownloadRequest, store: Store) -> str | None:
    """Return the sha256 that an unpinned address gave the last time."""
    if not request.urls:
        return None
    record = store.read_record("blobs", sha256_bytes(request.urls[0].encode()), "content")
    return str(record["sha256"]) if record else None


def _need_room(request: DownloadRequest, part: Part, store: Store) -> None:
    part.path.parent.mkdir(parents=True, exist_ok=True)
    missing = request.size - part.size if request.exact_size else 0
    free = shutil.disk_usage(part.path.parent).free
    if missing > free:
        raise DiskError(
            f"no room for {request.label} below {store.root}",
            why=f"it needs {missing / _MIB:.0f} MiB more, {free / _MIB:.0f} MiB are free",
            hint=f"free space with `llamawright gc`, or set {STORE_VARIABLE} to a larger volume",
            kind="disk-full",
        )


@dataclass(slots=True)
class _Job:
    """One running download; ``attempt`` is its only verb."""

    request: DownloadRequest
    part: Part
    headers: Mapping[str, str]
    http: HttpSettings
    meter: Meter | None = None
    session: requests.Session | None = None
    best: int = 0

    def attempt(self, url: str) -> str | Failure:
        """Go on with the part file at one address; the sha256 when it is whole and right."""
        if self.part.size > self.request.size:
            self.part.drop()
        start = self.part.size
        self.best = max(self.best, start)
        whole = self.request.exact_size and start == self.request.size
        if not whole:
            failure = self._copy(url) if parts_of(url).scheme == "file" else self._ask(url)
            if failure:
                return failure
        # Bytes kept from an earlier run may be from elsewhere or torn: then once more, afresh.
        return self._verified(url, suspect=start > 0)

    def _verified(self, url: str, *, suspect: bool) -> str | Failure:
        request, size = self.request, self.part.size
        if self.part.looks_like_html:
            failure = refusals.html(url)
        elif request.exact_size and size != request.size:
            failure = refusals.wrong_size(url, request.size, size)
        else:
            actual = self.part.sha256()
            if request.sha256 in {None, actual}:
                return actual
            failure = refusals.wrong_sha256(url, str(request.sha256), actual, again=suspect)
        self.part.drop()
        return failure

    def _copy(self, url: str) -> Failure | None:
        """Copy from a ``file:`` address."""
        source = Path(url2pathname(parts_of(url).path))
        if not source.is_file():
            return Failure(fault=Fault.ABSENT, url=url, why="no such file")
        size = source.stat().st_size
        refused = refusals.unfit_size(url, self.request, size)
        if refused:
            return refused
        with source.open("rb") as stream, self.part.begin(url, "") as sink:
            while chunk := stream.read(_MIB):
                sink.write(chunk)
                self._show(sink.tell())
        return None

    def _ask(self, url: str) -> Failure | None:
        from llamawright.transfer import http  # noqa: PLC0415 - see http's docstring

        if self.session is None:
            self.session = http.open_session(self.http)
        response = http.get(
            self.session,
            url,
            settings=self.http,
            headers={**self.headers, **self._range(url)},
            stream=True,
        )
        if isinstance(response, Failure):
            return response
        with response:
            return self._answer(url, response)

    def _range(self, url: str) -> dict[str, str]:
        """Return the headers that ask for the rest only, where that is safe."""
        validator, size = self.part.validator(url), self.part.size
        if not size or not (validator or self.request.sha256):
            return {}
        unless_changed = {"If-Range": validator} if validator else {}
        return {"Range": f"bytes={size}-", **unless_changed}

    def _answer(self, url: str, response: requests.Response) -> Failure | None:
        status, start = response.status_code, self.part.size
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            self.part.drop()
            return Failure(fault=Fault.NETWORK, url=url, why="the rest is refused", again=True)
        resumed = status == HTTPStatus.PARTIAL_CONTENT
        if resumed and refusals.range_start(response.headers) != start:
            self.part.drop()
            return Failure(fault=Fault.NETWORK, url=url, why="it sent another range", again=True)
        refused = refusals.unfit_answer(url, self.request, response.headers, resumed=resumed)
        if refused:
            return refused
        return self._stream(url, response, resumed=resumed)

    def _stream(self, url: str, response: requests.Response, *, resumed: bool) -> Failure | None:
        from llamawright.transfer import http  # noqa: PLC0415 - see http's docstring

        validator = refusals.validator(response.headers)
        with self.part.resume() if resumed else self.part.begin(url, validator) as sink:
            done = sink.tell()
            # Raw bytes: an archive labelled as compressed must not be unpacked on the way.
            chunks = response.raw.stream(_CHUNK, decode_content=False)
            while done <= self.request.size:
                # Only reading is the network's: what writing raises is about the disk.
                try:
                    chunk = next(chunks, b"")
                except http.BROKEN as error:
                    return http.failure_of(url, error, advanced=self._advanced(done))
                if not chunk:
                    break
                sink.write(chunk)
                done += len(chunk)
                self._show(done)
        if done > self.request.size:
            self.part.drop()
            return refusals.too_large(url, self.request.size)
        if self.request.exact_size and done < self.request.size:
            advanced = self._advanced(done)
            return refusals.cut_short(url, done, self.request.size, advanced=advanced)
        return None

    def _advanced(self, done: int) -> bool:
        """Whether more came than ever before: a server that starts over makes no progress."""
        best, self.best = self.best, max(self.best, done)
        return done >= best + _PROGRESS

    def _show(self, done: int) -> None:
        if self.meter:
            total = self.request.size if self.request.exact_size else None
            self.meter.update(done, total=total)
