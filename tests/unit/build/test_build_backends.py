"""What each backend adds to the gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import package_kit
from llamawright.build.backends import GATES, gate_of
from llamawright.build.fileapi import Group, Reply, Target
from llamawright.errors import BuildError
from llamawright.model.inventory import Available, Found, Role
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Option

CPU = BackendRule(backend=Backend.CPU, targets=("ggml-cpu-*",), modules=("ggml-cpu-*",))
VULKAN = BackendRule(backend=Backend.VULKAN, targets=("ggml-vulkan",), modules=("ggml-vulkan",))
SDK = "/sdk/include"


def target(name: str, *includes: str, kind: str = "MODULE_LIBRARY") -> Target:
    group = Group(language="CXX", flags=(), defines=(), includes=includes)
    return Target(name=name, type=kind, groups=(group,))


def reply(*targets: Target, announced: str = "") -> Reply:
    return Reply(
        targets=targets, cache=(("GGML_AVAILABLE_BACKENDS", announced),), compilers=()
    )  # fmt: skip


def cpu_faults(*targets: Target, announced: str) -> list[str]:
    answer = reply(*targets, announced=announced)
    return list(gate_of(Backend.CPU).faults(package_kit.plan(), CPU, answer, ""))


def vulkan_plan(
    headers: str = SDK, *, tools: tuple[Found, ...] = (), provisions: tuple[Available, ...] = ()
) -> Plan:
    options = (Option(name="Vulkan_INCLUDE_DIR", value=headers, type="PATH"),)
    return package_kit.plan(module_options=options, tools=tools, provisions=provisions)


def vulkan_faults(
    plan: Plan, *includes: str, log: str = "-- Including Vulkan backend\n"
) -> list[str]:
    return list(
        gate_of(Backend.VULKAN).faults(plan, VULKAN, reply(target("ggml-vulkan", *includes)), log)
    )


def test_the_registry_says_what_it_knows() -> None:
    assert set(GATES) == {Backend.CPU, Backend.VULKAN, Backend.CUDA}
    with pytest.raises(BuildError) as caught:
        gate_of(Backend.METAL)
    assert caught.value.kind == "backend-unknown"
    assert "vulkan" in caught.value.why


def test_every_announced_variant_is_a_module() -> None:
    both = (target("ggml-cpu-x64"), target("ggml-cpu-haswell"))
    assert cpu_faults(*both, announced="ggml-cpu-x64;ggml-cpu-haswell") == []


def test_a_variant_without_target_is_a_fault() -> None:
    faults = cpu_faults(target("ggml-cpu-x64"), announced="ggml-cpu-x64;ggml-cpu-haswell")
    assert faults == ["ggml-cpu-haswell is announced, and there is no such target"]


def test_a_variant_that_is_linked_in_is_a_fault() -> None:
    fixed = target("ggml-cpu-x64", kind="SHARED_LIBRARY")
    faults = cpu_faults(fixed, target("ggml-cpu-b"), announced="ggml-cpu-x64;ggml-cpu-b")
    assert faults == ["ggml-cpu-x64 is a SHARED_LIBRARY, not a module that is loaded at run time"]


def test_one_variant_is_not_all_of_them() -> None:
    assert cpu_faults(target("ggml-cpu-x64"), announced="ggml-cpu-x64") == [
        "GGML_CPU_ALL_VARIANTS is on, and CMake announces 1 variants"
    ]


def test_a_native_build_has_one_cpu_module() -> None:
    plan = package_kit.plan(host_options=(Option(name="GGML_CPU_ALL_VARIANTS", value="OFF"),))
    answer = reply(target("ggml-cpu"), announced="ggml-cpu")
    rule = replace(CPU, targets=("ggml-cpu",))
    assert list(gate_of(Backend.CPU).faults(plan, rule, answer, "")) == []
    assert gate_of(Backend.CPU).proved(plan) is None


def test_headers_of_the_plan_are_compiled_with() -> None:
    assert vulkan_faults(vulkan_plan(), "/src/ggml", SDK) == []
    assert vulkan_faults(vulkan_plan(f"{SDK}/"), SDK) == []


def test_headers_of_another_root_are_a_fault() -> None:
    assert vulkan_faults(vulkan_plan(), "/src/ggml", "/old/include") == [
        f"ggml-vulkan is not compiled with the headers of {SDK}"
    ]


def test_the_compilers_own_folder_is_on_no_command_line() -> None:
    assert vulkan_faults(vulkan_plan("/usr/include"), "/src/ggml") == []


def test_a_backend_that_cmake_did_not_speak_of_was_left_out() -> None:
    assert vulkan_faults(vulkan_plan(), SDK, log="-- Including CPU backend\n") == [
        "CMake did not say: Including Vulkan backend"
    ]


def test_proved_is_what_the_chosen_compiler_was_seen_to_do() -> None:
    glslc = Found(
        role=Role.GLSLC, name="glslc", path=Path("/g"), version="2025.2", where="PATH",
        sha256="0" * 64, facts=(("capabilities", "integer_dot cooperative_matrix"),),
    )  # fmt: skip
    proved = gate_of(Backend.VULKAN).proved(vulkan_plan(tools=(glslc,)))
    assert proved == frozenset({"integer_dot", "cooperative_matrix"})


def provided(*facts: tuple[str, str]) -> Available:
    return Available(
        role=Role.VULKAN, name="set", version="1.4", digest="d" * 64, size=1, root=Path("/t"),
        present=True, facts=facts,
    )  # fmt: skip


def test_a_provided_set_says_what_it_is_known_for() -> None:
    plan = vulkan_plan(provisions=(provided(("capabilities", "integer_dot")),))
    assert gate_of(Backend.VULKAN).proved(plan) == frozenset({"integer_dot"})


def test_a_set_that_nobody_looked_into_proves_nothing_and_refutes_nothing() -> None:
    plan = vulkan_plan(provisions=(provided(),))
    assert gate_of(Backend.VULKAN).proved(plan) is None
