"""Audit rules about what a binary asks of the system: imports, run paths, machine. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from fnmatch import fnmatchcase

from llamawright.model.artifact import BinaryFacts
from llamawright.model.platform import System
from llamawright.package.expected import matches
from llamawright.package.findings import Finding
from llamawright.package.layout import BIN
from llamawright.package.reading import machine_name
from llamawright.package.subject import Subject

_FORMATS = {System.LINUX: "elf", System.WINDOWS: "pe", System.MACOS: "macho"}
_RELATIVE = ("@rpath/", "@loader_path/", "@executable_path/")
_OPENMP = ("libomp*", "libgomp*", "vcomp*", "libiomp*")
_RPATH_CURE = (
    "set CMAKE_BUILD_WITH_INSTALL_RPATH=ON and CMAKE_INSTALL_RPATH to $ORIGIN (Linux) or "
    "@loader_path (macOS)"
)


def import_rules(subject: Subject) -> Iterator[Finding]:
    """Require every import on the recipe's list or in the artifact."""
    for reading in subject.readings:
        for name in reading.facts.imports:
            if not _brought(name, reading.facts, subject) and not _allowed(
                name, reading.facts, subject
            ):
                yield _foreign(name, reading.facts)


def system_libraries(subject: Subject) -> tuple[str, ...]:
    """Return what the artifact imports and does not bring, sorted."""
    names = {
        name
        for reading in subject.readings
        for name in reading.facts.imports
        if not _brought(name, reading.facts, subject)
    }
    return tuple(sorted(names))


def runpath_rules(subject: Subject) -> Iterator[Finding]:
    """Let run paths lead to the artifact itself and nowhere else."""
    for reading in subject.readings:
        for part in reading.facts.runpath:
            if fault := _runpath_fault(part, reading.facts.format):
                yield Finding(kind="runpath", path=reading.facts.path, what=fault, cure=_RPATH_CURE)


def machine_rules(subject: Subject) -> Iterator[Finding]:
    """Require one format and machine of every binary."""
    wanted = machine_name(subject.platform.machine)
    for reading in subject.readings:
        facts = reading.facts
        if facts.format != _FORMATS[subject.platform.system]:
            what = f"it is a {facts.format} file, not one for {subject.platform.system.value}"
        elif wanted not in facts.machine.split("+"):
            what = f"it is made for {facts.machine}, not for {wanted}"
        else:
            continue
        cure = "build everything with one compiler; `llamawright doctor` shows which were found"
        yield Finding(kind="foreign-machine", path=facts.path, what=what, cure=cure)


def unreadable_rules(subject: Subject) -> Iterator[Finding]:
    """Require that every binary can be parsed: a half-written one cannot."""
    for path in subject.unreadable:
        yield Finding(
            kind="unreadable",
            path=path,
            what="it is no program or library that can be read",
            cure="the file is damaged or half-written: `llamawright gc`, then build again",
        )


def _brought(name: str, facts: BinaryFacts, subject: Subject) -> bool:
    """Whether the loader finds an import in the artifact, from the importing file.

    A companion archive is unpacked over the artifact, so its libraries lie beside the rest.
    """
    bare = next((name.removeprefix(p) for p in _RELATIVE if name.startswith(p)), name)
    if "/" in bare:
        return False
    companion = (subject.cuda.companion or ()) if subject.cuda else ()
    beside = {f.path for f in subject.files} | {f"{BIN}/{library}" for library in companion}
    path = posixpath.join(posixpath.dirname(facts.path), bare)
    if subject.platform.system is System.WINDOWS:
        return path.lower() in {p.lower() for p in beside}
    return path in beside


def _allowed(name: str, facts: BinaryFacts, subject: Subject) -> bool:
    file = posixpath.basename(facts.path)
    patterns = subject.allowed
    # The loader library of a device API may be asked for by its module alone: a program
    # that imports it does not start on a machine without that API.
    if matches(file, subject.expected.device):
        patterns = (*patterns, *subject.device_allowed)
    if subject.platform.system is System.WINDOWS:
        return any(fnmatchcase(name.lower(), p.lower()) for p in patterns)
    return any(fnmatchcase(name, p) for p in patterns)


def _foreign(name: str, facts: BinaryFacts) -> Finding:
    bare = posixpath.basename(name)
    if bare.startswith(("libc.musl-", "ld-musl-")):
        kind, what = "musl", f"it needs {name}: it was linked for musl, the artifact is for glibc"
        cure = "use one compiler, of the glibc system the artifact is for"
    elif any(fnmatchcase(bare.lower(), p) for p in _OPENMP):
        kind, what = "foreign-import", f"it needs {name}, an OpenMP library that is not in here"
        cure = "set GGML_OPENMP=OFF in the recipe: ggml has its own threads"
    else:
        kind, what = "foreign-import", f"it needs {name}, which no supported system must have"
        cure = (
            f"switch off what needs {bare} in the recipe, or add it to allowed_imports if every "
            "supported system brings it"
        )
    return Finding(kind=kind, path=facts.path, what=what, cure=cure)


def _runpath_fault(part: str, file_format: str) -> str:
    origin = "@loader_path" if file_format == "macho" else "$ORIGIN"
    if not part:
        return "its run path has an empty part, which means whatever folder one happens to be in"
    tidy = part.replace("${ORIGIN}", "$ORIGIN").rstrip("/")
    if tidy in (origin, f"{origin}/."):
        return ""
    if tidy.startswith(f"{origin}/"):
        return f"its run path {part} leads out of the folder of the programs"
    return f"its run path {part} is a place on the building machine"
