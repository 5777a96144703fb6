"""What the machine has: every candidate is Found or Rejected with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from llamawright.model.cuda import Gpus
from llamawright.model.platform import Platform


class Role(StrEnum):
    """The part a tool plays in a build."""

    CXX = "c++ compiler"
    CMAKE = "cmake"
    NINJA = "ninja"
    GLSLC = "glslc"
    VULKAN = "vulkan"
    SPIRV = "spirv-headers"
    CACHE = "compiler cache"
    DRIVER = "software vulkan driver"
    GIT = "git"
    CUDA = "cuda toolkit"
    LAYERS = "vulkan validation layers"
    DEBUGGER = "debugger"
    HOST_CXX = "compiler for nvcc's host code"
    SYSROOT = "old system to compile against"


class Fault(StrEnum):
    """Why a candidate cannot be used: the stable word of a refusal."""

    ABSENT = "absent"
    DANGLING = "dangling-link"
    NOT_EXECUTABLE = "not-executable"
    WRONG_MACHINE = "wrong-machine"
    CRASHED = "crashed"
    HUNG = "hung"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    TOO_OLD = "too-old"
    KNOWN_BAD = "known-bad"
    UNSUPPORTED = "unsupported"
    LEAK = "foreign-linker"

    @property
    def misfit(self) -> bool:
        """Whether the tool is there and works, but does not fit this build."""
        return self in (Fault.TOO_OLD, Fault.KNOWN_BAD, Fault.UNSUPPORTED, Fault.LEAK)


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
    fault: Fault = Fault.FAILED


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
    """Everything detection saw, best candidates first.

    ``cores`` and ``memory`` (bytes) are what this process may use: affinity and control
    groups count; ``memory_free`` is what could be had without swapping just now, 0 when
    unknown. ``gpus`` are NVIDIA's cards, asked for only where a build needs to know.
    ``systems`` are os-release ids, the own one first; ``libc`` such as
    ``glibc 2.36``; ``cpu`` names the processor and its features, for native builds.
    """

    platform: Platform
    cores: int
    memory: int
    found: tuple[Found, ...]
    rejected: tuple[Rejected, ...]
    available: tuple[Available, ...]
    memory_free: int = 0
    systems: tuple[str, ...] = ()
    libc: str = ""
    cpu: str = ""
    gpus: Gpus = field(default_factory=Gpus)

    def having(self, role: Role) -> tuple[Found, ...]:
        """Return the usable tools of one role, best first."""
        return tuple(f for f in self.found if f.role is role)

    def without(self, role: Role) -> tuple[Rejected, ...]:
        """Return the rejected candidates of one role."""
        return tuple(r for r in self.rejected if r.role is role)

    def providing(self, role: Role) -> tuple[Available, ...]:
        """Return the pinned sets of one role that fit this machine, preferred first."""
        return tuple(a for a in self.available if a.role is role)
