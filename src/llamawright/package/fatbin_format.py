"""The containers that hold a CUDA module's device code, read from bytes. Pure.

Nobody documents the format. What is here was worked out from what nvcc, ptxas and
fatbinary of CUDA 12.4 and 13.0 write, and compared with what cuobjdump lists:

- container: magic ``0xBA55ED50``, version (u16), size of this header (u16), size of the
  entries (u64); containers follow each other with zeros between them;
- entry: kind (u16: 1 PTX, 2 cubin, 8 intermediate code for link time), version (u16), size
  of this header (u32), size of the payload with its padding (u64), size of the payload when
  it is compressed (u32), …, capability without its dot (u32 at 28), …, flags (u64 at 40),
  size before compression (u64 at 56).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from enum import Enum, auto

from llamawright.model.cuda import GpuCode

Data = bytes | mmap.mmap

MAGIC = (0xBA55ED50).to_bytes(4, "little")
CONTAINER = struct.Struct("<4sHHQ")
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
KIND_PTX, KIND_CUBIN = 1, 2
FLAG_LZ4, FLAG_ZSTD = 0x2000, 0x8000
FLAG_SPECIFIC, FLAG_FAMILY = 0x10_0000, 0x20_0000
_CONTAINER_VERSION = 1
_ENTRY_VERSION = 0x101
# Capabilities that any CUDA ever had, with room for those to come.
_NUMBERS = range(10, 300)


class Packing(Enum):
    """How an entry's payload is compressed."""

    PLAIN = auto()
    LZ4 = auto()
    ZSTD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """One piece of device code: where its payload lies and what its header says.

    ``start`` and ``size`` are bytes of the file, without padding; ``unpacked`` is the size
    before compression. ``code`` is ``None`` for what no driver can run, such as
    intermediate code for link time.
    """

    code: GpuCode | None
    start: int
    size: int
    unpacked: int
    packing: Packing


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The device code of one translation unit, or of a device link."""

    at: int
    entries: tuple[DeviceEntry, ...]

    @property
    def codes(self) -> frozenset[GpuCode]:
        """Return what a driver can choose from."""
        return frozenset(e.code for e in self.entries if e.code)


def read_containers(data: Data, start: int, end: int) -> tuple[Container, ...]:
    """Return the containers between two offsets; ``ValueError`` for anything but whole ones."""
    found: list[Container] = []
    at = _next(data, start, end)
    while at < end:
        container, after = _container(data, at, end)
        found.append(container)
        at = _next(data, after, end)
    return tuple(found)


def _next(data: Data, at: int, end: int) -> int:
    """Return where the next container starts; only zeros may lie before it."""
    found = data.find(MAGIC, at, end)
    stop = end if found < 0 else found
    if data[at:stop].strip(b"\0"):
        raise ValueError(f"at {at:#x} there is something else than a container of device code")
    return stop


def _container(data: Data, at: int, end: int) -> tuple[Container, int]:
    _require(at + CONTAINER.size <= end, at, "is cut within its header")
    _, version, header, size = CONTAINER.unpack_from(data, at)
    _require(version == _CONTAINER_VERSION, at, f"has the unknown version {version}")
    _require(header >= CONTAINER.size, at, f"has a header of only {header} bytes")
    stop = at + header + size
    _require(stop <= end, at, f"should have {size} bytes and is cut after {end - at - header}")
    place, entries = at + header, []
    while place < stop:
        entry, place = _entry(data, place, stop, at)
        entries.append(entry)
    return Container(at=at, entries=tuple(entries)), stop


def _entry(data: Data, place: int, stop: int, at: int) -> tuple[DeviceEntry, int]:
    _require(place + ENTRY.size <= stop, at, f"is cut within the entry at {place:#x}")
    fields = ENTRY.unpack_from(data, place)
    kind, version, header, padded, packed = fields[:5]
    number, flags, unpacked = fields[8], fields[11], fields[13]
    where = f"has an entry at {place:#x}"
    _require(version == _ENTRY_VERSION, at, f"{where} of the unknown version {version:#x}")
    _require(header >= ENTRY.size, at, f"{where} with a header of only {header} bytes")
    _require(place + header + padded <= stop, at, f"{where} that ends behind the container")
    packing = _packing(flags)
    if packing is None:
        raise _broken(at, f"{where} with two kinds of compression")
    size = padded if packing is Packing.PLAIN else packed
    _require(0 < size <= padded, at, f"{where} of {size} bytes in a place for {padded}")
    entry = DeviceEntry(
        code=_code(kind, number, flags, at),
        start=place + header,
        size=size,
        unpacked=size if packing is Packing.PLAIN else unpacked,
        packing=packing,
    )
    return entry, place + header + padded


def _packing(flags: int) -> Packing | None:
    match bool(flags & FLAG_LZ4), bool(flags & FLAG_ZSTD):
        case (True, True):
            return None
        case (True, False):
            return Packing.LZ4
        case (False, True):
            return Packing.ZSTD
        case _:
            return Packing.PLAIN


def _code(kind: int, number: int, flags: int, at: int) -> GpuCode | None:
    if kind not in (KIND_PTX, KIND_CUBIN):
        return None
    _require(number in _NUMBERS, at, f"names the compute capability {number}, which cannot be")
    specific, family = flags & FLAG_SPECIFIC, flags & FLAG_FAMILY
    _require(not (specific and family), at, "holds code for one capability and for a family alike")
    suffix = "a" if specific else "f" if family else ""
    return GpuCode(number=number, suffix=suffix, ptx=kind == KIND_PTX)


def _require(holds: object, at: int, fault: str) -> None:
    if not holds:
        raise _broken(at, fault)


def _broken(at: int, fault: str) -> ValueError:
    return ValueError(f"the container of device code at {at:#x} {fault}")
