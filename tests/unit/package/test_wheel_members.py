"""Which files go into a wheel: no links, no doubles, no drivers, every import answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli_kit import manifest
from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.package.wheels.members import is_driver, wheel_members
from wheel_kit import entry, facts

FILES = (
    entry("bin/tiny-cli", b"cli", runs=True),
    entry("bin/libtiny.so.0", b"lib", runs=True),
    entry("bin/libtiny.so", b"lib", link="libtiny.so.0"),
    entry("bin/libggml-vulkan.so", b"module", runs=True),
    entry("licenses/LICENSE", b"text"),
    entry("licenses/vendor/x/LICENSE", b"text"),
)
BINARIES = (
    facts("tiny-cli", imports=("libtiny.so.0", "libc.so.6")),
    facts("libtiny.so.0", imports=("libc.so.6",), soname="libtiny.so.0"),
    facts("libggml-vulkan.so", imports=("libtiny.so.0", "libvulkan.so.1")),
)
SYSTEM = ("libc.so.6", "libvulkan.so.1")


def told(**changes: object) -> Manifest:
    base = manifest(files=FILES, binaries=BINARIES, system_libraries=SYSTEM, programs=("tiny-cli",))
    return replace(base, **changes)  # type: ignore[arg-type]


def test_a_library_goes_in_once_under_its_soname() -> None:
    members = wheel_members(told(), ())
    assert members.binaries == ("bin/tiny-cli", "bin/libtiny.so.0", "bin/libggml-vulkan.so")


def test_programs_are_told_from_libraries_and_texts() -> None:
    members = wheel_members(told(), ())
    assert members.programs == ("bin/tiny-cli",)
    assert members.licenses == ("licenses/LICENSE", "licenses/vendor/x/LICENSE")


def test_two_names_of_one_library_are_refused() -> None:
    """Without links three equal files would be loaded as three libraries (cases P4)."""
    copies = tuple(entry(f"bin/libtiny.so{end}", b"lib") for end in ("", ".0", ".0.1"))
    with pytest.raises(PackageError, match="1 fault") as caught:
        wheel_members(told(files=(FILES[0], *copies)), ())
    assert caught.value.kind == "identical-files"
    assert "libtiny.so.0.1" in caught.value.why


def test_an_import_that_only_a_link_answered_is_refused() -> None:
    binaries = (facts("tiny-cli", imports=("libtiny.so",)), *BINARIES[1:])
    with pytest.raises(PackageError, match="libtiny") as caught:
        wheel_members(told(binaries=binaries, name="libtiny"), ())
    assert caught.value.kind == "unresolved-import"
    assert "bin/tiny-cli: it needs libtiny.so," in caught.value.why


def test_an_import_that_another_wheel_brings_is_answered() -> None:
    binaries = (*BINARIES, facts("libggml-cuda.so", imports=("libcudart.so.12",)))
    with pytest.raises(PackageError):
        wheel_members(told(binaries=binaries), ())
    assert wheel_members(told(binaries=binaries), ("libcudart.so.12",)).programs


def test_apples_placeholders_are_looked_through() -> None:
    binaries = (facts("tiny-cli", imports=("@rpath/libtiny.so.0",)),)
    assert wheel_members(told(binaries=binaries), ()).binaries


def test_every_fault_is_told_at_once() -> None:
    files = (*FILES, entry("bin/libcuda.so.1", b"driver"), entry("bin/again", b"lib"))
    with pytest.raises(PackageError, match="2 faults") as caught:
        wheel_members(told(files=files), ())
    assert caught.value.kind == "audit"
    assert {"[driver-library]", "[identical-files]"} <= set(caught.value.why.split())


@pytest.mark.parametrize(
    "name",
    [
        "libcuda.so.1", "libcuda.so.570.86", "libnvidia-ml.so.1", "libvulkan.so.1", "vulkan-1.dll",
        "libGL.so.1", "libGLX_mesa.so.0", "libEGL.so.1", "libOpenCL.so.1", "nvcuda.dll",
    ],
)  # fmt: skip
def test_drivers_and_their_loaders_are_known(name: str) -> None:
    assert is_driver(name)


@pytest.mark.parametrize(
    "name",
    ["libggml-vulkan.so", "libggml-cuda.so", "libcudart.so.12", "libcublas.so.13", "llama"],
)
def test_modules_and_runtime_libraries_are_no_drivers(name: str) -> None:
    assert not is_driver(name)
