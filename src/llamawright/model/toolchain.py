"""With what: the content of ``toolchains/*.toml`` after validation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.inventory import Role


class Fact(StrEnum):
    """Names of the facts that detection, provided sets and the build agree on.

    In a set's TOML the paths are relative to its root; in a ``Found`` they are absolute.
    ``capabilities`` is a list of the recipe's capability names, separated by blanks.
    ``cuda_codes`` are the capabilities that nvcc can compile for, as it names them without
    ``compute_``; ``gcc_max`` and ``clang_max`` the highest major versions that the toolkit's
    ``crt/host_config.h`` takes, ``msc_min`` and ``msc_max`` the bounds of ``_MSC_VER``.
    ``cudart``, ``cublas`` and ``cublaslt`` are the shared libraries (import libraries on
    Windows), ``cuda_dlls`` the folder of their DLLs there, ``cuda_cccl`` an extra include
    folder where CCCL lies apart. All bounds are included: ``msc_max`` is 1949 for ``< 1950``.
    ``floor`` is the platform tag that is promised (``manylinux_2_28``), ``ceiling`` the highest
    symbol versions that programs built with the set may ask for.
    ``untried`` says why nobody has provided and proved the set yet: one that was tried goes
    before it.
    """

    HEADER_VERSION = "header_version"
    GLSLC_VERSION = "glslc_version"
    INCLUDE_DIR = "include_dir"
    LIBRARY = "library"
    GLSLC = "glslc"
    SPIRV_HEADERS_DIR = "spirv_headers_dir"
    SPIRV_INCLUDE_DIR = "spirv_include_dir"
    CAPABILITIES = "capabilities"
    CXX = "cxx"
    NVCC = "nvcc"
    CUDA_ROOT = "cuda_root"
    CUDA_CODES = "cuda_codes"
    CUDA_CCCL = "cuda_cccl"
    CUDART = "cudart"
    CUBLAS = "cublas"
    CUBLASLT = "cublaslt"
    GCC_MAX = "gcc_max"
    CLANG_MAX = "clang_max"
    MSC_MIN = "msc_min"
    MSC_MAX = "msc_max"
    LICENSE = "license"
    UNTRIED = "untried"
    CUDA_DLLS = "cuda_dlls"
    FLOOR = "floor"
    CEILING = "ceiling"


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
    ``debian-driver``, ``debian-layers``, ``debian-program``, ``debian-compiler``,
    ``debian-sysroot``, ``lunarg-tar``, ``lunarg-installer``, ``wheel``, ``cuda-wheels``,
    ``cuda-debian``, ``cuda-redist``). ``platforms`` are
    tags such as ``linux_x86_64``. ``facts`` are known before it is unpacked (header
    version, glslc version …), by the names of ``Fact``. ``glibc`` is the least version the
    machine itself must have (empty: any, or not a glibc system). ``digest`` is over all of
    it and is the set's key on the store's shelf ``tools``.
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
    digest: str = ""

    def fact(self, name: str) -> str:
        """Return one fact, or the empty string."""
        return dict(self.facts).get(name, "")

    @property
    def size(self) -> int:
        """Return the download size in bytes."""
        return sum(f.size for f in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The least version of a tool that the recipes need, and why.

    ``name`` limits it to one product of the role (``gcc``); empty: all of them.
    """

    role: Role
    version: str
    reason: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBad:
    """A tool version that must not be used, with the public report that says so.

    ``name`` limits it to one tool of the role; ``codes`` to builds for one of these compute
    capabilities (``120``), and then ``quants`` says which quantised models go wrong.
    """

    role: Role
    versions: str
    reason: str
    link: str
    name: str = ""
    codes: tuple[int, ...] = ()
    quants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaDriver:
    """The least driver for a CUDA release, as NVIDIA's release notes give it.

    ``cuda`` is a major version (``12``: what machine code of any 12.x needs, "minor version
    compatibility") or a release (``12.4``: what its PTX needs, which only a driver as new
    as the toolkit compiles).
    """

    cuda: str
    linux: str
    windows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """How one system installs a missing tool: ``system`` is an os-release id or ``*``."""

    role: Role
    system: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchains:
    """Everything ``toolchains/*.toml`` says.

    ``debian_mirrors`` are the archives that keep every version for good, tried after the
    machine's own; a machine's own mirrors are never written into our files.
    """

    minimums: tuple[Minimum, ...]
    known_bad: tuple[KnownBad, ...]
    hints: tuple[Hint, ...]
    sets: tuple[ProvidedSet, ...]
    debian_mirrors: tuple[str, ...]
    digest: str
    cuda_drivers: tuple[CudaDriver, ...] = ()
