"""Another machine that a proof runs on, and what it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine that ssh reaches; empty and ``None`` leave the choice to the user's ssh."""

    name: str
    user: str = ""
    port: int | None = None

    @property
    def destination(self) -> str:
        """Return what ssh is given."""
        return f"{self.user}@{self.name}" if self.user else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A file that the other machine needs, known there by its sha256; ``size`` in bytes."""

    path: Path
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FarMachine:
    """What the other machine said of itself.

    ``folder`` is where llamawright keeps things there, ``free`` the bytes free on it,
    ``whole`` the sha256 of the files that lie there, ``pieces`` the names and sizes of what
    came of others (``SHA256/NUMBER``). ``libc`` is the C library that Python found
    (``glibc 2.36``), on a Mac the system's version, empty for another.
    """

    python: str
    system: str
    machine: str
    folder: str
    free: int
    whole: frozenset[str]
    pieces: tuple[tuple[str, int], ...]
    libc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRun:
    """How a run over there ended: its exit code and the files that it left, brought here."""

    code: int
    files: tuple[Path, ...]
    last: str = ""
