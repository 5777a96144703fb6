"""What doctor says about running Vulkan here (case R2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.detect.loader import manifests, usable_vulkan_drivers, vulkan_notes
from llamawright.model.platform import Platform, System
from machine_kit import Machine, stand_up

LINUX = Platform(System.LINUX, "x86_64")


def notes(machine: Machine, **env: str) -> str:
    return "\n".join(vulkan_notes({**machine.env, **env}, LINUX, root=machine.root))


def test_without_a_loader_both_lacks_are_told(tmp_path: Path) -> None:
    told = notes(stand_up("drivers", "nothing", tmp_path))
    assert "no Vulkan loader (libvulkan.so.1)" in told
    assert "no Vulkan driver (ICD)" in told


def test_a_loader_with_an_empty_folder_of_drivers(tmp_path: Path) -> None:
    told = notes(stand_up("drivers", "no-driver", tmp_path))
    assert "no Vulkan loader" not in told
    assert "no Vulkan driver (ICD)" in told


def test_drivers_are_named_whether_by_path_or_by_library(tmp_path: Path) -> None:
    told = notes(stand_up("drivers", "mesa", tmp_path))
    assert told == "Vulkan drivers (ICD): nvidia_icd.json, lvp_icd.x86_64.json"


def test_only_drivers_with_a_library_are_usable(tmp_path: Path) -> None:
    for name, expected in (("mesa", ["nvidia_icd.json", "lvp_icd.x86_64.json"]), ("damaged", [])):
        machine = stand_up("drivers", name, tmp_path / name)
        usable = usable_vulkan_drivers(machine.env, LINUX, root=machine.root)
        assert [p.name for p in usable] == expected
    assert usable_vulkan_drivers({}, Platform(System.WINDOWS, "x86_64")) == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone.json", "it names /gone/libvulkan_gone.so, which does not exist"),
        ("nowhere.json", "it names libvulkan_nowhere.so, which is in no library folder"),
        ("text.json", "it is no driver manifest"),
        ("number.json", "it is no driver manifest"),
    ],
)
def test_damaged_drivers_are_told(tmp_path: Path, name: str, said: str) -> None:
    told = notes(stand_up("drivers", "damaged", tmp_path))
    assert f"{name}: {said}" in told
    assert "no Vulkan driver (ICD)" in told


def test_variables_that_choose_drivers_are_told_and_followed(tmp_path: Path) -> None:
    machine = stand_up("drivers", "mesa", tmp_path)
    named = tmp_path / "mine.json"
    told = notes(machine, VK_DRIVER_FILES=str(named))
    assert f"VK_DRIVER_FILES is set: {named}" in told
    assert f"{named}: it cannot be read" in told
    assert "lvp_icd" not in told


def test_the_newer_variable_wins(tmp_path: Path) -> None:
    env = {"VK_DRIVER_FILES": "/a.json", "VK_ICD_FILENAMES": "/b.json"}
    assert manifests(env, root=tmp_path) == (Path("/a.json"),)


def test_added_drivers_come_before_the_systems(tmp_path: Path) -> None:
    machine = stand_up("drivers", "mesa", tmp_path)
    own = tmp_path / "own.json"
    own.write_text("{}")
    found = manifests({**machine.env, "VK_ADD_DRIVER_FILES": str(own)}, root=tmp_path)
    assert [p.name for p in found] == ["own.json", "nvidia_icd.json", "lvp_icd.x86_64.json"]


def test_a_folder_may_be_named(tmp_path: Path) -> None:
    stand_up("drivers", "mesa", tmp_path)
    folder = tmp_path / "usr/share/vulkan/icd.d"
    assert [p.name for p in manifests({"VK_DRIVER_FILES": str(folder)})] == ["lvp_icd.x86_64.json"]


def test_the_users_own_folders_count(tmp_path: Path) -> None:
    machine = stand_up("drivers", "no-driver", tmp_path)
    own = tmp_path / "home/.local/share/vulkan/icd.d/own.json"
    own.parent.mkdir(parents=True)
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libvulkan.so.1"
    own.write_text('{"ICD": {"library_path": "%s"}}' % library)  # noqa: UP031 - braces
    assert notes(machine) == "Vulkan drivers (ICD): own.json"


def test_other_systems_are_left_to_their_own_tools(tmp_path: Path) -> None:
    assert vulkan_notes({}, Platform(System.MACOS, "arm64"), root=tmp_path) == ()
