"""The companion archive: what goes in, under which names, once, the same bytes, never libcuda."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from fatbin_kit import (
    LICENCE,
    RUNTIME,
    SM_61,
    SM_89,
    WINDOWS_RUNTIME,
    cuda_bench,
    cuda_plan,
    toolkit,
    unit,
    windows_cuda,
    windows_toolkit,
)
from llamawright.digest import sha256_file
from llamawright.errors import ExitCode, PackageError
from llamawright.model.artifact import Artifact
from llamawright.model.cuda import CudaPlan
from llamawright.model.plan import Plan
from llamawright.package import companion_libraries, pack, packed_before, place, read_artifact
from llamawright.package.companion import (
    COMPANION_MANIFEST,
    SHELF,
    PackedCompanion,
    pack_companion,
    stored_companion,
)
from llamawright.package.cuda_names import is_driver_library, is_runtime_library, runtime_major
from llamawright.store import Store
from llamawright.transfer.opened import open_artifact
from llamawright.transfer.unpack import unpack_archive
from package_binaries import elf, pe
from package_kit import WINDOWS, Bench, windows_host
from reporter_kit import Told

TOP = "cuda-runtime-12.4.131-linux_x86_64"


def companion(plan: Plan, root: Path) -> PackedCompanion:
    made = pack_companion(plan, store=Store(root / "store"), reporter=Told())
    assert made is not None
    return made


def cuda_of(plan: Plan) -> CudaPlan:
    assert plan.cuda is not None
    return plan.cuda


def packed(bench: Bench) -> Artifact:
    patched, host, own = bench.trees()
    return pack(bench.plan, patched, host, own, store=bench.store, reporter=bench.told)


def members(path: Path) -> list[tarfile.TarInfo]:
    with (
        path.open("rb") as stream,
        zstandard.ZstdDecompressor().stream_reader(stream) as plain,
        tarfile.open(fileobj=plain, mode="r|") as tar,
    ):
        return list(tar)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "major"),
        [
            ("libcudart.so.12", "12"), ("libcudart.so.11.0", "11"), ("libcublas.so.13", "13"),
            ("libcublasLt.so.12.4.5.8", "12"), ("libcudart.so", ""), ("cudart64_12.dll", "12"),
            ("cudart64_110.dll", "11"), ("CUBLASLT64_13.DLL", "13"), ("cublas64_11.dll", "11"),
        ],
    )  # fmt: skip
    def test_runtime_libraries(self, name: str, major: str) -> None:
        assert is_runtime_library(name)
        assert runtime_major(name) == major
        assert not is_driver_library(name)

    @pytest.mark.parametrize(
        "name",
        [
            "libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04", "libnvidia-ml.so.1",
            "libnvidia-ptxjitcompiler.so.1", "libnvcuvid.so.1", "libcudadebugger.so.1",
            "nvcuda.dll", "NVCUDA.DLL", "nvcuda64.dll", "nvml.dll", "nvapi64.dll",
        ],
    )  # fmt: skip
    def test_driver_libraries(self, name: str) -> None:
        assert is_driver_library(name)
        assert not is_runtime_library(name)
        assert runtime_major(name) == ""

    @pytest.mark.parametrize("name", ["libc.so.6", "libcudadevrt.a", "libcurl.so.4", "nvrtc64.dll"])
    def test_others(self, name: str) -> None:
        assert not is_driver_library(name)
        assert not is_runtime_library(name)


class TestContent:
    def test_libraries_under_their_sonames_and_the_licence(self, tmp_path: Path) -> None:
        made = companion(cuda_plan(toolkit(tmp_path / "t")), tmp_path)
        assert made.path.name == f"{TOP}.tar.zst"
        files = [m for m in members(made.path) if not m.isdir()]
        assert [m.name for m in files] == sorted(
            [
                *(f"{TOP}/bin/{name}" for name in RUNTIME),
                f"{TOP}/cuda-runtime.json",
                f"{TOP}/licenses/cuda/EULA.txt",
            ]
        )
        assert all(m.isreg() for m in files)

    def test_the_facts(self, tmp_path: Path) -> None:
        made = companion(cuda_plan(toolkit(tmp_path / "t")), tmp_path)
        assert made.facts.file == made.path.name
        assert made.facts.size == made.path.stat().st_size
        assert made.facts.sha256 == sha256_file(made.path)
        assert made.facts.libraries == tuple(sorted(RUNTIME))
        line = made.path.with_name(f"{made.path.name}.sha256").read_text()
        assert line == f"{made.facts.sha256}  {made.path.name}\n"

    def test_its_own_manifest(self, tmp_path: Path) -> None:
        made = companion(cuda_plan(toolkit(tmp_path / "t")), tmp_path)
        unpack_archive(made.path, tmp_path / "u", strip=1)
        said = json.loads((tmp_path / "u" / COMPANION_MANIFEST).read_text())
        assert said["schema"].endswith("cuda-runtime-1.json")
        assert said["toolkit"] == "12.4.131"
        for entry in said["files"]:
            file = tmp_path / "u" / entry["path"]
            assert (entry["sha256"], entry["size"]) == (sha256_file(file), file.stat().st_size)
        assert (tmp_path / "u" / "licenses" / "cuda" / "EULA.txt").read_bytes() == LICENCE

    def test_nothing_names_this_machine(self, tmp_path: Path) -> None:
        made = companion(cuda_plan(toolkit(tmp_path / "t")), tmp_path)
        unpack_archive(made.path, tmp_path / "u", strip=1)
        assert str(tmp_path) not in (tmp_path / "u" / COMPANION_MANIFEST).read_text()

    def test_windows(self, tmp_path: Path) -> None:
        plan = cuda_plan(windows_toolkit(tmp_path / "t"), platform=WINDOWS)
        made = companion(plan, tmp_path)
        assert made.path.name == "cuda-runtime-12.4.131-windows_x86_64.zip"
        with zipfile.ZipFile(made.path) as zipped:
            names = {Path(n).name for n in zipped.namelist()}
        assert names == {*WINDOWS_RUNTIME, "EULA.txt", COMPANION_MANIFEST}

    def test_a_link_and_its_file_are_one(self, tmp_path: Path) -> None:
        libraries = toolkit(tmp_path / "t")
        again = (*libraries, libraries[0].with_name("libcudart.so.12"))
        assert companion(cuda_plan(again), tmp_path).facts.libraries == tuple(sorted(RUNTIME))

    def test_not_bundled_needs_none(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        plan = cuda_plan(toolkit(tmp_path / "t"), bundled=False)
        assert pack_companion(plan, store=store, reporter=Told()) is None
        assert pack_companion(replace(plan, cuda=None), store=store, reporter=Told()) is None


class TestOnce:
    def test_the_same_bytes_wherever_the_toolkit_lies(self, tmp_path: Path) -> None:
        one = companion(cuda_plan(toolkit(tmp_path / "a" / "t")), tmp_path / "a")
        two = companion(cuda_plan(toolkit(tmp_path / "b" / "t")), tmp_path / "b")
        assert one.facts == two.facts
        assert one.key == two.key

    def test_plans_of_one_toolkit_share_it(self, tmp_path: Path) -> None:
        libraries = toolkit(tmp_path / "t")
        first = companion(cuda_plan(libraries, SM_61), tmp_path)
        before = first.path.stat().st_mtime_ns
        plan = replace(cuda_plan(libraries, SM_89), environment=(("SOURCE_DATE_EPOCH", "1"),))
        assert companion(plan, tmp_path) == first
        assert first.path.stat().st_mtime_ns == before
        assert len(list((tmp_path / "store" / SHELF).iterdir())) == 1

    def test_other_libraries_are_another(self, tmp_path: Path) -> None:
        first = companion(cuda_plan(toolkit(tmp_path / "a")), tmp_path)
        changed = toolkit(tmp_path / "b")
        changed[0].resolve().write_bytes(
            elf(soname="libcudart.so.12", needed=("libc.so.6",), payload=b"newer")
        )
        second = companion(cuda_plan(changed), tmp_path)
        assert second.key != first.key
        assert second.facts.sha256 != first.facts.sha256

    @pytest.mark.parametrize("harm", ["gone", "cut", "facts"])
    def test_one_that_is_no_longer_whole_is_made_again(self, tmp_path: Path, harm: str) -> None:
        plan = cuda_plan(toolkit(tmp_path / "t"))
        first = companion(plan, tmp_path)
        match harm:
            case "gone":
                first.path.unlink()
            case "cut":
                first.path.write_bytes(first.path.read_bytes()[:100])
            case _:
                (first.path.parent / "companion.json").write_text("{")
        assert stored_companion(first.key, Store(tmp_path / "store")) is None
        assert companion(plan, tmp_path).facts == first.facts
        assert sha256_file(first.path) == first.facts.sha256


def _gone(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    libraries[0].resolve().unlink()
    return libraries


def _text(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    libraries[1].resolve().write_text("INPUT(-lcublas)")
    return libraries


def _cut(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    file = libraries[1].resolve()
    file.write_bytes(file.read_bytes()[:200])
    return libraries


def _arm(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    libraries[0].resolve().write_bytes(elf(soname="libcudart.so.12", machine="aarch64"))
    return libraries


def _dll(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    libraries[0].resolve().write_bytes(pe())
    return libraries


def _other(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    path = libraries[0].with_name("libcurand.so.10")
    path.write_bytes(elf(soname="libcurand.so.10"))
    return (*libraries, path)


def _twice(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    path = libraries[0].with_name("libcudart-copy.so")
    path.write_bytes(libraries[0].read_bytes() + b"x")
    return (*libraries, path)


class TestRefused:
    def refused(self, plan: Plan, root: Path) -> PackageError:
        store = Store(root / "store")
        with pytest.raises(PackageError) as caught:
            pack_companion(plan, store=store, reporter=Told())
        error = caught.value
        assert error.code is ExitCode.PACKAGE
        assert error.why
        assert error.hint
        assert not (root / "store" / SHELF).exists()
        return error

    @pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1"])
    def test_the_driver(self, tmp_path: Path, name: str) -> None:
        """71 MB of libcuda were in a wheel, and it started nowhere else (P3)."""
        libraries = toolkit(tmp_path / "t")
        path = tmp_path / "t" / name
        path.write_bytes(elf(soname=name))
        error = self.refused(cuda_plan((*libraries, path)), tmp_path)
        assert error.kind == "driver-library"
        assert name in error.what

    def test_the_driver_under_another_name(self, tmp_path: Path) -> None:
        libraries = toolkit(tmp_path / "t")
        path = tmp_path / "t" / "libcudart-extra.so"
        path.write_bytes(elf(soname="libcuda.so.1"))
        assert self.refused(cuda_plan((*libraries, path)), tmp_path).kind == "driver-library"

    def test_the_driver_behind_a_harmless_link(self, tmp_path: Path) -> None:
        libraries = toolkit(tmp_path / "t")
        real = tmp_path / "t" / "libcuda.so.580.1"
        real.write_bytes(elf(soname="libcuda.so.1"))
        link = tmp_path / "t" / "libextra.so"
        link.symlink_to(real)
        assert self.refused(cuda_plan((*libraries, link)), tmp_path).kind == "driver-library"

    def test_windows_driver(self, tmp_path: Path) -> None:
        libraries = windows_toolkit(tmp_path / "t")
        path = tmp_path / "t" / "nvcuda.dll"
        path.write_bytes(pe())
        plan = cuda_plan((*libraries, path), platform=WINDOWS)
        assert self.refused(plan, tmp_path).kind == "driver-library"

    def test_a_stub(self, tmp_path: Path) -> None:
        libraries = toolkit(tmp_path / "t" / "stubs")
        error = self.refused(cuda_plan(libraries), tmp_path)
        assert error.kind == "stub-library"
        assert "stub" in error.what

    @pytest.mark.parametrize(
        ("harm", "why"),
        [
            (_gone, "is not there"),
            (_text, "no shared library"),
            (_cut, "no shared library"),
            (_arm, "elf file for aarch64, not for linux_x86_64"),
            (_dll, "pe file for x86_64, not for linux_x86_64"),
            (_other, "only cudart, cuBLAS and cuBLASLt"),
            (_twice, "it is there twice"),
        ],
    )
    def test_what_cannot_go_in(
        self,
        tmp_path: Path,
        harm: Callable[[tuple[Path, ...]], tuple[Path, ...]],
        why: str,
    ) -> None:
        error = self.refused(cuda_plan(harm(toolkit(tmp_path / "t"))), tmp_path)
        assert error.kind == "companion-library"
        assert why in error.why

    def test_an_import_library_is_no_dll(self, tmp_path: Path) -> None:
        libraries = windows_toolkit(tmp_path / "t")
        path = tmp_path / "t" / "cudart.lib"
        path.write_bytes(b"!<arch>\n")
        plan = cuda_plan((*libraries[1:], path), platform=WINDOWS)
        assert self.refused(plan, tmp_path).kind == "companion-library"

    def test_cublas_without_cublaslt(self, tmp_path: Path) -> None:
        libraries = toolkit(tmp_path / "t")
        error = self.refused(cuda_plan(libraries[:2]), tmp_path)
        assert error.kind == "companion-incomplete"
        assert "libcublas.so.12 needs libcublasLt.so.12" in error.why

    @pytest.mark.parametrize("known", [True, False])
    def test_without_the_licence_nothing_is_given_away(self, tmp_path: Path, known: bool) -> None:
        plan = cuda_plan(toolkit(tmp_path / "t"))
        licence = tmp_path / "t" / "gone.txt" if known else None
        plan = replace(plan, cuda=replace(cuda_of(plan), license=licence))
        error = self.refused(plan, tmp_path)
        assert error.kind == "companion-licence"
        assert "bundled = false" in error.hint


class TestArtifact:
    def test_it_names_its_companion(self, tmp_path: Path) -> None:
        artifact = packed(cuda_bench(tmp_path))
        assert artifact.companion is not None
        facts = artifact.manifest.cuda.companion if artifact.manifest.cuda else None
        assert facts is not None
        assert facts.sha256 == sha256_file(artifact.companion)
        assert companion_libraries(artifact.manifest) == tuple(sorted(RUNTIME))
        assert "companion" in [t.stage for t in artifact.timings]

    def test_it_unpacks_over_the_artifact(self, tmp_path: Path) -> None:
        """As the proof does it: nothing is overwritten, the libraries lie beside the module."""
        artifact = packed(cuda_bench(tmp_path))
        assert artifact.companion is not None
        open_artifact(artifact.path, tmp_path / "u")
        unpack_archive(artifact.companion, tmp_path / "u", strip=1)
        beside = {p.name for p in (tmp_path / "u" / "bin").iterdir()}
        assert {"libggml-cuda.so", *RUNTIME} <= beside

    def test_windows(self, tmp_path: Path) -> None:
        plan = cuda_plan(windows_toolkit(tmp_path / "t"), platform=WINDOWS)
        own = windows_cuda(unit(SM_61, SM_89), needed=("cudart64_12.dll", "CUBLAS64_12.dll"))
        artifact = packed(Bench(tmp_path, plan, windows_host(), {"bin/ggml-cuda.dll": own}))
        assert artifact.companion is not None
        assert artifact.companion.suffix == ".zip"
        assert set(companion_libraries(artifact.manifest)) == set(WINDOWS_RUNTIME)
        assert "nvcuda.dll" in artifact.manifest.system_libraries
        assert "cudart64_12.dll" not in artifact.manifest.system_libraries

    def test_other_backends_have_none(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path))
        assert artifact.companion is None
        assert companion_libraries(artifact.manifest) == ()
        assert "cuda" not in (tmp_path / "store" / SHELF).as_posix().split("/")
        assert not (tmp_path / "store" / SHELF).exists()

    def test_the_next_run_finds_both_without_the_toolkit(self, tmp_path: Path) -> None:
        bench = cuda_bench(tmp_path)
        first = packed(bench)
        for library in cuda_of(bench.plan).libraries:
            library.unlink()
        known = packed_before(bench.plan, bench.store)
        assert known is not None
        assert (known.path, known.companion) == (first.path, first.companion)

    @pytest.mark.parametrize("harm", ["companion", "note"])
    def test_without_its_companion_it_was_not_packed(self, tmp_path: Path, harm: str) -> None:
        bench = cuda_bench(tmp_path)
        first = packed(bench)
        assert first.companion is not None
        if harm == "companion":
            first.companion.unlink()
        else:
            (first.path.parent / "companion.key").unlink()
        assert packed_before(bench.plan, bench.store) is None
        again = packed(Bench(tmp_path / "again", bench.plan, bench.host, bench.module))
        assert again.sha256 == first.sha256

    def test_a_companion_from_other_libraries_makes_it_anew(self, tmp_path: Path) -> None:
        """The key of a plan says nothing of the libraries' bytes, the manifest does."""
        bench = cuda_bench(tmp_path)
        patched, host, own = bench.trees()
        first = pack(bench.plan, patched, host, own, store=bench.store, reporter=bench.told)
        cuda_of(bench.plan).libraries[0].resolve().write_bytes(
            elf(soname="libcudart.so.12", needed=("libc.so.6",), payload=b"newer")
        )
        second = pack(bench.plan, patched, host, own, store=bench.store, reporter=bench.told)
        assert second.path == first.path
        assert second.companion != first.companion
        assert second.manifest.cuda != first.manifest.cuda

    def test_both_archives_go_with_one(self, tmp_path: Path) -> None:
        bench = cuda_bench(tmp_path)
        bench.plan = replace(bench.plan, with_tests=True)
        artifact = packed(bench)
        assert artifact.tests is not None
        assert artifact.tests.manifest.cuda == artifact.manifest.cuda
        assert len(list((tmp_path / "store" / SHELF).iterdir())) == 1
        assert packed_before(bench.plan, bench.store) is not None


class TestPlace:
    def test_beside_the_artifact_with_its_sum(self, tmp_path: Path) -> None:
        dist = tmp_path / "dist"
        placed = place(packed(cuda_bench(tmp_path)), dist)
        assert placed.companion == dist / f"{TOP}.tar.zst"
        facts = placed.manifest.cuda.companion if placed.manifest.cuda else None
        assert facts is not None
        line = (dist / f"{TOP}.tar.zst.sha256").read_text()
        assert line == f"{facts.sha256}  {TOP}.tar.zst\n"
        assert sha256_file(dist / f"{TOP}.tar.zst") == facts.sha256
        assert len(list(dist.iterdir())) == 4

    def test_it_is_not_written_again(self, tmp_path: Path) -> None:
        artifact = packed(cuda_bench(tmp_path))
        first = place(artifact, tmp_path / "dist").companion
        assert first is not None
        before = first.stat().st_mtime_ns
        place(artifact, tmp_path / "dist")
        assert first.stat().st_mtime_ns == before

    def test_a_damaged_one_in_dist_is_replaced(self, tmp_path: Path) -> None:
        artifact = packed(cuda_bench(tmp_path))
        first = place(artifact, tmp_path / "dist").companion
        assert first is not None
        assert artifact.companion is not None
        first.write_bytes(b"x" * first.stat().st_size)
        place(artifact, tmp_path / "dist")
        assert first.read_bytes() == artifact.companion.read_bytes()

    def test_a_damaged_one_in_the_store_is_not_given_away(self, tmp_path: Path) -> None:
        artifact = packed(cuda_bench(tmp_path))
        assert artifact.companion is not None
        artifact.companion.write_bytes(b"x" * artifact.companion.stat().st_size)
        with pytest.raises(PackageError) as caught:
            place(artifact, tmp_path / "dist")
        assert caught.value.kind == "store-damaged"
        assert not [p for p in (tmp_path / "dist").iterdir() if p.suffix == ".zst"]

    def test_an_artifact_read_again_finds_it(self, tmp_path: Path) -> None:
        placed = place(packed(cuda_bench(tmp_path)), tmp_path / "dist")
        assert placed.companion is not None
        assert read_artifact(placed.path).companion == placed.companion
        placed.companion.unlink()
        assert read_artifact(placed.path).companion is None
