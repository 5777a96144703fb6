"""What a provided set is to the build: tools that were run and did their job here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from llamawright.codec import decode
from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Available, Found, Role
from llamawright.model.plan import Plan
from llamawright.model.ports import Reporter
from llamawright.model.toolchain import Fact, ProvidedSet
from llamawright.provide.cuda_proof import prove_compiling, prove_toolkit
from llamawright.provide.debugging import prove_debugger, prove_layers
from llamawright.provide.driver import prove_driver
from llamawright.provide.glslc import prove_glslc
from llamawright.provide.host_compiler import prove_host_compiler
from llamawright.provide.sysroot import prove_sysroot
from llamawright.store import Store

SHELF = "tools"
RECORD = "set"
WHERE = "provided"
HEADER = re.compile(r"^#define VK_HEADER_VERSION (\d+)\s*$", re.MULTILINE)
PATHS = (
    Fact.INCLUDE_DIR, Fact.LIBRARY, Fact.GLSLC, Fact.SPIRV_HEADERS_DIR, Fact.NVCC,
    Fact.CUDA_ROOT, Fact.CUDA_CCCL, Fact.CUDART, Fact.CUBLAS, Fact.CUBLASLT, Fact.CUDA_DLLS,
    Fact.LICENSE,
)  # fmt: skip
LOOKS: Mapping[Role, tuple[str, Callable[[Path], str]]] = {
    Role.LAYERS: ("layer", prove_layers),
    Role.DEBUGGER: ("program", prove_debugger),
    Role.HOST_CXX: ("cxx", prove_host_compiler),
    Role.SYSROOT: ("headers", prove_sysroot),
}


def provided_tools(plan: Plan, store: Store) -> tuple[Found, ...]:
    """Return the tools of every set the plan counts on, after proving each by running it.

    Raises ``ToolMissingError`` when a set does not stand in the store or fails its proof.
    """
    return tuple(t for a in plan.provisions for t in prove(_standing(a, store), a.root))


def prove(
    provided: ProvidedSet, root: Path, *, unpacked_by: Reporter | None = None
) -> tuple[Found, ...]:
    """Return what the set below ``root`` is good for, or raise ``ToolMissingError``.

    ``unpacked_by`` is who has just unpacked it: then a CUDA toolkit also compiles and links,
    which takes seconds and is not repeated when the set is used.
    """
    match provided.role:
        case Role.VULKAN:
            return _vulkan(provided, root)
        case Role.DRIVER:
            device = prove_driver(root)
            facts = (("api_version", device.api), ("device", device.name))
            return (_found(provided, root, facts=facts),)
        case Role.LAYERS | Role.DEBUGGER | Role.SYSROOT | Role.HOST_CXX:
            name, looked = LOOKS[provided.role]
            return (_found(provided, root, facts=((name, looked(root)),)),)
        case Role.CUDA:
            _paths(provided, root)
            prove_toolkit(provided, root)
            if unpacked_by is not None:
                prove_compiling(provided, root, tell=unpacked_by.warn)
            return (_found(provided, root, facts=_absolute(provided, root)),)
        case Role.SPIRV:
            _paths(provided, root)
            return (_found(provided, root, facts=_absolute(provided, root)),)
        case _:
            raise ToolMissingError(
                f"the set {provided.name} provides '{provided.role}', which nothing uses",
                kind="incomplete-set",
            )


def header_version(include: Path) -> int | None:
    """Return ``VK_HEADER_VERSION`` of an include folder, e.g. 309 for Vulkan 1.4.309."""
    try:
        text = (include / "vulkan" / "vulkan_core.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = HEADER.search(text)
    return int(found.group(1)) if found else None


def _vulkan(provided: ProvidedSet, root: Path) -> tuple[Found, ...]:
    _paths(provided, root)
    version = header_version(root / provided.fact(Fact.INCLUDE_DIR))
    if str(version) != provided.fact(Fact.HEADER_VERSION):
        raise _broken(
            provided, f"its headers are {version}, not {provided.fact(Fact.HEADER_VERSION)}"
        )
    glslc = root / provided.fact(Fact.GLSLC)
    glslc_version = prove_glslc(glslc)
    facts = _absolute(provided, root)
    compiler = Found(
        role=Role.GLSLC,
        name="glslc",
        path=glslc,
        version=glslc_version,
        where=WHERE,
        sha256=provided.digest,
        facts=facts,
    )
    return (_found(provided, root, facts=facts), compiler)


def _paths(provided: ProvidedSet, root: Path) -> None:
    for fact in PATHS:
        value = provided.fact(fact)
        if value and not (root / value).exists():
            raise _broken(provided, f"{value} is not there ({fact})")


def _absolute(provided: ProvidedSet, root: Path) -> tuple[tuple[str, str], ...]:
    names = [str(f) for f in PATHS]
    return tuple((k, (root / v).as_posix() if k in names else v) for k, v in provided.facts)


def _found(provided: ProvidedSet, root: Path, *, facts: tuple[tuple[str, str], ...]) -> Found:
    return Found(
        role=provided.role,
        name=provided.name,
        path=root,
        version=provided.version,
        where=WHERE,
        sha256=provided.digest,
        facts=facts,
    )


def _standing(available: Available, store: Store) -> ProvidedSet:
    record = store.read_record(SHELF, available.digest, RECORD)
    if record is None or not store.is_stamped(SHELF, available.digest):
        raise ToolMissingError(
            f"{available.name} does not stand in the store",
            why="the plan counts on it, and it was not provided or has been removed since",
            hint="run the same command again: it is provided first",
            kind="not-provided",
        )
    return decode(ProvidedSet, record, what=f"the record of {available.name}")


def _broken(provided: ProvidedSet, why: str) -> ToolMissingError:
    return ToolMissingError(
        f"the set {provided.name} is not what its pins say",
        why=why,
        hint="llamawright gc --keep-days 0 removes provided tools; the next run unpacks them again",
        kind="incomplete-set",
    )
