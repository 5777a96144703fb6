"""What the index must know of a wheel, read from the wheel."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from llamawright.digest import sha256_bytes, sha256_file
from llamawright.errors import PackageError

METADATA_SUFFIX = ".metadata"
# A METADATA file is some kilobytes; a bomb is not read.
_LARGEST = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFacts:
    """One wheel: ``project`` is normalised (PEP 503), ``metadata`` its METADATA file."""

    file: str
    project: str
    version: str
    requires_python: str
    size: int
    sha256: str
    metadata: bytes

    @property
    def metadata_sha256(self) -> str:
        """Return the digest of the metadata file that lies beside the wheel."""
        return sha256_bytes(self.metadata)


def read_wheel(path: Path) -> WheelFacts:
    """Open a wheel; ``PackageError`` when it is none, or says another name than its file's."""
    try:
        name, version, *_ = parse_wheel_filename(path.name)
        metadata = _metadata(path)
    except (InvalidWheelFilename, zipfile.BadZipFile, KeyError, EOFError, ValueError) as error:
        raise _refuse(path, str(error)) from error
    message = BytesParser().parsebytes(metadata, headersonly=True)
    said = canonicalize_name(str(message["Name"] or ""))
    if said != name or str(message["Version"]) != str(version):
        why = f"its METADATA says {message['Name']} {message['Version']}"
        raise _refuse(path, why)
    return WheelFacts(
        file=path.name,
        project=name,
        version=str(version),
        requires_python=str(message["Requires-Python"] or ""),
        size=path.stat().st_size,
        sha256=sha256_file(path),
        metadata=metadata,
    )


def dist_info(names: list[str]) -> str:
    """Return the one ``.dist-info`` folder of a wheel; ``ValueError`` when it is not one."""
    folders = {n.split("/")[0] for n in names if n.split("/")[0].endswith(".dist-info")}
    if len(folders) != 1:
        raise ValueError(f"it has {len(folders)} .dist-info folders")
    return folders.pop()


def _metadata(path: Path) -> bytes:
    with zipfile.ZipFile(path) as wheel:
        # Reads every file: a wheel that was cut or damaged is found here, not by a user.
        broken = wheel.testzip()
        if broken is not None:
            raise ValueError(f"{broken} is damaged")
        info = wheel.getinfo(f"{dist_info(wheel.namelist())}/METADATA")
        if info.file_size > _LARGEST:
            raise ValueError("its METADATA is far too large")
        return wheel.read(info)


def _refuse(path: Path, why: str) -> PackageError:
    return PackageError(
        f"{path.name} is no wheel that an index can serve",
        why=why,
        hint="build it again: llamawright wheel",
        kind="bad-wheel",
    )
