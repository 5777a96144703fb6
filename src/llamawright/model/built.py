"""What configure and compile leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityState:
    """Whether a capability went into the module, as read from CMake's own answer."""

    name: str
    present: bool
    cost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """One cache entry in effect after configure."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredTree:
    """A build tree that passed the configure gate. ``targets`` is what CMake will build."""

    root: Path
    source: Path
    compiler: str
    effective: tuple[Effective, ...]
    capabilities: tuple[CapabilityState, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """Compiler cache hits and misses of one compile; zeros when no cache was used."""

    name: str
    hits: int
    misses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTiming:
    """Wall seconds of one stage; ``inner_s`` is the time of the tool it ran."""

    stage: str
    wall_s: float
    inner_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTree:
    """A staged install: ``bin/`` with programs, libraries and modules, ``licenses/``.

    ``abi`` is the digest of everything host and module must share; packing refuses two
    trees whose ``abi`` differs.
    """

    root: Path
    key: str
    abi: str
    files: tuple[str, ...]
    effective: tuple[Effective, ...]
    capabilities: tuple[CapabilityState, ...]
    cache: CacheStats
    timings: tuple[StageTiming, ...]
