"""The audit of a CUDA module: planned codes, one toolkit's runtime, run paths; the manifest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fatbin_kit import (
    PTX_61,
    PTX_89,
    RUNTIME,
    SM_61,
    SM_89,
    SM_120A,
    container,
    cuda_bench,
    module,
    unit,
    with_sections,
)
from llamawright.errors import PackageError
from llamawright.model.artifact import Artifact
from llamawright.model.cuda import GpuCode
from llamawright.package import pack, read_artifact
from package_binaries import elf
from package_kit import Bench

PLANNED = (SM_61, SM_89)


def packed(bench: Bench) -> Artifact:
    patched, host, own = bench.trees()
    return pack(bench.plan, patched, host, own, store=bench.store, reporter=bench.told)


def refused(bench: Bench) -> PackageError:
    with pytest.raises(PackageError) as caught:
        packed(bench)
    assert caught.value.hint
    assert not list(bench.store.root.glob("artifacts/*/*.zst"))
    return caught.value


def with_codes(root: Path, *codes: GpuCode, units: tuple[bytes, ...] = ()) -> Bench:
    bench = cuda_bench(root, *(units or (unit(*codes),)))
    assert bench.plan.cuda is not None
    assert bench.plan.cuda.codes == PLANNED
    return bench


class TestCodes:
    def test_the_planned_codes_go_into_the_manifest(self, tmp_path: Path) -> None:
        seen = packed(with_codes(tmp_path, SM_89, SM_61)).manifest.cuda
        assert seen is not None
        assert seen.codes == ("sm_61", "sm_89")
        assert (seen.toolkit, seen.driver, seen.driver_jit, seen.compression) == (
            "12.4.131", "525.60.13", "550.54.14", "size",
        )  # fmt: skip

    def test_a_lost_code(self, tmp_path: Path) -> None:
        error = refused(with_codes(tmp_path, SM_89))
        assert error.kind == "gpu-code-lost"
        assert "sm_61 is missing; planned sm_61 sm_89; compiled sm_89" in error.why
        assert "bin/libggml-cuda.so" in error.why
        assert "--arch" in error.hint

    def test_a_code_that_only_some_kernels_have(self, tmp_path: Path) -> None:
        units = (*[unit(*PLANNED)] * 8, *[unit(SM_89)] * 2)
        error = refused(with_codes(tmp_path, units=units))
        assert error.kind == "gpu-code-lost"
        assert "sm_61 in 8 of 10 parts only" in error.why

    @pytest.mark.parametrize("codes", [(PTX_61,), (PTX_61, PTX_89)])
    def test_ptx_only(self, tmp_path: Path, codes: tuple[GpuCode, ...]) -> None:
        error = refused(with_codes(tmp_path, *codes))
        assert error.kind == "gpu-code-ptx-only"
        assert "planned sm_61 sm_89; compiled compute_61" in error.why

    def test_ptx_only_as_planned_is_right(self, tmp_path: Path) -> None:
        bench = cuda_bench(tmp_path, unit(PTX_61), codes=(PTX_61,))
        seen = packed(bench).manifest.cuda
        assert seen is not None
        assert seen.codes == ("compute_61",)

    @pytest.mark.parametrize("more", [PTX_89, SM_120A])
    def test_one_too_many(self, tmp_path: Path, more: GpuCode) -> None:
        error = refused(with_codes(tmp_path, *PLANNED, more))
        assert error.kind == "gpu-code-unplanned"
        assert f"nobody asked for {more.name}" in error.why

    def test_one_too_many_in_some_kernels(self, tmp_path: Path) -> None:
        error = refused(with_codes(tmp_path, units=(unit(*PLANNED), unit(*PLANNED, SM_120A))))
        assert error.kind == "gpu-code-unplanned"
        assert "sm_120a in 1 of 2 parts only" in error.why

    def test_exact_code_is_not_the_common_one(self, tmp_path: Path) -> None:
        """Upstream rewrites 120 to 120a: the plan holds what is really compiled."""
        bench = cuda_bench(tmp_path, unit(GpuCode(120)), codes=(SM_120A,))
        error = refused(bench)
        assert error.kind == "gpu-code-lost"
        assert "sm_120a is missing; planned sm_120a; compiled sm_120" in error.why

    def test_no_device_code_at_all(self, tmp_path: Path) -> None:
        bench = cuda_bench(tmp_path)
        own = elf(needed=("libggml-base.so.0", "libcuda.so.1", "libc.so.6"), runpath="$ORIGIN")
        bench.module = {"bin/libggml-cuda.so": with_sections(own, {".comment": b"x"})}
        error = refused(bench)
        assert error.kind == "gpu-code-lost"
        assert "compiled nothing" in error.why

    def test_a_broken_container_is_no_finding_but_an_error(self, tmp_path: Path) -> None:
        assert refused(with_codes(tmp_path, units=(container(version=7),))).kind == "bad-fatbin"

    def test_a_missing_module_is_told_as_that(self, tmp_path: Path) -> None:
        bench = cuda_bench(tmp_path)
        bench.module = {}
        assert refused(bench).kind == "missing-file"


class TestRuntime:
    def test_another_toolkits_runtime(self, tmp_path: Path) -> None:
        """Headers of one toolkit, libraries of another: `invalid argument` at run time (C10)."""
        bench = cuda_bench(tmp_path)
        bench.module = {"bin/libggml-cuda.so": module(unit(*PLANNED), needed=("libcudart.so.13",))}
        error = refused(bench)
        assert error.kind == "mixed-toolkits"
        assert "compiled with CUDA 12.4.131 and needs libcudart.so.13" in error.why
        assert "--cuda-toolkit" in error.hint

    def test_what_the_companion_does_not_bring(self, tmp_path: Path) -> None:
        bench = cuda_bench(tmp_path)
        assert bench.plan.cuda is not None
        only = replace(bench.plan.cuda, libraries=bench.plan.cuda.libraries[:1])
        bench.plan = replace(bench.plan, cuda=only)
        error = refused(bench)
        assert error.kind == "companion-incomplete"
        assert "needs libcublas.so.12; the companion archive brings libcudart.so.12" in error.why

    def test_without_a_companion_the_system_must_have_them(self, tmp_path: Path) -> None:
        artifact = packed(cuda_bench(tmp_path, bundled=False))
        seen = artifact.manifest
        assert artifact.companion is None
        assert {"libcudart.so.12", "libcublas.so.12"} <= set(seen.system_libraries)
        assert seen.cuda is not None
        assert seen.cuda.companion is not None
        assert seen.cuda.companion.file == ""
        assert seen.cuda.companion.libraries == ("libcublas.so.12", "libcudart.so.12")

    def test_with_a_companion_only_the_drivers_is_the_systems(self, tmp_path: Path) -> None:
        seen = packed(cuda_bench(tmp_path)).manifest.system_libraries
        assert "libcuda.so.1" in seen
        assert not set(RUNTIME) & set(seen)

    @pytest.mark.parametrize("library", ["libnccl.so.2", "libcuda.so", "libcudadevrt.so.12"])
    def test_other_libraries_are_foreign(self, tmp_path: Path, library: str) -> None:
        bench = cuda_bench(tmp_path)
        bench.module = {"bin/libggml-cuda.so": module(unit(*PLANNED), needed=(library,))}
        error = refused(bench)
        assert error.kind == "foreign-import"
        assert library in error.why

    def test_a_program_may_not_ask_for_the_driver(self, tmp_path: Path) -> None:
        """It would not start on a machine without NVIDIA's driver."""
        bench = cuda_bench(tmp_path)
        bench.host["bin/tiny-cli"] = elf(
            needed=("libtiny.so.0", "libcuda.so.1", "libc.so.6"), runpath="$ORIGIN"
        )
        assert refused(bench).kind == "foreign-import"

    @pytest.mark.parametrize(
        "place", ["/usr/local/cuda/lib64/stubs", "$ORIGIN/stubs", "/usr/lib/x86_64-linux-gnu/stubs"]
    )
    def test_the_linkers_stub_never_stays_in_the_run_path(self, tmp_path: Path, place: str) -> None:
        bench = cuda_bench(tmp_path)
        own = elf(needed=("libcuda.so.1", "libc.so.6"), runpath=f"$ORIGIN:{place}")
        bench.module = {"bin/libggml-cuda.so": with_sections(own, {".nv_fatbin": unit(*PLANNED)})}
        error = refused(bench)
        assert error.kind == "runpath"
        assert place in error.why

    @pytest.mark.parametrize("name", ["libcuda.so.1", "libcudart.so.12"])
    def test_no_library_of_nvidias_in_the_artifact_itself(self, tmp_path: Path, name: str) -> None:
        bench = cuda_bench(tmp_path)
        assert bench.module is not None
        bench.module[f"bin/{name}"] = elf(soname=name)
        assert "unexpected-file" in refused(bench).why


class TestManifest:
    def test_it_is_read_back_whole(self, tmp_path: Path) -> None:
        artifact = packed(cuda_bench(tmp_path))
        assert read_artifact(artifact.path).manifest == artifact.manifest

    def test_other_backends_say_nothing_of_cuda(self, tmp_path: Path) -> None:
        assert packed(Bench(tmp_path)).manifest.cuda is None

    @pytest.mark.parametrize(
        "change",
        [
            {"driver": "530.1"}, {"driver_jit": "560.1"}, {"compression": "none"},
            {"bundled": False}, {"toolkit": "12.4.99"},
        ],
    )  # fmt: skip
    def test_what_the_manifest_says_is_part_of_the_key(
        self, tmp_path: Path, change: dict[str, object]
    ) -> None:
        first = packed(cuda_bench(tmp_path / "a"))
        second = packed(cuda_bench(tmp_path / "b", **change))
        assert first.path.parent.name != second.path.parent.name

    def test_where_the_toolkit_lies_is_not(self, tmp_path: Path) -> None:
        first, second = packed(cuda_bench(tmp_path / "a")), packed(cuda_bench(tmp_path / "b"))
        assert first.path.parent.name == second.path.parent.name
        assert first.sha256 == second.sha256
