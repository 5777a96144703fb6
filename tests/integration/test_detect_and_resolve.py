"""From a machine to a plan or an exit code, with the project's own recipe and toolchains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.config import load_recipe, load_toolchains
from llamawright.detect import survey
from llamawright.errors import ExitCode, LlamawrightError
from llamawright.model.inventory import Found, Inventory, Role
from llamawright.model.plan import Plan, PlannedPatch
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.request import Request, VulkanChoice
from llamawright.paths import data_root
from llamawright.resolve import explain, resolve
from machine_kit import stand_up, write_program

LINUX = Platform(System.LINUX, "x86_64")
TOOLS = {
    "cmake": "cmake version 4.1.0",
    "ninja": "1.13.0",
    "git": "git version 2.39.5",
    "ld": "GNU ld 2.40",
    "as": "GNU as 2.40",
}
PATCH = PlannedPatch(
    name="0001-headers", sha256="a" * 64, type="portability", reason="old headers",
    needs=("vulkan-headers < 272",),
)  # fmt: skip
Look = Callable[..., Inventory]


@pytest.fixture
def wanted() -> Request:
    recipe = load_recipe(data_root() / "recipes" / "llama.cpp.toml")
    return Request(recipe=recipe, backend=Backend.VULKAN, platform=LINUX)


@pytest.fixture
def look(tmp_path: Path, wanted: Request) -> Look:
    """Return a function that stands up a machine of ``vulkan.toml`` and looks at it."""

    def go(name: str, *, compiler: str = "plain", **env: str) -> Inventory:
        root = tmp_path / name
        stand_up("compilers", compiler, root)
        for tool, says in TOOLS.items():
            write_program(root / "usr/bin" / tool, f"#!/bin/sh\necho '{says}'\n")
        machine = stand_up("vulkan", name, root)
        around = machine.surroundings(load_toolchains(data_root() / "toolchains"), **env)
        return survey.survey(wanted, around, store_tools=tmp_path / "store/tools")

    return go


def plan(wanted: Request, seen: Inventory, *patches: PlannedPatch) -> Plan:
    return resolve(wanted, seen, load_toolchains(data_root() / "toolchains"), patches)


def refusal(wanted: Request, seen: Inventory) -> LlamawrightError:
    with pytest.raises(LlamawrightError) as caught:
        plan(wanted, seen, PATCH)
    return caught.value


def option(made: Plan, name: str) -> str:
    return next(o.value for o in (*made.host_options, *made.module_options) if o.name == name)


def test_a_bare_machine_is_provided_with_vulkan(wanted: Request, look: Look) -> None:
    made = plan(wanted, look("bare"), PATCH)
    assert [p.name for p in made.provisions] == ["vulkan-debian13"]
    assert made.patches == ()
    assert option(made, "Vulkan_GLSLC_EXECUTABLE").endswith("/bin/glslc")
    assert made.name == f"llama.cpp-{wanted.recipe.source.commit[:9]}-vulkan-linux_x86_64"


def test_the_stock_packages_of_debian_12_bring_the_patch(wanted: Request, look: Look) -> None:
    made = plan(replace(wanted, vulkan=VulkanChoice.SYSTEM), look("debian12"), PATCH)
    assert [p.name for p in made.patches] == ["0001-headers"]
    lost = [w for w in made.warnings if w.startswith("without ")]
    assert any("cooperative_matrix (glslc 2023.2)" in w for w in lost)
    assert made.provisions == ()


def test_an_sdk_is_taken_as_one(wanted: Request, look: Look) -> None:
    made = plan(wanted, look("sdk-over-old-system"), PATCH)
    side = made.tool(Role.VULKAN)
    assert isinstance(side, Found)
    assert side.version == "1.4.321"
    parts = ("Vulkan_INCLUDE_DIR", "Vulkan_LIBRARY", "Vulkan_GLSLC_EXECUTABLE", "SPIRV-Headers_DIR")
    assert all(option(made, p).startswith(str(side.path)) for p in parts)


def test_missing_spirv_headers_come_from_the_index(wanted: Request, look: Look) -> None:
    made = plan(replace(wanted, vulkan=VulkanChoice.SYSTEM), look("no-spirv"), PATCH)
    assert [p.name for p in made.provisions] == ["spirv-headers-wheel"]
    assert option(made, "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES").endswith("/include")


@pytest.mark.parametrize(
    ("machine", "ending", "hint"),
    [
        ("ubuntu22", (ExitCode.TOOLS_CONFLICT, "vulkan-too-old"), "--vulkan provided"),
        ("glslc-139", (ExitCode.TOOL_MISSING, "glslc-crashed"), "sudo apt-get install glslc"),
        ("glslc-believes-all", (ExitCode.TOOL_MISSING, "glslc-failed"), "--vulkan provided"),
        ("no-glslc", (ExitCode.TOOL_MISSING, "glslc-absent"), "sudo apt-get install glslc"),
        ("no-loader", (ExitCode.TOOL_MISSING, "vulkan-absent"), "libvulkan-dev"),
        ("no-headers", (ExitCode.TOOL_MISSING, "vulkan-absent"), "libvulkan-dev"),
        ("bare", (ExitCode.TOOL_MISSING, "vulkan-absent"), "libvulkan-dev glslc spirv-headers"),
    ],
)
def test_a_bad_system_vulkan_ends_with_its_code_and_cure(
    wanted: Request, look: Look, machine: str, ending: tuple[ExitCode, str], hint: str
) -> None:
    error = refusal(replace(wanted, vulkan=VulkanChoice.SYSTEM), look(machine))
    assert (error.code, error.kind) == ending
    assert hint in error.hint


def test_the_same_machines_build_with_what_is_provided(wanted: Request, look: Look) -> None:
    for name in ("ubuntu22", "glslc-139", "no-glslc", "no-loader", "sdk-without-glslc"):
        assert [p.name for p in plan(wanted, look(name)).provisions] == ["vulkan-debian13"]


@pytest.mark.parametrize(
    ("compiler", "kind"),
    [
        ("none", "compiler-absent"),
        ("without-c-compiler", "compiler-incomplete"),
        ("crashes", "compiler-crashed"),
    ],
)
def test_no_compiler_is_exit_4_with_the_package(
    wanted: Request, look: Look, compiler: str, kind: str
) -> None:
    error = refusal(wanted, look("bare", compiler=compiler))
    assert (error.code, error.kind) == (ExitCode.TOOL_MISSING, kind)
    assert "sudo apt-get install g++" in error.hint


def test_conda_is_exit_5(wanted: Request, look: Look, tmp_path: Path) -> None:
    root = tmp_path / "bare"
    path = f"{root}/conda/compiler_compat:{root}/usr/bin"
    error = refusal(wanted, look("bare", compiler="conda", PATH=path, CONDA_PREFIX=f"{root}/conda"))
    assert (error.code, error.kind) == (ExitCode.TOOLS_CONFLICT, "compiler-foreign-linker")
    assert "conda deactivate" in error.hint


def test_two_clones_of_one_machine_have_one_key(
    wanted: Request, look: Look, tmp_path: Path
) -> None:
    first = look("bare")
    moved = tuple(replace(a, root=Path("/another/store") / a.digest) for a in first.available)
    tools = tuple(
        replace(f, path=Path("/another/venv/bin") / f.name)
        if f.role in (Role.CMAKE, Role.NINJA, Role.CACHE)
        else f
        for f in first.found
    )
    second = replace(first, available=moved, found=tools)
    assert plan(wanted, first).key == plan(wanted, second).key


def test_system_and_provided_differ_by_what_explain_tells(wanted: Request, look: Look) -> None:
    seen = look("debian12")
    system = plan(replace(wanted, vulkan=VulkanChoice.SYSTEM), seen, PATCH)
    provided = plan(replace(wanted, vulkan=VulkanChoice.PROVIDED), seen, PATCH)
    names = {d.name for d in explain(system.parts, provided.parts)}
    assert names == {"patch 0001-headers", "vulkan", "glslc"}
