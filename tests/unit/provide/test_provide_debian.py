"""Packages become one prefix: what is wanted, a wrapper that finds it, one driver alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from provide_fakes import (
    GLSLC,
    LIB,
    LOADER,
    deb,
    debian_set,
    driver_set,
    vulkan_set,
    write_blobs,
)

from llamawright.errors import DownloadError, ToolMissingError
from llamawright.model.inventory import Role
from llamawright.model.toolchain import ProvidedSet
from llamawright.process import ask
from llamawright.provide.debian import unpack_driver, unpack_prefix
from llamawright.provide.glslc import prove_glslc


def unpacked(tmp_path: Path) -> Path:
    provided, packages = vulkan_set()
    root = tmp_path / "prefix"
    unpack_prefix(provided, write_blobs(tmp_path / "blobs", packages), root)
    return root


def small_set(packages: Mapping[str, bytes]) -> ProvidedSet:
    return debian_set(packages, name="small", role=Role.VULKAN, layout="debian-prefix")


def test_wanted_parts_only(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    assert (root / "usr/include/vulkan/vulkan_core.h").is_file()
    assert (root / "usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake").is_file()
    assert (root / "usr/share/doc/glslc/copyright").read_text() == "Apache-2.0"
    assert not (root / "usr/share/man").exists()


def test_links_between_packages_hold(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    assert (root / LIB / "libvulkan.so").resolve() == (root / LIB / "libvulkan.so.1").resolve()
    loader = root / "usr/lib64/ld-linux-x86-64.so.2"
    assert not loader.readlink().is_absolute()
    assert loader.resolve() == (root / LIB / "ld-linux-x86-64.so.2").resolve()


def test_wrapper_runs_glslc_through_the_prefix(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    assert prove_glslc(root / "bin/glslc") == "2025.2"


def test_wrapper_passes_arguments_on_unchanged(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    (root / "usr/bin/glslc").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    arguments = ["a b", "", "$HOME", "*", "--x=1;2"]
    done = ask((str(root / "bin/glslc"), *arguments))
    assert done.stdout == "<a b><><$HOME><*><--x=1;2>"


def test_wrapper_passes_the_exit_status_on(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    (root / "usr/bin/glslc").write_text("#!/bin/sh\nexit 7\n")
    assert ask((str(root / "bin/glslc"),)).returncode == 7


def test_prefix_can_be_moved(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    moved = tmp_path / "another place" / "prefix"
    moved.parent.mkdir()
    shutil.move(root, moved)
    assert prove_glslc(moved / "bin/glslc") == "2025.2"


def test_wrapper_gives_the_loader_the_prefixs_own_libraries(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    (root / LIB / "ld-linux-x86-64.so.2").write_text('#!/bin/sh\necho "$1" "$2"\n')
    done = ask((str(root / "bin/glslc"),))
    option, folder = done.stdout.split()
    assert option == "--library-path"
    assert Path(folder).resolve() == (root / LIB).resolve()


def test_prefix_without_a_c_library(tmp_path: Path) -> None:
    packages = {"pool/glslc_1_amd64.deb": deb({"./usr/bin/glslc": GLSLC})}
    with pytest.raises(ToolMissingError, match="lacks a program loader") as caught:
        unpack_prefix(
            small_set(packages), write_blobs(tmp_path / "b", packages), tmp_path / "prefix"
        )
    assert caught.value.kind == "incomplete-set"


def test_prefix_without_glslc(tmp_path: Path) -> None:
    packages = {"pool/libc6_1_amd64.deb": deb({f"./{LIB}/ld-linux-x86-64.so.2": LOADER})}
    with pytest.raises(ToolMissingError, match=r"lacks usr/bin/glslc"):
        unpack_prefix(
            small_set(packages), write_blobs(tmp_path / "b", packages), tmp_path / "prefix"
        )


def test_two_packages_with_the_same_file(tmp_path: Path) -> None:
    packages = {
        "pool/a_1_amd64.deb": deb({f"./{LIB}/same.so": "a"}),
        "pool/b_1_amd64.deb": deb({f"./{LIB}/same.so": "b"}),
    }
    with pytest.raises(DownloadError) as caught:
        unpack_prefix(small_set(packages), write_blobs(tmp_path / "b", packages), tmp_path / "p")
    assert caught.value.kind == "unsafe-archive"


@pytest.mark.parametrize(
    "package",
    [
        deb({"./usr/lib/../../../escape": "x"}),
        deb({}, links={"./usr/lib/out": "../../../../etc/passwd"}),
        b"!<arch>\ncut short",
        b"<!doctype html>",
    ],
    ids=["climbs", "link", "cut", "html"],
)
def test_hostile_packages_write_nothing_outside(tmp_path: Path, package: bytes) -> None:
    packages = {"pool/evil_1_amd64.deb": package}
    with pytest.raises(DownloadError):
        unpack_prefix(
            small_set(packages), write_blobs(tmp_path / "b", packages), tmp_path / "in" / "prefix"
        )
    assert not (tmp_path / "escape").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "in"]


# --- driver ---------------------------------------------------------------------------------


def driver(tmp_path: Path) -> Path:
    provided, packages = driver_set()
    root = tmp_path / "driver"
    unpack_driver(provided, write_blobs(tmp_path / "blobs", packages), root)
    return root


def test_only_the_software_driver_is_kept(tmp_path: Path) -> None:
    root = driver(tmp_path)
    icds = [p.name for p in root.glob("usr/share/vulkan/icd.d/*")]
    assert icds == ["lvp_icd.x86_64.json"]
    assert [p.name for p in (root / LIB).iterdir()] == ["libvulkan_lvp.so"]


def test_libraries_beside_the_driver_are_kept(tmp_path: Path) -> None:
    assert (driver(tmp_path) / "lib/x86_64-linux-gnu/libtinfo.so.6").is_file()


def test_driver_programs_are_left_out(tmp_path: Path) -> None:
    assert not (driver(tmp_path) / "usr/bin").exists()


def test_icd_file_names_its_library_relative_to_itself(tmp_path: Path) -> None:
    root = driver(tmp_path)
    icd = root / "usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
    data = json.loads(icd.read_text())
    path = data["ICD"]["library_path"]
    assert path.startswith("../")
    assert (icd.parent / path).resolve() == (root / LIB / "libvulkan_lvp.so").resolve()
    assert data["ICD"]["api_version"] == "1.1.230"


def test_set_without_a_software_driver(tmp_path: Path) -> None:
    provided, packages = driver_set()
    location = "pool/main/n/ncurses/libtinfo6_1_amd64.deb"
    only = {location: packages[location]}
    file = next(f for f in provided.files if f.location == location)
    small = replace(provided, files=(file,))
    with pytest.raises(ToolMissingError, match="software driver's ICD file"):
        unpack_driver(small, write_blobs(tmp_path / "b", only), tmp_path / "driver")


def test_icd_file_whose_library_is_missing(tmp_path: Path) -> None:
    icd = '{"ICD": {"library_path": "/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so"}}'
    packages = {"pool/m_1_amd64.deb": deb({"./usr/share/vulkan/icd.d/lvp_icd.x86_64.json": icd})}
    provided = debian_set(packages, name="d", role=Role.DRIVER, layout="debian-driver")
    with pytest.raises(ToolMissingError, match="ICD file"):
        unpack_driver(provided, write_blobs(tmp_path / "b", packages), tmp_path / "driver")
