"""The oldest system an artifact runs on: measured versions, and how they compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llamawright.model.artifact import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Versions of what a system brings; empty: none needed, or not known.

    ``toolset`` is the Visual C++ runtime's version (14.44), ``min_os`` that of macOS.
    """

    glibc: str = ""
    glibcxx: str = ""
    cxxabi: str = ""
    toolset: str = ""
    min_os: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """One thing a system has in too old a version, and what cures it."""

    name: str
    needed: str
    present: str
    cure: str

    @property
    def told(self) -> str:
        """Return the shortfall as one sentence."""
        return f"{self.name} {self.needed} or newer is needed, {self.present} is there"


_OLDER_SYSTEM = "build the artifact on this system, or on an older one"
_REDISTRIBUTABLE = "install the current Visual C++ redistributable"
_DEPLOYMENT = "build with an older MACOSX_DEPLOYMENT_TARGET"


def floors(manifest: Manifest) -> Floors:
    """Return what an artifact needs, as measured from its files."""
    return Floors(
        glibc=manifest.glibc,
        glibcxx=manifest.glibcxx,
        cxxabi=manifest.cxxabi,
        toolset=manifest.toolset,
        min_os=manifest.min_os,
    )


def shortfalls(*, needed: Floors, present: Floors) -> tuple[Shortfall, ...]:
    """Return where ``present`` is older than ``needed``; unknown versions never count."""
    pairs = (
        ("glibc", needed.glibc, present.glibc, _OLDER_SYSTEM),
        ("libstdc++ with GLIBCXX", needed.glibcxx, present.glibcxx, _OLDER_SYSTEM),
        ("libstdc++ with CXXABI", needed.cxxabi, present.cxxabi, _OLDER_SYSTEM),
        ("the Visual C++ runtime", needed.toolset, present.toolset, _REDISTRIBUTABLE),
        ("macOS", needed.min_os, present.min_os, _DEPLOYMENT),
    )
    return tuple(
        Shortfall(name=name, needed=need, present=have, cure=cure)
        for name, need, have, cure in pairs
        if need and have and numbers(have) < numbers(need)
    )


def highest(versions: Iterable[str]) -> str:
    """Return the highest of dotted versions by number (2.9 < 2.34), or nothing."""
    return max(versions, key=numbers, default="")


def numbers(version: str) -> tuple[int, ...]:
    """Return a dotted version as numbers; parts that are none count as zero."""
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
