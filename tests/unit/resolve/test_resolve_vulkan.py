"""Which Vulkan build side is chosen, and which patches its headers ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PureWindowsPath

import pytest

from llamawright.errors import LlamawrightError, ToolchainConflictError, ToolMissingError
from llamawright.model.inventory import Available, Fault, Found, Inventory, Rejected, Role
from llamawright.model.plan import Plan, PlannedPatch
from llamawright.model.platform import Platform, System
from llamawright.model.recipe import Recipe
from llamawright.model.request import ProofRequest, Request, VulkanChoice
from llamawright.model.toolchain import Fact, Hint, KnownBad
from llamawright.resolve import resolve
from resolve_kit import (
    BASE,
    NEW_SYSTEM,
    NO_TOOLCHAINS,
    OLD_HEADERS,
    PATCHES,
    PROVIDED,
    RECIPE,
    SDK,
    SPIRV_SET,
    SYSTEM,
    VULKAN,
    WEAK_SDK,
    inventory,
    refused,
    request,
    vulkan_side,
)

LUNARG = replace(
    PROVIDED,
    name="vulkan-lunarg",
    version="1.4.357",
    digest="f" * 64,
    facts=tuple(f for f in PROVIDED.facts if f[0] != Fact.CAPABILITIES),
)


def machine(
    *sides: tuple[Found, Found],
    sets: tuple[Available, ...] = (),
    rejected: tuple[Rejected, ...] = (),
) -> Inventory:
    tools = [tool for side in sides for tool in side]
    return inventory(*BASE, *tools, sets=sets, rejected=rejected)


def wanted(choice: VulkanChoice = VulkanChoice.AUTO, recipe: Recipe = RECIPE) -> Request:
    return replace(request(recipe=recipe), vulkan=choice)


def plan(
    seen: Inventory,
    asked: Request | None = None,
    patches: tuple[PlannedPatch, ...] = PATCHES,
) -> Plan:
    return resolve(asked or wanted(), seen, NO_TOOLCHAINS, patches)


def refusal(seen: Inventory, asked: Request | None = None) -> LlamawrightError:
    with pytest.raises(LlamawrightError) as caught:
        plan(seen, asked)
    return caught.value


def option(made: Plan, name: str) -> str:
    return next((o.value for o in made.module_options if o.name == name), "")


def include(made: Plan) -> str:
    return option(made, "Vulkan_INCLUDE_DIR")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (machine(SDK, SYSTEM, sets=(PROVIDED,)), "/opt/sdk/include"),
        (machine(WEAK_SDK, SYSTEM, sets=(PROVIDED,)), "/store/tools/dd/usr/include"),
        (machine(WEAK_SDK, SYSTEM), "/opt/sdk/include"),
        (machine(NEW_SYSTEM, sets=(PROVIDED,)), "/store/tools/dd/usr/include"),
        (machine(NEW_SYSTEM), "/usr/include"),
        (machine(SYSTEM), "/usr/include"),
        (machine(sets=(PROVIDED, LUNARG)), "/store/tools/dd/usr/include"),
    ],
)
def test_auto_prefers_a_worthwhile_sdk_then_provided_then_system(
    seen: Inventory, expected: str
) -> None:
    assert include(plan(seen)) == expected


def test_all_parts_come_from_one_root() -> None:
    made = plan(machine(SDK, SYSTEM, sets=(PROVIDED,)))
    assert option(made, "Vulkan_INCLUDE_DIR") == "/opt/sdk/include"
    assert option(made, "Vulkan_LIBRARY") == "/opt/sdk/lib/libvulkan.so"
    assert option(made, "Vulkan_GLSLC_EXECUTABLE") == "/opt/sdk/bin/glslc"
    assert option(made, "SPIRV-Headers_DIR") == "/opt/sdk/share/cmake/SPIRV-Headers"
    assert {t.where for t in made.tools if t.role in (Role.VULKAN, Role.GLSLC)} == {"VULKAN_SDK"}
    assert made.provisions == ()


def test_a_provided_set_is_named_before_it_is_there() -> None:
    absent = replace(PROVIDED, present=False)
    made = plan(machine(sets=(absent,)))
    assert made.provisions == (absent,)
    assert option(made, "Vulkan_GLSLC_EXECUTABLE") == "/store/tools/dd/bin/glslc"
    assert option(made, "Vulkan_LIBRARY") == "/store/tools/dd/usr/lib/libvulkan.so"
    assert made.tool(Role.GLSLC) is None


def test_offline_says_what_will_be_missing() -> None:
    absent = replace(PROVIDED, present=False)
    made = plan(machine(sets=(absent,)), replace(wanted(), proof=ProofRequest(offline=True)))
    assert "offline, and vulkan-debian13 is not in the store yet" in made.warnings
    there = plan(machine(sets=(PROVIDED,)), replace(wanted(), proof=ProofRequest(offline=True)))
    assert there.key == made.key


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (VulkanChoice.SDK, "/opt/sdk/include"),
        (VulkanChoice.PROVIDED, "/store/tools/dd/usr/include"),
        (VulkanChoice.SYSTEM, "/usr/include"),
    ],
)
def test_a_named_place_is_taken(choice: VulkanChoice, expected: str) -> None:
    seen = machine(SDK, SYSTEM, sets=(PROVIDED,))
    made = plan(seen, wanted(choice))
    assert include(made) == expected


def test_old_headers_bring_the_patch_that_they_need() -> None:
    old = plan(machine(SYSTEM), wanted(VulkanChoice.SYSTEM))
    assert [p.name for p in old.patches] == ["0001-old-headers", "0002-always"]
    new = plan(machine(NEW_SYSTEM), wanted(VulkanChoice.SYSTEM))
    assert [p.name for p in new.patches] == ["0002-always"]
    assert old.host_key != new.host_key


def test_old_headers_without_a_patch_for_them_are_a_conflict() -> None:
    with pytest.raises(ToolchainConflictError) as caught:
        plan(machine(SYSTEM), wanted(VulkanChoice.SYSTEM), ())
    assert caught.value.kind == "vulkan-too-old"
    assert "1.4.239" in caught.value.what
    assert "272" in caught.value.why
    assert "--vulkan provided" in caught.value.hint


def test_headers_too_old_even_for_the_patches_are_a_conflict() -> None:
    oldest = vulkan_side("system", "/usr", 204, "")
    error = refusal(machine(oldest, sets=(PROVIDED,)), wanted(VulkanChoice.SYSTEM))
    assert isinstance(error, ToolchainConflictError)
    assert error.kind == "vulkan-too-old"


def test_headers_refused_by_detection_are_a_conflict_too() -> None:
    old = refused(Role.VULKAN, "its headers are 1.3.204", Fault.TOO_OLD, "system", "/usr")
    seen = machine(sets=(PROVIDED,), rejected=(old,))
    error = refusal(seen, wanted(VulkanChoice.SYSTEM))
    assert isinstance(error, ToolchainConflictError)
    assert error.kind == "vulkan-too-old"
    assert error.what == "the system's Vulkan cannot be used"
    assert "--vulkan provided (no root is needed)" in error.hint
    assert plan(seen).provisions == (PROVIDED,)


def test_a_crashing_shader_compiler_is_a_missing_tool() -> None:
    bad = refused(Role.GLSLC, "it crashed with SIGSEGV", Fault.CRASHED, "system", "/usr/bin/glslc")
    error = refusal(machine(rejected=(bad,)), wanted(VulkanChoice.SYSTEM))
    assert isinstance(error, ToolMissingError)
    assert error.kind == "glslc-crashed"
    assert "/usr/bin/glslc (system): it crashed with SIGSEGV" in error.why


def test_only_the_asked_places_refusals_are_told() -> None:
    rejected = (
        refused(Role.GLSLC, "sdk trouble", Fault.ABSENT, "VULKAN_SDK"),
        refused(Role.VULKAN, "system trouble", Fault.ABSENT, "system"),
        refused(Role.GLSLC, "path trouble", Fault.CRASHED, "PATH"),
        refused(Role.VULKAN, "set trouble", Fault.UNSUPPORTED, "provided"),
    )
    told = {c: refusal(machine(rejected=rejected), wanted(c)).why for c in VulkanChoice}
    assert "sdk trouble" in told[VulkanChoice.SDK]
    assert "trouble" in told[VulkanChoice.PROVIDED]
    assert all(word in told[VulkanChoice.AUTO] for word in ("sdk", "system", "path", "set"))
    assert "sdk" not in told[VulkanChoice.SYSTEM].replace("VULKAN_SDK", "")
    assert "path trouble" in told[VulkanChoice.SYSTEM]
    assert "set trouble" not in told[VulkanChoice.SDK]


def test_nothing_at_all_names_the_systems_command() -> None:
    hint = Hint(role=Role.VULKAN, system="debian", command="sudo apt-get install libvulkan-dev")
    with pytest.raises(ToolMissingError) as caught:
        resolve(wanted(), machine(), replace(NO_TOOLCHAINS, hints=(hint,)), ())
    assert caught.value.what == "no Vulkan build side can be used"
    assert "sudo apt-get install libvulkan-dev" in caught.value.hint


def test_a_broken_sdk_is_told_and_passed_over() -> None:
    bad = refused(Role.GLSLC, "no glslc in /opt/sdk/bin", Fault.ABSENT, "VULKAN_SDK")
    made = plan(machine(sets=(PROVIDED,), rejected=(bad,)))
    assert "VULKAN_SDK is not used: no glslc in /opt/sdk/bin" in made.warnings


def test_a_weak_sdk_is_told_and_passed_over() -> None:
    made = plan(machine(WEAK_SDK, sets=(PROVIDED,)))
    assert any(
        w == "VULKAN_SDK (1.4.321) is not used: its glslc 2025.2 lacks cooperative_matrix"
        for w in made.warnings
    )


def test_lost_capabilities_are_told_with_their_cost() -> None:
    made = plan(machine(SYSTEM), wanted(VulkanChoice.SYSTEM))
    assert "without cooperative_matrix (glslc 2025.2): slow prompts" in made.warnings
    assert "without bfloat16 (glslc 2025.2): slow BF16" in made.warnings


def test_what_no_side_here_could_give_is_one_line() -> None:
    made = plan(machine(sets=(PROVIDED,)))
    assert made.warnings == ("glslc 2025.2 does not know bfloat16",)


def test_what_another_side_could_give_is_told_with_its_cost() -> None:
    seen = machine(SDK, sets=(PROVIDED,))
    made = plan(seen, replace(wanted(VulkanChoice.PROVIDED)))
    assert made.warnings == ("glslc 2025.2 does not know bfloat16",)
    strange = vulkan_side("VULKAN_SDK", "/opt/sdk", 321, "cooperative_matrix")
    other = vulkan_side("system", "/usr", 309, "bfloat16")
    assert "without bfloat16 (glslc 2025.2): slow BF16" in plan(machine(strange, other)).warnings


def test_capabilities_nobody_knows_yet_are_not_called_lost() -> None:
    assert plan(machine(sets=(LUNARG,))).warnings == ()


def test_a_required_capability_rules_a_side_out() -> None:
    rule = replace(VULKAN, required_capabilities=("bfloat16",))
    recipe = replace(RECIPE, backends=(rule,))
    made = plan(machine(SDK, sets=(PROVIDED,)), wanted(recipe=recipe))
    assert include(made) == "/opt/sdk/include"
    error = refusal(machine(sets=(PROVIDED,)), wanted(recipe=recipe))
    assert isinstance(error, ToolchainConflictError)
    assert error.kind == "capability-lost"
    assert "bfloat16, which the recipe requires" in error.what


def test_mixed_roots_are_told() -> None:
    side, glslc = NEW_SYSTEM
    mixed = replace(side, facts=(*side.facts, ("mixed", "headers from /usr, glslc from /opt")))
    made = plan(machine((mixed, glslc)))
    told = "Vulkan parts come from different roots: headers from /usr, glslc from /opt"
    assert told in made.warnings


def test_missing_spirv_headers_are_provided_and_put_on_the_include_path() -> None:
    bare = vulkan_side("system", "/usr", 309, "cooperative_matrix", spirv=False)
    made = plan(machine(bare, sets=(SPIRV_SET,)), wanted(VulkanChoice.SYSTEM))
    assert made.provisions == (SPIRV_SET,)
    assert option(made, "SPIRV-Headers_DIR") == "/store/tools/aa/share/cmake/SPIRV-Headers"
    assert option(made, "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES") == "/store/tools/aa/include"
    assert any("SPIRV-Headers from spirv-headers-wheel" in w for w in made.warnings)


def test_without_any_spirv_headers_that_is_the_conflict() -> None:
    bare = vulkan_side("system", "/usr", 309, "", spirv=False)
    lack = refused(Role.SPIRV, "no CMake files below /usr", Fault.ABSENT, "system", "/usr")
    error = refusal(machine(bare, rejected=(lack,)), wanted(VulkanChoice.SYSTEM))
    assert isinstance(error, ToolMissingError)
    assert error.kind == "spirv-headers-absent"
    assert error.why == "/usr (system): no CMake files below /usr"
    assert error.hint.splitlines() == [
        "cure of no CMake files below /usr",
        "--vulkan provided (no root is needed)",
    ]


def test_a_prefix_outside_the_system_is_put_on_the_include_path() -> None:
    side, glslc = NEW_SYSTEM
    facts = dict(side.facts) | {Fact.SPIRV_INCLUDE_DIR: "/opt/spirv/include"}
    other = replace(side, facts=tuple(facts.items()))
    assert option(plan(machine((other, glslc))), "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES") == (
        "/opt/spirv/include"
    )
    assert not option(plan(machine(NEW_SYSTEM)), "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES")


def test_a_shader_compiler_that_must_not_be_used_takes_its_root_with_it() -> None:
    bad = KnownBad(role=Role.GLSLC, versions="==2025.2", reason="wrong code", link="upstream#3")
    with pytest.raises(ToolchainConflictError) as caught:
        resolve(wanted(), machine(SDK), replace(NO_TOOLCHAINS, known_bad=(bad,)), ())
    assert "wrong code" in caught.value.why
    assert caught.value.kind == "glslc-known-bad"


def test_backslashes_never_reach_cmake() -> None:
    place = PureWindowsPath("C:\\VulkanSDK\\1.4.321.1")
    side, glslc = SDK
    facts = dict(side.facts) | {
        Fact.INCLUDE_DIR: str(place / "Include"),
        Fact.LIBRARY: str(place / "Lib" / "vulkan-1.lib"),
    }
    seen = machine((replace(side, facts=tuple(facts.items())), glslc))
    windows = replace(wanted(), platform=Platform(System.WINDOWS, "x86_64"))
    made = plan(replace(seen, platform=windows.platform), windows)
    assert option(made, "Vulkan_INCLUDE_DIR") == "C:/VulkanSDK/1.4.321.1/Include"
    assert option(made, "Vulkan_LIBRARY") == "C:/VulkanSDK/1.4.321.1/Lib/vulkan-1.lib"


def test_conflicts_of_every_kind_come_together() -> None:
    old = refused(Role.VULKAN, "its headers are 1.3.204", Fault.TOO_OLD, "system", "/usr")
    seen = inventory(rejected=(old,))
    error = refusal(seen, wanted(VulkanChoice.SYSTEM))
    assert isinstance(error, ToolchainConflictError)
    assert error.kind == "toolchain-conflicts"
    for word in ("C++ compiler", "cmake", "ninja", "system's Vulkan"):
        assert word in error.what


def test_the_patch_kit_is_about_headers() -> None:
    assert OLD_HEADERS.needs == ("vulkan-headers < 272",)
    assert Path("/store/tools/dd") == PROVIDED.root
