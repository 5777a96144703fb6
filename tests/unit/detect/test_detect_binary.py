"""Heads of programs and libraries, and why a program would not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.detect.binary import binary_machine, same_machine, standing, unstartable
from llamawright.model.inventory import Fault
from machine_kit import binary_head


@pytest.mark.parametrize(
    ("machine", "form", "told"),
    [
        ("x86_64", "elf", "x86_64"),
        ("aarch64", "elf", "aarch64"),
        ("i386", "elf", "i386"),
        ("x86_64", "pe", "x86_64"),
        ("arm64", "pe", "aarch64"),
        ("arm64", "mach-o", "aarch64"),
        ("x86_64", "mach-o", "x86_64"),
    ],
)
def test_the_head_names_the_machine(tmp_path: Path, machine: str, form: str, told: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(binary_head(machine, form))
    assert binary_machine(path) == told


def test_a_big_endian_head_is_read_in_its_own_order(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x7fELF\x02\x02\x01" + bytes(11) + b"\x00\x16" + bytes(40))
    assert binary_machine(path) == "s390x"


def test_an_unheard_of_machine_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x99\x99" + bytes(40))
    assert binary_machine(path) == "ELF machine 39321"


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"MZ", b"MZ" + bytes(70), b"#!/bin/sh\n", b"INPUT(x)"]
)
def test_other_files_and_cut_ones_say_nothing(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    told = binary_machine(path)
    assert told in ("", "PE machine 0x0")


def test_two_names_of_one_machine_are_equal() -> None:
    assert same_machine("arm64", "aarch64")
    assert same_machine("", "x86_64")
    assert not same_machine("i386", "x86_64")


def test_what_stands_wrong_is_told_before_it_is_run(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    dangling = tmp_path / "dangling"
    dangling.symlink_to("gone")
    assert standing(tmp_path / "absent", runs=True) == (Fault.ABSENT, "it does not exist")
    assert standing(dangling, runs=True) == (
        Fault.DANGLING,
        "it is a link to gone, which does not exist",
    )
    assert standing(tmp_path, runs=True) == (Fault.FAILED, "it is a folder")
    assert standing(Path("/dev/null"), runs=False) == (Fault.FAILED, "it is no plain file")
    assert standing(file, runs=True) == (Fault.NOT_EXECUTABLE, "it is not executable")
    assert standing(file, runs=False) is None
    file.chmod(0o755)
    assert standing(file, runs=True) is None


def test_a_loop_of_links_is_dangling(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    wrong = standing(tmp_path / "a", runs=True)
    assert wrong is not None
    assert wrong[0] is Fault.DANGLING


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (binary_head("aarch64"), "it is made for aarch64, this machine is x86_64"),
        (b"#!/gone/python3\n", "its interpreter /gone/python3 does not exist"),
        (b"#!\n", "its interpreter none does not exist"),
    ],
)
def test_the_head_tells_why_it_does_not_start(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    told = unstartable(path, "x86_64")
    assert told is not None
    assert told[1] == reason


@pytest.mark.parametrize("data", [binary_head("x86_64"), b"#!/bin/sh\n", b""])
def test_a_head_in_order_tells_nothing(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert unstartable(path, "x86_64") is None
