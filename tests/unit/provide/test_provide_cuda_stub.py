"""The stub of the driver is a library that linkers take, the same on every machine."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import lief
import pytest
from cuda_fakes import CUDA_H

from llamawright.provide.cuda_stub import CODE, driver_stub

NAMES = {"cuGetErrorString", "cuMemAlloc", "cuMemAlloc_v2", "cuDeviceGet"}
compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no linker here")


@pytest.fixture
def parsed(tmp_path: Path) -> lief.ELF.Binary:
    path = tmp_path / "libcuda.so"
    path.write_bytes(driver_stub(CUDA_H))
    binary = lief.ELF.parse(str(path))
    assert binary is not None
    return binary


def test_it_is_a_shared_library_for_x86_64(parsed: lief.ELF.Binary) -> None:
    assert parsed.header.file_type == lief.ELF.Header.FILE_TYPE.DYN
    assert parsed.header.machine_type == lief.ELF.ARCH.X86_64


def test_it_has_the_drivers_name(parsed: lief.ELF.Binary) -> None:
    names = [e.name for e in parsed.dynamic_entries if isinstance(e, lief.ELF.DynamicSharedObject)]
    assert names == ["libcuda.so.1"]


def test_it_has_every_function_of_the_header(parsed: lief.ELF.Binary) -> None:
    found = {str(s.name) for s in parsed.exported_symbols}
    assert found == NAMES


def test_types_and_other_libraries_are_no_functions(parsed: lief.ELF.Binary) -> None:
    found = {str(s.name) for s in parsed.exported_symbols}
    assert not found & {"CUresult", "CUDAAPI", "cudaError_enum", "CUdevice"}


def test_its_functions_say_that_it_is_a_stub(parsed: lief.ELF.Binary) -> None:
    text = parsed.get_section(".text")
    assert text is not None
    assert bytes(text.content) == CODE
    # CUDA_ERROR_STUB_LIBRARY
    assert struct.unpack_from("<I", CODE, 1) == (34,)


def test_it_needs_nothing(parsed: lief.ELF.Binary) -> None:
    assert list(parsed.libraries) == []


def test_it_is_always_the_same() -> None:
    shuffled = "\n".join(reversed(CUDA_H.splitlines()))
    assert driver_stub(CUDA_H) == driver_stub(shuffled)
    assert driver_stub(CUDA_H) != driver_stub(CUDA_H + "CUresult cuNew(void);")


@pytest.mark.parametrize("header", ["", "int main;", "\udc80 cuInit\n", "cuInit" * 10])
def test_odd_headers_make_a_library_all_the_same(tmp_path: Path, header: str) -> None:
    path = tmp_path / "libcuda.so"
    path.write_bytes(driver_stub(header))
    assert lief.ELF.parse(str(path)) is not None


@compiler
@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
def test_linkers_take_it(tmp_path: Path, linker: str) -> None:
    if shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"no ld.{linker} here")
    (tmp_path / "libcuda.so").write_bytes(driver_stub(CUDA_H))
    source = tmp_path / "user.c"
    source.write_text("int cuDeviceGet(void *, int); int f(void) { return cuDeviceGet(0, 0); }\n")
    made = _link(tmp_path, linker, "-lcuda")
    assert made.returncode == 0, made.stderr
    user = lief.ELF.parse(str(tmp_path / "libuser.so"))
    assert user is not None
    assert "libcuda.so.1" in user.libraries


@compiler
def test_what_it_lacks_is_not_linked(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so").write_bytes(driver_stub(CUDA_H))
    (tmp_path / "user.c").write_text("int cuAbsent(void); int f(void) { return cuAbsent(); }\n")
    made = _link(tmp_path, "bfd", "-lcuda")
    assert made.returncode != 0
    assert "cuAbsent" in made.stderr


def _link(folder: Path, linker: str, *libraries: str) -> subprocess.CompletedProcess[str]:
    # -z defs: every name must be found now, as in no other test of a shared library.
    command = ["gcc", f"-fuse-ld={linker}", "-shared", "-fPIC", "-Wl,-z,defs", "user.c", "-L."]
    return subprocess.run(
        [*command, *libraries, "-o", "libuser.so"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
