"""What the machine has: every candidate is Found or Rejected with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from llamawright.model.platform import Platform


class Role(StrEnum):
    """The part a tool plays in a build."""

    CXX = "c++ compiler"
    CMAKE = "cmake"
    NINJA = "ninja"
    GLSLC = "glslc"
    VULKAN = "vulkan"
    CACHE = "compiler cache"
    DRIVER = "software vulkan driver"
    GIT = "git"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A tool that was run and did its job.

    ``where`` says how it was found (``PATH``, ``VULKAN_SDK``, ``provided`` …). ``facts``
    holds what the probe read: the C compiler beside a C++ one, header version, library
    and include folders, capability names … ``sha256`` is of the file itself or, for a
    provided set, of its pinned content.
    """

    role: Role
    name: str
    path: Path
    version: str
    where: str
    sha256: str
    facts: tuple[tuple[str, str], ...] = ()

    def fact(self, name: str) -> str:
        """Return one fact, or the empty string."""
        return dict(self.facts).get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A candidate that was looked at and cannot be used; ``cure`` is the next command."""

    role: Role
    name: str
    path: Path | None
    where: str
    reason: str
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Available:
    """A pinned set that can be provided without root, with its download size in bytes.

    ``root`` is where it stands once provided; ``present`` says whether it does already.
    """

    role: Role
    name: str
    version: str
    digest: str
    size: int
    root: Path
    present: bool
    facts: tuple[tuple[str, str], ...] = ()

    def fact(self, name: str) -> str:
        """Return one fact, or the empty string."""
        return dict(self.facts).get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Everything detection saw, in the order it was looked at."""

    platform: Platform
    cores: int
    memory: int
    found: tuple[Found, ...]
    rejected: tuple[Rejected, ...]
    available: tuple[Available, ...]

    def having(self, role: Role) -> tuple[Found, ...]:
        """Return the usable tools of one role, best first."""
        return tuple(f for f in self.found if f.role is role)

    def without(self, role: Role) -> tuple[Rejected, ...]:
        """Return the rejected candidates of one role."""
        return tuple(r for r in self.rejected if r.role is role)
