"""A toolkit counts after its nvcc ran, said what the pins say, compiled and linked."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from cuda_fakes import (
    host_config,
    nvcc,
    redist_archives,
    redist_files,
    redist_set,
    wheel_set,
    wheels,
    write_compiler,
)
from provide_fakes import Silent, write_blobs

from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Found, Role
from llamawright.model.toolchain import Fact, ProvidedSet
from llamawright.provide import cuda_proof
from llamawright.provide.cuda_proof import host_compiler, prove_compiling, prove_toolkit
from llamawright.provide.sets import unpack
from llamawright.provide.tools import prove

LINKED = "printf '\\177ELF libcudart.so.13\\000libcublas.so.13\\000'"


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let PATH be a folder of the test with one good compiler, and what scripts need."""
    folder = tmp_path / "path"
    write_compiler(folder, "g++", "12.2.0")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(
        shutil,
        "which",
        lambda name: str(folder / name) if (folder / name).exists() else None,
    )
    return folder


@pytest.fixture
def provided() -> ProvidedSet:
    return wheel_set(wheels())


@pytest.fixture
def root(tmp_path: Path, provided: ProvidedSet) -> Path:
    place = tmp_path / "root"
    unpack(provided, write_blobs(tmp_path / "blobs", wheels()), place)
    return place


def stating(provided: ProvidedSet, **changes: str) -> ProvidedSet:
    return replace(provided, facts=tuple({**dict(provided.facts), **changes}.items()))


def asked(root: Path) -> list[str]:
    """Return the command lines that made something, as the fake nvcc noted them."""
    note = root / "bin/asked"
    return note.read_text().splitlines() if note.exists() else []


def put(root: Path, program: str) -> None:
    (root / "bin/nvcc").write_text(program)


def told(provided: ProvidedSet, root: Path) -> list[str]:
    said: list[str] = []
    prove_compiling(provided, root, tell=said.append)
    return said


# --- what a good toolkit is to the build ----------------------------------------------------


def test_found_has_the_facts_with_absolute_paths(provided: ProvidedSet, root: Path) -> None:
    (tool,) = prove(provided, root)
    assert isinstance(tool, Found)
    assert (tool.role, tool.name, tool.version) == (Role.CUDA, provided.name, "13.0.88")
    assert (tool.where, tool.sha256, tool.path) == ("provided", provided.digest, root)
    assert tool.fact(Fact.CUDA_CODES) == "75 80 90 120"
    assert (tool.fact(Fact.GCC_MAX), tool.fact(Fact.CLANG_MAX)) == ("15", "20")
    assert Path(tool.fact(Fact.CUDA_ROOT)) == root
    for fact in (
        Fact.NVCC, Fact.CUDART, Fact.CUBLAS, Fact.CUBLASLT, Fact.CUDA_CCCL, Fact.INCLUDE_DIR,
        Fact.LICENSE,
    ):  # fmt: skip
        place = Path(tool.fact(fact))
        assert place.is_absolute()
        assert place.exists(), fact


@pytest.mark.parametrize(
    "gone", ["bin/nvcc", "lib/libcudart.so.13", "lib/libcublasLt.so.13", "include/cccl",
             "licenses/nvidia-cuda-nvcc/License.txt"]
)  # fmt: skip
def test_a_stated_path_that_is_not_there(provided: ProvidedSet, root: Path, gone: str) -> None:
    (root / gone).rename(root / "elsewhere")
    with pytest.raises(ToolMissingError, match="not what its pins say") as caught:
        prove(provided, root)
    assert f"{gone} is not there" in caught.value.why
    assert caught.value.kind == "incomplete-set"


def test_an_unpacked_set_compiles_once_a_used_one_not_again(
    provided: ProvidedSet, root: Path
) -> None:
    prove(provided, root, unpacked_by=Silent())
    assert len(asked(root)) == 2
    prove(provided, root)
    assert len(asked(root)) == 2


# --- nvcc's own word ------------------------------------------------------------------------


def test_the_order_of_codes_does_not_count(provided: ProvidedSet, root: Path) -> None:
    prove_toolkit(stating(provided, cuda_codes="120 90 80 75"), root)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (nvcc("13.0.48"), "nvcc's version: 13.0.48, and the pins say 13.0.88"),
        (nvcc(codes="75 80 90"), "what nvcc compiles for: 75 80 90, and the pins say 75 80 90 120"),
        (nvcc(codes="61 75 80 90 120"), "what nvcc compiles for: 61 75 80 90 120, and"),
        ("#!/bin/sh\necho hello\n", "nvcc's version: nothing, and"),
    ],
)
def test_another_nvcc_than_the_pins_say(
    provided: ProvidedSet, root: Path, program: str, why: str
) -> None:
    put(root, program)
    with pytest.raises(ToolMissingError, match="not what its pins say") as caught:
        prove_toolkit(provided, root)
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("#!/bin/sh\necho 'no such library' >&2\nexit 127\n", "--version ended with status 127"),
        ("#!/bin/sh\nkill -SEGV $$\n", "--version ended with status -11"),
    ],
)
def test_nvcc_that_does_not_run(provided: ProvidedSet, root: Path, program: str, why: str) -> None:
    put(root, program)
    with pytest.raises(ToolMissingError, match="is not a working nvcc") as caught:
        prove_toolkit(provided, root)
    assert why in caught.value.why
    assert caught.value.kind == "nvcc-unusable"
    assert str(root / "bin/nvcc") in caught.value.command


def test_nvcc_that_hangs_is_ended(
    provided: ProvidedSet, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_proof, "ASK_S", 0.3)
    put(root, "#!/bin/sh\nsleep 600\n")
    with pytest.raises(ToolMissingError) as caught:
        prove_toolkit(provided, root)
    assert "timed-out" in caught.value.why


def test_nvcc_of_another_machine(provided: ProvidedSet, root: Path) -> None:
    (root / "bin/nvcc").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00")
    with pytest.raises(ToolMissingError) as caught:
        prove_toolkit(provided, root)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (host_config(14, 20), "its newest gcc: 14, and the pins say 15"),
        (host_config(15, 19), "its newest clang: 19, and the pins say 20"),
        ("/* nothing */", "its newest gcc: nothing, and the pins say 15"),
    ],
)
def test_limits_of_the_header_count(
    provided: ProvidedSet, root: Path, header: str, why: str
) -> None:
    (root / "include/crt/host_config.h").write_text(header)
    with pytest.raises(ToolMissingError) as caught:
        prove_toolkit(provided, root)
    assert caught.value.why == why


def test_toolkit_without_the_header(provided: ProvidedSet, root: Path) -> None:
    (root / "include/crt/host_config.h").unlink()
    with pytest.raises(ToolMissingError, match="not what its pins say"):
        prove_toolkit(provided, root)


# --- compiling and linking ------------------------------------------------------------------


def test_a_kernel_is_compiled_and_linked(provided: ProvidedSet, root: Path, path: Path) -> None:
    assert told(provided, root) == []
    compiled, linked = asked(root)
    for line in (compiled, linked):
        assert f"-ccbin {path / 'g++'}" in line
        assert "-gencode=arch=compute_120,code=sm_120" in line
    assert " -c " in compiled
    assert "-Xcompiler=-fPIC" in compiled
    assert " -shared " in linked
    assert "-cudart=shared" in linked
    assert "-lcublas" in linked
    assert "-lcuda " in linked


def test_the_kernel_uses_what_ggml_uses() -> None:
    for header in ("cuda_runtime.h", "cublas_v2.h", "cub/", "cuda_fp16.h", "<cuda.h>"):
        assert header in cuda_proof.KERNEL


def test_nothing_is_left_behind(
    provided: ProvidedSet, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    told(provided, root)
    assert list(scratch.iterdir()) == []


def test_cicc_that_is_missing(provided: ProvidedSet, root: Path) -> None:
    (root / "nvvm/bin/cicc").unlink()
    with pytest.raises(ToolMissingError, match="is not a working nvcc") as caught:
        told(provided, root)
    assert "it cannot make proof.o" in caught.value.why
    assert any("cicc" in line for line in caught.value.tail)


@pytest.mark.parametrize(
    "ending", ["exit 0", ": > proof.o", "echo text > proof.o", "printf '\\177EL' > proof.o"]
)
def test_status_0_without_an_object_is_no_proof(
    provided: ProvidedSet, root: Path, ending: str
) -> None:
    put(root, f"#!/bin/sh\n{ending}\n")
    with pytest.raises(ToolMissingError) as caught:
        told(provided, root)
    assert "it cannot make proof.o" in caught.value.why


def test_an_object_with_status_1_is_no_proof(provided: ProvidedSet, root: Path) -> None:
    put(root, f"#!/bin/sh\n{LINKED} > proof.o\nexit 1\n")
    with pytest.raises(ToolMissingError, match="is not a working nvcc"):
        told(provided, root)


def test_linking_that_fails(provided: ProvidedSet, root: Path) -> None:
    fails = "echo 'cannot find -lcublas' >&2; exit 1"
    put(root, f'#!/bin/sh\ncase "$*" in *-shared*) {fails} ;; esac\n{LINKED} > proof.o\n')
    with pytest.raises(ToolMissingError) as caught:
        told(provided, root)
    assert "it cannot make libproof.so" in caught.value.why
    assert caught.value.tail == ("cannot find -lcublas",)


@pytest.mark.parametrize("major", ["12", "1"])
def test_linking_with_another_releases_libraries(
    provided: ProvidedSet, root: Path, major: str
) -> None:
    other = LINKED.replace("cublas.so.13", f"cublas.so.{major}")
    put(root, f'#!/bin/sh\nfor last; do :; done\n{other} > "$last"\n')
    with pytest.raises(ToolMissingError) as caught:
        told(provided, root)
    assert "does not ask for libcublas.so.13" in caught.value.why


def test_compiling_that_hangs_is_ended(
    provided: ProvidedSet, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_proof, "COMPILE_S", 0.3)
    put(root, "#!/bin/sh\nsleep 600\n")
    with pytest.raises(ToolMissingError) as caught:
        told(provided, root)
    assert "timed-out" in caught.value.why


# --- the host compiler ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compilers", "chosen"),
    [
        ({"g++": "12.2.0"}, "g++"),
        ({"g++": "15.1.0"}, "g++"),
        ({"g++": "16.0.1", "g++-14": "14.2.0", "g++-12": "12.2.0"}, "g++-14"),
        ({"g++": "16.0.1", "clang++": "18.1.0"}, "clang++"),
        ({"g++": "16.0.1", "clang++": "21.0.0", "clang++-19": "19.1.0"}, "clang++-19"),
        ({"g++": "16.0.1", "g++-15": "15"}, "g++-15"),
        ({"g++-17": "17.0.0"}, None),
        ({"g++": "16.0.1", "clang++": "21.0.0"}, None),
        ({}, None),
    ],
)
def test_the_first_compiler_that_the_toolkit_takes(
    provided: ProvidedSet, path: Path, compilers: dict[str, str], chosen: str | None
) -> None:
    (path / "g++").unlink()
    for name, version in compilers.items():
        banner = f"Debian clang version {version}" if name.startswith("clang") else ""
        write_compiler(path, name, version, banner=banner)
    assert host_compiler(provided) == (str(path / chosen) if chosen else None)


def test_a_gcc_that_is_clang_counts_as_clang(provided: ProvidedSet, path: Path) -> None:
    write_compiler(path, "g++", "4.2.1", banner="Apple clang version 21.0.0")
    assert host_compiler(provided) is None


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n"])
def test_a_compiler_that_tells_nothing_is_passed_over(
    provided: ProvidedSet, path: Path, text: str
) -> None:
    (path / "g++").write_text(text)
    write_compiler(path, "g++-13", "13.3.0")
    assert host_compiler(provided) == str(path / "g++-13")


def test_a_limit_that_is_not_stated_takes_no_compiler(provided: ProvidedSet) -> None:
    assert host_compiler(stating(provided, gcc_max="", clang_max="")) is None


def test_no_compiler_is_a_warning(provided: ProvidedSet, root: Path, path: Path) -> None:
    (path / "g++").unlink()
    reporter = Silent()
    (tool,) = prove(provided, root, unpacked_by=reporter)
    assert tool.role is Role.CUDA
    (warning,) = reporter.warnings
    assert "nothing was compiled" in warning
    assert "gcc 15 or clang 20" in warning
    assert asked(root) == []


def test_a_toolkit_for_windows_is_not_compiled_with(tmp_path: Path) -> None:
    archives = redist_archives("windows-x86_64")
    provided = redist_set(redist_files(archives, "https://vendor.invalid"), windows=True)
    place = tmp_path / "windows"
    unpack(provided, write_blobs(tmp_path / "windows-blobs", archives), place)
    reporter = Silent()
    (tool,) = prove(provided, place, unpacked_by=reporter)
    assert tool.fact(Fact.CUBLAS) == (place / "lib/x64/cublas.lib").as_posix()
    assert Path(tool.fact(Fact.CUDA_DLLS)) == place / "bin"
    assert len(reporter.warnings) == 1
