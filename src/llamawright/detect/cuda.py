"""CUDA toolkits: a root counts only when it can compile and link by itself (cases C10, C11)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from llamawright.detect.binary import standing
from llamawright.detect.candidates import Sighting
from llamawright.detect.cuda_cures import absent_cure, cure_of_parts, cure_of_place
from llamawright.detect.cuda_limits import host_limits
from llamawright.detect.cuda_parts import (
    CUBLAS_API,
    HOST_CONFIG,
    Flaw,
    Layout,
    debian_prefix,
    find_cccl,
    find_dlls,
    find_include,
    find_library,
    find_notice,
    find_program,
    lay_out,
    mismatch,
    read,
)
from llamawright.detect.cuda_roots import SYSTEM, Place, Registry, places
from llamawright.detect.host import cuda_registry
from llamawright.detect.nvcc import Nvcc, ask_nvcc, own_root, real_path, resolved
from llamawright.detect.probe import Problem
from llamawright.detect.surroundings import Surroundings
from llamawright.digest import digest_data, sha256_file
from llamawright.model import fit
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.platform import System
from llamawright.model.toolchain import Fact

NAME = "cuda"


def survey(around: Surroundings, *, registry: Registry = cuda_registry) -> tuple[Sighting, ...]:
    """Return one sighting for each root there is, in the order in which they were named.

    ``registry`` is how Windows tells of installed toolkits. One real root counts once,
    whatever links and wrapper scripts lead to it.
    """
    seen: dict[Path, Sighting] = {}
    asked: set[Path] = set()
    for place in places(around, registry):
        key = real_path(place.path) if place.compiler else resolved(place.path)
        if key in asked or (not place.compiler and key in seen):
            continue
        asked.add(key)
        root, judge = _open(place, around)
        if root not in seen:
            seen[root] = judge()
            asked.add(real_path(root / "bin" / around.platform.program("nvcc")))
    return tuple(seen.values()) or (_nothing(around),)


def _open(place: Place, around: Surroundings) -> tuple[Path, Callable[[], Sighting]]:
    """Return a place's real root, and how to judge it once it is known to be a new one."""
    nvcc = place.path
    if not place.compiler:
        problem = _no_root(place.path, around)
        if problem:
            refused = _rejected(place, place.path, problem, cure_of_place(place, problem, around))
            return place.path, lambda: refused
        nvcc = place.path / "bin" / around.platform.program("nvcc")
    told = ask_nvcc(nvcc, around)
    if isinstance(told, Problem):
        root = own_root(nvcc) if place.compiler else resolved(place.path)
        cure = cure_of_place(place, told, around)
        return root, lambda: _rejected(place, place.path, told, cure)
    return told.root, lambda: _judge(place, told, around)


def _no_root(path: Path, around: Surroundings) -> Problem | None:
    """Return why a folder is no root at all, before anything is run."""
    if not path.is_dir():
        wrong = standing(path, runs=False)
        return Problem(*wrong) if wrong else Problem(Fault.FAILED, "it is a file, no folder")
    nvcc = path / "bin" / around.platform.program("nvcc")
    if os.path.lexists(nvcc):
        return None
    if not any(names for _, _, names in os.walk(path)):
        return Problem(Fault.INCOMPLETE, "it is an empty root: there is no file below it")
    return Problem(Fault.INCOMPLETE, f"no nvcc: {nvcc} does not exist")


def _judge(place: Place, nvcc: Nvcc, around: Surroundings) -> Sighting:
    layout = lay_out(nvcc, around.platform)
    platform = around.platform
    wrong = fit.misfit(Role.CUDA, NAME, nvcc.version, around.toolchains)
    if wrong:
        return _rejected(place, nvcc.root, Problem(*wrong), absent_cure(around))
    programs = [find_program(layout, name, platform) for name in ("cicc", "ptxas")]
    include, cccl = find_include(layout, nvcc.release), find_cccl(layout)
    libraries = [find_library(layout, s, platform) for s in ("cudart", "cublas", "cublasLt")]
    windows = platform.system is System.WINDOWS
    dlls = find_dlls(nvcc) if windows else None
    parts = [*programs, include, cccl, *libraries, dlls]
    flaws = [p for p in parts if isinstance(p, Flaw)]
    paths = [p for p in libraries if isinstance(p, Path)]
    if isinstance(include, Path) and not flaws:
        mixed = mismatch(nvcc, include, paths[0], tuple(paths[1:]))
        if mixed is None:
            tools = [p for p in programs if isinstance(p, Path)]
            extra = _extra(cccl, dlls, layout, nvcc, include)
            return _found(place, nvcc, include, (*tools, *paths), extra)
        flaws.append(mixed)
    return _refused(place, nvcc, flaws, around)


def _extra(cccl: object, dlls: object, layout: Layout, nvcc: Nvcc, include: Path) -> dict[str, str]:
    """Return the facts that only some toolkits have."""
    facts: dict[str, str] = {}
    # nvcc adds include/cccl by itself, and the compiler its own system folders.
    known = {include, include / "cccl", *nvcc.includes}
    if isinstance(cccl, Path) and cccl not in known and debian_prefix(nvcc.root) is None:
        facts[Fact.CUDA_CCCL] = cccl.as_posix()
    if isinstance(dlls, Path):
        facts[Fact.CUDA_DLLS] = dlls.as_posix()
    notice = find_notice(layout.root)
    if notice:
        facts[Fact.LICENSE] = notice.as_posix()
    return facts


def _found(
    place: Place, nvcc: Nvcc, include: Path, files: tuple[Path, ...], extra: dict[str, str]
) -> Found:
    cicc, ptxas, cudart, cublas, cublaslt = files
    digested = (nvcc.path, cicc, ptxas, resolved(cudart), include / CUBLAS_API)
    facts = {
        Fact.NVCC: nvcc.path.as_posix(),
        Fact.CUDA_ROOT: nvcc.root.as_posix(),
        Fact.CUDA_CODES: " ".join(nvcc.codes),
        Fact.INCLUDE_DIR: include.as_posix(),
        Fact.CUDART: cudart.as_posix(),
        Fact.CUBLAS: cublas.as_posix(),
        Fact.CUBLASLT: cublaslt.as_posix(),
        **host_limits(read(include / HOST_CONFIG)),
        **extra,
    }
    return Found(
        role=Role.CUDA,
        name=NAME,
        path=nvcc.root,
        version=nvcc.version,
        where=place.where,
        sha256=digest_data([sha256_file(f) for f in digested]),
        facts=tuple((str(k), v) for k, v in facts.items()),
    )


def _refused(place: Place, nvcc: Nvcc, flaws: list[Flaw], around: Surroundings) -> Rejected:
    reason = "; ".join(dict.fromkeys(f.problem.reason for f in flaws))
    problem = Problem(flaws[0].problem.fault, f"CUDA {nvcc.version}: {reason}")
    return _rejected(place, nvcc.root, problem, cure_of_parts(place, nvcc, flaws, around))


def _rejected(place: Place, path: Path, problem: Problem, cure: str) -> Rejected:
    return Rejected(
        role=Role.CUDA,
        name=NAME,
        path=path,
        where=place.where,
        reason=problem.reason,
        cure=cure,
        fault=problem.fault,
    )


def _nothing(around: Surroundings) -> Rejected:
    folders = len(around.folders)
    return Rejected(
        role=Role.CUDA,
        name=NAME,
        path=None,
        where=SYSTEM,
        reason=f"no toolkit in the usual places, no nvcc in the {folders} folders of PATH",
        cure=absent_cure(around),
        fault=Fault.ABSENT,
    )
