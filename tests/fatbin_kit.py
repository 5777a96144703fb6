"""Device code as a table: cubins, PTX, entries, containers and the files that hold them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import zstandard

from llamawright.model.cuda import CudaPlan, GpuCode
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import BackendRule
from llamawright.package.fatbin_format import (
    CONTAINER,
    ENTRY,
    FLAG_FAMILY,
    FLAG_LZ4,
    FLAG_SPECIFIC,
    FLAG_ZSTD,
    KIND_CUBIN,
    KIND_PTX,
    MAGIC,
)
from package_binaries import elf, pe
from package_kit import LINUX, Bench, linux_host, plan, recipe

SM_61, SM_75, SM_89 = GpuCode(61), GpuCode(75), GpuCode(89)
SM_90A, SM_103F, SM_120A = GpuCode(90, "a"), GpuCode(103, "f"), GpuCode(120, "a")
PTX_61, PTX_89 = GpuCode(61, "", True), GpuCode(89, "", True)
FLAGS = {"": 0, "a": FLAG_SPECIFIC, "f": FLAG_FAMILY}
PACKINGS = {"plain": 0, "lz4": FLAG_LZ4, "zstd": FLAG_ZSTD}
LICENCE = b"NVIDIA lets you give these files away.\n"


def cubin(number: int, *, kernels: bool = True, abi: int = 8, more: int = 0) -> bytes:
    """Return a cubin of two or three sections; ``more`` bytes of code make it larger."""
    count = 3 if kernels else 2
    flags = number if abi == 7 else number << 8
    ident = b"\x7fELF\x02\x01\x01" + bytes([0x41, abi]) + bytes(7)
    code = b"\x90" * (16 + more) if kernels else b""
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, 64 + len(code), flags, 64, 56, 0, 64, count, 1
    )
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, 0, 0, 0, 1, 0)
    if kernels:
        sections += struct.pack("<IIQQQQIIQQ", 0, 1, 6, 0, 64, len(code), 0, 0, 1, 0)
    return header + code + sections


def ptx(name: str, *, kernels: bool = True) -> bytes:
    """Return PTX text for a target such as ``sm_61``."""
    text = f"//\n.version 8.4\n.target {name}\n.address_size 64\n"
    return (text + (".visible .entry k()\n{\nret;\n}\n" if kernels else "")).encode()


def payload(code: GpuCode, *, kernels: bool = True) -> bytes:
    """Return what really belongs to a code."""
    name = f"sm_{code.number}{code.suffix}"
    return ptx(name, kernels=kernels) if code.ptx else cubin(code.number, kernels=kernels)


def lz4(content: bytes) -> bytes:
    """Return a block of literals only."""
    count, head = len(content), b""
    if count >= 15:
        rest = count - 15
        head = b"\xff" * (rest // 255) + bytes([rest % 255])
    return bytes([min(count, 15) << 4]) + head + content


def entry(
    code: GpuCode,
    *,
    content: bytes | None = None,
    kernels: bool = True,
    packing: str = "plain",
    **lies: int,
) -> bytes:
    """Return one entry; ``lies`` replace fields of its header."""
    raw = payload(code, kernels=kernels) if content is None else content
    match packing:
        case "lz4":
            packed = lz4(raw)
        case "zstd":
            packed = zstandard.ZstdCompressor().compress(raw)
        case _:
            packed = raw
    body = packed + bytes(-len(packed) % 8)
    said = {
        "kind": KIND_PTX if code.ptx else KIND_CUBIN,
        "version": 0x101,
        "header": ENTRY.size,
        "padded": len(body),
        "packed": 0 if packing == "plain" else len(packed),
        "number": code.number,
        "flags": 0x11 | FLAGS[code.suffix] | PACKINGS[packing],
        "unpacked": 0 if packing == "plain" else len(raw),
        **lies,
    }
    return (
        ENTRY.pack(
            said["kind"], said["version"], said["header"], said["padded"], said["packed"], 0, 0, 0,
            said["number"], 0, 0, said["flags"], 0, said["unpacked"],
        )
        + body
    )  # fmt: skip


def container(
    *entries: bytes, version: int = 1, header: int = 16, size: int | None = None
) -> bytes:
    """Return a container of entries."""
    body = b"".join(entries)
    length = len(body) if size is None else size
    return CONTAINER.pack(MAGIC, version, header, length) + body


def unit(*codes: GpuCode, kernels: bool = True, packing: str = "plain") -> bytes:
    """Return the container of one translation unit."""
    return container(*(entry(c, kernels=kernels, packing=packing) for c in codes))


def with_sections(binary: bytes, sections: Mapping[str, bytes]) -> bytes:
    """Return an ELF file with sections and their table behind it."""
    names, content = b"\0", bytearray(binary)
    rows = [bytes(64)]
    for name, data in sections.items():
        content += bytes(-len(content) % 8)
        rows.append(
            struct.pack("<IIQQQQIIQQ", len(names), 1, 2, 0, len(content), len(data), 0, 0, 8, 0)
        )
        names += name.encode() + b"\0"
        content += data
    table_name = len(names)
    names += b".shstrtab\0"
    rows.append(
        struct.pack("<IIQQQQIIQQ", table_name, 3, 0, 0, len(content), len(names), 0, 0, 1, 0)
    )
    content += names
    content += bytes(-len(content) % 8)
    struct.pack_into("<Q", content, 40, len(content))
    struct.pack_into("<HHH", content, 58, 64, len(rows), len(rows) - 1)
    return bytes(content) + b"".join(rows)


def with_pe_section(binary: bytes, name: bytes, data: bytes) -> bytes:
    """Return a DLL of ``package_binaries`` with one more section."""
    content = bytearray(binary)
    count, at, size = 2, len(content), -(-len(data) // 0x200) * 0x200
    struct.pack_into("<H", content, 64 + 6, count + 1)
    row = struct.pack("<8sIIIIIIHHI", name, len(data), 0x100000, size, at, 0, 0, 0, 0, 0x40000040)
    place = 64 + 4 + 20 + 240 + count * 40
    content[place : place + 40] = row
    return bytes(content) + data + bytes(size - len(data))


def module(*units: bytes, needed: Sequence[str] = (), name: str = ".nv_fatbin") -> bytes:
    """Return a CUDA module for Linux."""
    imports = ("libggml-base.so.0", "libcuda.so.1", *needed, "libc.so.6")
    code = b"".join(units)
    return with_sections(elf(needed=imports, runpath="$ORIGIN"), {name: code} if code else {})


def windows_cuda(*units: bytes, needed: Sequence[str] = ()) -> bytes:
    """Return a CUDA module for Windows."""
    imports = ("ggml-base.dll", "nvcuda.dll", *needed)
    return with_pe_section(pe(imports=imports), b".nv_fatb", b"".join(units))


RUNTIME = ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12")
WINDOWS_RUNTIME = ("cudart64_12.dll", "cublas64_12.dll", "cublasLt64_12.dll")


def toolkit(root: Path) -> tuple[Path, ...]:
    """Write a toolkit's libraries as they lie on Linux, and return the plain names."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "EULA.txt").write_bytes(LICENCE)
    found: list[Path] = []
    for soname in RUNTIME:
        stem = soname.removesuffix(".12")
        needed = ("libcublasLt.so.12",) if soname == "libcublas.so.12" else ()
        data = elf(needed=(*needed, "libc.so.6"), soname=soname, payload=soname.encode())
        (root / f"{soname}.4.5").write_bytes(data)
        (root / soname).symlink_to(f"{soname}.4.5")
        (root / stem).symlink_to(soname)
        found.append(root / stem)
    return tuple(found)


def windows_toolkit(root: Path) -> tuple[Path, ...]:
    """Write a toolkit's DLLs."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "EULA.txt").write_bytes(LICENCE)
    for name in WINDOWS_RUNTIME:
        needed = ("CUBLASLT64_12.dll",) if name == "cublas64_12.dll" else ()
        (root / name).write_bytes(pe(imports=(*needed, "KERNEL32.dll"), payload=name.encode()))
    return tuple(root / name for name in WINDOWS_RUNTIME)


def cuda_plan(
    libraries: tuple[Path, ...],
    *codes: GpuCode,
    platform: Platform = LINUX,
    **changes: object,
) -> Plan:
    """Return a plan for the small recipe with a CUDA backend."""
    rule = BackendRule(
        backend=Backend.CUDA, targets=("ggml-cuda",), modules=("ggml-cuda",),
        allowed_imports=(
            "libcuda.so.1", "libcudart.so.*", "libcublas.so.*", "libcublasLt.so.*",
            "nvcuda.dll", "cudart64_*.dll", "cublas64_*.dll", "cublasLt64_*.dll",
        ),
    )  # fmt: skip
    small = recipe()
    cuda = CudaPlan(
        toolkit="12.4.131", codes=codes or (SM_61, SM_89), driver="525.60.13",
        driver_jit="550.54.14", compression="size", libraries=libraries,
        license=libraries[0].parent / "EULA.txt" if libraries else None,
    )  # fmt: skip
    return plan(
        platform,
        Backend.CUDA,
        recipe=replace(small, backends=(*small.backends, rule)),
        cuda=replace(cuda, **changes),  # type: ignore[arg-type]
    )


def cuda_bench(root: Path, *units: bytes, **changes: object) -> Bench:
    """Return a Linux bench whose module holds ``units``, and a toolkit to go with it."""
    made = cuda_plan(toolkit(root / "toolkit"), **changes)  # type: ignore[arg-type]
    own = module(*(units or (unit(SM_61, SM_89),)), needed=RUNTIME[:2])
    return Bench(root, made, linux_host(), {"bin/libggml-cuda.so": own})
