"""Where CUDA toolkits may stand: named by a variable, on PATH, in the systems' own places."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright.detect.candidates import ON_PATH, on_folders
from llamawright.detect.surroundings import Surroundings
from llamawright.model.platform import System

# CMake reads CUDAToolkit_ROOT; Windows keeps names of variables in capitals.
NAMED = ("CUDAToolkit_ROOT", "CUDATOOLKIT_ROOT", "CUDA_PATH", "CUDA_HOME")
COMPILER = "CUDACXX"
VERSIONED = re.compile(r"CUDA_PATH_V(\d+)_(\d+)")
CONDA = "CONDA_PREFIX"
REGISTRY = "registry"
SYSTEM = "system"
VENDOR = "NVIDIA GPU Computing Toolkit/CUDA"
DEBIAN = "lib/nvidia-cuda-toolkit"
# Comes with Debian's package and holds no toolkit; alone, it looks like one (case C11).
PHANTOM = "lib/cuda"
# The installed toolkits by version, as Windows' registry names their folders.
Registry = Callable[[], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place to look at: a root, or an nvcc whose root is not known yet."""

    path: Path
    where: str
    compiler: bool = False


def places(around: Surroundings, registry: Registry) -> Iterator[Place]:
    """Yield the places, what the user named first; one real place may come several times.

    A place that a variable names comes even when nothing is there, all others only when
    at least a link is.
    """
    for name in NAMED:
        value = _value(around, name)
        if value:
            yield Place(path=Path(value).expanduser().absolute(), where=name)
    compiler = _value(around, COMPILER)
    if compiler and Path(compiler).is_absolute():
        yield Place(path=Path(compiler), where=COMPILER, compiler=True)
    for path in on_folders(around, "nvcc"):
        yield Place(path=path, where=ON_PATH, compiler=True)
    for path, where in (*_conda(around), *_versioned(around), *_installed(around, registry)):
        if os.path.lexists(path):
            yield Place(path=path, where=where)


def _value(around: Surroundings, name: str) -> str:
    """Return a variable without the quotes that Windows' ``set X="…"`` leaves in it."""
    return around.env.get(name, "").strip().strip('"')


def _conda(around: Surroundings) -> Iterator[tuple[Path, str]]:
    prefix = _value(around, CONDA)
    nvcc = Path(prefix) / "bin" / around.platform.program("nvcc")
    if prefix and os.path.lexists(nvcc):
        yield Path(prefix), CONDA
    library = Path(prefix) / "Library"
    if prefix and (library / "bin" / around.platform.program("nvcc")).exists():
        yield library, CONDA


def _versioned(around: Surroundings) -> Iterator[tuple[Path, str]]:
    """Yield what ``CUDA_PATH_V12_4`` and its like name, the newest first."""
    matched = [m for name in around.env if (m := VERSIONED.fullmatch(name))]
    for found in sorted(matched, key=lambda m: (int(m[1]), int(m[2])), reverse=True):
        value = _value(around, found[0])
        if value:
            yield Path(value), found[0]


def _installed(around: Surroundings, registry: Registry) -> Iterator[tuple[Path, str]]:
    if around.platform.system is System.WINDOWS:
        yield from ((Path(folder), REGISTRY) for _, folder in registry())
        bases = [v for k, v in around.env.items() if k.upper() == "PROGRAMFILES"]
        yield from ((p, SYSTEM) for base in bases for p in _newest(Path(base) / VENDOR, "v*"))
        return
    for prefix in around.prefixes:
        yield prefix / "cuda", SYSTEM
        yield from ((p, SYSTEM) for p in _newest(prefix, "cuda-*"))
        packaged = (prefix / DEBIAN).is_dir()
        yield prefix / (DEBIAN if packaged else PHANTOM), SYSTEM
    yield around.root / "opt" / "cuda", SYSTEM
    yield from ((p, SYSTEM) for p in _newest(around.root / "opt", "cuda-*"))


def _newest(folder: Path, pattern: str) -> list[Path]:
    """Return the versioned folders of one place, the highest version first."""

    def version(path: Path) -> tuple[int, ...]:
        return tuple(int(n) for n in re.findall(r"\d{1,6}", path.name))

    named = [p for p in folder.glob(pattern) if re.search(r"\d", p.name)]
    return sorted(named, key=lambda p: (version(p), p.name), reverse=True)
