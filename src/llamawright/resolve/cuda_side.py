"""What a chosen CUDA toolkit comes to: CMake's entries, key parts, the plan's CUDA part."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from llamawright.model.cuda import CudaPlan, GpuCode
from llamawright.model.inventory import Available, Found
from llamawright.model.plan import KeyPart
from llamawright.model.platform import Platform, System
from llamawright.model.recipe import BackendRule, CudaRule, Option
from llamawright.model.toolchain import Fact, Toolchains
from llamawright.resolve.cuda_toolkits import Toolkit
from llamawright.resolve.sides import cmake_path

COMPRESSION = "GGML_CUDA_COMPRESSION_MODE"
# Files of these modes are unpacked by drivers from this release on (NVIDIA, nvcc manual,
# --compress-mode); nvcc knows the modes since the second one.
PACKED_MODES, PACKED_DRIVER, PACKED_SINCE = ("size", "balance"), "12.4", Version("12.8")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCompiler:
    """What nvcc calls for host code: one that is installed, or a set; neither in a plan without.

    Only the CUDA module's host code sees it. Its objects meet the build's own compiler's in
    ``libggml-base`` alone, through C functions: nothing of libstdc++ crosses that border.
    """

    found: Found | None = None
    provided: Available | None = None

    @property
    def path(self) -> str:
        """Return its path, empty when there is none."""
        if self.provided is not None:
            return (self.provided.root / self.provided.fact(Fact.CXX)).as_posix()
        return self.found.path.as_posix() if self.found else ""

    @property
    def told(self) -> str:
        """Return it as a warning names it."""
        if self.provided is None:
            return self.path
        size = f", {self.provided.size / 1e6:,.0f} MB to download"
        return f"gcc {self.provided.version} (provided{'' if self.provided.present else size})"

    @property
    def identity(self) -> str:
        """Return what a key holds of it: no path of the store."""
        if self.provided is not None:
            return f"{self.provided.name} {self.provided.version} set {self.provided.digest}"
        own = self.found
        return f"{own.name} {own.version} {self.path} {own.sha256}" if own else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaSide:
    """A toolkit with the code it is to compile and the compiler for host code."""

    toolkit: Toolkit
    host: HostCompiler
    plan: CudaPlan
    cache: Found | None = None

    @property
    def tools(self) -> tuple[Found, ...]:
        """Return the tools that are there."""
        return self.toolkit.found

    @property
    def provisions(self) -> tuple[Available, ...]:
        """Return what must be provided first."""
        own = self.host.provided
        return (*self.toolkit.provisions, *((own,) if own else ()))

    @property
    def facts(self) -> dict[str, str]:
        """Return what patch conditions may ask about."""
        return {"cuda": self.toolkit.version}

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        """Return what the module depends on, without any path of the store."""
        return (
            self.toolkit.part,
            KeyPart(name="cuda code", value=" ".join(c.cmake for c in self.plan.codes)),
            KeyPart(name="cuda host compiler", value=self.host.identity),
            KeyPart(name="cuda libraries", value="bundled" if self.plan.bundled else "system"),
        )

    def options(self, platform: Platform) -> tuple[Option, ...]:
        """Return the CMake entries; compiler and root go together, or two toolkits mix (C10)."""
        kit = self.toolkit
        entries = [
            ("CMAKE_CUDA_COMPILER", kit.nvcc, "FILEPATH", "the toolkit of the plan"),
            ("CUDAToolkit_ROOT", kit.root, "PATH", "its headers and libraries, and no others"),
        ]
        if self.host.path:
            why = "a compiler that the toolkit accepts"
            entries.append(("CMAKE_CUDA_HOST_COMPILER", self.host.path, "FILEPATH", why))
        if kit.cccl:
            why = "CCCL lies apart in this toolkit"
            entries.append(("CMAKE_CUDA_STANDARD_INCLUDE_DIRECTORIES", kit.cccl, "PATH", why))
        if self.cache is not None:
            path = self.cache.path.as_posix()
            entries.append(("CMAKE_CUDA_COMPILER_LAUNCHER", path, "FILEPATH", "the compiler cache"))
        codes = ";".join(c.cmake for c in self.plan.codes)
        arch = Option(
            name="CMAKE_CUDA_ARCHITECTURES",
            value=codes,
            type="STRING",
            reason="machine code for what was named, PTX for what comes later",
        )
        placed = (
            Option(name=n, value=cmake_path(v, platform), type=t, reason=r)
            for n, v, t, r in entries
        )
        return (*placed, arch)


def cuda_plan(
    toolkit: Toolkit,
    codes: tuple[GpuCode, ...],
    rule: BackendRule,
    system: System,
    toolchains: Toolchains,
) -> CudaPlan:
    """Return the plan's CUDA part for a toolkit that fits."""
    own = rule.cuda or CudaRule()
    mode = next((o.value for o in rule.options if o.name == COMPRESSION), "")
    compression = mode if toolkit.number >= PACKED_SINCE else ""
    return CudaPlan(
        toolkit=toolkit.version,
        codes=codes,
        driver=_floor(toolkit, compression, system, toolchains),
        driver_jit=least_driver(toolchains, toolkit.release, system),
        compression=compression,
        libraries=toolkit.libraries,
        license=toolkit.license,
        # NVIDIA's terms let the libraries go along with their licence only.
        bundled=own.bundled and toolkit.license is not None,
    )


def _floor(toolkit: Toolkit, compression: str, system: System, toolchains: Toolchains) -> str:
    """Return the least driver for the machine code: of the major version, and of its packing."""
    floors = [least_driver(toolchains, str(toolkit.number.major), system)]
    if compression in PACKED_MODES:
        floors.append(least_driver(toolchains, PACKED_DRIVER, system))
    return max((f for f in floors if f), key=Version, default="")


def least_driver(toolchains: Toolchains, cuda: str, system: System) -> str:
    """Return the least driver of a release or major version, empty when it is not known."""
    row = next((d for d in toolchains.cuda_drivers if d.cuda == cuda), None)
    if row is None:
        return ""
    return row.windows if system is System.WINDOWS else row.linux
