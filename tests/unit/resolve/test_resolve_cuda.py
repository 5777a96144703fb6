"""Which toolkit compiles which code, for which driver, with which host compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import ExitCode, LlamawrightError
from llamawright.model.cuda import GpuCode, Gpus, Presence
from llamawright.model.inventory import Available, Fault, Inventory, Role
from llamawright.model.plan import Plan
from llamawright.model.request import Request
from llamawright.model.toolchain import Fact
from llamawright.resolve import resolve
from resolve_cuda_kit import (
    CODES_12_9,
    CODES_13_0,
    CUDA_11_8,
    CUDA_12_4,
    CUDA_12_9,
    CUDA_13_0,
    NO_CARDS,
    SET_12_4,
    SET_13_0,
    TOOLCHAINS,
    cards,
    cuda_set,
    machine,
    toolkit,
    wanted,
)
from resolve_kit import CCACHE, CMAKE, NINJA, found, inventory, refused

SM_61, SM_89, PTX_89 = GpuCode(61), GpuCode(89), GpuCode(89, ptx=True)


def plan(seen: Inventory, asked: Request) -> Plan:
    return resolve(asked, seen, TOOLCHAINS, ())


def refusal(seen: Inventory, asked: Request) -> LlamawrightError:
    with pytest.raises(LlamawrightError) as caught:
        plan(seen, asked)
    return caught.value


def option(made: Plan, name: str) -> str:
    return next((o.value for o in made.module_options if o.name == name), "")


def codes(made: Plan) -> str:
    assert made.cuda is not None
    return " ".join(c.name for c in made.cuda.codes)


def toolkit_of(made: Plan) -> str:
    assert made.cuda is not None
    return made.cuda.toolkit


def test_the_newest_toolkit_that_serves_all_codes_is_taken() -> None:
    """61 and 89 together: 11.8 to 12.9."""
    seen = machine(CUDA_11_8, CUDA_13_0, CUDA_12_4, CUDA_12_9)
    made = plan(seen, wanted("sm_61", "sm_89"))
    assert toolkit_of(made) == "12.9.86"
    assert option(made, "CMAKE_CUDA_COMPILER") == "/usr/local/cuda-12.9/bin/nvcc"
    assert option(made, "CUDAToolkit_ROOT") == "/usr/local/cuda-12.9"
    assert codes(made) == "sm_61 sm_89 compute_89"
    assert option(made, "CMAKE_CUDA_ARCHITECTURES") == "61-real;89-real;89-virtual"


def test_what_is_installed_goes_before_what_must_be_downloaded() -> None:
    assert toolkit_of(plan(machine(CUDA_12_4, sets=(SET_13_0,)), wanted("89"))) == "12.4.131"
    assert toolkit_of(plan(machine(CUDA_13_0, sets=(SET_12_4,)), wanted("61"))) == "12.4.131"


def test_of_what_can_be_provided_the_store_s_own_and_the_tried_go_first() -> None:
    vendor = cuda_set("12.9.86", CODES_12_9, gcc=14)
    vendor = replace(vendor, facts=(*vendor.facts, (Fact.UNTRIED, "never fetched")))
    assert toolkit_of(plan(machine(sets=(vendor, SET_12_4)), wanted("61"))) == "12.4.131"
    alone = plan(machine(sets=(vendor,)), wanted("61"))
    assert toolkit_of(alone) == "12.9.86"
    assert any(w.endswith(": never fetched") for w in alone.warnings)
    there = replace(vendor, present=True)
    assert toolkit_of(plan(machine(sets=(SET_12_4, there)), wanted("61"))) == "12.9.86"
    assert toolkit_of(plan(machine(sets=(SET_12_4, SET_13_0)), wanted("89"))) == "13.0.88"


def test_a_toolkit_newer_than_the_driver_goes_behind_one_that_it_knows() -> None:
    seen = machine(CUDA_12_4, CUDA_12_9, gpus=cards(89, driver="550.90.07", cuda="12.4"))
    assert toolkit_of(plan(seen, wanted("native"))) == "12.4.131"
    alone = machine(CUDA_12_9, gpus=cards(89, driver="550.90.07", cuda="12.4"))
    assert toolkit_of(plan(alone, wanted("native"))) == "12.9.86"


def test_sm_61_with_13_names_what_would_do() -> None:
    seen = machine(CUDA_13_0, CUDA_12_4, sets=(SET_12_4,))
    error = refusal(seen, wanted("sm_61", toolkit_from="13"))
    assert error.code is ExitCode.TOOLS_CONFLICT
    assert error.kind == "gpu-code-unknown"
    assert error.what == "sm_61 cannot be compiled by CUDA 13.0.88 (/usr/local/cuda-13.0)"
    assert "75 80 86" in error.why
    assert error.hint.splitlines() == [
        "--cuda-toolkit /usr/local/cuda-12.4 (CUDA 12.4.131, installed)",
        "--cuda-toolkit 12.4.131 (provided: 1,000 MB to download, no root is needed)",
    ]


def test_a_code_too_new_for_every_toolkit_says_what_each_knows() -> None:
    error = refusal(machine(CUDA_11_8, CUDA_12_4), wanted("120"))
    assert error.code is ExitCode.TOOLS_CONFLICT
    assert "sm_120a cannot be compiled by CUDA 11.8.89" in error.why
    assert "sm_120a cannot be compiled by CUDA 12.4.131" in error.why


@pytest.mark.parametrize(
    ("choice", "version"),
    [
        ("auto", "12.9.86"),
        ("system", "12.9.86"),
        ("provided", "13.0.88"),
        ("12", "12.9.86"),
        ("12.4", "12.4.131"),
        ("12.4.131", "12.4.131"),
        ("13", "13.0.88"),
        ("/usr/local/cuda-12.4", "12.4.131"),
    ],
)
def test_the_user_chooses_by_place_version_or_folder(choice: str, version: str) -> None:
    seen = machine(CUDA_12_4, CUDA_12_9, sets=(SET_13_0,))
    assert toolkit_of(plan(seen, wanted("89", toolkit_from=choice))) == version


def test_a_version_is_no_mere_beginning_of_text() -> None:
    """12.4 must not mean 12.40."""
    late = toolkit("12.40.1", "89")
    error = refusal(machine(late), wanted("89", toolkit_from="12.4"))
    assert "(12.4)" in error.what


def test_native_is_every_card_and_nothing_else() -> None:
    made = plan(machine(CUDA_12_9, gpus=cards(89, 61, 89)), wanted("native"))
    assert codes(made) == "sm_61 sm_89"


def test_without_words_the_machine_s_cards_are_built_for() -> None:
    assert codes(plan(machine(CUDA_13_0, gpus=cards(90)), wanted())) == "sm_90"


def test_without_words_and_cards_it_is_a_release_build_and_says_so() -> None:
    made = plan(machine(CUDA_12_4), wanted())
    assert codes(made) == "sm_61 sm_75 sm_89 compute_90"
    assert any("there is no NVIDIA driver" in w for w in made.warnings)
    assert any("does not know sm_120" in w for w in made.warnings)


def test_native_without_a_card_is_refused_with_the_reason() -> None:
    error = refusal(machine(CUDA_12_4), wanted("native"))
    assert error.kind == "no-gpu"
    assert "there is no NVIDIA driver" in error.why
    assert "--arch sm_89" in error.hint
    broken = Gpus(
        presence=Presence.BROKEN, reason="Driver/library version mismatch", cure="restart"
    )
    error = refusal(machine(CUDA_12_4, gpus=broken), wanted("native"))
    assert error.kind == "gpu-unreadable"
    assert error.hint.startswith("restart")


def test_a_card_whose_capability_is_unknown_is_no_guess() -> None:
    error = refusal(machine(CUDA_12_4, gpus=cards(0)), wanted("native"))
    assert error.kind == "gpu-unreadable"


def test_all_major_goes_as_far_as_the_toolkit() -> None:
    newest = toolkit("13.4.92", CODES_13_0, gcc=15)
    assert codes(plan(machine(newest), wanted("all-major"))) == (
        "sm_75 sm_80 sm_90 sm_100 sm_110 compute_110 sm_120a"
    )


def test_words_add_up_and_ptx_that_was_named_is_all_the_ptx_there_is() -> None:
    made = plan(machine(CUDA_12_4, gpus=cards(89)), wanted("native", "61-virtual", "75"))
    assert codes(made) == "compute_61 sm_75 sm_89"


def test_what_is_spelled_out_is_compiled_as_it_stands() -> None:
    assert codes(plan(machine(CUDA_12_4), wanted("89-real"))) == "sm_89"
    assert codes(plan(machine(CUDA_12_4), wanted("61-real", "89"))) == "sm_61 sm_89"
    assert codes(plan(machine(CUDA_12_4), wanted("61", "compute_80"))) == "sm_61 compute_80"


def test_a_code_that_upstream_makes_exact_brings_no_ptx() -> None:
    """120 becomes 120a, whose PTX no later card takes."""
    made = plan(machine(CUDA_12_9), wanted("120"))
    assert codes(made) == "sm_120a"
    made = plan(machine(CUDA_12_9), wanted("89", "120"))
    assert codes(made) == "sm_89 compute_89 sm_120a"


def test_only_ptx_is_said_loudly() -> None:
    made = plan(machine(CUDA_12_4), wanted("61-virtual"))
    assert codes(made) == "compute_61"
    assert any(w.startswith("only PTX (compute_61)") for w in made.warnings)


def test_known_bad_builds_are_refused_by_version_and_code() -> None:
    error = refusal(machine(toolkit("13.2.78", CODES_13_0)), wanted("89"))
    assert "miscompiles" in error.why
    error = refusal(machine(CUDA_13_0), wanted("89", "120"))
    assert error.kind == "cuda-known-bad"
    assert "wrong numbers" in error.why
    assert plan(machine(CUDA_13_0), wanted("89")).cuda is not None
    assert plan(machine(toolkit("13.2.86", CODES_13_0)), wanted("89")).cuda is not None


def test_the_driver_of_this_machine_counts_when_it_is_built_for() -> None:
    old = cards(89, driver="535.129.03", cuda="12.2")
    error = refusal(machine(CUDA_13_0, gpus=old), wanted("native"))
    assert error.kind == "driver-too-old"
    assert "580.65.06" in error.hint
    assert toolkit_of(plan(machine(CUDA_13_0, CUDA_12_9, gpus=old), wanted("native"))) == "12.9.86"
    made = plan(machine(CUDA_13_0, gpus=old), wanted("89"))
    assert any("535.129.03 of this machine cannot run CUDA 13" in w for w in made.warnings)


def test_a_card_that_the_build_leaves_out_is_named() -> None:
    made = plan(machine(CUDA_12_9, gpus=cards(61, 89)), wanted("89"))
    assert "Card 61 (6.1) in this machine cannot run this build" in made.warnings
    assert not any("Card 89" in w for w in made.warnings)


def test_a_broken_driver_is_a_warning_for_a_build_for_others() -> None:
    broken = Gpus(presence=Presence.BROKEN, reason="NVML: driver not loaded")
    made = plan(machine(CUDA_12_4, gpus=broken), wanted("89"))
    assert any("driver not loaded" in w for w in made.warnings)


def gcc(major: int) -> str:
    return f"/usr/bin/g++-{major}"


def with_compilers(*majors: int) -> Inventory:
    tools = [found(Role.CXX, "gcc", f"{m}.2.0", gcc(m), c_compiler=gcc(m)) for m in majors]
    return replace(inventory(*tools, CMAKE, NINJA, CCACHE, CUDA_12_4), gpus=NO_CARDS)


def test_nvcc_gets_the_build_s_own_compiler_where_it_takes_it() -> None:
    made = plan(with_compilers(13, 12), wanted("89"))
    assert option(made, "CMAKE_CUDA_HOST_COMPILER") == gcc(13)
    assert not any("nvcc compiles host code" in w for w in made.warnings)


def test_else_the_newest_that_it_takes_and_says_so() -> None:
    made = plan(with_compilers(14, 11, 12), wanted("89"))
    assert option(made, "CMAKE_CUDA_HOST_COMPILER") == gcc(12)
    assert any("does not take gcc 14.2.0" in w for w in made.warnings)


GCC_12 = Available(
    role=Role.HOST_CXX, name="gcc-12-set", version="12.2.0", digest="c" * 64, size=37_000_000,
    root=Path("/store/tools/gcc"), present=False, facts=((Fact.CXX, "usr/bin/g++-12"),),
)  # fmt: skip


def providing(seen: Inventory, *sets: Available) -> Inventory:
    return replace(seen, available=(*seen.available, *sets))


def test_else_one_is_provided_and_told_with_its_size() -> None:
    made = plan(providing(with_compilers(15), GCC_12), wanted("89"))
    assert option(made, "CMAKE_CUDA_HOST_COMPILER") == "/store/tools/gcc/usr/bin/g++-12"
    own = made.tool(Role.CXX)
    assert own is not None
    assert own.version == "15.2.0"
    assert GCC_12 in made.provisions
    told = next(w for w in made.warnings if "nvcc compiles host code" in w)
    assert "gcc 12.2.0 (provided, 37 MB to download)" in told
    assert "does not take gcc 15.2.0" in told


def test_what_is_installed_goes_before_what_is_provided() -> None:
    made = plan(providing(with_compilers(15, 11), GCC_12), wanted("89"))
    assert option(made, "CMAKE_CUDA_HOST_COMPILER") == gcc(11)
    assert GCC_12 not in made.provisions


def test_a_provided_one_that_is_too_new_as_well_is_none() -> None:
    newer = replace(GCC_12, version="14.2.0")
    assert refusal(providing(with_compilers(15), newer), wanted("89")).kind == "cuda-host-compiler"
    made = plan(providing(with_compilers(15), newer, GCC_12), wanted("89"))
    assert GCC_12 in made.provisions


def test_a_named_compiler_is_not_replaced_by_a_provided_one() -> None:
    asked = replace(wanted("89"), compiler=gcc(15))
    error = refusal(providing(with_compilers(15), GCC_12), asked)
    assert error.kind == "cuda-host-compiler"
    assert "leave --compiler out" in error.hint


def test_the_key_knows_a_provided_compiler_and_not_its_place() -> None:
    here = plan(providing(with_compilers(15), GCC_12), wanted("89"))
    moved = replace(GCC_12, root=Path("/elsewhere"))
    assert plan(providing(with_compilers(15), moved), wanted("89")).key == here.key
    other = replace(GCC_12, digest="d" * 64)
    assert plan(providing(with_compilers(15), other), wanted("89")).key != here.key


def test_no_accepted_compiler_is_a_conflict_with_the_package_to_install() -> None:
    error = refusal(with_compilers(14), wanted("89"))
    assert error.kind == "cuda-host-compiler"
    assert "gcc up to 13" in error.why
    assert "g++-13" in error.hint


def test_a_named_compiler_is_never_replaced() -> None:
    asked = replace(wanted("89"), compiler=gcc(14))
    assert refusal(with_compilers(14, 13), asked).kind == "cuda-host-compiler"


def test_every_conflict_is_named_at_once() -> None:
    seen = replace(with_compilers(14), found=(*with_compilers(14).found, CUDA_13_0))
    error = refusal(seen, wanted("61", toolkit_from="auto"))
    assert error.kind == "cuda-conflicts"
    assert "sm_61 cannot be compiled by CUDA 13.0.88" in error.why
    assert "no C++ compiler here is accepted by CUDA 12.4.131" in error.why


def test_without_any_toolkit_the_cure_is_the_provider() -> None:
    nothing = refused(Role.CUDA, "its nvcc is a dangling link", Fault.DANGLING)
    seen = replace(machine(), rejected=(nothing,))
    error = refusal(seen, wanted("89"))
    assert error.code is ExitCode.TOOL_MISSING
    assert error.kind == "cuda-dangling-link"
    assert "dangling" in error.why


def test_a_named_folder_is_told_as_the_user_named_it() -> None:
    named = refused(Role.CUDA, "its nvcc crashes", Fault.CRASHED, "CUDAToolkit_ROOT", "/opt/x")
    other = refused(Role.CUDA, "no cuBLAS", Fault.INCOMPLETE, "PATH", "/usr/local/cuda")
    seen = replace(machine(sets=(SET_12_4,)), rejected=(named, other))
    error = refusal(seen, wanted("89", toolkit_from="/opt/x"))
    assert error.why == "/opt/x (--cuda-toolkit): its nvcc crashes"
    assert error.hint.startswith("--cuda-toolkit 12.4.131 (provided")
    assert "CUDAToolkit_ROOT" not in error.hint


def test_a_version_that_is_not_there_brings_no_cure_for_another() -> None:
    other = refused(Role.CUDA, "CUDA 13.0.88: no cuBLAS", Fault.INCOMPLETE)
    seen = replace(machine(sets=(SET_12_4,)), rejected=(other,))
    assert "cuBLAS" not in refusal(seen, wanted("89", toolkit_from="12.7")).why
    assert "no cuBLAS" in refusal(seen, wanted("89", toolkit_from="13.0")).why


def test_a_provided_toolkit_stands_in_the_store_and_tells_its_size() -> None:
    made = plan(machine(sets=(SET_12_4,)), wanted("61"))
    assert option(made, "CMAKE_CUDA_COMPILER") == "/store/tools/cc/cuda/bin/nvcc"
    assert option(made, "CMAKE_CUDA_STANDARD_INCLUDE_DIRECTORIES") == "/store/tools/cc/cuda/cccl"
    assert [p.name for p in made.provisions] == [SET_12_4.name]
    assert any("1,000 MB are downloaded first" in w for w in made.warnings)
    asked = wanted("61")
    asked = replace(asked, proof=replace(asked.proof, offline=True))
    assert any(w.startswith("offline") for w in plan(machine(sets=(SET_12_4,)), asked).warnings)
    there = replace(SET_12_4, present=True)
    assert not any("download" in w for w in plan(machine(sets=(there,)), wanted("61")).warnings)


def test_the_driver_floor_counts_packing_and_ptx() -> None:
    old, new = plan(machine(CUDA_12_4), wanted("89")), plan(machine(CUDA_12_9), wanted("89"))
    assert old.cuda is not None
    assert new.cuda is not None
    assert (old.cuda.driver, old.cuda.driver_jit, old.cuda.compression) == (
        "525.60.13", "550.54.14", "",
    )  # fmt: skip
    assert (new.cuda.driver, new.cuda.driver_jit) == ("550.54.14", "")
    assert new.cuda.compression == "size"


def test_two_releases_of_cuda_make_two_artifacts() -> None:
    assert plan(machine(CUDA_12_4), wanted("89")).name == (
        "llama.cpp-0c1e57098-cuda12.4-linux_x86_64"
    )
    assert plan(machine(CUDA_12_9), wanted("89")).name == (
        "llama.cpp-0c1e57098-cuda12.9-linux_x86_64"
    )


def test_without_a_licence_text_no_library_goes_along_and_that_is_said() -> None:
    facts = tuple(f for f in CUDA_12_4.facts if f[0] != Fact.LICENSE)
    made = plan(machine(replace(CUDA_12_4, facts=facts)), wanted("89"))
    assert made.cuda is not None
    assert not made.cuda.bundled
    assert any("runs where CUDA 12 is installed" in w for w in made.warnings)


def test_libraries_and_licence_come_from_the_toolkit() -> None:
    made = plan(machine(CUDA_12_4), wanted("89"))
    assert made.cuda is not None
    assert [p.name for p in made.cuda.libraries] == [
        "libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12",
    ]  # fmt: skip
    assert made.cuda.license is not None
    assert made.cuda.bundled


def test_the_key_knows_toolkit_codes_and_host_compiler_and_no_place_of_the_store() -> None:
    one = plan(machine(CUDA_12_4), wanted("89"))
    assert plan(machine(CUDA_12_4), wanted("89", "61")).key != one.key
    assert plan(machine(CUDA_12_9), wanted("89")).key != one.key
    assert plan(with_compilers(11), wanted("89")).key != one.key
    here = plan(machine(sets=(SET_12_4,)), wanted("89"))
    there = plan(machine(sets=(replace(SET_12_4, root=SET_12_4.root / "x"),)), wanted("89"))
    assert here.key == there.key
    assert here.host_key == one.host_key


def test_the_host_is_the_same_for_every_backend() -> None:
    vulkan_less = replace(wanted("89"), backend=wanted().recipe.backends[0].backend)
    assert plan(machine(CUDA_12_4), wanted("89")).host_key == plan(machine(), vulkan_less).host_key


def test_nvcc_works_on_several_codes_at_a_time_where_memory_allows() -> None:
    made = plan(machine(CUDA_12_4), wanted("61", "89"))
    assert ("NVCC_APPEND_FLAGS", "--threads 2") in made.environment
    small = replace(machine(CUDA_12_4), memory_free=12 << 30)
    assert "NVCC_APPEND_FLAGS" not in dict(plan(small, wanted("61", "89")).environment)
    assert plan(small, wanted("61", "89")).key == made.key


def test_the_compiler_cache_serves_nvcc_too() -> None:
    made = plan(machine(CUDA_12_4), wanted("89"))
    assert option(made, "CMAKE_CUDA_COMPILER_LAUNCHER") == CCACHE.path.as_posix()
