"""CUDA's part of the configure gate, of the command line and of the compiler cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import package_kit
from llamawright.build.arguments import build_entries, prefix_map
from llamawright.build.backends import gate_of
from llamawright.build.backends.cuda import compiled_codes
from llamawright.build.cache import without_launchers
from llamawright.build.failures import classify
from llamawright.build.fileapi import Compiler, Group, Reply, Target
from llamawright.build.gates import effective
from llamawright.model.cuda import CudaPlan, GpuCode
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import BackendRule, Option

RULE = BackendRule(backend=Backend.CUDA, targets=("ggml-cuda",), modules=("ggml-cuda",))
ROOT = "/opt/cuda-12.4"
LOG = "-- Including CUDA backend\n"
# As CMake 4 writes them for 61-real;89-real;89-virtual.
FLAGS = (
    "-O3 -DNDEBUG -std=c++17",
    '"--generate-code=arch=compute_61,code=[sm_61]"',
    '"--generate-code=arch=compute_89,code=[compute_89,sm_89]"',
    "-Xcompiler=-fPIC -use_fast_math -extended-lambda",
)
CODES = (GpuCode(61), GpuCode(89), GpuCode(89, ptx=True))
OPTIONS = (
    Option(name="CMAKE_CUDA_COMPILER", value=f"{ROOT}/bin/nvcc", type="FILEPATH"),
    Option(name="CUDAToolkit_ROOT", value=ROOT, type="PATH"),
)
FOUND = {
    "CUDA_CUDART": f"{ROOT}/lib64/libcudart.so",
    "CUDA_cublas_LIBRARY": f"{ROOT}/lib64/libcublas.so",
}
LINUX = Platform(System.LINUX, "x86_64")


def plan(codes: tuple[GpuCode, ...] = CODES) -> Plan:
    made = package_kit.plan(backend=Backend.CUDA, module_options=OPTIONS)
    cuda = CudaPlan(
        toolkit="12.4.131", codes=codes, driver="525", driver_jit="550", compression="",
        libraries=(),
    )  # fmt: skip
    return replace(made, cuda=cuda)


def target(flags: tuple[str, ...] = FLAGS, language: str = "CUDA") -> Target:
    group = Group(language=language, flags=flags, defines=(), includes=())
    cxx = Group(language="CXX", flags=("-O3",), defines=(), includes=())
    return Target(name="ggml-cuda", type="MODULE_LIBRARY", groups=(cxx, group))


def reply(
    made: Target | None = None, *, nvcc: str = f"{ROOT}/bin/nvcc", version: str = "12.4.131",
    **cache: str,
) -> Reply:  # fmt: skip
    return Reply(
        targets=(made or target(),),
        cache=tuple({**FOUND, **cache}.items()),
        compilers=(Compiler(language="CUDA", path=nvcc, version=version),) if nvcc else (),
    )


def faults(answer: Reply, made: Plan | None = None, log: str = LOG) -> list[str]:
    return list(gate_of(Backend.CUDA).faults(made or plan(), RULE, answer, log))


def test_what_was_planned_passes() -> None:
    assert faults(reply()) == []


def test_a_backend_that_was_left_out_is_seen() -> None:
    assert faults(reply(), log="-- Warning: CUDA not found") == [
        "CMake did not say: Including CUDA backend"
    ]


def test_another_nvcc_than_the_plan_s_is_a_fault() -> None:
    """Case C10: headers of one toolkit and the nvcc of another."""
    (fault,) = faults(reply(nvcc="/usr/bin/nvcc"))
    assert fault == f"CUDA is compiled by /usr/bin/nvcc, not by {ROOT}/bin/nvcc"
    (fault,) = faults(reply(version="12.0.140"))
    assert "version 12.0.140, not by 12.4.131" in fault
    assert "CMake has no CUDA compiler" in faults(reply(nvcc=""))


def test_a_library_of_another_toolkit_is_a_fault() -> None:
    (fault,) = faults(reply(CUDA_cublas_LIBRARY="/usr/local/cuda-13.0/lib64/libcublas.so"))
    assert fault.startswith("CUDA_cublas_LIBRARY is /usr/local/cuda-13.0")


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ((GpuCode(61), GpuCode(89)), "sm_61, sm_89, compute_89, not for sm_61, sm_89"),
        ((*CODES, GpuCode(90)), "not for sm_61, sm_89, compute_89, sm_90"),
        ((GpuCode(61, ptx=True),), "not for compute_61"),
    ],
)
def test_code_that_differs_from_the_plan_is_a_fault(codes: tuple[GpuCode, ...], told: str) -> None:
    (fault,) = faults(reply(), plan(codes))
    assert told in fault


def test_no_code_at_all_is_a_fault() -> None:
    (fault,) = faults(reply(target(("-O3",))))
    assert "for no CUDA code, not for sm_61" in fault
    (fault,) = faults(reply(target(language="CXX")))
    assert fault == "ggml-cuda has no CUDA source"


def test_no_capability_is_asked_for() -> None:
    assert gate_of(Backend.CUDA).proved(plan()) is None


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ("--generate-code=arch=compute_61,code=[compute_61,sm_61]", "sm_61 compute_61"),
        ("-gencode arch=compute_90a,code=sm_90a", "sm_90a"),
        ("-gencode=arch=compute_75,code=compute_75", "compute_75"),
        ('"--generate-code=arch=compute_120a,code=[sm_120a]"', "sm_120a"),
        ("-O3 -DCODE=1", ""),
    ],
)
def test_nvcc_s_flags_are_read(flags: str, names: str) -> None:
    assert " ".join(c.name for c in sorted(compiled_codes(flags))) == names


def test_nvcc_hands_the_prefix_map_to_the_host_compiler() -> None:
    source, build = Path("/a b/src"), Path("/w/build")
    entries = {
        o.name: o.value for o in build_entries(source, build, Path("/t"), LINUX, Backend.CUDA)
    }
    flags = entries["CMAKE_CUDA_FLAGS"]
    assert flags.split(" -Xcompiler=") == [
        f"{'-Xcompiler=' if i == 0 else ''}{f}" for i, f in enumerate(prefix_map(source, build))
    ]
    assert "CMAKE_CUDA_FLAGS" not in {
        o.name for o in build_entries(source, build, Path("/t"), LINUX, Backend.VULKAN)
    }


def test_a_failing_cache_is_left_out_for_the_languages_that_have_it() -> None:
    cuda = Option(name="CMAKE_CUDA_COMPILER_LAUNCHER", value="/c/ccache", type="FILEPATH")
    cxx = Option(name="CMAKE_CXX_COMPILER_LAUNCHER", value="/c/ccache", type="FILEPATH")
    assert {o.name: o.value for o in without_launchers((cxx, cuda))} == {
        "CMAKE_CXX_COMPILER_LAUNCHER": "", "CMAKE_CUDA_COMPILER_LAUNCHER": "",
    }  # fmt: skip
    assert [o.name for o in without_launchers((cxx,))] == ["CMAKE_CXX_COMPILER_LAUNCHER"]


def test_where_the_cache_stands_is_not_told() -> None:
    launcher = Option(name="CMAKE_CXX_COMPILER_LAUNCHER", value="/c/ccache", type="FILEPATH")
    answer = reply(GGML_CUDA="ON", CMAKE_CXX_COMPILER_LAUNCHER="/c/ccache")
    rows = effective((launcher, Option(name="GGML_CUDA", value="ON")), answer)
    assert [r.name for r in rows] == ["GGML_CUDA"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "gpu-arch"),
        (
            "#error -- unsupported GNU version! gcc versions later than 13 are not supported!",
            "host-compiler",
        ),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "out-of-memory"),
        ("nvcc error   : 'ptxas' died due to signal 9 (Kill signal)", "out-of-memory"),
        ("nvcc error   : 'cicc' died due to signal 11 (Invalid memory)", "compiler-crashed"),
        ("ptxas fatal   : Memory allocation failure", "out-of-memory"),
        ("nvcc fatal : Could not open output file '/x.ii' No space left on device", "disk-full"),
        ("/usr/bin/ld: cannot find -lcublas: No such file or directory", "link-failed"),
        ("Could not find nvcc, please set CUDAToolkit_ROOT", "cuda-toolkit"),
        ("nvcc fatal   : Cannot find compiler 'cl.exe' in PATH", "host-compiler"),
        ('error: identifier "__Float32x4_t" is undefined', "host-compiler"),
    ],
)  # fmt: skip
def test_what_nvcc_says_has_a_class(line: str, kind: str) -> None:
    assert classify(f"FAILED: ggml-cuda.cu.o\n{line}\n").kind == kind
