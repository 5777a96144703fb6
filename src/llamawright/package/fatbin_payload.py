"""What the device code itself says: its capability, and whether any kernel is in it. Pure."""

from __future__ import annotations

import re
import struct
from typing import assert_never

from llamawright.package.fatbin_format import Data, DeviceEntry, Packing

_ELF = b"\x7fELF"
_ELF_HEADER = 64
_FLAGS_AT, _SECTIONS_AT, _SECTION_SIZES_AT, _ABI_AT = 48, 40, 58, 8
_SECTION = struct.Struct("<IIQQ")
_EXECUTABLE = 0x4
# By ABI, how far up in the flags the capability stands: 7 is CUDA 12.4's, 8 is 13.0's.
_SHIFTS = {7: 0, 8: 8}
_TARGET = re.compile(rb"\.target\s+(?:sm|compute)_(\d+)")
# The target stands behind a few comments; it is also within one block of any compressor.
_PTX_START = 4096
# A cubin without kernels has about 1.5 KB (CUDA 13.0), such PTX less.
_EMPTY_AT_MOST = 1 << 16
_LONG, _MIN_MATCH = 15, 4


def require_truth(data: Data, entry: DeviceEntry) -> None:
    """Raise ``ValueError`` unless the code is what its entry's header says."""
    if entry.code is None:
        return
    number = _ptx_number(data, entry) if entry.code.ptx else _cubin_number(data, entry)
    if number not in (None, entry.code.number):
        raise ValueError(
            f"the entry at {entry.start:#x} calls itself {entry.code.name}, "
            f"and what it holds is for {number}"
        )


def has_kernels(data: Data, entry: DeviceEntry) -> bool:
    """Whether an entry holds a kernel: a device link without any writes empty ones.

    What cannot be looked into counts as one, so that no code is missed.
    """
    if entry.code is None or entry.unpacked > _EMPTY_AT_MOST:
        return True
    content = unpacked(data, entry, limit=_EMPTY_AT_MOST)
    return b".entry" in content if entry.code.ptx else _has_code(content, entry)


def unpacked(data: Data, entry: DeviceEntry, *, limit: int) -> bytes:
    """Return the first ``limit`` bytes of the code; ``ValueError`` when it is damaged."""
    content = data[entry.start : entry.start + entry.size]
    match entry.packing:
        case Packing.PLAIN:
            return content[:limit]
        case Packing.ZSTD:
            return _zstd(content, entry, limit)
        case Packing.LZ4:
            return lz4_start(content, limit=min(limit, entry.unpacked))
        case _:
            assert_never(entry.packing)


def lz4_start(content: bytes, *, limit: int) -> bytes:
    """Return the first ``limit`` bytes of an LZ4 block, as its format page describes it."""
    result, at = bytearray(), 0
    try:
        while len(result) < limit and at < len(content):
            token = content[at]
            count, at = _length(content, at + 1, token >> 4)
            result += content[at : at + count]
            at += count
            if at >= len(content):
                break
            back = content[at] | content[at + 1] << 8
            count, at = _length(content, at + 2, token & _LONG)
            _repeat(result, back, count + _MIN_MATCH, limit)
    except IndexError as error:
        raise ValueError("compressed device code is cut short") from error
    return bytes(result[:limit])


def _length(content: bytes, at: int, count: int) -> tuple[int, int]:
    if count == _LONG:
        while True:
            more = content[at]
            at += 1
            count += more
            if more != 0xFF:  # noqa: PLR2004 - the format's own mark for "goes on"
                break
    return count, at


def _repeat(result: bytearray, back: int, count: int, limit: int) -> None:
    if not 0 < back <= len(result):
        raise ValueError("compressed device code refers to what is not there")
    count = min(count, limit)
    pattern = bytes(result[-back:])
    result += (pattern * (count // back + 1))[:count]


def _zstd(content: bytes, entry: DeviceEntry, limit: int) -> bytes:
    import zstandard  # noqa: PLC0415 - takes 20 ms; a run that packs nothing must not pay

    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as stream:
            return stream.read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(f"the code at {entry.start:#x} cannot be unpacked: {error}") from error


def _ptx_number(data: Data, entry: DeviceEntry) -> int | None:
    found = _TARGET.search(unpacked(data, entry, limit=_PTX_START))
    return int(found[1]) if found else None


def _cubin_number(data: Data, entry: DeviceEntry) -> int | None:
    header = _elf_header(unpacked(data, entry, limit=_ELF_HEADER), entry)
    flags = int.from_bytes(header[_FLAGS_AT : _FLAGS_AT + 4], "little")
    shift = _SHIFTS.get(header[_ABI_AT])
    return None if shift is None else flags >> shift & 0xFF


def _elf_header(content: bytes, entry: DeviceEntry) -> bytes:
    if len(content) < _ELF_HEADER or not content.startswith(_ELF):
        raise ValueError(f"the entry at {entry.start:#x} calls itself a cubin and is none")
    return content[:_ELF_HEADER]


def _has_code(cubin: bytes, entry: DeviceEntry) -> bool:
    _elf_header(cubin, entry)
    (table,) = struct.unpack_from("<Q", cubin, _SECTIONS_AT)
    size, count = struct.unpack_from("<HH", cubin, _SECTION_SIZES_AT)
    if table + size * count > len(cubin) or size < _SECTION.size:
        raise ValueError(f"the cubin at {entry.start:#x} is cut short")
    flags = (_SECTION.unpack_from(cubin, table + size * i)[2] for i in range(count))
    return any(f & _EXECUTABLE for f in flags)
