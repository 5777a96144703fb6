"""The shipped toolkits for real: downloaded, unpacked, proved, moved, taken by CMake. By name.

0.5 and 1.3 GB; ``LLAMAWRIGHT_TEST_STORE`` names a store that has them already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import cmake
import ninja
import pytest

from llamawright.config import load_toolchains
from llamawright.model.inventory import Role
from llamawright.model.toolchain import Fact, ProvidedSet
from llamawright.paths import data_root
from llamawright.provide import provide_set
from llamawright.provide.cuda_proof import KERNEL, host_compiler
from llamawright.provide.tools import prove
from llamawright.store import Store
from transfer_kit import Listener

pytestmark = pytest.mark.slow
SETS = {"cuda-13.0-wheels": "75-real;90-virtual", "cuda-12.4-debian13": "61-real;89-real"}
PROJECT = """\
cmake_minimum_required(VERSION 3.19)
project(proof LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
add_library(proof MODULE proof.cu)
target_link_libraries(proof PRIVATE CUDA::cudart CUDA::cublas CUDA::cuda_driver)
"""


@pytest.fixture(params=list(SETS))
def provided(request: pytest.FixtureRequest) -> ProvidedSet:
    known = load_toolchains(data_root() / "toolchains")
    return next(s for s in known.sets if s.name == request.param)


@pytest.fixture
def root(provided: ProvidedSet, tmp_path: Path) -> Path:
    store = Store(Path(os.environ.get("LLAMAWRIGHT_TEST_STORE", tmp_path / "store")))
    return provide_set(
        provided,
        store=store,
        toolchains=load_toolchains(data_root() / "toolchains"),
        offline=False,
        reporter=Listener(),
    )


def test_it_compiles_links_and_is_what_it_says(provided: ProvidedSet, root: Path) -> None:
    listener = Listener()
    (tool,) = prove(provided, root, unpacked_by=listener)
    assert (listener.warnings == []) is (host_compiler(provided) is not None)
    assert tool.version == provided.version
    assert Path(tool.fact(Fact.LICENSE)).read_text(errors="replace").count("NVIDIA") > 10
    # What bundling would take along is the whole library, not a stub.
    assert Path(tool.fact(Fact.CUBLASLT)).stat().st_size > 100 << 20


def test_cmake_takes_it_from_another_place(
    provided: ProvidedSet, root: Path, tmp_path: Path
) -> None:
    host = host_compiler(provided)
    if host is None:
        pytest.skip("no C++ compiler here that the toolkit accepts")
    moved, source, build = tmp_path / "moved", tmp_path / "source", tmp_path / "build"
    shutil.copytree(root, moved, symlinks=True, copy_function=os.link)
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "proof.cu").write_text(KERNEL)
    run(
        Path(cmake.CMAKE_BIN_DIR) / "cmake", "-S", source, "-B", build, "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}",
        f"-DCMAKE_CUDA_COMPILER={moved / 'bin/nvcc'}", f"-DCMAKE_CUDA_HOST_COMPILER={host}",
        f"-DCUDAToolkit_ROOT={moved}", f"-DCMAKE_CUDA_ARCHITECTURES={SETS[provided.name]}",
    )  # fmt: skip
    run(Path(cmake.CMAKE_BIN_DIR) / "cmake", "--build", build)
    cache = (build / "CMakeCache.txt").read_text()
    for library in ("CUDA_CUDART", "CUDA_cublas_LIBRARY", "CUDA_cuda_driver_LIBRARY"):
        line = next(n for n in cache.splitlines() if n.startswith(f"{library}:"))
        assert str(moved) in line
    module = (build / "libproof.so").read_bytes()
    for name in (b"libcuda.so.1\0", Path(provided.fact(Fact.CUBLAS)).name.encode() + b"\0"):
        assert name in module


def test_the_provided_compiler_does_nvccs_host_code(root: Path, tmp_path: Path) -> None:
    """37 MB more: what a machine gets whose own gcc is newer than the toolkit."""
    known = load_toolchains(data_root() / "toolchains")
    gcc = next(s for s in known.sets if s.role is Role.HOST_CXX)
    store = Store(Path(os.environ.get("LLAMAWRIGHT_TEST_STORE", tmp_path / "store")))
    prefix = provide_set(gcc, store=store, toolchains=known, offline=False, reporter=Listener())
    (tmp_path / "proof.cu").write_text(KERNEL)
    compiler = prefix / gcc.fact(Fact.CXX)
    run(
        root / "bin" / "nvcc", "-ccbin", compiler, "-arch=sm_89", "-std=c++17", "-shared",
        "-Xcompiler=-fPIC", tmp_path / "proof.cu", "-o", tmp_path / "proof.so",
    )  # fmt: skip
    comment = (tmp_path / "proof.so").read_bytes()
    assert f"GCC: (Debian {gcc.version}".encode() in comment
    # The machine's own gcc may be the very same version: only the headers tell them apart.
    (tmp_path / "proof.cpp").write_text("#include <vector>\n")
    run(compiler, "-M", "-MF", tmp_path / "read", tmp_path / "proof.cpp")
    read = [Path(word) for word in (tmp_path / "read").read_text().split() if "c++" in word]
    assert any(path.name == "vector" for path in read)
    assert [path for path in read if not path.is_relative_to(prefix)] == []


def run(*argv: object) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [str(a) for a in argv], env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
