"""--floor: build for systems older than this one, and hold the result to it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from llamawright.console import Console
from llamawright.errors import PackageError, ToolchainConflictError, UsageError
from llamawright.model.artifact import Manifest
from llamawright.model.floors import numbers
from llamawright.model.inventory import Role
from llamawright.model.platform import Backend
from llamawright.model.toolchain import Fact, ProvidedSet
from llamawright.pipeline import Pipeline
from llamawright.provide import compilers_for, provide_set
from llamawright.store import Store


def apply_floor(flags: Namespace, store: Path, console: Console) -> ProvidedSet | None:
    """Let ``flags`` name a compiler for the old system that --floor asks for.

    The system is provided first. Without --floor nothing happens, and ``None`` is returned.
    Raises ``UsageError`` for a floor that no set has, ``ToolchainConflictError`` for CUDA.
    """
    wanted = str(getattr(flags, "floor", None) or "")
    if not wanted:
        return None
    if flags.backend == Backend.CUDA:
        raise ToolchainConflictError(
            "--floor is for the CPU and for Vulkan",
            why="nvcc compiles with headers of the machine's own C library",
            hint="build the CUDA artifact on the oldest system that it is for",
            kind="floor-cuda",
        )
    pipeline = Pipeline.open(flags, store, console)
    chosen = _chosen(wanted, pipeline)
    compiler = pipeline.plan().tool(Role.CXX)
    if compiler is None:
        raise AssertionError("a plan without a compiler")
    root = provide_set(
        chosen,
        store=pipeline.store,
        toolchains=pipeline.toolchains,
        offline=pipeline.wanted.offline,
        reporter=console,
    )
    kept = Store(store)
    made = compilers_for(root, compiler, kept, key=chosen.digest, reporter=console)
    flags.compiler = str(made)
    return chosen


def require_floor(manifest: Manifest, floor: ProvidedSet) -> None:
    """Raise ``PackageError`` when an artifact needs more than the floor promises."""
    ceiling = dict(word.rsplit("_", 1) for word in floor.fact(Fact.CEILING).split())
    measured = {"GLIBC": manifest.glibc, "GLIBCXX": manifest.glibcxx, "CXXABI": manifest.cxxabi}
    above = [
        f"{name}_{seen}, and {ceiling[name]} is promised"
        for name, seen in measured.items()
        if seen and numbers(seen) > numbers(ceiling[name])
    ]
    if above:
        raise PackageError(
            f"{manifest.name} does not run on {floor.fact(Fact.FLOOR)}",
            why=f"it needs {'; '.join(above)}",
            hint="keep the log and report it: a library was not taken from the old system",
            kind="floor-missed",
        )


def _chosen(wanted: str, pipeline: Pipeline) -> ProvidedSet:
    sets = [s for s in pipeline.toolchains.sets if s.role is Role.SYSROOT]
    here = [s for s in sets if pipeline.platform.tag in s.platforms]
    known = {s.fact(Fact.FLOOR): s for s in here}
    if wanted not in known:
        raise UsageError(
            f"there is no floor '{wanted}' for {pipeline.platform.tag}",
            why=f"there are: {', '.join(sorted(known)) or 'none'}",
            hint=f"--floor {next(iter(sorted(known)), '')}" if known else "leave --floor out",
            kind="no-floor",
        )
    return known[wanted]
