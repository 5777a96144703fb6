"""The CUDA backend: one toolkit for compiler, headers and libraries, and the planned code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from llamawright.build.fileapi import Reply
from llamawright.model.cuda import GpuCode, parse_code
from llamawright.model.plan import Plan
from llamawright.model.recipe import BackendRule

SAID = "Including CUDA backend"
COMPILER, ROOT, HOST = "CMAKE_CUDA_COMPILER", "CUDAToolkit_ROOT", "CMAKE_CUDA_HOST_COMPILER"
# Where FindCUDAToolkit keeps what it found.
LIBRARIES = ("CUDA_CUDART", "CUDA_cublas_LIBRARY", "CUDA_cublasLt_LIBRARY")
# --generate-code=arch=compute_61,code=[compute_61,sm_61] and -gencode arch=…,code=…
GENERATE = re.compile(r"code=\[?((?:(?:sm|compute)_\w+,?)+)\]?")


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of the CUDA backend."""

    def faults(self, plan: Plan, rule: BackendRule, reply: Reply, log: str) -> Iterator[str]:
        """Yield a backend left out, another toolkit (case C10), and code that is not planned."""
        if SAID not in log:
            yield f"CMake did not say: {SAID}"
        options = {o.name: o.value for o in plan.module_options}
        yield from _other_toolkit(options, reply)
        if plan.cuda is None:
            yield "the plan has no CUDA part"
            return
        used = reply.compiler("CUDA")
        if used is not None and used.version and used.version != plan.cuda.toolkit:
            yield f"CUDA is compiled by version {used.version}, not by {plan.cuda.toolkit}"
        for name in rule.targets:
            yield from _other_code(name, plan.cuda.codes, reply)

    def proved(self, plan: Plan) -> frozenset[str] | None:
        """Return nothing: the recipe asks for no capability of a CUDA toolkit."""
        del plan
        return None


def _other_toolkit(options: dict[str, str], reply: Reply) -> Iterator[str]:
    used = reply.compiler("CUDA")
    wanted, root = options.get(COMPILER, ""), options.get(ROOT, "")
    if used is None:
        yield "CMake has no CUDA compiler"
    elif used.path != wanted:
        yield f"CUDA is compiled by {used.path}, not by {wanted}"
    for name in LIBRARIES:
        path = reply.entry(name)
        if path and root and not _below(path, root):
            yield f"{name} is {path}, which is not of the toolkit in {root}"


def _below(path: str, root: str) -> bool:
    """Whether a library is the toolkit's own: below its root, or where Debian keeps both."""
    return PurePosixPath(root) in PurePosixPath(path).parents or root in ("/usr", "/usr/lib/cuda")


def _other_code(name: str, planned: tuple[GpuCode, ...], reply: Reply) -> Iterator[str]:
    target = reply.target(name)
    groups = [g for g in target.groups if g.language == "CUDA"] if target else []
    if target is not None and not groups:
        yield f"{name} has no CUDA source"
    for group in groups:
        compiled = compiled_codes(" ".join(group.flags))
        if compiled != set(planned):
            has, wants = _names(compiled), _names(planned)
            yield f"{name} is compiled for {has or 'no CUDA code'}, not for {wants}"


def compiled_codes(flags: str) -> set[GpuCode]:
    """Return the device code that nvcc's flags ask for."""
    words = [w for m in GENERATE.finditer(flags) for w in m[1].split(",") if w]
    return {c for w in words if (c := parse_code(w))}


def _names(codes: set[GpuCode] | tuple[GpuCode, ...]) -> str:
    return ", ".join(c.name for c in sorted(codes))
