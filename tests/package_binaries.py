"""Tiny ELF, PE and Mach-O files made of their bare headers, with any facts a test wants.

They load nowhere, but say everything an audit reads, on any system and without a compiler.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

AVX_FUNCTION = b"\xc5\xfc\x58\xc1\xc5\xf8\x77\xc3"  # vaddps ymm0,ymm0,ymm1; vzeroupper; ret
PLAIN_FUNCTION = b"\x90\x90\xc3"

ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
PE_MACHINES = {"x86_64": 0x8664, "aarch64": 0xAA64}
MACHO_MACHINES = {"x86_64": 0x01000007, "aarch64": 0x0100000C}

_EHDR, _PHDR = 64, 56
_PAGE = 0x1000


class _Strings:
    """A string table: offsets of texts, an empty one first."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def elf(
    *,
    needed: Sequence[str] = ("libc.so.6",),
    soname: str = "",
    runpath: str | None = None,
    rpath: str | None = None,
    versions: Mapping[str, Sequence[str]] | None = None,
    machine: str = "x86_64",
    code: bytes = PLAIN_FUNCTION,
    stack: str = "rw",
    textrel: bool = False,
    flags_textrel: bool = False,
    payload: bytes = b"",
) -> bytes:
    """Return a shared object. ``stack``: ``rw``, ``rwx`` or empty for no stack segment."""
    strings = _Strings()
    entries: list[tuple[int, int]] = [(1, strings.add(n)) for n in needed]
    for tag, text in ((14, soname or None), (15, rpath), (29, runpath)):
        if text is not None:
            entries.append((tag, strings.add(text)))
    requirements = [
        (strings.add(library), [strings.add(name) for name in names])
        for library, names in (versions or {}).items()
    ]
    count = 3 if stack else 2
    at = _EHDR + count * _PHDR
    parts: dict[str, tuple[int, bytes]] = {}
    for name, data in (
        ("strings", strings.data),
        ("hash", struct.pack("<4I", 1, 1, 0, 0)),
        ("symbols", bytes(24)),
        ("versions", _verneed(requirements)),
        ("code", code),
        ("payload", payload),
    ):
        at = -(-at // 8) * 8
        parts[name] = (at, data)
        at += len(data)
    entries += [
        (5, parts["strings"][0]), (10, len(strings.data)), (6, parts["symbols"][0]), (11, 24),
        (4, parts["hash"][0]),
    ]  # fmt: skip
    if requirements:
        entries += [(0x6FFFFFFE, parts["versions"][0]), (0x6FFFFFFF, len(requirements))]
    if textrel:
        entries.append((22, 0))
    if flags_textrel:
        entries.append((30, 4))
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in [*entries, (0, 0)])
    at = -(-at // 8) * 8
    parts["dynamic"] = (at, dynamic)
    total = at + len(dynamic)
    segments = [_phdr(1, 5, 0, total), _phdr(2, 6, at, len(dynamic))]
    if stack:
        segments.append(_phdr(0x6474E551, 7 if stack == "rwx" else 6, 0, 0))
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, ELF_MACHINES[machine], 1, 0, _EHDR, 0, 0,
        _EHDR, _PHDR, count, 64, 0, 0,
    )  # fmt: skip
    content = bytearray(total)
    content[: _EHDR + count * _PHDR] = header + b"".join(segments)
    for offset, data in parts.values():
        content[offset : offset + len(data)] = data
    return bytes(content)


def _phdr(kind: int, flags: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, 8)


def _verneed(requirements: Sequence[tuple[int, list[int]]]) -> bytes:
    data = b""
    for number, (library, names) in enumerate(requirements):
        last = number == len(requirements) - 1
        size = 16 + 16 * len(names)
        data += struct.pack("<HHIII", 1, len(names), library, 16, 0 if last else size)
        for place, name in enumerate(names):
            step = 0 if place == len(names) - 1 else 16
            data += struct.pack("<IHHII", 0, 0, place + 2, name, step)
    return data


def pe(
    *,
    imports: Sequence[str] = ("KERNEL32.dll",),
    machine: str = "x86_64",
    linker: tuple[int, int] = (14, 44),
    code: bytes = PLAIN_FUNCTION,
    payload: bytes = b"",
) -> bytes:
    """Return a 64-bit DLL that imports one function of each library."""
    text_at, data_at, rva = 0x400, 0x800, 0x2000
    data = _import_table(imports, rva)
    body = data + payload
    raw = -(-len(body) // 0x200) * 0x200
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", 0x20B, *linker, 0x400, raw, 0, _PAGE, _PAGE,
        0x180000000, _PAGE, 0x200, 6, 0, 0, 0, 6, 0, 0, rva + _PAGE * (1 + raw // _PAGE), 0x400, 0,
        3, 0x160, 0x100000, 0x1000, 0x100000, 0x1000, 0, 16,
    )  # fmt: skip
    directories = bytearray(16 * 8)
    struct.pack_into("<II", directories, 8, rva, len(data))
    coff = struct.pack("<HHIIIHH", PE_MACHINES[machine], 2, 0, 0, 0, 112 + 128, 0x2022)
    sections = struct.pack(
        "<8sIIIIIIHHI", b".text", 0x400, _PAGE, 0x400, text_at, 0, 0, 0, 0, 0x60000020
    )
    sections += struct.pack(
        "<8sIIIIIIHHI", b".rdata", len(body), rva, raw, data_at, 0, 0, 0, 0, 0x40000040
    )
    content = bytearray(data_at + raw)
    content[:64] = b"MZ" + bytes(58) + struct.pack("<I", 64)
    headers = b"PE\0\0" + coff + optional + bytes(directories) + sections
    content[64 : 64 + len(headers)] = headers
    content[text_at : text_at + len(code)] = code
    content[data_at : data_at + len(body)] = body
    return bytes(content)


def _import_table(imports: Sequence[str], rva: int) -> bytes:
    """Return import descriptors, then per library: thunks twice, hint/name, library name."""
    start = 20 * (len(imports) + 1)
    descriptors, blocks = b"", b""
    for library in imports:
        base = rva + start + len(blocks)
        name = library.encode() + b"\0"
        hint = struct.pack("<H", 0) + b"Call\0\0"
        thunk = struct.pack("<QQ", base + 32, 0)
        block = thunk + thunk + hint + name
        block += bytes(-len(block) % 8)
        descriptors += struct.pack("<IIIII", base, 0, 0, base + 32 + len(hint), base + 16)
        blocks += block
    return descriptors + bytes(20) + blocks


def macho(
    *,
    imports: Sequence[str] = ("/usr/lib/libSystem.B.dylib",),
    identity: str = "",
    rpaths: Sequence[str] = (),
    machine: str = "aarch64",
    min_os: tuple[int, int] = (13, 3),
    signed: bool = True,
    payload: bytes = b"",
) -> bytes:
    """Return a 64-bit Mach-O library."""
    names = [(0x0D, identity)] if identity else []
    commands = [_dylib(kind, name) for kind, name in names]
    commands += [_dylib(0x0C, name) for name in imports]
    commands += [_path_command(0x8000001C, 12, path) for path in rpaths]
    version = min_os[0] << 16 | min_os[1] << 8
    commands.append(struct.pack("<IIIIII", 0x32, 24, 1, version, version, 0))
    size = sum(map(len, commands)) + 72 + (16 if signed else 0)
    end = 32 + size + len(payload)
    commands.insert(0, _text_segment(end + 16 * signed))
    if signed:
        commands.append(struct.pack("<IIII", 0x1D, 16, end, 16))
    head = struct.pack(
        "<IIIIIIII", 0xFEEDFACF, MACHO_MACHINES[machine], 0, 6, len(commands), size, 0x85, 0
    )
    return head + b"".join(commands) + payload + (bytes(16) if signed else b"")


def universal(*slices: bytes) -> bytes:
    """Return one Mach-O file of several machines."""
    at = _PAGE
    table, body = b"", b""
    for part in slices:
        kind, sub = struct.unpack_from("<II", part, 4)
        table += struct.pack(">IIIII", kind, sub, at, len(part), 12)
        padded = part + bytes(-len(part) % _PAGE)
        body += padded
        at += len(padded)
    head = struct.pack(">II", 0xCAFEBABE, len(slices)) + table
    return head.ljust(_PAGE, b"\0") + body


def _text_segment(size: int) -> bytes:
    return struct.pack(
        "<II16sQQQQIIII", 0x19, 72, b"__TEXT", 0, -(-size // _PAGE) * _PAGE, 0, size, 5, 5, 0, 0
    )


def _dylib(kind: int, name: str) -> bytes:
    text = name.encode() + b"\0"
    text += bytes(-(24 + len(text)) % 8)
    return struct.pack("<IIIIII", kind, 24 + len(text), 24, 2, 0x10000, 0x10000) + text


def _path_command(kind: int, offset: int, path: str) -> bytes:
    text = path.encode() + b"\0"
    text += bytes(-(offset + len(text)) % 8)
    return struct.pack("<III", kind, offset + len(text), offset) + text
