"""Device code as a module holds it: every kind, compression and section, and real samples."""

from __future__ import annotations

import base64
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from fatbin_kit import (
    PTX_61,
    PTX_89,
    SM_61,
    SM_75,
    SM_89,
    SM_90A,
    SM_103F,
    SM_120A,
    container,
    cubin,
    entry,
    module,
    unit,
    windows_cuda,
    with_sections,
)
from llamawright.model.cuda import GpuCode, parse_code
from llamawright.package.fatbin import DeviceCode, read_codes, read_device_code
from llamawright.package.fatbin_payload import lz4_start
from package_binaries import elf, pe

FAKES = Path(__file__).resolve().parents[2] / "fakes" / "fatbins.toml"
RECORDED = tomllib.loads(FAKES.read_text(encoding="utf-8"))
NVCC = shutil.which("nvcc")


def written(root: Path, content: bytes) -> Path:
    path = root / "libggml-cuda.so"
    path.write_bytes(content)
    return path


def names(codes: tuple[GpuCode, ...]) -> list[str]:
    return [code.name for code in codes]


class TestCodes:
    @pytest.mark.parametrize("packing", ["plain", "lz4", "zstd"])
    @pytest.mark.parametrize(
        "codes",
        [
            (SM_75,), (SM_61, SM_89), (SM_90A,), (SM_103F,), (SM_120A,), (PTX_89,),
            (SM_61, SM_89, PTX_89), (SM_61, PTX_61), (SM_90A, GpuCode(90)),
        ],
    )  # fmt: skip
    def test_what_was_compiled_is_read(
        self, tmp_path: Path, codes: tuple[GpuCode, ...], packing: str
    ) -> None:
        path = written(tmp_path, module(unit(*codes, packing=packing)))
        assert set(read_codes(path)) == set(codes)

    def test_machine_code_first_then_by_number(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(unit(PTX_61, SM_120A, SM_61, GpuCode(120))))
        assert names(read_codes(path)) == ["sm_61", "sm_120", "sm_120a", "compute_61"]

    def test_names_lead_back_to_the_codes(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(unit(SM_61, SM_90A, SM_103F, PTX_89)))
        found = read_codes(path)
        assert tuple(parse_code(name) for name in names(found)) == found

    def test_one_code_twice_in_a_container_is_one(self, tmp_path: Path) -> None:
        assert read_codes(written(tmp_path, module(unit(SM_61, SM_61)))) == (SM_61,)

    @pytest.mark.parametrize("abi", [7, 8])
    def test_cubins_of_both_abis(self, tmp_path: Path, abi: int) -> None:
        made = container(entry(SM_89, content=cubin(89, abi=abi)))
        assert read_codes(written(tmp_path, module(made))) == (SM_89,)

    def test_a_cubin_of_an_abi_to_come_is_believed(self, tmp_path: Path) -> None:
        made = container(entry(SM_89, content=cubin(7, abi=9)))
        assert read_codes(written(tmp_path, module(made))) == (SM_89,)

    def test_no_device_code(self, tmp_path: Path) -> None:
        path = written(tmp_path, with_sections(elf(), {".text": b"x"}))
        assert read_device_code(path) == DeviceCode()
        assert read_codes(path) == ()

    def test_an_empty_container_says_nothing(self, tmp_path: Path) -> None:
        """A device link of PTX alone leaves one."""
        path = written(tmp_path, module(container(), unit(PTX_89)))
        assert read_device_code(path).linked == (frozenset({PTX_89}),)

    def test_zeros_between_containers(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(unit(SM_61), bytes(24), unit(SM_61), bytes(8)))
        assert read_device_code(path).linked == (frozenset({SM_61}),) * 2

    def test_intermediate_code_is_none_that_runs(self, tmp_path: Path) -> None:
        """``code=lto_75`` alone: no driver can choose it."""
        path = written(tmp_path, module(container(entry(SM_75, kind=8))))
        assert read_codes(path) == ()

    def test_intermediate_code_in_one_unit_is_a_loss(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(unit(SM_75), container(entry(SM_75, kind=8))))
        assert read_codes(path) == ()
        assert read_device_code(path).partial == ((SM_75, 1),)


class TestPartial:
    def test_a_code_of_some_kernels_only_is_counted(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(*[unit(SM_61, SM_89)] * 8, *[unit(SM_89)] * 2))
        found = read_device_code(path)
        assert found.compiled == (SM_89,)
        assert found.partial == ((SM_61, 8),)
        assert len(found.linked) == 10

    def test_no_code_is_in_all(self, tmp_path: Path) -> None:
        found = read_device_code(written(tmp_path, module(unit(SM_61), unit(SM_89))))
        assert found.compiled == ()
        assert found.partial == ((SM_61, 1), (SM_89, 1))

    @pytest.mark.parametrize("packing", ["plain", "lz4", "zstd"])
    def test_a_device_link_without_kernels_does_not_count(
        self, tmp_path: Path, packing: str
    ) -> None:
        """nvcc writes one when it links: machine code for each target, never PTX."""
        stub = unit(SM_61, SM_89, kernels=False, packing=packing)
        path = written(tmp_path, module(stub, unit(SM_61, SM_89, PTX_89, packing=packing)))
        assert read_codes(path) == (SM_61, SM_89, PTX_89)
        assert len(read_device_code(path).linked) == 1

    def test_ptx_without_kernels_does_not_count(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(unit(PTX_61, kernels=False), unit(SM_61, PTX_61)))
        assert read_codes(path) == (SM_61, PTX_61)

    def test_large_code_is_taken_for_kernels_unread(self, tmp_path: Path) -> None:
        large = container(entry(SM_61, content=cubin(61, kernels=False) + bytes(1 << 17)))
        found = read_device_code(written(tmp_path, module(large, unit(SM_61, SM_89))))
        assert found.partial == ((SM_89, 1),)


class TestRelocatable:
    """``-rdc=true``: the device link's result counts, and PTX that it can be made from again."""

    def test_ptx_of_every_unit_counts(self, tmp_path: Path) -> None:
        sections = {".nv_fatbin": unit(SM_61), "__nv_relfatbin": unit(SM_61, PTX_61) * 2}
        path = written(tmp_path, with_sections(elf(), sections))
        assert read_codes(path) == (SM_61, PTX_61)

    def test_machine_code_that_was_not_linked_is_lost(self, tmp_path: Path) -> None:
        sections = {".nv_fatbin": unit(SM_61), "__nv_relfatbin": unit(SM_61, SM_89)}
        assert read_codes(written(tmp_path, with_sections(elf(), sections))) == (SM_61,)

    def test_ptx_of_one_unit_only_does_not_count(self, tmp_path: Path) -> None:
        relocatable = unit(SM_61, PTX_61) + unit(SM_61)
        sections = {".nv_fatbin": unit(SM_61), "__nv_relfatbin": relocatable}
        assert read_codes(written(tmp_path, with_sections(elf(), sections))) == (SM_61,)

    def test_nothing_was_linked(self, tmp_path: Path) -> None:
        path = written(tmp_path, module(unit(SM_61, PTX_61), name="__nv_relfatbin"))
        assert read_codes(path) == ()


class TestWindows:
    def test_sections_have_short_names(self, tmp_path: Path) -> None:
        path = written(tmp_path, windows_cuda(unit(SM_61, SM_89), unit(SM_61, SM_89)))
        assert read_codes(path) == (SM_61, SM_89)
        assert len(read_device_code(path).linked) == 2

    def test_no_device_code(self, tmp_path: Path) -> None:
        assert read_device_code(written(tmp_path, pe())) == DeviceCode()


class TestRecorded:
    @pytest.mark.parametrize("name", sorted(RECORDED))
    def test_real_containers(self, tmp_path: Path, name: str) -> None:
        sample = RECORDED[name]
        path = written(tmp_path, module(base64.b64decode(sample["content"])))
        assert names(read_codes(path)) == sample["codes"]

    def test_a_real_device_link_without_kernels_is_known(self, tmp_path: Path) -> None:
        """Both compressions: the code must be unpacked to know."""
        empty = base64.b64decode(RECORDED["lz4_empty"]["content"])
        whole = base64.b64decode(RECORDED["lz4"]["content"])
        found = read_device_code(written(tmp_path, module(empty, whole)))
        assert [c.name for c in found.compiled] == RECORDED["lz4"]["codes"]
        linked = base64.b64decode(RECORDED["zstd"]["content"])
        assert len(read_device_code(written(tmp_path, module(linked))).linked) == 1


class TestLz4:
    """By the format's own page: a token, literals, how far back, how long."""

    @pytest.mark.parametrize(
        ("block", "content"),
        [
            (b"", b""),
            (b"\x50hello", b"hello"),
            (b"\x11a\x01\x00\x10b", b"aaaaaab"),
            (b"\x32abc\x03\x00\x10d", b"abcabcabcd"),
            (b"\x1fa\x01\x00\x05\x10b", b"a" * 25 + b"b"),
            (b"\xf0\x02" + b"x" * 17, b"x" * 17),
            (b"\xf0\xff\x00" + b"x" * 270, b"x" * 270),
        ],
    )
    def test_blocks(self, block: bytes, content: bytes) -> None:
        assert lz4_start(block, limit=1000) == content

    @pytest.mark.parametrize("limit", [0, 1, 7, 24])
    def test_only_the_start_is_made(self, limit: int) -> None:
        assert lz4_start(b"\x1fa\x01\x00\x05\x10b", limit=limit) == b"a" * limit

    def test_a_bomb_stays_small(self) -> None:
        block = b"\x1fa\x01\x00" + b"\xff" * 100_000 + b"\x00\x10b"
        assert len(lz4_start(block, limit=64)) == 64


@pytest.mark.skipif(NVCC is None, reason="no nvcc on PATH: nothing to compile real kernels with")
class TestRealCompiler:
    @pytest.mark.parametrize(
        ("flags", "codes"),
        [
            (["arch=compute_89,code=[sm_89]"], ["sm_89"]),
            (["arch=compute_90a,code=[compute_90a,sm_90a]"], ["sm_90a", "compute_90a"]),
            (["arch=compute_89,code=[compute_89]"], ["compute_89"]),
            (
                ["arch=compute_75,code=[sm_75]", "arch=compute_89,code=[compute_89,sm_89]"],
                ["sm_75", "sm_89", "compute_89"],
            ),
        ],
    )
    def test_what_nvcc_compiles_is_read_if_nvcc_is_there(
        self, tmp_path: Path, flags: list[str], codes: list[str]
    ) -> None:
        source = tmp_path / "k.cu"
        source.write_text("__global__ void k(int *p) { p[threadIdx.x] = threadIdx.x * 3; }\n")
        made = tmp_path / "k.so"
        generate = [f"--generate-code={flag}" for flag in flags]
        subprocess.run(
            [str(NVCC), "-shared", "-Xcompiler", "-fPIC", *generate, str(source), "-o", str(made)],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        assert names(read_codes(made)) == codes
