"""The parts of a CUDA toolkit: headers, CCCL, libraries, device compilers, licence text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from llamawright.detect.binary import binary_machine, same_machine, standing
from llamawright.detect.nvcc import Nvcc, resolved
from llamawright.detect.probe import Problem
from llamawright.model.inventory import Fault
from llamawright.model.platform import Platform, System

RUNTIME = "cuda_runtime.h"
RUNTIME_API = "cuda_runtime_api.h"
HOST_CONFIG = "crt/host_config.h"
CUBLAS_API = "cublas_api.h"
# cuda_fp16.h includes the first, ggml the second.
CCCL = ("nv/target", "cub/cub.cuh")
STUBS = "stubs"
TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux")}
NOTICES = ("LICENSE", "EULA.txt", "license.txt", "doc/EULA.txt", "share/doc/cuda/EULA.txt")
# Python packages and conda keep one notice for each part; the runtime library's says most.
NOTICE_PATTERNS = (
    "dist-info/nvidia_cuda_runtime*/licenses/*",
    "dist-info/*/licenses/*",
    "share/doc/cuda*/EULA*",
)
_RUNTIME_VERSION = re.compile(r"^\s*#\s*define\s+CUDART_VERSION\s+(\d{4,6})\b", re.MULTILINE)
_CUBLAS_VERSION = re.compile(
    r"^\s*#\s*define\s+CUBLAS_VER_(MAJOR|MINOR|PATCH|BUILD)\s+(\d{1,9})\b", re.MULTILINE
)
_SUFFIX = re.compile(r"\.so\.(\d{1,9}(?:\.\d{1,9})*)$")
_PACKAGED = re.compile(r"cuda-(\d{1,2})\.(\d{1,2})")
_FULL = 3


class Part(StrEnum):
    """A part of a toolkit that can be installed by itself."""

    COMPILER = "device compiler"
    HEADERS = "headers"
    CCCL = "CCCL headers"
    CUDART = "runtime library"
    CUBLAS = "cuBLAS"
    MIXED = "mixed versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """What is wrong with one part."""

    part: Part
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The folders of a toolkit that exist, in the order in which they are looked through."""

    root: Path
    includes: tuple[Path, ...]
    libraries: tuple[Path, ...]
    programs: tuple[Path, ...]


def debian_prefix(root: Path) -> Path | None:
    """Return ``/usr`` when the root is that of Debian's packages, which spread over it."""
    return root.parent.parent if root.parts[-2:] == ("lib", "nvidia-cuda-toolkit") else None


def lay_out(nvcc: Nvcc, platform: Platform) -> Layout:
    """Return where the parts of an nvcc's toolkit lie: as it tells, then as is usual."""
    root, prefix = nvcc.root, debian_prefix(nvcc.root)
    targets = [root / "targets" / t for t in TARGETS.get(platform.machine, ())]
    triple = f"{platform.machine}-linux-gnu"
    includes = [*nvcc.includes, *(t / "include" for t in targets), root / "include"]
    includes += [root / "include" / "cccl"]
    libraries = [*nvcc.libraries, *(t / "lib" for t in targets)]
    libraries += [root / name for name in ("lib64", "lib", "lib/x64")]
    programs = [
        nvcc.path.parent,
        root / "bin",
        root / "nvvm" / "bin",
        root / "nvvm" / "bin" / "x64",
    ]
    programs += [nvcc.cicc] if nvcc.cicc else []
    if prefix:
        includes += [prefix / "include", prefix / "include" / triple]
        libraries += [prefix / "lib" / triple, prefix / "lib"]
        programs += [prefix / "bin"]
    return Layout(
        root=root,
        includes=_folders(includes),
        libraries=_folders(f for f in libraries if f.name != STUBS),
        programs=_folders(programs),
    )


def find_include(layout: Layout, release: str) -> Path | Flaw:
    """Return the folder of the runtime's headers, which must be of nvcc's release."""
    include = _holding(layout.includes, RUNTIME)
    if include is None:
        problem = Problem(Fault.INCOMPLETE, f"no {RUNTIME} below {layout.root}")
        return Flaw(part=Part.HEADERS, problem=problem)
    for name in (RUNTIME_API, HOST_CONFIG, CUBLAS_API):
        part = Part.CUBLAS if name == CUBLAS_API else Part.HEADERS
        if not (include / name).is_file():
            return Flaw(part=part, problem=Problem(Fault.INCOMPLETE, f"no {include / name}"))
    told = _RUNTIME_VERSION.search(read(include / RUNTIME_API))
    if told is None:
        problem = Problem(Fault.INCOMPLETE, f"{include / RUNTIME_API} holds no CUDART_VERSION")
        return Flaw(part=Part.HEADERS, problem=problem)
    number = int(told[1])
    if f"{number // 1000}.{number % 1000 // 10}" != release:
        have = f"{number // 1000}.{number % 1000 // 10}"
        return _mixed(f"the headers in {include} are of CUDA {have}, nvcc is {release}")
    return include


def find_cccl(layout: Layout) -> Path | Flaw:
    """Return the folder of CCCL's headers."""
    found = next((f for f in layout.includes if all((f / n).is_file() for n in CCCL)), None)
    if found is None:
        reason = f"no {' and '.join(CCCL)} below {layout.root} (CCCL: libcu++, CUB, Thrust)"
        return Flaw(part=Part.CCCL, problem=Problem(Fault.INCOMPLETE, reason))
    return found


def find_program(layout: Layout, name: str, platform: Platform) -> Path | Flaw:
    """Return a program that nvcc starts: ``cicc`` or ``ptxas``."""
    folder = _holding(layout.programs, platform.program(name))
    if folder is None:
        reason = f"no {name} below {layout.root}: nvcc cannot compile device code"
        return Flaw(part=Part.COMPILER, problem=Problem(Fault.INCOMPLETE, reason))
    return folder / platform.program(name)


def find_library(layout: Layout, stem: str, platform: Platform) -> Path | Flaw:
    """Return the file to link against, made for the platform and no stub."""
    part = Part.CUDART if stem == "cudart" else Part.CUBLAS
    windows = platform.system is System.WINDOWS
    name = f"{stem}.lib" if windows else f"lib{stem}.so"
    wrong: list[Problem] = []
    for path in (f / name for f in layout.libraries):
        fault = standing(path, runs=False)
        if fault is None:
            problem = _unlinkable(path, platform)
            if problem is None:
                return path
            wrong.append(problem)
        elif fault[0] is not Fault.ABSENT:
            wrong.append(Problem(fault[0], f"{path}: {fault[1]}"))
    problem = (wrong or [*_near(layout, name)])[0]
    return Flaw(part=part, problem=problem)


def library_version(path: Path) -> str:
    """Return what a library's own file name tells: ``12.4.5.8``, or ``13``, or nothing."""
    found = _SUFFIX.search(resolved(path).name)
    return found[1] if found else ""


def mismatch(nvcc: Nvcc, include: Path, cudart: Path, blas: tuple[Path, ...]) -> Flaw | None:
    """Return whose version differs from nvcc's, as far as file names and headers tell (C10).

    cuBLAS has minor versions of its own (CUDA 13.0.2 comes with 13.1.0, 11.8 with 11.11).
    """
    have = library_version(cudart).split(".")
    release = nvcc.release.split(".")
    if have[0] and (have[0] != release[0] or (len(have) >= _FULL and have[:2] != release)):
        return _mixed(f"{cudart} is version {'.'.join(have)}, nvcc is {nvcc.release}")
    told = dict(_CUBLAS_VERSION.findall(read(include / CUBLAS_API)))
    header = [told.get(k, "") for k in ("MAJOR", "MINOR", "PATCH")]
    for library in blas:
        version = library_version(library).split(".")
        if version[0] and version[0] != release[0]:
            return _mixed(f"{library} is version {'.'.join(version)}, nvcc is {nvcc.release}")
        if all(header) and len(version) >= _FULL and version[:_FULL] != header:
            have_header = ".".join(header)
            text = f"{library} is version {'.'.join(version)}, its header is {have_header}"
            return _mixed(text)
    return None


def find_dlls(nvcc: Nvcc) -> Path | Flaw:
    """Return the folder of the runtime DLLs on Windows: ``bin/x64`` since 13.0, else ``bin``."""
    major = nvcc.release.split(".")[0]
    cudart = "cudart64_110.dll" if major == "11" else f"cudart64_{major}.dll"
    names = (cudart, f"cublas64_{major}.dll", f"cublasLt64_{major}.dll")
    folders = [nvcc.root / "bin" / "x64", nvcc.root / "bin"]
    for folder in folders:
        if all((folder / n).is_file() for n in names):
            return folder
    missing = [n for n in names if not any((f / n).is_file() for f in folders)] or list(names)
    part = Part.CUDART if missing[0] == cudart else Part.CUBLAS
    reason = f"no {', '.join(missing)} in {folders[1]} or its x64 folder"
    return Flaw(part=part, problem=Problem(Fault.INCOMPLETE, reason))


def find_notice(root: Path) -> Path | None:
    """Return the licence text of a toolkit: with it, or where its packages put theirs.

    Debian's packages have one for all, NVIDIA's for ``/usr/local/cuda-13.0`` one each.
    """
    prefix = debian_prefix(root)
    places = [root / n for n in NOTICES]
    places += [p for pattern in NOTICE_PATTERNS for p in sorted(root.glob(pattern))]
    packaged = _PACKAGED.fullmatch(root.name)
    if prefix:
        places.append(prefix / "share/doc/nvidia-cuda-toolkit/copyright")
    elif packaged:
        package = f"cuda-cudart-{packaged[1]}-{packaged[2]}"
        places.append(root.parent.parent / "share/doc" / package / "copyright")
    return next((p for p in places if p.is_file()), None)


def read(path: Path) -> str:
    """Return a header's text; nothing when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _mixed(reason: str) -> Flaw:
    return Flaw(part=Part.MIXED, problem=Problem(Fault.UNSUPPORTED, reason))


def _folders(places: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(p for p in places if p.is_dir()))


def _holding(folders: tuple[Path, ...], name: str) -> Path | None:
    return next((f for f in folders if (f / name).is_file()), None)


def _unlinkable(path: Path, platform: Platform) -> Problem | None:
    real = resolved(path)
    if real.parent.name == STUBS:
        return Problem(Fault.INCOMPLETE, f"{path} leads to a stub, {real}")
    made_for = binary_machine(real)
    if same_machine(made_for, platform.machine):
        return None
    reason = f"{path} is made for {made_for}, not for {platform.machine}"
    return Problem(Fault.WRONG_MACHINE, reason)


def _near(layout: Layout, name: str) -> Iterator[Problem]:
    """Yield why a library is missing: only the runtime file, only the stub, nothing."""
    for folder in layout.libraries:
        for path in sorted(folder.glob(f"{name}.[0-9]*")):
            reason = f"{path} is there, the link {name} for building is not"
            yield Problem(Fault.INCOMPLETE, reason)
    for folder in layout.libraries:
        if (folder / STUBS / name).exists():
            reason = f"only the stub {folder / STUBS / name} is there, not the library {name}"
            yield Problem(Fault.INCOMPLETE, reason)
    yield Problem(Fault.INCOMPLETE, f"no {name} below {layout.root}")
