"""A packed artifact, opened: whole, strictly unpacked, every byte as its manifest says.

Packing opens what it has just written, verification opens what it is given: the same
judgement in one place. What is wrong is told by ``kind``: ``absent``, ``truncated``,
``damaged``, ``not-an-archive``, ``archive-bomb``, ``unsafe-archive``, ``no-manifest``,
``bad-manifest``, ``unknown-schema``, ``renamed``, ``sidecar-mismatch``, ``hash-mismatch``.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import IO

from llamawright import codec
from llamawright.digest import list_files, sha256_file
from llamawright.errors import DownloadError, PackageError
from llamawright.model.artifact import MANIFEST_NAME, MANIFEST_SCHEMA, FileEntry, Manifest
from llamawright.paths import remove_tree
from llamawright.transfer.members import UnpackLimits
from llamawright.transfer.unpack import unpack_archive

SIDECAR = ".sha256"
# The largest artifacts known (CUDA with every architecture and cuBLAS) unpack to 2 GiB.
LIMITS = UnpackLimits(total_bytes=8 << 30, members=10_000)
_CHUNK = 1 << 20
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZIP = b"PK"
_ZIP_END = b"PK\x05\x06"
_ZIP_END_SIZE = 22
_ZIP_COMMENT = 1 << 16
_AGAIN = "fetch or build it again: what is there cannot be trusted"


class Harm(StrEnum):
    """What is wrong with one file of an unpacked artifact."""

    MISSING = "missing"
    CHANGED = "changed"
    LINK = "link"
    MODE = "not executable"
    UNLISTED = "not in the manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFault:
    """A file that is not what the manifest says; ``seen`` is what is there instead."""

    path: str
    harm: Harm
    expected: str = ""
    seen: str = ""

    @property
    def told(self) -> str:
        """Return the fault as one line."""
        match self.harm:
            case Harm.CHANGED:
                return f"{self.path}: expected {self.expected}, is {self.seen}"
            case Harm.LINK:
                return f"{self.path}: must lead to {self.expected}, but {self.seen}"
            case _:
                return f"{self.path}: {self.harm.value}"


def open_artifact(path: Path, dest: Path) -> Manifest:
    """Unpack an artifact into ``dest``, which becomes its root, and check every byte.

    ``dest`` must be empty or absent, and is so again when this raises ``PackageError``.
    The archive's one top folder is dropped: programs lie in ``dest/bin``.
    """
    if not path.is_file():
        raise PackageError(
            f"there is no artifact {path}",
            why="no such file" if not path.exists() else "it is not a file",
            hint="name the .tar.zst or .zip file in dist/",
            kind="absent",
        )
    if dest.exists() and any(dest.iterdir()):
        raise ValueError(f"{dest} is not empty")
    require_whole(path)
    _require_sidecar(path)
    try:
        _unpack(path, dest)
        manifest = read_manifest(dest, what=path.name)
        _require_name(path, manifest)
        _require_files(path, dest, manifest)
    except BaseException:
        remove_tree(dest)
        raise
    return manifest


def recheck(root: Path, manifest: Manifest) -> tuple[FileFault, ...]:
    """Compare an unpacked artifact with its manifest again, file by file.

    A file that vanished or changed since it was unpacked is what antivirus software
    leaves behind. Files that are not in the manifest are no fault here.
    """
    faults = (_fault(root, entry) for entry in manifest.files)
    return tuple(fault for fault in faults if fault is not None)


def read_manifest(root: Path, *, what: str) -> Manifest:
    """Read an unpacked artifact's manifest; raises ``PackageError`` when it has none."""
    place = root / MANIFEST_NAME
    if place.is_symlink() or not place.is_file():
        raise PackageError(
            f"{what} is no artifact of llamawright",
            why=f"it holds no {MANIFEST_NAME}",
            hint="name an archive that `llamawright build` made",
            kind="no-manifest",
        )
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _bad_manifest(what, f"it is no JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, str) and schema != MANIFEST_SCHEMA:
        raise PackageError(
            f"the manifest of {what} has a schema that is not known here",
            why=f"it says {schema}, this version reads {MANIFEST_SCHEMA}",
            hint="use the version of llamawright that made the artifact, or a newer one",
            kind="unknown-schema",
        )
    try:
        manifest = codec.decode(Manifest, data, what=MANIFEST_NAME)
    except ValueError as error:
        raise _bad_manifest(what, str(error)) from error
    for entry in manifest.files:
        if not _inside(entry.path) or (entry.link and "\\" in entry.link):
            raise _bad_manifest(what, f"{entry.path!r} is no place inside the artifact")
    return manifest


def require_whole(path: Path) -> None:
    """Read the archive to its own end mark, before anything is unpacked.

    A stream cut in its last bytes gives the whole content and no error when it is merely
    unpacked.
    """
    with path.open("rb") as stream:
        start = stream.read(_CHUNK)
        stream.seek(0)
        if start.startswith(_ZSTD):
            _require_whole_zstd(path, stream)
        elif start.startswith(_ZIP):
            _require_whole_zip(path, stream)
        else:
            page = start.lstrip().lower().startswith((b"<!doctype html", b"<html"))
            seen = "a web page" if page else "empty" if not start else "of no known format"
            raise PackageError(
                f"{path.name} is no archive",
                why=f"it is {seen}",
                hint="fetch it again, and check the address it came from",
                kind="not-an-archive",
            )


def _require_whole_zstd(path: Path, stream: IO[bytes]) -> None:
    import zstandard  # noqa: PLC0415 - takes 20 ms; a run that opens nothing must not pay

    total, size = 0, path.stat().st_size
    decoder = zstandard.ZstdDecompressor().decompressobj()
    try:
        while not decoder.eof and (chunk := stream.read(1 << 16)):
            total += len(decoder.decompress(chunk))
            _require_no_bomb(path, total, size)
    except zstandard.ZstdError as error:
        raise _damaged(path, str(error)) from error
    if not decoder.eof:
        raise _truncated(path, f"it ends after {size} bytes, in the middle of its data")
    if decoder.unused_data or stream.read(1):
        raise _damaged(path, "there is something behind its end")


def _require_whole_zip(path: Path, stream: IO[bytes]) -> None:
    size = path.stat().st_size
    stream.seek(max(0, size - _ZIP_END_SIZE - _ZIP_COMMENT))
    tail = stream.read()
    at = tail.rfind(_ZIP_END)
    if at < 0 or len(tail) - at < _ZIP_END_SIZE:
        raise _truncated(path, f"it ends after {size} bytes, before its table of contents")
    try:
        with zipfile.ZipFile(stream) as zipped:
            _require_no_bomb(path, sum(i.file_size for i in zipped.infolist()), size)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise _damaged(path, str(error)) from error


def _require_no_bomb(path: Path, total: int, size: int) -> None:
    if total > LIMITS.total_bytes or (total > 64 << 20 and total > LIMITS.ratio * size):
        raise PackageError(
            f"{path.name} was not opened",
            why=f"its {size} bytes would unpack to {total} or more, as in an archive bomb",
            hint="remove it and check where it comes from",
            kind="archive-bomb",
        )


def _require_sidecar(path: Path) -> None:
    """Compare with the sha256 file beside it, when there is one.

    It proves nothing by itself: a digest computed over a file already cut short fits.
    """
    beside = path.with_name(path.name + SIDECAR)
    if not beside.is_file():
        return
    words = beside.read_text(encoding="utf-8", errors="replace").split()
    said, actual = words[0] if words else "nothing", sha256_file(path)
    if said.lower() != actual:
        raise PackageError(
            f"{path.name} is not the file that {beside.name} speaks of",
            why=f"its sha256 is {actual}, the file beside it says {said[:64]}",
            hint=f"{_AGAIN}; or remove {beside.name} if it is an old one",
            kind="sidecar-mismatch",
        )


def _unpack(path: Path, dest: Path) -> None:
    try:
        unpack_archive(path, dest, strip=1, limits=LIMITS)
    except DownloadError as error:
        if error.kind == "broken-archive":
            raise _damaged(path, error.why) from error
        raise PackageError(
            f"{path.name} was not opened",
            why=error.why,
            hint="no artifact of llamawright looks like this: check where it comes from",
            kind=error.kind,
        ) from error


def _require_name(path: Path, manifest: Manifest) -> None:
    """Let a name get a tail (``… (1).tar.zst``), but not say another artifact's name."""
    if not path.name.startswith(manifest.name):
        suffix = "".join(path.suffixes[-2:]) if path.name.endswith(".tar.zst") else path.suffix
        raise PackageError(
            f"{path.name} holds another artifact than its name says",
            why=f"its manifest says {manifest.name}",
            hint=f"rename it to {manifest.name}{suffix}, if that is the one you want",
            kind="renamed",
        )


def _require_files(path: Path, root: Path, manifest: Manifest) -> None:
    listed = {MANIFEST_NAME, *(entry.path for entry in manifest.files)}
    strange = [f for f in list_files(root) if f not in listed]
    unlisted = tuple(FileFault(path=f, harm=Harm.UNLISTED) for f in strange)
    faults = (*recheck(root, manifest), *unlisted)
    if faults:
        raise PackageError(
            f"{path.name} does not hold what its manifest says ({len(faults)} of "
            f"{len(manifest.files)} files)",
            why="\n".join(fault.told for fault in faults),
            hint=_AGAIN,
            kind="hash-mismatch",
        )


def _fault(root: Path, entry: FileEntry) -> FileFault | None:
    place = root / entry.path
    if not place.is_symlink() and not place.is_file():
        return FileFault(path=entry.path, harm=Harm.MISSING)
    if entry.link:
        return _link_fault(place, entry)
    return _file_fault(place, entry)


def _file_fault(place: Path, entry: FileEntry) -> FileFault | None:
    expected, seen = "", ""
    if place.is_symlink():
        expected, seen = "a file", f"a link to {place.readlink().as_posix()}"
    elif (size := place.stat().st_size) != entry.size:
        expected, seen = f"{entry.size} bytes", f"{size}"
    elif (actual := sha256_file(place)) != entry.sha256:
        expected, seen = f"sha256 {entry.sha256}", actual
    if seen:
        return FileFault(path=entry.path, harm=Harm.CHANGED, expected=expected, seen=seen)
    if entry.executable and not os.access(place, os.X_OK):
        return FileFault(path=entry.path, harm=Harm.MODE)
    return None


def _link_fault(place: Path, entry: FileEntry) -> FileFault | None:
    if place.is_symlink():
        target = place.readlink().as_posix()
        if target == entry.link and place.is_file():
            return None
        seen = f"leads to {target}" if target != entry.link else "nothing is there"
    # Where the system allows no links, a copy of the target stands in the link's place.
    elif sha256_file(place) == entry.sha256:
        return None
    else:
        seen = "is a file with other content"
    return FileFault(path=entry.path, harm=Harm.LINK, expected=entry.link, seen=seen)


def _inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(path) and not pure.is_absolute() and ".." not in pure.parts and "\\" not in path


def _bad_manifest(what: str, why: str) -> PackageError:
    return PackageError(
        f"the manifest of {what} cannot be read", why=why, hint=_AGAIN, kind="bad-manifest"
    )


def _truncated(path: Path, why: str) -> PackageError:
    hint = "the download or copy was cut short: fetch it again"
    return PackageError(f"{path.name} is cut short", why=why, hint=hint, kind="truncated")


def _damaged(path: Path, why: str) -> PackageError:
    return PackageError(f"{path.name} is damaged", why=why, hint=_AGAIN, kind="damaged")
