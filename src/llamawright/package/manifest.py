"""The manifest: what an artifact says about itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright import __version__
from llamawright.model.artifact import (
    MANIFEST_SCHEMA,
    BinaryFacts,
    FileEntry,
    Manifest,
    ToolEntry,
)
from llamawright.model.built import BuiltTree, Effective
from llamawright.model.cuda import Companion, CudaFacts, CudaPlan
from llamawright.model.floors import highest
from llamawright.model.inventory import Role
from llamawright.model.plan import Plan
from llamawright.package.closure import system_libraries
from llamawright.package.companion import PackedCompanion
from llamawright.package.cuda_names import is_runtime_library
from llamawright.package.expected import is_native, matches
from llamawright.package.layout import Placed, resolve_link
from llamawright.package.subject import Subject
from llamawright.package.trees import Trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Size in bytes and sha256 of a file's content."""

    size: int
    sha256: str


def manifest_of(
    trees: Trees, *, subject: Subject, measured: Mapping[str, Measured], private: Mapping[Path, str]
) -> Manifest:
    """Return the manifest of an artifact that passed the audit.

    ``private`` are folders of this machine and what is written in their place.
    """
    plan, patched, source = trees.plan, trees.patched, trees.plan.recipe.source
    facts = tuple(r.facts for r in subject.readings)
    names = [f.name for f in subject.in_bin() if not f.link]
    return Manifest(
        schema=MANIFEST_SCHEMA,
        name=trees.name,
        key=plan.key,
        abi=trees.host.abi,
        upstream=source.upstream,
        commit=source.commit,
        build_number=source.build_number,
        version=source.version,
        source_digest=patched.source_digest,
        patched_digest=patched.digest,
        backend=plan.backend,
        platform=plan.platform,
        patches=tuple(p for p in plan.patches if p.name in patched.applied),
        retired=patched.retired,
        tools=tool_entries(plan),
        options=in_effect(trees.host, trees.module, private),
        capabilities=trees.module.capabilities if trees.module else (),
        inputs=plan.parts,
        modules=tuple(n for n in names if _is_module(n, subject)),
        programs=tuple(n for n in subject.expected.programs if n in names),
        files=file_entries(subject.files, measured),
        binaries=facts,
        system_libraries=system_libraries(subject),
        timestamp=trees.timestamp,
        native=is_native(plan),
        generator=f"llamawright {__version__}",
        cuda=cuda_facts(plan.cuda, subject, trees.companion) if plan.cuda else None,
        **floors_of(facts),
    )


def cuda_facts(cuda: CudaPlan, subject: Subject, companion: PackedCompanion | None) -> CudaFacts:
    """Return what a CUDA artifact says: the codes as read from the module, not as planned.

    Without a companion archive its place names the libraries that the system must have.
    """
    read = subject.cuda.code.values() if subject.cuda else ()
    codes = dict.fromkeys(code.name for module in read for code in module.compiled)
    needed = tuple(name for name in system_libraries(subject) if is_runtime_library(name))
    without = Companion(file="", sha256="", size=0, libraries=needed)
    return CudaFacts(
        toolkit=cuda.toolkit,
        codes=tuple(codes),
        driver=cuda.driver,
        driver_jit=cuda.driver_jit,
        compression=cuda.compression,
        companion=companion.facts if companion else without,
    )


def floors_of(facts: Iterable[BinaryFacts]) -> dict[str, str]:
    """Return the highest version any file needs, by the manifest's own field names."""
    known = tuple(facts)
    return {
        "glibc": highest(f.glibc for f in known if f.glibc),
        "glibcxx": highest(f.glibcxx for f in known if f.glibcxx),
        "cxxabi": highest(f.cxxabi for f in known if f.cxxabi),
        "toolset": highest(f.toolset for f in known if f.toolset),
        "min_os": highest(f.min_os for f in known if f.min_os),
    }


def tool_entries(plan: Plan) -> tuple[ToolEntry, ...]:
    """Return the tools that can change the output; a compiler cache cannot."""
    return tuple(
        ToolEntry(
            role=tool.role.value,
            name=tool.name,
            version=tool.version,
            sha256=tool.sha256,
            where=tool.where,
        )
        for tool in plan.tools
        if tool.role is not Role.CACHE
    )


def in_effect(
    host: BuiltTree, module: BuiltTree | None, private: Mapping[Path, str]
) -> tuple[Effective, ...]:
    """Return CMake's entries of both builds by name; the module's own count where they differ."""
    values = {e.name: e.value for e in host.effective}
    values |= {e.name: e.value for e in (module.effective if module else ())}
    return tuple(Effective(name=n, value=neutral(values[n], private)) for n in sorted(values))


def neutral(text: str, private: Mapping[Path, str]) -> str:
    """Return a text with this machine's folders replaced, the deepest first.

    Only whole names count, and never a file system's own root.
    """
    for folder in sorted(private, key=lambda f: len(str(f)), reverse=True):
        if len(folder.parts) > 1:
            for spelling in (str(folder), folder.as_posix()):
                text = re.sub(rf"{re.escape(spelling)}(?![\w.-])", private[folder], text)
    return text


def file_entries(
    files: Iterable[Placed], measured: Mapping[str, Measured]
) -> tuple[FileEntry, ...]:
    """Return the entries of files and links; a link has the content of what it leads to."""
    known = tuple(files)
    entries: list[FileEntry] = []
    for file in sorted(known, key=lambda f: f.path):
        content = measured[resolve_link(file, known) if file.link else file.path]
        entries.append(
            FileEntry(
                path=file.path,
                size=content.size,
                sha256=content.sha256,
                executable=file.executable,
                link=file.link,
            )
        )
    return tuple(entries)


def _is_module(name: str, subject: Subject) -> bool:
    return matches(name, (*subject.expected.cpu, *subject.expected.device))
