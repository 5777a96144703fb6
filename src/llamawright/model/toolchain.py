"""With what: the content of ``toolchains/*.toml`` after validation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.inventory import Role


class Registry(StrEnum):
    """Where a provided file comes from.

    ``debian``: a Debian archive, by pool path; ``index``: the Python index pip is
    configured for; ``url``: the vendor's own address.
    """

    DEBIAN = "debian"
    INDEX = "index"
    URL = "url"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedFile:
    """One pinned file of a set: ``location`` is a pool path, file name or address.

    ``size`` in bytes; ``capped`` when it is only a limit. An empty ``sha256`` is allowed
    only with ``published``, the address of the vendor's own statement of it. ``sha1`` is
    the name under which a Debian archive's history keeps the file.
    """

    registry: Registry
    package: str
    version: str
    location: str
    size: int
    sha256: str
    capped: bool = False
    published: str = ""
    sha1: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedSet:
    """Files that unpack to one rootless prefix.

    ``layout`` names the code that unpacks it and makes wrappers (``debian-prefix``,
    ``debian-driver``, ``lunarg-tar``, ``lunarg-installer``, ``wheel``). ``platforms`` are
    tags such as ``linux_x86_64``. ``facts`` are known before it is unpacked (header
    version, glslc version …). ``glibc`` is the least version the machine itself must have
    (empty: any, or not a glibc system).
    """

    name: str
    role: Role
    version: str
    layout: str
    platforms: tuple[str, ...]
    files: tuple[ProvidedFile, ...]
    facts: tuple[tuple[str, str], ...] = ()
    licenses: tuple[str, ...] = ()
    glibc: str = ""

    @property
    def size(self) -> int:
        """Return the download size in bytes."""
        return sum(f.size for f in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The least version of a tool that the recipes need, and why."""

    role: Role
    version: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBad:
    """A tool version that must not be used, with the public report that says so."""

    role: Role
    versions: str
    reason: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """How one system installs a missing tool: ``system`` is an os-release id or ``*``."""

    role: Role
    system: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchains:
    """Everything ``toolchains/*.toml`` says."""

    minimums: tuple[Minimum, ...]
    known_bad: tuple[KnownBad, ...]
    hints: tuple[Hint, ...]
    sets: tuple[ProvidedSet, ...]
    debian_mirrors: tuple[str, ...]
    digest: str
