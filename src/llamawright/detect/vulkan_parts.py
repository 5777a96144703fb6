"""The parts of a Vulkan root: headers, loader library, glslc, SPIRV-Headers' CMake files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llamawright.detect.binary import binary_machine, same_machine, standing
from llamawright.detect.probe import Problem
from llamawright.model.inventory import Fault
from llamawright.model.platform import Platform, System

CORE = "vulkan/vulkan_core.h"
NEEDED_HEADERS = (CORE, "vulkan/vulkan.hpp")
HEADER_NUMBER = re.compile(r"^\s*#\s*define\s+VK_HEADER_VERSION\s+(\d{1,9})\b", re.MULTILINE)
COMPLETE = re.compile(
    r"VK_HEADER_VERSION_COMPLETE\s+VK_MAKE(?:_API)?_VERSION\(\s*(?:0\s*,\s*)?(\d+)\s*,\s*(\d+)\s*,"
)
SPIRV_CONFIG = "SPIRV-HeadersConfig.cmake"
# As ggml-vulkan-types.h looks for it.
SPIRV_HEADERS = ("spirv/unified1/spirv.hpp", "spirv-headers/spirv.hpp", "spirv.hpp")
LOADERS = {
    System.LINUX: "libvulkan.so",
    System.MACOS: "libvulkan.dylib",
    System.WINDOWS: "vulkan-1.lib",
}
# What a program that was built loads; its absence is the development link's absence.
RUNTIME_LOADERS = ("libvulkan.so.1", "libvulkan.1.dylib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """Headers below ``include``: ``version`` such as ``1.3.239``, ``number`` its last part."""

    include: Path
    version: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpirvHeaders:
    """SPIRV-Headers: the folder of its CMake files and the one to put on the include path."""

    config: Path
    include: Path


def find_headers(root: Path) -> Headers | Problem:
    """Return the Vulkan headers of a root, read from ``vulkan_core.h`` itself (case V2)."""
    places = [root / "include", root / "Include"]
    include = next((p for p in places if (p / CORE).is_file()), None)
    if include is None:
        return Problem(Fault.ABSENT, f"no {CORE} below {places[0]}")
    for name in NEEDED_HEADERS:
        if not (include / name).is_file():
            return Problem(Fault.INCOMPLETE, f"{include / name} is missing")
    text = (include / CORE).read_text(encoding="utf-8", errors="replace")
    number, complete = HEADER_NUMBER.search(text), COMPLETE.search(text)
    if number is None:
        return Problem(Fault.INCOMPLETE, f"{include / CORE} holds no VK_HEADER_VERSION")
    major, minor = complete.groups() if complete else ("1", "?")
    return Headers(include=include, version=f"{major}.{minor}.{number[1]}", number=int(number[1]))


def find_loader(root: Path, platform: Platform) -> Path | Problem:
    """Return the library to link against, made for ``platform``."""
    name = LOADERS[platform.system]
    wrong: list[Problem] = []
    for folder in _library_folders(root, platform):
        path = folder / name
        fault = standing(path, runs=False)
        if fault and fault[0] is not Fault.ABSENT:
            wrong.append(Problem(fault[0], f"{path}: {fault[1]}"))
        elif fault is None:
            made_for = binary_machine(path.resolve())
            if same_machine(made_for, platform.machine):
                return path
            reason = f"{path} is made for {made_for}, not for {platform.machine}"
            wrong.append(Problem(Fault.WRONG_MACHINE, reason))
        runtime = next((folder / r for r in RUNTIME_LOADERS if (folder / r).exists()), None)
        if runtime and fault:
            reason = f"{runtime} is there, the link {name} for building is not"
            wrong.append(Problem(Fault.INCOMPLETE, reason))
    return wrong[0] if wrong else Problem(Fault.ABSENT, f"no {name} below {root}")


def find_glslc(root: Path, platform: Platform) -> Path | None:
    """Return the file called glslc of a root, dangling links too."""
    places = [root / folder / platform.program("glslc") for folder in ("bin", "Bin")]
    return next((p for p in places if p.exists() or p.is_symlink()), None)


def find_spirv(roots: Iterable[Path], platform: Platform) -> SpirvHeaders | Problem:
    """Return SPIRV-Headers from the first root that has its CMake files and its header (V5)."""
    looked: list[Path] = []
    for root in roots:
        looked.append(root)
        for config in _config_folders(root, platform):
            if not (config / SPIRV_CONFIG).is_file():
                continue
            for include in (root / "include", root / "Include"):
                if any((include / h).is_file() for h in SPIRV_HEADERS):
                    return SpirvHeaders(config=config, include=include)
            reason = f"{config} is there, {root / 'include' / SPIRV_HEADERS[0]} is not"
            return Problem(Fault.INCOMPLETE, reason)
    places = ", ".join(map(str, dict.fromkeys(looked))) or "any folder"
    return Problem(Fault.ABSENT, f"no share/cmake/SPIRV-Headers/{SPIRV_CONFIG} below {places}")


def _library_folders(root: Path, platform: Platform) -> list[Path]:
    names = ["lib64", "lib", "Lib"]
    if platform.system is System.LINUX:
        names.insert(0, f"lib/{platform.machine}-linux-gnu")
    return [root / n for n in names]


def _config_folders(root: Path, platform: Platform) -> list[Path]:
    bases = [root / "share", *_library_folders(root, platform), root]
    return [b / "cmake" / "SPIRV-Headers" for b in bases]
