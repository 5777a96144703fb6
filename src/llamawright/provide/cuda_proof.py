"""Proof that a provided CUDA toolkit compiles and links on this machine. No GPU is needed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.model.toolchain import Fact, ProvidedSet
from llamawright.process import Result, ask

ASK_S = 60.0
COMPILE_S = 300.0
OLDEST_GCC = 9
OLDEST_CLANG = 9
ELF = b"\x7fELF"
VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")
CODE = re.compile(r"^compute_(\w+)\s*$", re.MULTILINE)
GCC_LIMIT = re.compile(r"^\s*#\s*if\s+__GNUC__\s*>\s*(\d+)", re.MULTILINE)
CLANG_LIMIT = re.compile(r"^\s*#\s*if\s+\(?\s*__clang_major__\s*>=\s*(\d+)", re.MULTILINE)
CLANG = re.compile(r"clang version (\d+)")
# What ggml-cuda takes from a toolkit: the runtime, half floats, CUB, cuBLAS and the driver.
KERNEL = """\
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <cub/block/block_reduce.cuh>

__global__ void total(const half * values, float * sum) {
    typedef cub::BlockReduce<float, 128> Reduce;
    __shared__ typename Reduce::TempStorage space;
    const float all = Reduce(space).Sum(__half2float(values[threadIdx.x]));
    if (threadIdx.x == 0) {
        *sum = all;
    }
}

extern "C" int proof(const half * values, float * sum) {
    cublasHandle_t handle;
    CUdevice device;
    total<<<1, 128>>>(values, sum);
    return cuDeviceGet(&device, 0) + cublasCreate(&handle) + cudaDeviceSynchronize();
}
"""


def prove_toolkit(provided: ProvidedSet, root: Path) -> None:
    """Ask nvcc for its version and codes and compare them, and the header's limits, with the set.

    Takes about 0.1 s. Raises ``ToolMissingError`` when nvcc does not run here, or the set's
    pins say something else of it.
    """
    nvcc = root / provided.fact(Fact.NVCC)
    told = _answer(nvcc, "--version")
    version = VERSION.search(told)
    _same(provided, "nvcc's version", version.group(1) if version else "", provided.version)
    codes = " ".join(sorted(CODE.findall(_answer(nvcc, "--list-gpu-arch")), key=_order))
    stated = " ".join(sorted(provided.fact(Fact.CUDA_CODES).split(), key=_order))
    _same(provided, "what nvcc compiles for", codes, stated)
    header = root / provided.fact(Fact.INCLUDE_DIR) / "crt" / "host_config.h"
    text = header.read_text(encoding="utf-8", errors="replace") if header.is_file() else ""
    gcc, clang = GCC_LIMIT.search(text), CLANG_LIMIT.search(text)
    _same(provided, "its newest gcc", gcc.group(1) if gcc else "", provided.fact(Fact.GCC_MAX))
    newest = str(int(clang.group(1)) - 1) if clang else ""
    _same(provided, "its newest clang", newest, provided.fact(Fact.CLANG_MAX))


def prove_compiling(provided: ProvidedSet, root: Path, *, tell: Callable[[str], None]) -> None:
    """Compile a kernel to an object and link it to a shared library with cudart and cuBLAS.

    Takes some 10 s. Where no C++ compiler is there that the toolkit accepts, ``tell`` says so
    and nothing is compiled. Raises ``ToolMissingError`` when compiling or linking fails.
    """
    host = host_compiler(provided)
    if host is None:
        tell(
            f"{provided.name}: nvcc runs, but nothing was compiled with it: no C++ compiler up to "
            f"{_accepted(provided)} was found on PATH"
        )
        return
    nvcc = str(root / provided.fact(Fact.NVCC))
    code = max(provided.fact(Fact.CUDA_CODES).split(), key=_order)
    with tempfile.TemporaryDirectory(prefix="llamawright-") as name:
        folder = Path(name)
        source, made, library = folder / "proof.cu", folder / "proof.o", folder / "libproof.so"
        source.write_text(KERNEL, encoding="ascii", newline="\n")
        common = (nvcc, "-ccbin", host, f"-gencode=arch=compute_{code},code=sm_{code}")
        _make((*common, "-std=c++17", "-Xcompiler=-fPIC", "-c", str(source), "-o", str(made)), made)
        linking = ("-shared", "-cudart=shared", str(made), "-lcublas", "-lcuda")
        _make((*common, *linking, "-o", str(library)), library)
        _needs(provided, root, library)


def host_compiler(provided: ProvidedSet) -> str | None:
    """Return the first compiler on PATH that the set's limits accept, gcc before clang.

    A toolkit for Windows has ``cl``, which runs only in its own environment: none is found.
    """
    if provided.fact(Fact.NVCC).endswith(".exe"):
        return None
    for name in _names(provided):
        program = shutil.which(name)
        if program and _fits(program, provided):
            return program
    return None


def _names(provided: ProvidedSet) -> Iterator[str]:
    kinds = (("g++", Fact.GCC_MAX, OLDEST_GCC), ("clang++", Fact.CLANG_MAX, OLDEST_CLANG))
    for stem, fact, oldest in kinds:
        newest = provided.fact(fact)
        if newest.isdigit():
            yield stem
            yield from (f"{stem}-{n}" for n in range(int(newest), oldest - 1, -1))


def _fits(program: str, provided: ProvidedSet) -> bool:
    told = ask((program, "--version"))
    clang = CLANG.search(told.output)
    if clang:
        return told.ok and int(clang.group(1)) <= int(provided.fact(Fact.CLANG_MAX) or 0)
    major = ask((program, "-dumpversion")).stdout.strip().partition(".")[0]
    return major.isdigit() and int(major) <= int(provided.fact(Fact.GCC_MAX) or 0)


def _make(argv: tuple[str, ...], output: Path) -> None:
    """Run nvcc; what it wrote counts, not its exit status alone."""
    result = ask(argv, seconds=COMPILE_S, cwd=output.parent)
    written = output.is_file() and output.read_bytes()[:4] == ELF
    if not (result.ok and written):
        raise _unfit(Path(argv[0]), f"it cannot make {output.name}", result)


def _needs(provided: ProvidedSet, root: Path, library: Path) -> None:
    """Check that the linked library asks for the set's own libraries, not the machine's."""
    content = library.read_bytes()
    for fact in (Fact.CUDART, Fact.CUBLAS):
        name = Path(provided.fact(fact)).name
        if name.encode() + b"\0" not in content:
            raise _broken(provided, f"what nvcc links does not ask for {name} of {root}")


def _answer(nvcc: Path, option: str) -> str:
    result = ask((str(nvcc), option), seconds=ASK_S)
    if not result.ok:
        raise _unfit(nvcc, f"{option} ended with status {result.returncode}", result)
    return result.stdout


def _same(provided: ProvidedSet, what: str, seen: str, stated: str) -> None:
    if seen != stated:
        raise _broken(provided, f"{what}: {seen or 'nothing'}, and the pins say {stated or '-'}")


def _order(code: str) -> tuple[int, str]:
    digits = code.rstrip("af")
    return (int(digits) if digits.isdigit() else 0, code)


def _accepted(provided: ProvidedSet) -> str:
    named = (("gcc", Fact.GCC_MAX), ("clang", Fact.CLANG_MAX))
    return " or ".join(f"{n} {provided.fact(f)}" for n, f in named if provided.fact(f)) or "any"


def _unfit(nvcc: Path, why: str, result: Result) -> ToolMissingError:
    return ToolMissingError(
        f"{nvcc} is not a working nvcc",
        why=f"{why} ({result.ending})",
        hint="llamawright gc --keep-days 0 removes provided tools; the next run unpacks them again",
        kind="nvcc-unusable",
        command=result.command.pasteable,
        tail=result.tail,
    )


def _broken(provided: ProvidedSet, why: str) -> ToolMissingError:
    return ToolMissingError(
        f"the set {provided.name} is not what its pins say",
        why=why,
        hint="llamawright gc --keep-days 0 removes provided tools; the next run unpacks them again",
        kind="incomplete-set",
    )
