"""CUDA's libraries of a wheel come from NVIDIA's own distributions, found by run path."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import manifest
from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.cuda import CudaFacts
from llamawright.model.platform import Backend, Platform
from llamawright.package.wheels.runtime import Runtime, known_packages, wheel_runtime
from package_kit import LINUX, WINDOWS
from wheel_kit import facts

TWELVE = ("libcudart.so.12", "libcublas.so.12", "libcuda.so.1", "libc.so.6")
THIRTEEN = ("libcudart.so.13", "libcublas.so.13", "libcuda.so.1")


def told(toolkit: str, imports: tuple[str, ...], platform: Platform = LINUX) -> Manifest:
    return manifest(
        backend=Backend.CUDA,
        platform=platform,
        cuda=CudaFacts(toolkit=toolkit, codes=("sm_89",), driver="525.60", driver_jit=""),
        binaries=(facts("libggml-cuda.so", imports=imports), facts("libggml.so.0")),
    )


def test_cuda_12_has_a_folder_for_each_library() -> None:
    runtime = wheel_runtime(told("12.4.131", TWELVE), known_packages())
    assert runtime.requires == ("nvidia-cublas-cu12~=12.4", "nvidia-cuda-runtime-cu12~=12.4")
    assert runtime.runpath(2) == (
        "$ORIGIN",
        "$ORIGIN/../../nvidia/cuda_runtime/lib",
        "$ORIGIN/../../nvidia/cublas/lib",
    )
    assert runtime.libraries == ("libcublas.so.12", "libcudart.so.12")


def test_cuda_13_has_one_folder_for_all() -> None:
    runtime = wheel_runtime(told("13.0.48", THIRTEEN), known_packages())
    assert runtime.requires == ("nvidia-cublas~=13.0", "nvidia-cuda-runtime~=13.0")
    assert runtime.runpath(2) == ("$ORIGIN", "$ORIGIN/../../nvidia/cu13/lib")


def test_windows_names_its_libraries_otherwise() -> None:
    names = ("cudart64_12.dll", "CUBLAS64_12.dll", "nvcuda.dll")
    runtime = wheel_runtime(told("12.4.1", names, WINDOWS), known_packages())
    assert runtime.requires == ("nvidia-cublas-cu12~=12.4", "nvidia-cuda-runtime-cu12~=12.4")
    assert runtime.folders == ("nvidia/cuda_runtime/bin", "nvidia/cublas/bin")


def test_the_driver_is_never_a_dependency() -> None:
    runtime = wheel_runtime(told("12.4.131", TWELVE), known_packages())
    assert not any("libcuda." in name for name in runtime.libraries)


def test_only_what_is_imported_is_asked_for() -> None:
    runtime = wheel_runtime(told("12.4.131", TWELVE[:1]), known_packages())
    assert runtime.requires == ("nvidia-cuda-runtime-cu12~=12.4",)


@pytest.mark.parametrize("toolkit", ["14.0.1", "11.8.89"])
def test_a_cuda_whose_packages_are_not_known_is_refused(toolkit: str) -> None:
    major = toolkit.partition(".")[0]
    with pytest.raises(PackageError, match="libcudart") as caught:
        wheel_runtime(told(toolkit, (f"libcudart.so.{major}",)), known_packages())
    assert caught.value.kind == "no-runtime-package"
    assert "nvidia.toml" in caught.value.hint


def test_a_library_of_another_major_version_than_the_toolkit_is_not_guessed() -> None:
    with pytest.raises(PackageError, match=r"libcublas\.so\.13"):
        wheel_runtime(told("12.4.131", ("libcudart.so.12", "libcublas.so.13")), known_packages())


def test_other_backends_ask_for_nothing() -> None:
    assert wheel_runtime(manifest(binaries=(facts(),)), known_packages()) == Runtime()
    assert Runtime().runpath(2) == ("$ORIGIN",)


def test_every_known_package_has_a_folder_on_both_systems() -> None:
    for package in known_packages():
        for platform in (LINUX, WINDOWS):
            folder = package.folder(platform)
            assert folder.startswith("nvidia/")
            assert not Path(folder).is_absolute()
            assert ".." not in folder
