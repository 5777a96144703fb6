"""The packed artifact and its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llamawright.model.built import CapabilityState, Effective, StageTiming
from llamawright.model.cuda import CudaFacts
from llamawright.model.plan import KeyPart, PlannedPatch
from llamawright.model.platform import Backend, Platform

MANIFEST_NAME = "manifest.json"
MANIFEST_SCHEMA = "https://llamawright.dev/schema/manifest-1.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of the artifact; ``size`` in bytes.

    ``link`` is a link's target as written; then ``size`` and ``sha256`` are those of the
    file it leads to, so that a copy in its place can be told from damage.
    """

    path: str
    size: int
    sha256: str
    executable: bool
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """A tool that made the artifact."""

    role: str
    name: str
    version: str
    sha256: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryFacts:
    """What the audit read from one binary.

    ``runpath`` is split at its colons, an empty part kept as such. ``soname`` is the name
    that others import it by. ``toolset`` is the linker's version in a PE file (14.44: the
    Visual C++ runtime must be as new), ``min_os`` the oldest macOS a Mach-O file runs on.
    """

    path: str
    format: str
    machine: str
    imports: tuple[str, ...]
    runpath: tuple[str, ...]
    glibc: str
    glibcxx: str
    cxxabi: str = ""
    soname: str = ""
    toolset: str = ""
    min_os: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The artifact's own account of itself; written as ``manifest.json``.

    ``glibc``, ``glibcxx``, ``cxxabi``, ``toolset`` and ``min_os`` are the highest versions
    any file needs, measured from the files (empty where the format has none).
    ``timestamp`` is the date in every file of the archive, in seconds since the epoch.
    ``cuda`` is there for an artifact with a CUDA module only.
    ``native``: made for the building machine's own CPU, others may die of SIGILL.
    """

    schema: str
    name: str
    key: str
    abi: str
    upstream: str
    commit: str
    build_number: int
    source_digest: str
    patched_digest: str
    backend: Backend
    platform: Platform
    patches: tuple[PlannedPatch, ...]
    retired: tuple[str, ...]
    tools: tuple[ToolEntry, ...]
    options: tuple[Effective, ...]
    capabilities: tuple[CapabilityState, ...]
    inputs: tuple[KeyPart, ...]
    modules: tuple[str, ...]
    programs: tuple[str, ...]
    files: tuple[FileEntry, ...]
    binaries: tuple[BinaryFacts, ...]
    system_libraries: tuple[str, ...]
    glibc: str
    glibcxx: str
    cxxabi: str = ""
    toolset: str = ""
    min_os: str = ""
    version: str = ""
    timestamp: int = 0
    native: bool = False
    generator: str = ""
    cuda: CudaFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A packed archive: ``size`` in bytes, ``sha256`` of the archive file.

    ``tests`` is the archive that holds the test programs as well, when it was asked for;
    ``companion`` the archive with CUDA's runtime libraries, when there is one to go with it.
    """

    path: Path
    size: int
    sha256: str
    manifest: Manifest
    timings: tuple[StageTiming, ...] = ()
    tests: Artifact | None = None
    companion: Path | None = None
