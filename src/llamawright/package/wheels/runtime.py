"""CUDA's runtime libraries for a wheel: NVIDIA's distributions and how to find them. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.floors import numbers
from llamawright.model.platform import Platform, System
from llamawright.package.cuda_names import is_runtime_library

DATA = Path(__file__).with_name("nvidia.toml")
ORIGIN = "$ORIGIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePackage:
    """One of NVIDIA's distributions; folders are relative to ``site-packages``."""

    cuda: int
    project: str
    libraries: tuple[str, ...]
    linux: str
    windows: str

    def folder(self, platform: Platform) -> str:
        """Return where its libraries lie."""
        return self.windows if platform.system is System.WINDOWS else self.linux

    def brings(self, name: str, platform: Platform) -> bool:
        """Whether it holds the library of this file name."""
        if platform.system is System.WINDOWS:
            names = {f"{stem}64_{self.cuda}.dll".lower() for stem in self.libraries}
            return name.lower() in names
        return name in {f"lib{stem}.so.{self.cuda}" for stem in self.libraries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a wheel asks of others: requirements, folders, and the libraries they bring."""

    requires: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    def runpath(self, depth: int) -> tuple[str, ...]:
        """Return the run path of a module ``depth`` folders below ``site-packages``."""
        up = "/".join([".."] * depth)
        return (ORIGIN, *(f"{ORIGIN}/{up}/{folder}" for folder in self.folders))


def known_packages(data: Path = DATA) -> tuple[RuntimePackage, ...]:
    """Return what the data file says of NVIDIA's distributions."""
    entries = tomllib.loads(data.read_text(encoding="utf-8"))["package"]
    return tuple(
        RuntimePackage(
            cuda=int(entry["cuda"]),
            project=str(entry["project"]),
            libraries=tuple(map(str, entry["libraries"])),
            linux=str(entry["linux"]),
            windows=str(entry["windows"]),
        )
        for entry in entries
    )


def wheel_runtime(manifest: Manifest, packages: Iterable[RuntimePackage]) -> Runtime:
    """Return the distributions that bring every CUDA library the artifact imports.

    A wheel takes any later one of the same major version: CUDA keeps its libraries' ABI
    within it. Raises ``PackageError`` for a library that none of them has.
    """
    names = {n for b in manifest.binaries for n in b.imports if is_runtime_library(n)}
    if not names or manifest.cuda is None:
        return Runtime()
    major, minor = (*numbers(manifest.cuda.toolkit), 0)[:2]
    known = [p for p in packages if p.cuda == major]
    chosen = [p for p in known if any(p.brings(n, manifest.platform) for n in names)]
    lost = [n for n in sorted(names) if not any(p.brings(n, manifest.platform) for p in chosen)]
    if lost:
        raise PackageError(
            f"no distribution of NVIDIA's is known that brings {', '.join(lost)}",
            why=f"the artifact was built with CUDA {manifest.cuda.toolkit}",
            hint=f"add it to {DATA.name}, or build with a toolkit whose libraries are there",
            kind="no-runtime-package",
        )
    return Runtime(
        requires=tuple(sorted(f"{p.project}~={major}.{minor}" for p in chosen)),
        folders=tuple(dict.fromkeys(p.folder(manifest.platform) for p in chosen)),
        libraries=tuple(sorted(names)),
    )
