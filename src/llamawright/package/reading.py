"""What the audit reads from a binary: imports, run paths, symbol versions, hazards.

One reader per format, all through lief. Nothing is judged here.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from llamawright.model.artifact import BinaryFacts
from llamawright.model.floors import highest

if TYPE_CHECKING:
    import lief

# vzeroupper: compilers put it at the end of every function that uses 256-bit registers.
# Measured on llama.cpp: none in code for plain x86-64, over 300 in every AVX variant.
_VZEROUPPER = b"\xc5\xf8\x77"
_UNIVERSAL = b"\xca\xfe\xba\xbe"
_X86_64 = "x86_64"
_RELR = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One binary as it was read.

    ``wide_vectors`` counts functions that use 256-bit registers (x86-64 only). ``leaks``
    are the folders of the building machine whose names stand in the file. ``signed``:
    a Mach-O file has a code signature.
    """

    facts: BinaryFacts
    executable_stack: bool = False
    text_relocations: bool = False
    wide_vectors: int = 0
    signed: bool = False
    leaks: tuple[str, ...] = ()


def read_binary(path: Path, *, name: str, private: tuple[str, ...] = ()) -> Reading | None:
    """Read one binary; ``None`` when it is none, is damaged or is cut short.

    ``name`` is its path in the artifact; ``private`` are folders whose names must not
    stand in it.
    """
    import lief  # noqa: PLC0415 - takes 60 ms; a run that packs nothing must not pay

    lief.logging.disable()
    parsed: lief.ELF.Binary | lief.PE.Binary | lief.MachO.FatBinary | None
    if lief.is_elf(str(path)):
        parsed = lief.ELF.parse(path)
        read = _elf(parsed, name, path, private) if parsed else None
    elif lief.is_pe(str(path)):
        parsed = lief.PE.parse(path)
        read = _pe(parsed, name, path, private) if parsed else None
    elif lief.is_macho(str(path)):
        parsed = lief.MachO.parse(path)
        read = _macho(parsed, name, path, private) if parsed else None
    else:
        read = None
    return read


def _elf(elf: lief.ELF.Binary, name: str, path: Path, private: tuple[str, ...]) -> Reading | None:
    import lief  # noqa: PLC0415 - see read_binary

    whole = len(elf.segments) == elf.header.numberof_segments > 0
    if not whole or _cut(path, _elf_ends(elf)):
        return None
    needs = [
        version.name
        for requirement in elf.symbols_version_requirement
        for version in requirement.get_auxiliary_symbols()
    ]
    stack = elf.get(lief.ELF.Segment.TYPE.GNU_STACK)
    facts = BinaryFacts(
        path=name,
        format="elf",
        machine=machine_name(elf.header.machine_type.name),
        imports=tuple(map(_text, elf.libraries)),
        runpath=_elf_runpath(elf),
        glibc=_needed(needs, "GLIBC_"),
        glibcxx=_needed(needs, "GLIBCXX_"),
        cxxabi=_needed(needs, "CXXABI_"),
        soname=_elf_soname(elf),
    )
    return Reading(
        facts=facts,
        # Without this segment the kernel makes the stack executable.
        executable_stack=stack is None or stack.has(lief.ELF.Segment.FLAGS.X),
        text_relocations=_elf_text_relocations(elf),
        wide_vectors=_wide_vectors(path, _elf_code(elf)) if facts.machine == _X86_64 else 0,
        leaks=_leaks(path, private),
    )


def _elf_ends(elf: lief.ELF.Binary) -> list[int]:
    header = elf.header
    sections = header.numberof_sections * header.section_header_size
    ends = [s.file_offset + s.physical_size for s in elf.segments]
    return [*ends, header.section_header_offset + sections]


def _elf_code(elf: lief.ELF.Binary) -> list[tuple[int, int]]:
    import lief  # noqa: PLC0415 - see read_binary

    return [
        (s.file_offset, s.physical_size)
        for s in elf.segments
        if s.type == lief.ELF.Segment.TYPE.LOAD and s.has(lief.ELF.Segment.FLAGS.X)
    ]


def _elf_text_relocations(elf: lief.ELF.Binary) -> bool:
    import lief  # noqa: PLC0415 - see read_binary

    tag = lief.ELF.DynamicEntry.TAG
    flags = elf.get(tag.FLAGS)
    flagged = isinstance(flags, lief.ELF.DynamicEntryFlags) and flags.has(
        lief.ELF.DynamicEntryFlags.FLAG.TEXTREL
    )
    return flagged or any(entry.tag == tag.TEXTREL for entry in elf.dynamic_entries)


def _elf_runpath(elf: lief.ELF.Binary) -> tuple[str, ...]:
    import lief  # noqa: PLC0415 - see read_binary

    texts = [
        _text(entry.runpath if isinstance(entry, lief.ELF.DynamicEntryRunPath) else entry.rpath)
        for entry in elf.dynamic_entries
        if isinstance(entry, lief.ELF.DynamicEntryRunPath | lief.ELF.DynamicEntryRpath)
    ]
    # An empty text means no path, an empty part of one means the current folder.
    return tuple(part for text in texts if text for part in text.split(":"))


def _elf_soname(elf: lief.ELF.Binary) -> str:
    import lief  # noqa: PLC0415 - see read_binary

    entry = elf.get(lief.ELF.DynamicEntry.TAG.SONAME)
    return _text(entry.name) if isinstance(entry, lief.ELF.DynamicSharedObject) else ""


def _needed(names: Iterable[str | bytes], prefix: str) -> str:
    # Packed relative relocations have no version of their own: glibc 2.36 brought them.
    texts = [_RELR.get(t, t) for t in map(_text, names)]
    versions = [t for t in texts if _is_version(t, prefix)]
    return highest(v.removeprefix(prefix) for v in versions)


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode(errors="replace")


def _is_version(text: str, prefix: str) -> bool:
    return text.startswith(prefix) and text[len(prefix) : len(prefix) + 1].isdecimal()


def _pe(pe: lief.PE.Binary, name: str, path: Path, private: tuple[str, ...]) -> Reading | None:
    import lief  # noqa: PLC0415 - see read_binary

    if _cut(path, [s.offset + s.sizeof_raw_data for s in pe.sections]):
        return None
    imports = [_text(i.name) for i in pe.imports] + [_text(i.name) for i in pe.delay_imports]
    header = pe.optional_header
    machine = machine_name(pe.header.machine.name)
    code = [
        (s.offset, s.size)
        for s in pe.sections
        if s.has_characteristic(lief.PE.Section.CHARACTERISTICS.MEM_EXECUTE)
    ]
    export = pe.get_export()
    facts = BinaryFacts(
        path=name,
        format="pe",
        machine=machine,
        imports=tuple(dict.fromkeys(imports)),
        runpath=(),
        glibc="",
        glibcxx="",
        soname=_text(export.name) if export else "",
        toolset=f"{header.major_linker_version}.{header.minor_linker_version}",
    )
    return Reading(
        facts=facts,
        wide_vectors=_wide_vectors(path, code) if machine == _X86_64 else 0,
        leaks=_leaks(path, private),
    )


def _macho(
    fat: lief.MachO.FatBinary, name: str, path: Path, private: tuple[str, ...]
) -> Reading | None:
    """Read a Mach-O file of any number of slices; every fact is over all of them."""
    import lief  # noqa: PLC0415 - see read_binary

    slices = [s for s in (fat.at(i) for i in range(fat.size)) if s is not None]
    ends = [s.fat_offset + g.file_offset + g.file_size for s in slices for g in s.segments]
    whole = all(len(s.commands) == s.header.nb_cmds for s in slices)
    if len(slices) != _slice_count(path) or not whole or _cut(path, ends):
        return None
    own = lief.MachO.LoadCommand.TYPE.ID_DYLIB
    imports = [_text(lib.name) for s in slices for lib in s.libraries if lib.command != own]
    ids = [_text(lib.name) for s in slices for lib in s.libraries if lib.command == own]
    facts = BinaryFacts(
        path=name,
        format="macho",
        machine="+".join(dict.fromkeys(machine_name(s.header.cpu_type.name) for s in slices)),
        imports=tuple(dict.fromkeys(imports)),
        runpath=tuple(dict.fromkeys(_text(r.path) for s in slices for r in s.rpaths)),
        glibc="",
        glibcxx="",
        soname=PurePosixPath(ids[0]).name if ids else "",
        min_os=highest(v for s in slices for v in _macho_min_os(s)),
    )
    return Reading(
        facts=facts,
        signed=all(s.has_code_signature for s in slices),
        leaks=_leaks(path, private),
    )


def _slice_count(path: Path) -> int:
    """Return how many machines the file's own first bytes promise."""
    with path.open("rb") as stream:
        start = stream.read(8)
    return int.from_bytes(start[4:], "big") if start.startswith(_UNIVERSAL) else 1


def _macho_min_os(macho: lief.MachO.Binary) -> Iterator[str]:
    if macho.build_version is not None:
        yield ".".join(str(n) for n in macho.build_version.minos[:2])
    elif macho.version_min is not None:
        yield ".".join(str(n) for n in macho.version_min.version[:2])


def _cut(path: Path, ends: Iterable[int]) -> bool:
    """Whether the file is shorter than its own headers say: half-written, or cut."""
    return max(ends, default=0) > path.stat().st_size


def machine_name(name: str) -> str:
    """Return a machine under the name that platforms have, from any format's own."""
    lower = name.lower()
    names = {"amd64": _X86_64, "x86_64": _X86_64, "arm64": "aarch64", "aarch64": "aarch64"}
    return names.get(lower, lower)


def _wide_vectors(path: Path, code: Iterable[tuple[int, int]]) -> int:
    with path.open("rb") as stream:
        count = 0
        for offset, size in code:
            stream.seek(offset)
            count += stream.read(size).count(_VZEROUPPER)
    return count


def _leaks(path: Path, private: tuple[str, ...]) -> tuple[str, ...]:
    if not private or path.stat().st_size == 0:
        return ()
    with (
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return tuple(p for p in private if content.find(p.encode()) >= 0)
