"""Which device code a CUDA module really holds, read from the file itself."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from llamawright.errors import PackageError
from llamawright.model.cuda import GpuCode
from llamawright.package.fatbin_format import Container, Data, read_containers
from llamawright.package.fatbin_payload import has_kernels, require_truth

if TYPE_CHECKING:
    import lief

# Windows cuts section names after 8 letters.
_LINKED = (".nv_fatbin", ".nv_fatb")
_RELOCATABLE = ("__nv_relfatbin", "__nv_rel")
_AGAIN = "build again: `llamawright gc --keep-days 0`, then the same command"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """A module's device code, container by container; those without kernels do not count.

    ``relocatable`` are containers that a device link (``-rdc=true``) made ``linked`` ones
    of: only their PTX can still be used, the driver links it.
    """

    linked: tuple[frozenset[GpuCode], ...] = ()
    relocatable: tuple[frozenset[GpuCode], ...] = ()

    @property
    def compiled(self) -> tuple[GpuCode, ...]:
        """Return the codes that every kernel is there for, machine code first."""
        if not self.linked:
            return ()
        ptx = frozenset(c for c in _common(self.relocatable) if c.ptx)
        return _ordered(_common(self.linked) | ptx)

    @property
    def partial(self) -> tuple[tuple[GpuCode, int], ...]:
        """Return the codes that only some kernels are there for, and in how many containers."""
        counts = Counter(code for codes in self.linked for code in codes)
        whole = set(self.compiled)
        return tuple((c, counts[c]) for c in _ordered(counts) if c not in whole)


def read_codes(path: Path) -> tuple[GpuCode, ...]:
    """Return the device code that every kernel of a CUDA module is there for.

    Raises ``PackageError`` (``bad-fatbin``) for a file that cannot be read for certain.
    """
    return read_device_code(path).compiled


def read_device_code(path: Path) -> DeviceCode:
    """Return a CUDA module's device code; a file without any has no containers.

    Raises ``PackageError`` (``bad-fatbin``) for a file that cannot be read for certain.
    """
    try:
        places = _places(path)
        if not places:
            return DeviceCode()
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            linked = _counted(data, (p for p in places if p.name in _LINKED))
            relocatable = _counted(data, (p for p in places if p.name in _RELOCATABLE))
    except ValueError as error:
        raise PackageError(
            f"the device code of {path.name} cannot be read",
            why=str(error),
            hint=f"the file is damaged or of a newer CUDA than is known here; {_AGAIN}",
            kind="bad-fatbin",
        ) from error
    return DeviceCode(linked=linked, relocatable=relocatable)


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    start: int
    size: int


def _places(path: Path) -> tuple[_Place, ...]:
    import lief  # noqa: PLC0415 - takes 60 ms; a run that packs nothing must not pay

    lief.logging.disable()
    wanted = (*_LINKED, *_RELOCATABLE)
    if lief.is_elf(str(path)):
        found = [p for p in _elf_sections(path) if p.name in wanted]
    elif lief.is_pe(str(path)):
        found = [p for p in _pe_sections(path) if p.name in wanted]
    else:
        raise ValueError("it is neither an ELF nor a PE file")
    length = path.stat().st_size
    for place in found:
        if place.start + place.size > length:
            raise ValueError(f"the file is cut: its {place.name} should end behind {length} bytes")
    return tuple(place for place in found if place.size)


def _elf_sections(path: Path) -> Iterator[_Place]:
    import lief  # noqa: PLC0415 - see _places

    config = lief.ELF.ParserConfig()
    config.parse_relocations = config.parse_dyn_symbols = config.parse_symtab_symbols = False
    config.parse_symbol_versions = config.parse_notes = config.parse_overlay = False
    elf = lief.ELF.parse(path, config)
    if elf is None or not 0 < elf.header.numberof_sections == len(elf.sections):
        raise ValueError("its table of sections is not there or is cut")
    yield from (_Place(_text(s.name), s.file_offset, s.size) for s in elf.sections)


def _pe_sections(path: Path) -> Iterator[_Place]:
    import lief  # noqa: PLC0415 - see _places

    pe: lief.PE.Binary | None = lief.PE.parse(path)
    if pe is None or len(pe.sections) != pe.header.numberof_sections:
        raise ValueError("its table of sections is not there or is cut")
    for section in pe.sections:
        yield _Place(_text(section.name), section.offset, section.sizeof_raw_data)


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode(errors="replace")


def _counted(data: Data, places: Iterable[_Place]) -> tuple[frozenset[GpuCode], ...]:
    """Return the codes of each container that holds kernels.

    Only containers that lack something are looked into: unpacking all would take minutes.
    """
    found = [c for p in places for c in read_containers(data, p.start, p.start + p.size)]
    for container in found:
        for entry in container.entries:
            require_truth(data, entry)
    everything = frozenset[GpuCode]().union(*(c.codes for c in found))
    return tuple(c.codes for c in found if c.codes == everything or _full(data, c))


def _full(data: Data, container: Container) -> bool:
    return any(has_kernels(data, entry) for entry in container.entries)


def _common(sets: tuple[frozenset[GpuCode], ...]) -> frozenset[GpuCode]:
    return reduce(frozenset.intersection, sets) if sets else frozenset()


def _ordered(codes: Iterable[GpuCode]) -> tuple[GpuCode, ...]:
    return tuple(sorted(codes, key=lambda c: (c.ptx, c.number, c.suffix)))
