"""The Vulkan build side: the SDK that VULKAN_SDK names, and what the system has installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.detect import glslc
from llamawright.detect.candidates import ON_PATH, Candidate, Sighting, on_folders
from llamawright.detect.probe import Problem
from llamawright.detect.surroundings import Surroundings
from llamawright.detect.vulkan_parts import (
    CORE,
    SPIRV_HEADERS,
    Headers,
    SpirvHeaders,
    find_glslc,
    find_headers,
    find_loader,
    find_spirv,
)
from llamawright.digest import digest_data, sha256_file
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.recipe import BackendRule
from llamawright.model.toolchain import Fact

SDK = "VULKAN_SDK"
SYSTEM = "system"
PROVIDED = "build with --vulkan provided: no root is needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder that may hold a whole Vulkan build side."""

    path: Path
    where: str

    @property
    def name(self) -> str:
        """Return what the root is called in lists and errors."""
        return "Vulkan SDK" if self.where == SDK else "system Vulkan"

    def rejected(self, role: Role, problem: Problem, cure: str, path: Path | None) -> Rejected:
        """Return one part of this root as refused."""
        return Rejected(
            role=role,
            name=self.name,
            path=path,
            where=self.where,
            reason=problem.reason,
            cure=cure,
            fault=problem.fault,
        )


def roots(around: Surroundings) -> Iterator[Root]:
    """Yield the roots to look at: VULKAN_SDK's, then the system prefixes that hold headers."""
    named = around.env.get(SDK, "").strip()
    if named:
        yield Root(path=Path(named).expanduser().absolute(), where=SDK)
    prefixes = [p for p in around.prefixes if (p / "include" / CORE).is_file()]
    yield from (Root(path=p, where=SYSTEM) for p in prefixes or around.prefixes[-1:])


def survey(root: Root, rule: BackendRule, around: Surroundings) -> tuple[Sighting, ...]:
    """Return a root's glslc and the root itself as found, or every part that is wrong with it."""
    if root.where == SDK and not root.path.is_dir():
        problem = Problem(Fault.ABSENT, f"{SDK} names {root.path}, which is no folder")
        return (root.rejected(Role.VULKAN, problem, f"unset {SDK}", root.path),)
    headers = _headers(root, rule)
    loader = _first_loader(root, around)
    compiler = _shader_compiler(root, rule, around)
    if root.where == SYSTEM and _nothing(headers, loader, compiler):
        reason = f"not installed: no {CORE} and no loader to link with below {root.path}, no glslc"
        cure = around.cure(Role.VULKAN)
        return (root.rejected(Role.VULKAN, Problem(Fault.ABSENT, reason), cure, None),)
    spirv = find_spirv(_spirv_roots(root, around), around.platform)
    seen: list[Sighting] = [compiler]
    seen += [
        root.rejected(Role.VULKAN, part, _cure(root, part, around), root.path)
        for part in (headers, loader)
        if isinstance(part, Problem)
    ]
    if isinstance(spirv, Problem):
        seen.append(root.rejected(Role.SPIRV, spirv, around.cure(Role.SPIRV), root.path))
    if isinstance(headers, Headers) and isinstance(loader, Path) and isinstance(compiler, Found):
        seen.append(_found(root, headers, loader, compiler, spirv))
    return tuple(seen)


def _headers(root: Root, rule: BackendRule) -> Headers | Problem:
    headers = find_headers(root.path)
    least = rule.min_headers_patched or rule.min_headers or 0
    if isinstance(headers, Headers) and headers.number < least:
        reason = f"its headers are {headers.version}: the last part must be {least} or more"
        return Problem(Fault.TOO_OLD, reason)
    return headers


def _first_loader(root: Root, around: Surroundings) -> Path | Problem:
    """Return the root's own loader, or for system packages that of another prefix."""
    own = find_loader(root.path, around.platform)
    if isinstance(own, Path) or root.where == SDK:
        return own
    others = (find_loader(p, around.platform) for p in around.prefixes if p != root.path)
    return next((o for o in others if isinstance(o, Path)), own)


def _shader_compiler(root: Root, rule: BackendRule, around: Surroundings) -> Sighting:
    """Return the root's own glslc proved; for system packages any on PATH when it has none."""
    path = find_glslc(root.path, around.platform)
    if path is None and root.where == SYSTEM:
        path = next(on_folders(around, "glslc"), None)
    if path is None:
        problem = Problem(Fault.ABSENT, f"no glslc in {root.path / 'bin'}")
        return root.rejected(Role.GLSLC, problem, _cure(root, problem, around, Role.GLSLC), None)
    own = root.path in path.parents
    where = root.where if own else ON_PATH
    candidate = Candidate(role=Role.GLSLC, name="glslc", path=path, where=where)
    proved = glslc.prove(candidate, rule.capabilities, around)
    if isinstance(proved, Rejected) and root.where == SDK:
        return replace(proved, cure=_cure(root, Problem(proved.fault, ""), around))
    return proved


def _nothing(headers: object, loader: object, compiler: Sighting) -> bool:
    parts = [p.fault for p in (headers, loader, compiler) if isinstance(p, Problem | Rejected)]
    return parts == [Fault.ABSENT] * 3


def _spirv_roots(root: Root, around: Surroundings) -> Iterator[Path]:
    yield root.path
    for word in around.env.get("CMAKE_PREFIX_PATH", "").split(os.pathsep):
        if word and Path(word).is_absolute():
            yield Path(word)
    yield from around.prefixes


def _cure(root: Root, problem: Problem, around: Surroundings, role: Role = Role.VULKAN) -> str:
    if root.where == SDK:
        return f"unset {SDK}, or let it name a complete SDK of this machine"
    if problem.fault is Fault.TOO_OLD:
        return PROVIDED
    return around.cure(role)


def _found(
    root: Root, headers: Headers, loader: Path, compiler: Found, spirv: SpirvHeaders | Problem
) -> Found:
    files = [headers.include / CORE, headers.include / "vulkan/vulkan.hpp", loader.resolve()]
    facts = {
        Fact.HEADER_VERSION: str(headers.number),
        Fact.INCLUDE_DIR: headers.include.as_posix(),
        Fact.LIBRARY: loader.as_posix(),
        Fact.GLSLC: compiler.path.as_posix(),
        Fact.GLSLC_VERSION: compiler.version,
        Fact.CAPABILITIES: compiler.fact(Fact.CAPABILITIES),
    }
    origins = {str(root.path): "headers"}
    for part, path in (("loader", loader), ("glslc", compiler.path)):
        if root.path not in path.parents:
            origins[str(path)] = part
    if isinstance(spirv, SpirvHeaders):
        facts[Fact.SPIRV_HEADERS_DIR] = spirv.config.as_posix()
        facts[Fact.SPIRV_INCLUDE_DIR] = spirv.include.as_posix()
        files += [p for h in SPIRV_HEADERS if (p := spirv.include / h).is_file()][:1]
        if root.path not in spirv.config.parents:
            origins[str(spirv.config)] = "SPIRV-Headers"
    mixed = ", ".join(f"{part} from {path}" for path, part in origins.items())
    return Found(
        role=Role.VULKAN,
        name=root.name,
        path=root.path,
        version=headers.version,
        where=root.where,
        sha256=digest_data([sha256_file(f) for f in files]),
        facts=(*facts.items(), ("mixed", mixed if len(origins) > 1 else "")),
    )
