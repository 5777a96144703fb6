"""A runtime wheel, opened: whole, every byte as its RECORD and its manifest say.

The file formats are those of the binary distribution specification and of the core metadata
(packaging.python.org). What is wrong is told by ``kind``, as in ``opened``; a wheel adds
``no-wheel`` and ``bad-record``.
"""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import io
import json
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath
from typing import IO

from llamawright import codec
from llamawright.errors import PackageError
from llamawright.model.artifact import MANIFEST_NAME, MANIFEST_SCHEMA, Manifest
from llamawright.model.wheel import (
    WHEEL_MANIFEST,
    WHEEL_PACKAGE,
    WHEEL_SUFFIX,
    WheelContents,
)
from llamawright.transfer.opened import require_whole

_CHUNK = 1 << 20
# The largest text file of a wheel's metadata: the RECORD of thousands of files is 1 MiB.
_TEXT_LIMIT = 16 << 20
_AGAIN = "fetch or build it again: what is there cannot be trusted"
_UNSIGNED = ("RECORD", "RECORD.jws", "RECORD.p7s")


def is_wheel(path: Path) -> bool:
    """Whether a file is called a wheel."""
    return path.name.endswith(WHEEL_SUFFIX)


def read_wheel(path: Path) -> WheelContents:
    """Return what a wheel of llamawright holds, after comparing every byte.

    Raises ``PackageError``: nothing is unpacked, nothing of it runs.
    """
    if not path.is_file():
        raise PackageError(
            f"there is no wheel {path}",
            why="no such file" if not path.exists() else "it is not a file",
            hint="name the .whl file that `llamawright wheel` made",
            kind="absent",
        )
    require_whole(path)
    try:
        with zipfile.ZipFile(path) as zipped:
            return _Reader(path.name, zipped).read()
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise PackageError(
            f"{path.name} is damaged", why=str(error), hint=_AGAIN, kind="damaged"
        ) from error


@dataclass(frozen=True, slots=True)
class _Reader:
    name: str
    zipped: zipfile.ZipFile

    def read(self) -> WheelContents:
        """Judge names, digests, manifest, in this order."""
        members = [m for m in self.zipped.infolist() if not m.is_dir()]
        self._require_names(members)
        dist_info = self._dist_info(members)
        digests = self._require_record(members, dist_info)
        manifest = self._manifest(dist_info, members)
        self._require_files(members, manifest, digests)
        wheel = self._message(f"{dist_info}/WHEEL")
        metadata = self._message(f"{dist_info}/METADATA")
        return WheelContents(
            dist_info=dist_info,
            version=str(metadata["Version"]),
            tags=tuple(wheel.get_all("Tag") or ()),
            requires=tuple(metadata.get_all("Requires-Dist") or ()),
            scripts=self._scripts(dist_info, members),
            manifest=manifest,
        )

    def _require_names(self, members: Iterable[zipfile.ZipInfo]) -> None:
        seen: set[str] = set()
        for member in members:
            pure = PurePosixPath(member.filename)
            outside = pure.is_absolute() or ".." in pure.parts or "\\" in member.filename
            if outside or ":" in pure.parts[0]:
                raise self._refused(f"{member.filename!r} is no place inside a wheel")
            if member.filename.lower() in seen:
                raise self._refused(f"{member.filename!r} is in it twice")
            if stat.S_ISLNK(member.external_attr >> 16):
                raise self._refused(f"{member.filename!r} is a link: wheels have none")
            seen.add(member.filename.lower())

    def _dist_info(self, members: Iterable[zipfile.ZipInfo]) -> str:
        tops = {PurePosixPath(m.filename).parts[0] for m in members}
        found = sorted(t for t in tops if t.endswith(".dist-info"))
        if len(found) != 1:
            raise PackageError(
                f"{self.name} is no wheel",
                why=f"it has {len(found)} .dist-info folders, a wheel has one",
                hint="name the .whl file that `llamawright wheel` made",
                kind="no-wheel",
            )
        strange = sorted(t for t in tops - {found[0], WHEEL_PACKAGE})
        if strange:
            raise self._refused(f"it would install {', '.join(strange[:3])} beside its own package")
        return found[0]

    def _require_record(
        self, members: Iterable[zipfile.ZipInfo], dist_info: str
    ) -> Mapping[str, str]:
        """Compare every file with RECORD, and return what each of them really is."""
        said = self._record(dist_info)
        digests: dict[str, str] = {}
        faults: list[str] = []
        for member in members:
            if member.filename in {f"{dist_info}/{name}" for name in _UNSIGNED}:
                continue
            expected = said.pop(member.filename, None)
            seen = digests[member.filename] = self._digest(member)
            if expected is None:
                faults.append(f"{member.filename}: not in RECORD")
            elif expected != seen:
                faults.append(f"{member.filename}: expected {expected}, is {seen}")
        faults += [f"{name}: missing" for name in said]
        if faults:
            raise self._mismatch(faults)
        return digests

    def _record(self, dist_info: str) -> dict[str, str]:
        rows = list(csv.reader(io.StringIO(self._text(f"{dist_info}/RECORD"))))
        if any(len(row) != 3 for row in rows):  # noqa: PLR2004 - path, digest, size
            raise PackageError(
                f"the RECORD of {self.name} cannot be read",
                why="each of its lines must have a path, a digest and a size",
                hint=_AGAIN,
                kind="bad-record",
            )
        listed = {path: digest for path, digest, _ in rows}
        return {p: d for p, d in listed.items() if p not in {f"{dist_info}/{n}" for n in _UNSIGNED}}

    def _digest(self, member: zipfile.ZipInfo) -> str:
        made = hashlib.sha256()
        with self.zipped.open(member) as stream:
            for chunk in _chunks(stream):
                made.update(chunk)
        return record_digest(made.digest())

    def _manifest(self, dist_info: str, members: Iterable[zipfile.ZipInfo]) -> Manifest:
        names = {m.filename for m in members}
        place = f"{dist_info}/{WHEEL_MANIFEST}"
        if place not in names:
            raise PackageError(
                f"{self.name} is no wheel of llamawright",
                why=f"it holds no {WHEEL_MANIFEST}",
                hint="name a wheel that `llamawright wheel` made",
                kind="no-manifest",
            )
        text = self._text(place)
        inner = f"{WHEEL_PACKAGE}/{MANIFEST_NAME}"
        if inner not in names or self._text(inner) != text:
            raise self._mismatch([f"{inner}: is not the manifest of the metadata"])
        return _decoded(self.name, text)

    def _require_files(
        self,
        members: Iterable[zipfile.ZipInfo],
        manifest: Manifest,
        digests: Mapping[str, str],
    ) -> None:
        """Require of every program and library what the manifest says."""
        there = {m.filename: m for m in members}
        faults: list[str] = []
        for entry in manifest.files:
            member = there.get(f"{WHEEL_PACKAGE}/{entry.path}")
            if member is None:
                faults.append(f"{entry.path}: missing")
            elif digests[member.filename] != _as_record(entry.sha256):
                faults.append(f"{entry.path}: is not the file of the manifest")
            elif entry.executable and not (member.external_attr >> 16) & stat.S_IXUSR:
                faults.append(f"{entry.path}: not executable")
        listed = {f"{WHEEL_PACKAGE}/{e.path}" for e in manifest.files}
        faults += [
            f"{name.removeprefix(f'{WHEEL_PACKAGE}/')}: not in the manifest"
            for name in there
            if name.startswith(f"{WHEEL_PACKAGE}/bin/") and name not in listed
        ]
        if faults:
            raise self._mismatch(faults)

    def _scripts(
        self, dist_info: str, members: Iterable[zipfile.ZipInfo]
    ) -> tuple[tuple[str, str], ...]:
        place = f"{dist_info}/entry_points.txt"
        if all(m.filename != place for m in members):
            return ()
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        try:
            parser.read_string(self._text(place))
        except configparser.Error as error:
            raise self._refused(f"its entry points cannot be read: {error}") from error
        known = parser["console_scripts"] if parser.has_section("console_scripts") else {}
        return tuple(sorted(known.items()))

    def _message(self, place: str) -> Message:
        return Parser().parsestr(self._text(place), headersonly=True)

    def _text(self, place: str) -> str:
        try:
            member = self.zipped.getinfo(place)
        except KeyError:
            raise PackageError(
                f"{self.name} is no wheel", why=f"it has no {place}", hint=_AGAIN, kind="no-wheel"
            ) from None
        if member.file_size > _TEXT_LIMIT:
            raise self._refused(f"{place} has {member.file_size} bytes")
        return self.zipped.read(member).decode()

    def _refused(self, why: str) -> PackageError:
        return PackageError(
            f"{self.name} was not opened",
            why=why,
            hint="no wheel of llamawright looks like this: check where it comes from",
            kind="unsafe-archive",
        )

    def _mismatch(self, faults: list[str]) -> PackageError:
        return PackageError(
            f"{self.name} does not hold what it says ({len(faults)} files)",
            why="\n".join(faults),
            hint=_AGAIN,
            kind="hash-mismatch",
        )


def record_digest(digest: bytes) -> str:
    """Return a sha256 as RECORD writes it: without the padding."""
    return f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _as_record(sha256: str) -> str:
    try:
        return record_digest(bytes.fromhex(sha256))
    except ValueError:
        return ""


def _decoded(name: str, text: str) -> Manifest:
    try:
        data = json.loads(text)
        schema = data.get("schema") if isinstance(data, dict) else None
        if isinstance(schema, str) and schema != MANIFEST_SCHEMA:
            raise PackageError(
                f"the manifest of {name} has a schema that is not known here",
                why=f"it says {schema}, this version reads {MANIFEST_SCHEMA}",
                hint="use the version of llamawright that made the wheel, or a newer one",
                kind="unknown-schema",
            )
        return codec.decode(Manifest, data, what=MANIFEST_NAME)
    except (ValueError, RecursionError) as error:
        raise PackageError(
            f"the manifest of {name} cannot be read", why=str(error), hint=_AGAIN,
            kind="bad-manifest",
        ) from error  # fmt: skip


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk
