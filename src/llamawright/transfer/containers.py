"""Readers of the archive formats: tar (plain, gzip, xz, bzip2, zstd), zip and wheel, deb."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from llamawright.errors import DownloadError
from llamawright.transfer.members import Kind, Member, UnpackLimits, unsafe

# What the readers of the standard library and zstandard raise on broken data.
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError,
          gzip.BadGzipFile, NotImplementedError, ValueError)  # fmt: skip
_CHUNK = 1 << 20
_AR_MAGIC = b"!<arch>\n"
_AR_HEADER = 60
_TAR_BLOCK = 512
_TAR_MAGIC_AT = 257
_LONGEST_LINK = 4096
_ENCRYPTED = 0x1


class Readable(Protocol):
    """Something bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes, nothing at the end."""


class Container(Protocol):
    """An opened archive: all members first, then the content of one."""

    def members(self) -> Iterator[Member]:
        """Yield every member in the archive's order."""

    def open(self, member: Member) -> IO[bytes]:
        """Open one regular file's content."""


@contextmanager
def open_container(
    path: Path, *, scratch: Path, limits: UnpackLimits, what: str
) -> Iterator[Container]:
    """Open an archive by its first bytes; names do not count, blobs have none.

    A compressed tar is expanded once, into an unnamed file in ``scratch``: reading it
    twice from the compressed form would cost twice the time.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(_TAR_BLOCK)
            stream.seek(0)
            if start.startswith(b"PK"):
                with zipfile.ZipFile(stream) as zipped:
                    yield _Zip(zipped, what)
            else:
                if start.startswith(_AR_MAGIC):
                    _seek_deb_data(stream, what)
                with tempfile.TemporaryFile(dir=scratch) as expanded:
                    _expand(stream, expanded, limits, what)
                    with tarfile.open(fileobj=expanded, mode="r:", encoding="utf-8") as tar:
                        yield _Tar(tar, expanded, what)
    except BROKEN as error:
        raise broken(path, what, str(error)) from error


def broken(path: Path, what: str, reason: str) -> DownloadError:
    """Return the error of an archive that is cut short or damaged, or is none at all."""
    with path.open("rb") as stream:
        start = stream.read(_TAR_BLOCK).lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        reason = "it is a web page, saved under an archive's name"
    return DownloadError(
        f"{what} is not a whole archive",
        why=reason or "its end is missing",
        hint="remove the file and fetch it again",
        kind="broken-archive",
    )


class _Tar:
    def __init__(self, tar: tarfile.TarFile, expanded: IO[bytes], what: str) -> None:
        self.tar, self.expanded, self.what = tar, expanded, what
        self.infos: list[tarfile.TarInfo] = []
        self.files: dict[str, tarfile.TarInfo] = {}

    def members(self) -> Iterator[Member]:
        end = 0
        for number, info in enumerate(self.tar):
            self.infos.append(info)
            if info.isreg():
                self.files[info.name] = info
            blocks = -(-info.size // _TAR_BLOCK) if info.isreg() else 0
            end = max(end, info.offset_data + blocks * _TAR_BLOCK)
            yield self._member(number, info)
        # tarfile takes a file that ends between two members for a whole one.
        self.expanded.seek(end)
        if self.expanded.read(_TAR_BLOCK) != bytes(_TAR_BLOCK):
            raise EOFError("the archive's end marker is missing")

    def open(self, member: Member) -> IO[bytes]:
        info = self.infos[member.number]
        content = self.tar.extractfile(self._linked(info) if info.islnk() else info)
        if content is None:
            raise unsafe(self.what, f"{member.name!r} has no content")
        return content

    def _member(self, number: int, info: tarfile.TarInfo) -> Member:
        kind = _tar_kind(info)
        size = info.size
        if info.islnk():
            size = self._linked(info).size
        return Member(
            number=number,
            name=info.name,
            kind=kind,
            size=size if kind is Kind.FILE else 0,
            target=info.linkname if kind is Kind.LINK else "",
            executable=bool(info.mode & stat.S_IXUSR),
            mtime=float(info.mtime),
        )

    def _linked(self, info: tarfile.TarInfo) -> tarfile.TarInfo:
        """Return the file a hard link names: it must come before, in the same archive."""
        earlier = self.files.get(info.linkname)
        if earlier is None:
            raise unsafe(self.what, f"the hard link {info.name!r} leads to no file of the archive")
        return earlier


def _tar_kind(info: tarfile.TarInfo) -> Kind:
    if info.isdir():
        return Kind.FOLDER
    if info.issym():
        return Kind.LINK
    # A hard link is unpacked as a copy: it has no name of its own on every system.
    return Kind.FILE if info.isreg() or info.islnk() else Kind.OTHER


class _Zip:
    def __init__(self, zipped: zipfile.ZipFile, what: str) -> None:
        self.zipped, self.what = zipped, what
        self.infos = zipped.infolist()

    def members(self) -> Iterator[Member]:
        for number, info in enumerate(self.infos):
            if info.flag_bits & _ENCRYPTED:
                raise unsafe(self.what, f"{info.filename!r} is encrypted")
            kind = _zip_kind(info)
            if kind is Kind.LINK and info.file_size > _LONGEST_LINK:
                raise unsafe(self.what, f"the link {info.filename[:80]!r} is too long")
            yield Member(
                number=number,
                # orig_filename: the other one is cut at a NUL and has no backslashes left.
                name=info.orig_filename,
                kind=kind,
                size=info.file_size if kind is Kind.FILE else 0,
                target=self.zipped.read(info).decode() if kind is Kind.LINK else "",
                executable=bool(info.external_attr >> 16 & stat.S_IXUSR),
                mtime=time.mktime((*info.date_time, 0, 0, -1)),
            )

    def open(self, member: Member) -> IO[bytes]:
        return self.zipped.open(self.infos[member.number])


def _zip_kind(info: zipfile.ZipInfo) -> Kind:
    mode = info.external_attr >> 16
    if info.is_dir() or stat.S_ISDIR(mode):
        return Kind.FOLDER
    if stat.S_ISLNK(mode):
        return Kind.LINK
    return Kind.FILE if stat.S_IFMT(mode) in {0, stat.S_IFREG} else Kind.OTHER


def _seek_deb_data(stream: IO[bytes], what: str) -> None:
    """Move a Debian package's stream to the start of its ``data.tar``.

    The package is an ``ar`` file: 60-byte headers with the name in bytes 0-15 and the size
    in bytes 48-57 as decimal text, content padded to even length. ``data.tar`` comes last.
    """
    stream.seek(len(_AR_MAGIC))
    while header := stream.read(_AR_HEADER):
        if len(header) < _AR_HEADER or header[58:60] != b"`\n":
            raise EOFError("a member header of the package is damaged")
        name, size = header[:16].decode("ascii", "replace").strip(" /"), int(header[48:58])
        if name.startswith("data.tar"):
            return
        stream.seek(size + size % 2, 1)
    raise unsafe(what, "it is no Debian package: data.tar is missing")


def _expand(stream: IO[bytes], sink: IO[bytes], limits: UnpackLimits, what: str) -> None:
    """Write a tar's plain bytes to ``sink``, to the compressed form's own end mark."""
    start = stream.read(_TAR_BLOCK)
    stream.seek(-len(start), 1)
    source = _expander(start, stream, what)
    total = 0
    # Headers and padding add to the content: half as much again is more than enough.
    cap = limits.total_bytes + limits.total_bytes // 2 + limits.members * 3 * _TAR_BLOCK
    while chunk := source.read(_CHUNK):
        total += len(chunk)
        if total > cap:
            raise unsafe(what, f"it would unpack to more than {limits.total_bytes} bytes")
        sink.write(chunk)
    sink.flush()
    sink.seek(0)


def _expander(start: bytes, stream: IO[bytes], what: str) -> Readable:
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if start.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(stream)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard  # noqa: PLC0415 - only this format needs it

        return zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    if start[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        return stream
    raise ValueError(f"{what} is of no known archive format")


def copy_bounded(source: Readable, sink: IO[bytes], size: int) -> None:
    """Copy exactly ``size`` bytes; raises ``EOFError`` when there are fewer or more."""
    left = size
    while chunk := source.read(min(_CHUNK, left + 1)):
        left -= len(chunk)
        if left < 0:
            break
        sink.write(chunk)
    if left:
        raise EOFError("a member has another size than the archive says")
