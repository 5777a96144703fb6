"""Which pinned sets fit this machine, and which stand in the store already."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from llamawright.detect.provided import provided_sets
from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Available, Rejected, Role
from llamawright.model.platform import Platform, System
from llamawright.model.toolchain import ProvidedFile, ProvidedSet, Registry
from llamawright.store import Store
from machine_kit import NO_TOOLCHAINS
from transfer_kit import Listener

FILE = ProvidedFile(
    registry=Registry.DEBIAN, package="p", version="1", location="p.deb", size=5, sha256="0" * 64
)
SET = ProvidedSet(
    name="vulkan-here",
    role=Role.VULKAN,
    version="1.4.309",
    layout="debian-prefix",
    platforms=("linux_x86_64",),
    files=(FILE, FILE),
    facts=(("glslc", "bin/glslc"),),
    digest="d" * 64,
)


def look(item: ProvidedSet, tools: Path, libc: str = "glibc 2.36") -> list[Available | Rejected]:
    around = Surroundings(
        platform=Platform(System.LINUX, "x86_64"),
        toolchains=dataclasses.replace(NO_TOOLCHAINS, sets=(item,)),
        env={},
        libc=libc,
    )
    return list(provided_sets(around, tools))


def test_a_fitting_set_is_available_with_its_size_and_place(tmp_path: Path) -> None:
    (seen,) = look(SET, tmp_path / "tools")
    assert isinstance(seen, Available)
    assert (seen.name, seen.version, seen.size) == ("vulkan-here", "1.4.309", 10)
    assert seen.root == tmp_path / "tools" / ("d" * 64)
    assert seen.fact("glslc") == "bin/glslc"
    assert not seen.present


def test_only_a_finished_set_is_present(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.shelf("tools", SET.digest).mkdir(parents=True)
    (unstamped,) = look(SET, tmp_path / "tools")
    assert isinstance(unstamped, Available)
    assert not unstamped.present
    store.materialise(
        "tools", SET.digest, make=lambda p: p.mkdir(), reporter=Listener(), label="set"
    )
    (seen,) = look(SET, tmp_path / "tools")
    assert isinstance(seen, Available)
    assert seen.present


def test_sets_of_other_platforms_do_not_show_up(tmp_path: Path) -> None:
    assert look(dataclasses.replace(SET, platforms=("windows_x86_64",)), tmp_path / "tools") == []


@pytest.mark.parametrize(
    ("needs", "libc", "reason"),
    [
        ("2.38", "glibc 2.36", "it needs glibc 2.38, this machine has 2.36"),
        ("2.9", "", "it needs glibc 2.9, this machine has another C library"),
    ],
)
def test_a_set_for_a_newer_c_library_is_refused(
    tmp_path: Path, needs: str, libc: str, reason: str
) -> None:
    (seen,) = look(dataclasses.replace(SET, glibc=needs), tmp_path / "tools", libc)
    assert isinstance(seen, Rejected)
    assert (seen.where, seen.reason) == ("provided", reason)


@pytest.mark.parametrize(
    ("needs", "libc"), [("2.9", "glibc 2.36"), ("", ""), ("2.36", "glibc 2.36")]
)
def test_versions_are_compared_as_numbers(tmp_path: Path, needs: str, libc: str) -> None:
    (seen,) = look(dataclasses.replace(SET, glibc=needs), tmp_path / "tools", libc)
    assert isinstance(seen, Available)
