"""The plan as a whole: options, environment, names, sources, jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamawright.digest import plain
from llamawright.errors import ToolchainConflictError
from llamawright.model.inventory import Inventory, Role
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import Option
from llamawright.model.request import Request
from llamawright.resolve import pin_source, resolve
from resolve_kit import (
    BASE,
    CCACHE,
    CMAKE,
    COMMIT,
    GCC,
    NINJA,
    NO_TOOLCHAINS,
    PROVIDED,
    RECIPE,
    SDK,
    inventory,
    request,
)

GIB = 1 << 30
MACHINE = inventory(*BASE, sets=(PROVIDED,))


def plan(wanted: Request, machine: Inventory = MACHINE) -> Plan:
    return resolve(wanted, machine, NO_TOOLCHAINS, ())


def options(made: Plan) -> dict[str, str]:
    assert len({o.name for o in made.host_options}) == len(made.host_options)
    return {o.name: o.value for o in made.host_options}


def test_the_name_is_one_for_every_place() -> None:
    assert plan(request()).name == "llama.cpp-0c1e57098-vulkan-linux_x86_64"
    assert plan(request(backend=Backend.CPU)).name == "llama.cpp-0c1e57098-cpu-linux_x86_64"


def test_the_host_gets_the_recipe_and_the_tools() -> None:
    told = options(plan(request()))
    assert told["GGML_BACKEND_DL"] == "ON"
    assert told["GGML_NATIVE"] == "OFF"
    assert told["LLAMA_BUILD_NUMBER"] == "11312"
    assert told["LLAMA_BUILD_COMMIT"] == "0c1e57098"
    assert told["CMAKE_C_COMPILER"] == "/usr/bin/gcc"
    assert told["CMAKE_CXX_COMPILER"] == "/usr/bin/g++"
    assert told["CMAKE_MAKE_PROGRAM"] == "/usr/bin/ninja"
    assert told["CMAKE_C_COMPILER_LAUNCHER"] == "/usr/bin/ccache"
    assert told["CMAKE_CXX_COMPILER_LAUNCHER"] == "/usr/bin/ccache"
    assert not [name for name in told if name.startswith(("Vulkan", "GGML_VULKAN"))]


def test_the_module_gets_the_backends_own_options_only() -> None:
    made = plan(request())
    assert [o.name for o in made.module_options] == [
        "GGML_VULKAN",
        "Vulkan_INCLUDE_DIR",
        "Vulkan_LIBRARY",
        "Vulkan_GLSLC_EXECUTABLE",
        "SPIRV-Headers_DIR",
    ]
    assert plan(request(backend=Backend.CPU)).module_options == ()


def test_every_option_says_its_reason() -> None:
    added = [o for o in plan(request()).host_options if o not in RECIPE.options]
    assert added
    assert all(o.reason for o in added)


def test_the_chosen_tools_win_over_a_recipes_entries() -> None:
    recipe = replace(
        RECIPE, options=(*RECIPE.options, Option(name="CMAKE_CXX_COMPILER", value="/mine"))
    )
    assert options(plan(request(recipe=recipe)))["CMAKE_CXX_COMPILER"] == "/usr/bin/g++"


def test_the_tests_archive_replaces_entries() -> None:
    assert options(plan(request()))["LLAMA_BUILD_TESTS"] == "OFF"
    made = plan(replace(request(), with_tests=True))
    assert options(made)["LLAMA_BUILD_TESTS"] == "ON"
    assert made.with_tests


def test_the_environment_is_small_and_named() -> None:
    assert plan(request()).environment == (
        ("SOURCE_DATE_EPOCH", "1790820708"),
        ("CC", "/usr/bin/gcc"),
        ("CXX", "/usr/bin/g++"),
    )


def test_native_with_modules_is_refused_on_x86() -> None:
    with pytest.raises(ToolchainConflictError) as caught:
        plan(replace(request(), native=True))
    assert caught.value.kind == "native-with-modules"
    assert "leave --native out" in caught.value.hint


def test_native_elsewhere_sets_both_entries_and_counts_in_the_key() -> None:
    arm = Platform(System.LINUX, "aarch64")
    wanted = replace(request(platform=arm), native=True)
    made = plan(wanted)
    assert options(made)["GGML_NATIVE"] == "ON"
    assert options(made)["GGML_CPU_ALL_VARIANTS"] == "OFF"
    other = plan(wanted, replace(MACHINE, cpu="another CPU"))
    assert other.host_key != made.host_key
    assert (
        plan(request(platform=arm)).host_key
        == plan(request(platform=arm), replace(MACHINE, cpu="another CPU")).host_key
    )


def test_a_backend_without_a_rule_is_refused() -> None:
    with pytest.raises(ToolchainConflictError) as caught:
        plan(request(backend=Backend.CUDA))
    assert caught.value.kind == "unknown-backend"
    assert "cpu, vulkan" in caught.value.why


def test_a_plan_is_plain_data() -> None:
    assert plain(plan(request()))


@pytest.mark.parametrize(
    ("cores", "total", "free", "jobs"),
    [
        (8, 32, 30, 8),
        (16, 8, 6, 4),
        (2, 24, 23, 2),
        (8, 2, 1, 1),
        (4, 8, 0, 4),
        (8, 4, 0, 2),
    ],
)
def test_jobs_come_from_cores_and_memory(cores: int, total: int, free: int, jobs: int) -> None:
    machine = replace(MACHINE, cores=cores, memory=total * GIB, memory_free=free * GIB)
    assert plan(request(), machine).jobs == jobs


def test_the_asked_number_of_jobs_wins() -> None:
    assert plan(replace(request(), jobs=64)).jobs == 64


def test_a_pinned_source_stays_as_the_recipe_has_it() -> None:
    for source in ("auto", "index", "archive", f"git+https://example.org/x@{COMMIT}"):
        made = plan(replace(request(), source=source))
        assert made.recipe == RECIPE
        assert pin_source(made, "9" * 64) == made


def test_another_commit_is_named_as_itself_and_not_as_the_pin() -> None:
    commit = "ab" * 20
    made = plan(replace(request(), source=f"git+https://example.org/x@{commit}"))
    assert made.name == "llama.cpp-ababababa-vulkan-linux_x86_64"
    assert made.recipe.source.commit == commit
    assert made.recipe.source.tree is None
    assert options(made)["LLAMA_BUILD_NUMBER"] == "0"
    assert options(made)["LLAMA_BUILD_COMMIT"] == "ababababa"
    assert any("not pinned" in w for w in made.warnings)


def test_a_folder_is_called_local() -> None:
    made = plan(replace(request(), source="path:/home/me/llama.cpp"))
    assert made.name == "llama.cpp-local-vulkan-linux_x86_64"
    assert options(made)["LLAMA_BUILD_COMMIT"] == "local"


def test_the_digest_of_an_unpinned_source_goes_into_the_key() -> None:
    made = plan(replace(request(), source="path:/home/me/llama.cpp"))
    first, second = pin_source(made, "1" * 64), pin_source(made, "2" * 64)
    assert len({made.key, first.key, second.key}) == 3
    assert len({made.host_key, first.host_key, second.host_key}) == 3
    assert first.recipe.source.tree == "1" * 64
    assert pin_source(first, "2" * 64) == first


def test_tools_of_the_plan_are_the_chosen_ones() -> None:
    made = plan(request(), inventory(*BASE, *SDK))
    assert [t.role for t in made.tools] == [
        Role.CXX, Role.CMAKE, Role.NINJA, Role.CACHE, Role.VULKAN, Role.GLSLC,
    ]  # fmt: skip
    assert made.tools[:4] == (GCC, CMAKE, NINJA, CCACHE)
