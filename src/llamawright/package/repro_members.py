"""The members of a packed file with everything their headers say, and how two lists differ."""

from __future__ import annotations

import hashlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import IO

from llamawright.errors import PackageError
from llamawright.model.repro import Cause, Differing
from llamawright.transfer.expand import expanded

_CHUNK = 1 << 20
_SHIFT = 16
_SHOWN_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """One member: ``mode`` as permission bits, ``mtime`` as the format writes it."""

    name: str
    kind: str
    mode: int
    mtime: str
    owner: str
    link: str
    size: int
    sha256: str


def read_headers(path: Path, spill: Mapping[str, Path] | None = None) -> tuple[Header, ...]:
    """Return every member in the file's own order, with the digest of its content.

    The content of the members that ``spill`` names is also written to its paths. Raises
    ``PackageError`` when the file is no tar archive (bare, zstd, gzip, xz) and no zip.
    """
    try:
        if zipfile.is_zipfile(path):
            return tuple(_zip(path, spill or {}))
        return tuple(_tar(path, spill or {}))
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, LZMAError) as error:
        raise _unreadable(path, str(error)) from error


def compare_headers(a: tuple[Header, ...], b: tuple[Header, ...]) -> Iterator[Differing]:
    """Yield what differs outside the members' content, in the order of names."""
    ours, theirs = {m.name: m for m in a}, {m.name: m for m in b}
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield Differing(path=name, cause=Cause.ONLY_IN_A, detail=f"{ours[name].size} bytes")
        elif name not in ours:
            yield Differing(path=name, cause=Cause.ONLY_IN_B, detail=f"{theirs[name].size} bytes")
        else:
            yield from _header(ours[name], theirs[name])
    common = [m.name for m in a if m.name in theirs], [m.name for m in b if m.name in ours]
    if common[0] != common[1]:
        yield _order(*common)


def changed_names(a: tuple[Header, ...], b: tuple[Header, ...]) -> tuple[str, ...]:
    """Return the names of files that both have with different content."""
    theirs: Mapping[str, Header] = {m.name: m for m in b}
    pairs = ((m, theirs[m.name]) for m in a if m.name in theirs)
    return tuple(x.name for x, y in pairs if x.kind == y.kind == "file" and x.sha256 != y.sha256)


def _header(a: Header, b: Header) -> Iterator[Differing]:
    rows = (
        (Cause.KIND, a.kind, b.kind),
        (Cause.LINK, a.link, b.link),
        (Cause.MODE, f"{a.mode:04o}", f"{b.mode:04o}"),
        (Cause.MTIME, a.mtime, b.mtime),
        (Cause.OWNER, a.owner, b.owner),
    )
    for cause, ours, theirs in rows:
        if ours != theirs:
            yield Differing(path=a.name, cause=cause, detail=f"{ours} | {theirs}")


def _order(a: list[str], b: list[str]) -> Differing:
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    shown = [", ".join(names[at : at + _SHOWN_LINES]) for names in (a, b)]
    return Differing(
        path="", cause=Cause.ORDER, detail=f"from member {at + 1}: {' | '.join(shown)}"
    )


def _tar(path: Path, spill: Mapping[str, Path]) -> Iterator[Header]:
    with _plain(path) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for info in tar:
            content = tar.extractfile(info) if info.isreg() else None
            yield Header(
                name=info.name,
                kind=_tar_kind(info),
                mode=stat.S_IMODE(info.mode),
                mtime=f"{info.mtime:.9g}" if info.mtime % 1 else str(int(info.mtime)),
                owner=f"{info.uid}:{info.gid} {info.uname}:{info.gname}".rstrip(" :"),
                link=info.linkname,
                size=info.size,
                sha256=_digest(info.name, content, spill),
            )


def _zip(path: Path, spill: Mapping[str, Path]) -> Iterator[Header]:
    with zipfile.ZipFile(path) as zipped:
        for info in zipped.infolist():
            mode = info.external_attr >> _SHIFT
            with zipped.open(info) as content:
                sha256 = _digest(info.filename, content, spill)
            yield Header(
                name=info.filename,
                kind="folder" if info.is_dir() else "link" if stat.S_ISLNK(mode) else "file",
                mode=stat.S_IMODE(mode),
                mtime="{}-{:02}-{:02} {:02}:{:02}:{:02}".format(*info.date_time),
                owner=f"system {info.create_system}",
                link="",
                size=info.file_size,
                sha256=sha256,
            )


@contextmanager
def _plain(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as stream, expanded(stream) as inner:
        if inner is None:
            raise _unreadable(path, "its compression is not known")
        yield inner  # type: ignore[misc]


def _digest(name: str, content: IO[bytes] | None, spill: Mapping[str, Path]) -> str:
    if content is None:
        return ""
    total = hashlib.sha256()
    with ExitStack() as stack:
        sink = stack.enter_context(spill[name].open("wb")) if name in spill else None
        while chunk := content.read(_CHUNK):
            total.update(chunk)
            if sink is not None:
                sink.write(chunk)
    return total.hexdigest()


def _tar_kind(info: tarfile.TarInfo) -> str:
    if info.isreg():
        return "file"
    return "link" if info.issym() else "folder" if info.isdir() else f"type {info.type!r}"


def _unreadable(path: Path, why: str) -> PackageError:
    return PackageError(
        f"{path} cannot be read as an archive",
        why=why,
        hint="name two archives (.tar.zst, .tar.gz, .zip) or wheels that were packed to the end",
        kind="not-an-archive",
    )
