"""Audit rules about what is inside a binary: instructions, memory, names, signature. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from llamawright.model.platform import System
from llamawright.package.expected import matches
from llamawright.package.findings import Finding, Severity
from llamawright.package.reading import Reading
from llamawright.package.subject import Subject

# The three bytes also occur by chance, about once in 16 million random ones.
_CHANCE = 8
_PLAIN_CPU = ("*ggml-cpu-x64.*", "*ggml-cpu-sse42.*")


def vector_rules(subject: Subject) -> Iterator[Finding]:
    """Let only CPU variants use instructions that not every CPU has (cases P16)."""
    if subject.native:
        return
    for reading in subject.readings:
        file = posixpath.basename(reading.facts.path)
        variant = matches(file, subject.expected.cpu) and not matches(file, _PLAIN_CPU)
        if not variant and reading.wide_vectors >= _CHANCE:
            yield Finding(
                kind="illegal-instruction",
                path=reading.facts.path,
                what=f"it holds AVX code ({reading.wide_vectors} functions), and only the CPU "
                "variants may: older CPUs would die with an illegal instruction",
                cure="set GGML_NATIVE=OFF and take -march, -mavx and /arch out of the flags",
            )


def memory_rules(subject: Subject) -> Iterator[Finding]:
    """Refuse files that ask for memory both writable and executable."""
    for reading in subject.readings:
        if reading.executable_stack:
            yield _memory(reading, "executable-stack", "it asks for an executable stack")
        if reading.text_relocations:
            yield _memory(reading, "text-relocations", "its code is changed while it is loaded")


def leak_rules(subject: Subject) -> Iterator[Finding]:
    """Refuse names of the building machine's folders in a file."""
    for reading in subject.readings:
        for place in reading.leaks:
            # Visual C++ cannot map the paths in its debug records and assertions.
            windows = subject.platform.system is System.WINDOWS
            yield Finding(
                kind="path-leak",
                path=reading.facts.path,
                what=f"it names a folder of the building machine: {place}",
                cure="compile with -ffile-prefix-map for the source and the build folder",
                severity=Severity.WARNING if windows else Severity.ERROR,
            )


def signature_rules(subject: Subject) -> Iterator[Finding]:
    """Require signatures of Mach-O files: Apple silicon kills an unsigned one silently."""
    for reading in subject.readings:
        if reading.facts.format == "macho" and not reading.signed:
            yield Finding(
                kind="unsigned",
                path=reading.facts.path,
                what="it has no code signature",
                cure="sign it after its last change: codesign --force --sign - FILE",
            )


def _memory(reading: Reading, kind: str, what: str) -> Finding:
    cure = "compile assembler and C with -fPIC -Wl,-z,noexecstack, with one compiler"
    return Finding(kind=kind, path=reading.facts.path, what=what, cure=cure)
