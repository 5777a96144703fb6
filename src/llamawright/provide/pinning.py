"""For maintainers: pins for ``toolchains/*.toml`` from a Debian archive's own index.

``python -m llamawright.provide.pinning PACKAGES-FILE DEB-FOLDER NAME …`` prints one
``[[set.files]]`` table per package name. The index is the plain, gzip or xz text that apt keeps in
its lists; the folder holds the same packages as files and gives the sha1 under which a
Debian archive's history keeps them.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import UsageError
from llamawright.provide.deb822 import stanzas

OPENERS = {".gz": gzip.decompress, ".xz": lzma.decompress}


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One stanza of an index: pool path, size in bytes, sha256."""

    name: str
    version: str
    location: str
    size: int
    sha256: str


def read_index(path: Path) -> tuple[Package, ...]:
    """Return every package of an index file."""
    opened = OPENERS.get(path.suffix, bytes)(path.read_bytes())
    return tuple(_package(s) for s in stanzas(opened.decode("utf-8")) if "Filename" in s)


def pins(packages: Sequence[Package], names: Sequence[str], folder: Path | None) -> str:
    """Return the TOML of the named packages; each file in ``folder`` must be the pinned one."""
    return "\n".join(_toml(_one(packages, name), folder) for name in names)


def main(arguments: Sequence[str]) -> int:
    """Print the pins of the named packages."""
    index, folder, *names = arguments
    sys.stdout.write(pins(read_index(Path(index)), names, Path(folder)))
    return 0


def _package(fields: Mapping[str, str]) -> Package:
    return Package(
        name=fields["Package"],
        version=fields["Version"],
        location=fields["Filename"],
        size=int(fields["Size"]),
        sha256=fields["SHA256"],
    )


def _one(packages: Sequence[Package], name: str) -> Package:
    found = [p for p in packages if p.name == name]
    if len(found) != 1:
        raise UsageError(
            f"the index holds {len(found)} versions of {name}",
            why="a pin must be one file",
            hint="use the index of one suite and one component",
            kind="ambiguous-pin",
        )
    return found[0]


def _toml(package: Package, folder: Path | None) -> str:
    lines = [
        "[[set.files]]",
        'registry = "debian"',
        f'package = "{package.name}"',
        f'version = "{package.version}"',
        f'location = "{package.location}"',
        f"size = {package.size}",
        f'sha256 = "{package.sha256}"',
    ]
    if folder is not None:
        lines.append(f'sha1 = "{_sha1(package, folder)}"')
    return "\n".join(lines) + "\n"


def _sha1(package: Package, folder: Path) -> str:
    files = sorted(folder.glob(f"{package.name}_*.deb"))
    for path in files:
        if path.stat().st_size == package.size and sha256_file(path) == package.sha256:
            return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
    raise UsageError(
        f"{folder} does not hold {package.name} {package.version}",
        why=f"seen: {', '.join(p.name for p in files) or 'nothing of that name'}",
        hint=f"fetch it there first: apt-get download {package.name}={package.version}",
        kind="missing-file",
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
