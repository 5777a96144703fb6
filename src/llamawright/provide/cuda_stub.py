"""A library to link the driver by, made from the toolkit's own ``cuda.h``.

NVIDIA's archives hold ``lib/stubs/libcuda.so``, its Python packages do not, and a machine that
only builds has no driver. The linker needs no more than the library's name and its functions'
names. It is written as plain bytes: the same on every machine, without a compiler.
"""

from __future__ import annotations

import re
import struct

SONAME = "libcuda.so.1"
# Also names that are only macros or types: a stub may offer more than the driver does.
FUNCTION = re.compile(r"\bcu[A-Z]\w*", re.ASCII)
# mov eax, 34; ret: CUDA_ERROR_STUB_LIBRARY, what NVIDIA's own stubs return.
CODE = b"\xb8\x22\x00\x00\x00\xc3"
X86_64 = 62
PAGE = 4096  # bytes

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PROGBITS, _STRTAB, _HASH, _DYNAMIC, _DYNSYM = 1, 3, 5, 6, 11
_GLOBAL_FUNCTION = 0x12  # STB_GLOBAL, STT_FUNC
_SECTIONS = ("", ".text", ".dynsym", ".dynstr", ".hash", ".dynamic", ".shstrtab")
_TEXT, _SYMBOLS, _STRINGS = 1, 2, 3


def driver_stub(header: str) -> bytes:
    """Return an ELF shared library for x86_64 with every function that ``cuda.h`` names."""
    names = sorted(set(FUNCTION.findall(header)))
    strings, places = _strings([SONAME, *names])
    shown, titles = _strings(list(_SECTIONS[1:]))
    start = _HEADER.size + 2 * _PROGRAM.size
    symbols = b"".join(
        _SYMBOL.pack(places[n], _GLOBAL_FUNCTION, 0, _TEXT, start, len(CODE)) for n in names
    )
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0) + symbols
    bodies = [CODE, symbols, strings, _hash(len(names) + 1)]
    bodies.append(_dynamic(_offsets(start, bodies), places[SONAME], len(strings)))
    bodies.append(shown)
    *at, table = _offsets(start, [*bodies, b""])
    image = bytearray(_file_header(table) + _programs(table, at[4], len(bodies[4])))
    for place, body in zip(at, bodies, strict=True):
        image += bytes(place - len(image)) + body
    image += bytes(table - len(image))
    return bytes(image + _sections(at, [len(b) for b in bodies], titles))


def _strings(words: list[str]) -> tuple[bytes, dict[str, int]]:
    """Return a string table and where each word starts in it."""
    table, places = b"\0", {}
    for word in words:
        places[word] = len(table)
        table += word.encode() + b"\0"
    return table, places


def _offsets(start: int, bodies: list[bytes]) -> list[int]:
    """Return where bodies lie one after another, each on a multiple of 8."""
    found = []
    for body in bodies:
        start = (start + 7) // 8 * 8
        found.append(start)
        start += len(body)
    return found


def _hash(symbols: int) -> bytes:
    """Return a hash section of one bucket: a chain through all symbols."""
    chain = [0, *range(2, symbols), 0] if symbols > 1 else [0]
    first = 1 if symbols > 1 else 0
    words = [1, symbols, first, *chain]
    return struct.pack(f"<{len(words)}I", *words)


def _dynamic(at: list[int], soname: int, strings: int) -> bytes:
    entries = (
        (14, soname),  # DT_SONAME
        (4, at[3]),  # DT_HASH
        (5, at[2]),  # DT_STRTAB
        (6, at[1]),  # DT_SYMTAB
        (10, strings),  # DT_STRSZ
        (11, _SYMBOL.size),  # DT_SYMENT
        (0, 0),
    )
    return b"".join(struct.pack("<QQ", tag, value) for tag, value in entries)


def _file_header(table: int) -> bytes:
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    return _HEADER.pack(
        ident, 3, X86_64, 1, 0, _HEADER.size, table, 0, _HEADER.size, _PROGRAM.size, 2,
        _SECTION.size, len(_SECTIONS), len(_SECTIONS) - 1,
    )  # fmt: skip


def _programs(whole: int, dynamic: int, size: int) -> bytes:
    load = _PROGRAM.pack(1, 5, 0, 0, 0, whole, whole, PAGE)
    return load + _PROGRAM.pack(2, 6, dynamic, dynamic, dynamic, size, size, 8)


def _sections(at: list[int], sizes: list[int], titles: dict[str, int]) -> bytes:
    """Return the section table: kind, flags, link, info and entry size of each."""
    kinds = (
        (_PROGBITS, 6, 0, 0, 0),
        (_DYNSYM, 2, _STRINGS, 1, _SYMBOL.size),
        (_STRTAB, 2, 0, 0, 0),
        (_HASH, 2, _SYMBOLS, 0, 4),
        (_DYNAMIC, 3, _STRINGS, 0, 16),
        (_STRTAB, 0, 0, 0, 0),
    )
    table = bytes(_SECTION.size)
    for number, (kind, flags, link, info, entry) in enumerate(kinds):
        name = titles[_SECTIONS[number + 1]]
        address = at[number] if flags else 0
        table += _SECTION.pack(
            name, kind, flags, address, at[number], sizes[number], link, info, 8, entry
        )
    return table
