"""Binaries with named sections, and archives that differ in one thing only."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from transfer_kit import tar_bytes, tar_info

ALLOC = 2
HEADER = 64
SECTION = 64
BUILD_ID = ".note.gnu.build-id"
NOTE = struct.pack("<III4s", 4, 8, 3, b"GNU\0")


def sectioned(sections: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return an ELF file with these sections: name to (flags, content)."""
    names = b"\0"
    rows: list[tuple[int, int, int, int, int]] = [(0, 0, 0, 0, 0)]
    body = b""
    for name, (flags, content) in sections.items():
        kind = 7 if name == BUILD_ID else 1
        rows.append((len(names), kind, flags, HEADER + len(body), len(content)))
        names += name.encode() + b"\0"
        body += content + bytes(-len(content) % 8)
    rows.append((len(names), 3, 0, HEADER + len(body), len(names) + len(".shstrtab\0")))
    names += b".shstrtab\0"
    body += names + bytes(-len(names) % 8)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, HEADER + len(body), 0,
        HEADER, 56, 0, SECTION, len(rows), len(rows) - 1,
    )  # fmt: skip
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, at, size, 0, 0, 1, 0)
        for name, kind, flags, at, size in rows
    )
    return header + body + table


def library(
    *, rodata: bytes = b"hello\0", build_id: bytes = b"12345678", symtab: bytes = b"symbols."
) -> bytes:
    """Return a library whose parts can be chosen."""
    return sectioned(
        {
            BUILD_ID: (ALLOC, NOTE + build_id),
            ".text": (ALLOC, b"\xc3" * 32),
            ".rodata": (ALLOC, rodata),
            ".symtab": (0, symtab),
        }
    )


def packed(
    path: Path,
    files: Mapping[str, bytes],
    *,
    mode: str = "w",
    headers: Mapping[str, dict[str, object]] | None = None,
) -> Path:
    """Write a tar archive; ``headers`` changes fields of single members."""
    path.parent.mkdir(parents=True, exist_ok=True)
    members = [
        (tar_info(name, **(headers or {}).get(name, {})), content)
        for name, content in files.items()
    ]
    path.write_bytes(tar_bytes(members, mode=mode))
    return path
