"""For which machine a file is made, and why a program could not be started."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from llamawright.model.inventory import Fault

ELF_MACHINES = {
    3: "i386", 8: "mips", 20: "powerpc", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86_64",
    183: "aarch64", 243: "riscv64", 258: "loongarch64",
}  # fmt: skip
PE_MACHINES = {0x14C: "i386", 0x8664: "x86_64", 0xAA64: "aarch64"}
MACHO_MACHINES = {0x01000007: "x86_64", 0x0100000C: "aarch64"}
MACHO_MAGIC = 0xFEEDFACF
HEAD = 4096


def binary_machine(path: Path) -> str:
    """Return the machine a program or library is made for; empty when its head does not say.

    Reads ELF, PE and thin 64-bit Mach-O; the names are Linux's (``aarch64``, not ``arm64``).
    """
    with path.open("rb") as stream:
        head = stream.read(HEAD)
    try:
        return _machine(head)
    except struct.error:
        return ""


def same_machine(a: str, b: str) -> bool:
    """Whether two names mean one machine; an unknown one never differs."""
    names = {"arm64": "aarch64"}
    return not a or not b or names.get(a, a) == names.get(b, b)


def _machine(head: bytes) -> str:
    if head[:4] == b"\x7fELF":
        order = ">" if head[5:6] == b"\x02" else "<"
        (number,) = struct.unpack_from(f"{order}H", head, 18)
        return ELF_MACHINES.get(number, f"ELF machine {number}")
    if head[:2] == b"MZ":
        (place,) = struct.unpack_from("<I", head, 0x3C)
        (number,) = struct.unpack_from("<H", head, place + 4)
        return PE_MACHINES.get(number, f"PE machine {number:#x}")
    if head[:4] == struct.pack("<I", MACHO_MAGIC):
        (number,) = struct.unpack_from("<I", head, 4)
        return MACHO_MACHINES.get(number, f"Mach-O machine {number:#x}")
    return ""


def standing(path: Path, *, runs: bool) -> tuple[Fault, str] | None:
    """Return what is wrong with a file before anything is run, or ``None``.

    ``runs`` asks for the execute bit as well.
    """
    if not path.exists():
        if path.is_symlink():
            return Fault.DANGLING, f"it is a link to {path.readlink()}, which does not exist"
        return Fault.ABSENT, "it does not exist"
    if not path.is_file():
        return Fault.FAILED, "it is a folder" if path.is_dir() else "it is no plain file"
    if runs and not os.access(path, os.X_OK):
        return Fault.NOT_EXECUTABLE, "it is not executable"
    return None


def unstartable(path: Path, machine: str) -> tuple[Fault, str] | None:
    """Return why the system would not start an executable file, as far as its head tells."""
    made_for = binary_machine(path)
    if not same_machine(made_for, machine):
        return Fault.WRONG_MACHINE, f"it is made for {made_for}, this machine is {machine}"
    with path.open("rb") as stream:
        line = stream.readline(HEAD)
    if line.startswith(b"#!"):
        words = line[2:].split()
        if not words or not Path(os.fsdecode(words[0])).exists():
            wanted = os.fsdecode(words[0]) if words else "none"
            return Fault.FAILED, f"its interpreter {wanted} does not exist"
    return None
