"""Audit rules about a CUDA module: the planned device code, one toolkit's runtime. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from llamawright.model.cuda import GpuCode
from llamawright.package.cuda_names import is_runtime_library, runtime_major
from llamawright.package.fatbin import DeviceCode
from llamawright.package.findings import Finding
from llamawright.package.subject import CudaSubject, Subject

_AGAIN = "`llamawright gc --keep-days 0`, then the same command"


def code_rules(subject: Subject) -> Iterator[Finding]:
    """Require of each CUDA module the planned device code, no less and no more (cases C5)."""
    if subject.cuda is None:
        return
    for path, code in sorted(subject.cuda.code.items()):
        finding = _fault(path, subject.cuda, code)
        if finding is not None:
            yield finding


def runtime_rules(subject: Subject) -> Iterator[Finding]:
    """Require that the runtime asked for is the toolkit's own, and in the companion (C10)."""
    if subject.cuda is None:
        return
    cuda = subject.cuda
    major = cuda.toolkit.split(".")[0]
    brought = None if cuda.companion is None else {n.lower() for n in cuda.companion}
    for reading in subject.readings:
        for name in filter(is_runtime_library, reading.facts.imports):
            if runtime_major(name) != major:
                yield Finding(
                    kind="mixed-toolkits",
                    path=reading.facts.path,
                    what=f"it was compiled with CUDA {cuda.toolkit} and needs {name}",
                    cure="name one toolkit with `--cuda-toolkit`, and take the others out of "
                    "LIBRARY_PATH, CPATH and CMAKE_PREFIX_PATH; then the same command",
                )
            elif brought is not None and name.lower() not in brought:
                yield Finding(
                    kind="companion-incomplete",
                    path=reading.facts.path,
                    what=f"it needs {name}; the companion archive brings "
                    f"{', '.join(sorted(brought)) or 'nothing'}",
                    cure="run `llamawright doctor`: the toolkit must have cudart, cuBLAS and "
                    "cuBLASLt of one version",
                )


def _fault(path: str, cuda: CudaSubject, code: DeviceCode) -> Finding | None:
    """Return the gravest fault; its text always has both lists whole."""
    planned, compiled = set(cuda.planned), set(code.compiled)
    lost = planned - compiled
    extra = (compiled | {c for c, _ in code.partial}) - planned
    if compiled and all(c.ptx for c in compiled) and any(not c.ptx for c in lost):
        kind, fault = (
            "gpu-code-ptx-only",
            "it holds PTX only: every start would compile for minutes",
        )
        cure = f"CMake did not get CMAKE_CUDA_ARCHITECTURES: {_AGAIN}"
    elif lost:
        kind, fault = "gpu-code-lost", f"{_names(lost)} {'is' if len(lost) == 1 else 'are'} missing"
        cure = (
            f"cards of that kind would fail with `no kernel image`: {_AGAIN}; or do not ask for "
            f"{_names(lost)} with --arch"
        )
    elif extra:
        kind, fault = "gpu-code-unplanned", f"nobody asked for {_names(extra)}"
        cure = f"CUDAARCHS or CUDAFLAGS in the environment may have added it: {_AGAIN}"
    else:
        return None
    what = f"{fault}; planned {_names(planned)}; compiled {_names(compiled)}{_partly(code)}"
    return Finding(kind=kind, path=path, what=what, cure=cure)


def _partly(code: DeviceCode) -> str:
    total = len(code.linked)
    said = [f"{c.name} in {count} of {total} parts only" for c, count in code.partial]
    return f"; {', '.join(said)}" if said else ""


def _names(codes: Iterable[GpuCode]) -> str:
    ordered = sorted(codes, key=lambda c: (c.ptx, c.number, c.suffix))
    return " ".join(c.name for c in ordered) or "nothing"
