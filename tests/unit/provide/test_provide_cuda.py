"""Wheels, Debian packages and NVIDIA's archives become one usual root, with what linking needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from cuda_fakes import (
    DEBIAN_LIB,
    OWN,
    debian_packages,
    debian_toolkit,
    redist_archives,
    redist_files,
    redist_set,
    wheel_set,
    wheels,
)
from provide_fakes import deb, write_blobs

from llamawright.errors import DownloadError, ToolMissingError
from llamawright.model.toolchain import ProvidedSet
from llamawright.provide.sets import unpack
from transfer_kit import files_below

POOL = "pool/non-free/n/nvidia-cuda-toolkit"
DEV = f"{POOL}/nvidia-cuda-dev_12.4.127_amd64.deb"
TOOLKIT = f"{POOL}/nvidia-cuda-toolkit_12.4.131_amd64.deb"


def unpacked(tmp_path: Path, provided: ProvidedSet, files: Mapping[str, bytes]) -> Path:
    root = tmp_path / "root"
    unpack(provided, write_blobs(tmp_path / "blobs", files), root)
    return root


def from_wheels(tmp_path: Path, files: Mapping[str, bytes] | None = None) -> Path:
    packed = files or wheels()
    return unpacked(tmp_path, wheel_set(packed), packed)


def from_debian(tmp_path: Path, packages: Mapping[str, bytes] | None = None) -> Path:
    packed = packages or debian_packages()
    return unpacked(tmp_path, debian_toolkit(packed), packed)


def from_redist(tmp_path: Path, platform: str) -> Path:
    archives = redist_archives(platform)
    files = redist_files(archives, "https://vendor.invalid/redist")
    provided = redist_set(files, windows=platform.startswith("windows"))
    return unpacked(tmp_path, provided, archives)


def links(root: Path) -> dict[str, str]:
    return {
        p.relative_to(root).as_posix(): p.readlink().as_posix()
        for p in sorted(root.rglob("*"))
        if p.is_symlink()
    }


def whole(root: Path) -> bool:
    """Whether a root has the usual shape."""
    parts = (
        "bin/nvcc",
        "bin/nvcc.profile",
        "nvvm/bin/cicc",
        "include/cuda.h",
        "lib64/libcudart.so",
    )
    return all((root / part).exists() for part in parts)


# --- the shape all of them have -------------------------------------------------------------


def test_wheels_become_one_root(tmp_path: Path) -> None:
    root = from_wheels(tmp_path)
    assert whole(root)
    assert (root / "nvvm/libdevice/libdevice.10.bc").is_file()
    assert (root / "bin/crt/link.stub").is_file()
    assert (root / "include/crt/host_config.h").is_file()
    assert (root / "include/cublas_v2.h").is_file()
    assert (root / "include/cccl/cub/cub.cuh").is_file()


def test_debian_becomes_one_root(tmp_path: Path) -> None:
    root = from_debian(tmp_path)
    assert whole(root)
    assert (root / "nvvm/libdevice/libdevice.10.bc").is_file()
    assert (root / "bin/crt/link.stub").is_file()
    assert (root / "include/cub/cub.cuh").is_file()
    assert sorted(p.name for p in root.iterdir()) == [
        "bin", "include", "lib", "lib64", "licenses", "nvvm",
    ]  # fmt: skip


def test_archives_become_one_root(tmp_path: Path) -> None:
    root = from_redist(tmp_path, "linux-x86_64")
    assert whole(root)
    assert (root / "include/cub/cub.cuh").is_file()
    assert (root / "lib/libcublas.so.12").resolve().read_bytes() == b"cublas"


def test_windows_archives_become_one_root(tmp_path: Path) -> None:
    root = from_redist(tmp_path, "windows-x86_64")
    found = set(files_below(root))
    assert {
        "bin/nvcc.exe",
        "bin/cudart64_12.dll",
        "bin/cublas64_12.dll",
        "nvvm/bin/cicc.exe",
        "lib/x64/cuda.lib",
        "lib/x64/cudart.lib",
        "lib/x64/cublas.lib",
        "include/cub/cub.cuh",
    } <= found
    assert links(root) == {}
    assert not (root / "lib64").exists()
    assert not (root / "lib/stubs").exists()


# --- run bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["bin/nvcc", "bin/ptxas", "nvvm/bin/cicc"])
def test_programs_from_wheels_get_their_run_bits(tmp_path: Path, program: str) -> None:
    # zip_of packs them as 0644, as some of NVIDIA's wheels do.
    assert os.access(from_wheels(tmp_path) / program, os.X_OK)


@pytest.mark.parametrize("name", ["bin/nvcc.profile", "bin/crt/link.stub"])
def test_what_is_no_program_gets_none(tmp_path: Path, name: str) -> None:
    assert not os.access(from_wheels(tmp_path) / name, os.X_OK)


# --- names that linking needs ---------------------------------------------------------------


def test_plain_names_are_relative_links(tmp_path: Path) -> None:
    assert links(from_wheels(tmp_path)) == {
        "lib/libcublas.so": "libcublas.so.13",
        "lib/libcublasLt.so": "libcublasLt.so.13",
        "lib/libcudart.so": "libcudart.so.13",
        "lib64": "lib",
    }


def test_plain_names_that_are_there_are_kept(tmp_path: Path) -> None:
    found = links(from_redist(tmp_path, "linux-x86_64"))
    assert found["lib/libcudart.so"] == "libcudart.so.12"
    assert found["lib/libcublas.so"] == "libcublas.so.12"
    assert found["lib/libcublas.so.12"] == "libcublas.so.12.9.1.4"


def test_debian_links_reach_the_libraries_of_other_packages(tmp_path: Path) -> None:
    root = from_debian(tmp_path)
    for name in ("cudart", "cublas", "cublasLt"):
        assert (root / f"lib64/lib{name}.so").resolve().read_bytes() == name.encode()
    assert not any(Path(target).is_absolute() for target in links(root).values())


@pytest.mark.parametrize("make", [from_wheels, from_debian])
def test_root_can_be_moved(tmp_path: Path, make: object) -> None:
    assert callable(make)
    root = make(tmp_path)
    moved = tmp_path / "another place" / "toolkit"
    moved.parent.mkdir()
    shutil.move(root, moved)
    assert whole(moved)
    for name in links(moved):
        assert (moved / name).exists()
        assert (moved / name).resolve().is_relative_to(moved.resolve())


# --- the driver's stub ----------------------------------------------------------------------


def test_wheels_get_a_stub_of_the_driver(tmp_path: Path) -> None:
    stub = (from_wheels(tmp_path) / "lib/stubs/libcuda.so").read_bytes()
    assert stub.startswith(b"\x7fELF")
    assert b"libcuda.so.1\0" in stub
    assert b"cuMemAlloc_v2\0" in stub


@pytest.mark.parametrize("platform", ["debian", "linux-x86_64"])
def test_a_stub_that_the_packages_bring_is_kept(tmp_path: Path, platform: str) -> None:
    root = from_debian(tmp_path) if platform == "debian" else from_redist(tmp_path, platform)
    assert (root / "lib/stubs/libcuda.so").read_text() == "NVIDIA's stub"


def test_wheels_without_the_drivers_header(tmp_path: Path) -> None:
    files = wheels(nvidia_cuda_runtime={"nvidia/cu13/include/cuda.h": None})
    with pytest.raises(ToolMissingError, match=r"lacks include/cuda\.h") as caught:
        from_wheels(tmp_path, files)
    assert caught.value.kind == "incomplete-set"


# --- only what is needed --------------------------------------------------------------------


def test_wheels_without_what_is_not_needed(tmp_path: Path) -> None:
    found = files_below(from_wheels(tmp_path))
    assert [n for n, data in found.items() if data == b"not needed"] == []
    assert "lib/libcudart_static.a" in found
    assert "lib/libcudadevrt.a" in found


def test_debian_without_what_is_not_needed(tmp_path: Path) -> None:
    root = from_debian(tmp_path)
    found = files_below(root)
    assert [n for n, data in found.items() if b"not needed" in data] == []
    assert "lib/libcudart_static.a" in found
    assert "lib/libcudadevrt.a" in found
    assert not (root / "include/cuda-gdb").exists()
    assert "lib/libnppc.so" not in links(root)


@pytest.mark.parametrize("platform", ["linux-x86_64", "windows-x86_64"])
def test_archives_without_what_is_not_needed(tmp_path: Path, platform: str) -> None:
    found = files_below(from_redist(tmp_path, platform))
    assert [n for n, data in found.items() if data == b"not needed"] == []
    static = "lib/x64/cudart_static.lib" if "windows" in platform else "lib/libcudart_static.a"
    assert static in found


# --- Debian's own profile -------------------------------------------------------------------


def test_debian_profile_names_places_by_nvccs_own(tmp_path: Path) -> None:
    profile = from_debian(tmp_path) / "bin/nvcc.profile"
    assert not profile.is_symlink()
    text = profile.read_text()
    assert "/usr" not in text
    assert "TOP = $(_HERE_)/.." in text
    assert "$(TOP)/nvvm/bin" in text
    assert '"-I$(TOP)/include"' in text
    assert '"-L$(TOP)/lib/stubs"' in text


def test_debian_nvcc_is_the_program_not_the_wrapper(tmp_path: Path) -> None:
    assert "exec /usr" not in (from_debian(tmp_path) / "bin/nvcc").read_text()


def test_nvidias_profile_is_kept(tmp_path: Path) -> None:
    assert (from_wheels(tmp_path) / "bin/nvcc.profile").read_text() == "TOP = $(_HERE_)/..\n"


# --- licences -------------------------------------------------------------------------------


def test_every_wheels_licence_is_kept(tmp_path: Path) -> None:
    root = from_wheels(tmp_path)
    assert sorted(p.name for p in (root / "licenses").iterdir()) == [
        "nvidia-cublas",
        "nvidia-cuda-cccl",
        "nvidia-cuda-crt",
        "nvidia-cuda-nvcc",
        "nvidia-cuda-runtime",
        "nvidia-nvvm",
    ]
    assert (root / "licenses/nvidia-cuda-nvcc/License.txt").read_text() == "EULA"


def test_debian_licences_are_kept_without_other_documentation(tmp_path: Path) -> None:
    root = from_debian(tmp_path)
    assert (root / "licenses/nvidia-cuda-toolkit/copyright").read_text() == "EULA"
    assert (root / "licenses/libcub-dev/copyright").read_text() == "BSD"
    assert not (root / "licenses/nvidia-cuda-toolkit/README.Debian").exists()


@pytest.mark.parametrize("platform", ["linux-x86_64", "windows-x86_64"])
def test_archives_have_one_licence(tmp_path: Path, platform: str) -> None:
    root = from_redist(tmp_path, platform)
    assert [p.relative_to(root).as_posix() for p in root.glob("licenses/*/*")] == [
        "licenses/cuda_nvcc/LICENSE"
    ]


def test_wheel_without_a_licence(tmp_path: Path) -> None:
    info = "nvidia_cublas-13.0.88.dist-info/licenses/License.txt"
    with pytest.raises(DownloadError, match="was not unpacked"):
        from_wheels(tmp_path, wheels(nvidia_cublas={info: None}))


# --- sets that do not belong together -------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (f"{POOL}/libcublas12_12.4_amd64.deb", None),
        (DEV, "lacks include/cuda.h"),
        (TOOLKIT, "lacks usr/bin/__nvcc_device_query"),
    ],
)
def test_debian_set_without_a_package(tmp_path: Path, missing: str, named: str | None) -> None:
    packages = {k: v for k, v in debian_packages().items() if k != missing}
    if named is None:
        # The proof finds it: every stated path must be there.
        assert not (from_debian(tmp_path, packages) / "lib/libcublas.so.12").exists()
        return
    with pytest.raises(ToolMissingError, match=named) as caught:
        from_debian(tmp_path, packages)
    assert caught.value.kind == "incomplete-set"
    assert "renew all of them" in caught.value.hint


def test_debian_package_without_cicc(tmp_path: Path) -> None:
    packages = debian_packages()
    packages[TOOLKIT] = deb({f"./{OWN}/bin/nvcc": "#!/bin/sh\n"})
    with pytest.raises(ToolMissingError, match="lacks"):
        from_debian(tmp_path, packages)


def test_wheel_of_another_release(tmp_path: Path) -> None:
    files = wheels()
    provided = replace(wheel_set(files), version="14.0.1")
    with pytest.raises(DownloadError) as caught:
        unpacked(tmp_path, provided, files)
    assert caught.value.kind == "unsafe-archive"
    assert "nvidia/cu14" in caught.value.why


def test_two_wheels_with_the_same_file(tmp_path: Path) -> None:
    files = wheels(nvidia_cublas={"nvidia/cu13/include/cuda.h": b"another"})
    with pytest.raises(DownloadError, match="was not unpacked") as caught:
        from_wheels(tmp_path, files)
    assert "is there already" in caught.value.why


def test_two_debian_packages_with_the_same_file(tmp_path: Path) -> None:
    packages = debian_packages()
    packages["pool/x/x_1_amd64.deb"] = deb({f"./{DEBIAN_LIB}/libcublas.so.12.4.5": "another"})
    with pytest.raises(DownloadError, match="was not unpacked"):
        from_debian(tmp_path, packages)
