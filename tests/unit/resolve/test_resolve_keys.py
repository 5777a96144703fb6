"""What changes a key, what does not, and how two keys are told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.model.inventory import Found, Inventory
from llamawright.model.plan import KeyPart, Plan, PlannedPatch
from llamawright.model.platform import Backend
from llamawright.model.recipe import Option, Recipe
from llamawright.model.request import CacheChoice, ProofRequest, Request, VulkanChoice
from llamawright.resolve import Difference, explain, resolve
from resolve_kit import (
    ALWAYS,
    BASE,
    CCACHE,
    CMAKE,
    GCC,
    NINJA,
    NO_TOOLCHAINS,
    OLD_HEADERS,
    PIN,
    PROVIDED,
    RECIPE,
    SDK,
    VULKAN,
    inventory,
    request,
)

MACHINE = inventory(*BASE, sets=(PROVIDED,))


def plan(
    wanted: Request | None = None,
    machine: Inventory = MACHINE,
    patches: tuple[PlannedPatch, ...] = (ALWAYS,),
) -> Plan:
    return resolve(wanted or request(), machine, NO_TOOLCHAINS, patches)


BASIS = plan()


def with_recipe(recipe: Recipe) -> Plan:
    return plan(request(recipe=recipe))


def with_tools(*tools: Found) -> Plan:
    return plan(machine=inventory(*tools, sets=(PROVIDED,)))


@pytest.mark.parametrize(
    "other",
    [
        plan(replace(request(), jobs=1)),
        plan(replace(request(), proof=ProofRequest(offline=True))),
        plan(replace(request(), dist=Path("/elsewhere"))),
        plan(replace(request(), proof=ProofRequest(device="Vulkan1", model=Path("/m.gguf")))),
        plan(replace(request(), cache=CacheChoice.OFF)),
        plan(replace(request(), source="archive")),
        plan(replace(request(), vulkan=VulkanChoice.PROVIDED)),
        plan(machine=replace(MACHINE, cores=1, memory=1 << 30, memory_free=1)),
        plan(
            machine=inventory(
                *BASE, sets=(replace(PROVIDED, root=Path("/other/store/x"), present=False),)
            )
        ),
        with_tools(GCC, replace(CMAKE, path=Path("/venv/bin/cmake"), where="x"), NINJA),
        with_tools(GCC, CMAKE, replace(NINJA, path=Path("/venv/bin/ninja")), CCACHE),
        with_recipe(replace(RECIPE, path="elsewhere.toml", digest="9" * 64)),
        with_recipe(replace(RECIPE, allowed_imports=("libz.so",))),
    ],
    ids=lambda made: made.name if isinstance(made, Plan) else str(made),
)
def test_what_cannot_change_the_output_is_no_part_of_a_key(other: Plan) -> None:
    assert explain(BASIS.parts, other.parts) == ()
    assert (other.key, other.host_key) == (BASIS.key, BASIS.host_key)


OTHER_TREE = replace(RECIPE, source=replace(PIN, tree="f" * 64))
OTHER_TIME = replace(RECIPE, source=replace(PIN, timestamp=1))
OTHER_OPTION = replace(RECIPE, options=(*RECIPE.options, Option(name="GGML_X", value="ON")))
OTHER_PROGRAMS = replace(RECIPE, programs=("llama-cli", "llama-bench"))


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (with_recipe(OTHER_TREE), "source tree"),
        (with_recipe(OTHER_TIME), "environment SOURCE_DATE_EPOCH"),
        (with_recipe(OTHER_OPTION), "option GGML_X"),
        (with_recipe(OTHER_PROGRAMS), "programs"),
        (plan(patches=(replace(ALWAYS, sha256="6" * 64),)), "patch 0002-always"),
        (with_tools(replace(GCC, sha256="7" * 64), CMAKE, NINJA), "c++ compiler"),
        (with_tools(replace(GCC, path=Path("/opt/g++")), CMAKE, NINJA), "c++ compiler"),
        (
            with_tools(replace(GCC, facts=(*GCC.facts, ("linker", "GNU ld 2.41"))), CMAKE, NINJA),
            "compiler linker",
        ),
        (with_tools(GCC, replace(CMAKE, version="4.2"), NINJA), "cmake"),
        (with_tools(GCC, CMAKE, replace(NINJA, sha256="8" * 64)), "ninja"),
    ],
)
def test_what_can_change_the_output_changes_both_keys(other: Plan, name: str) -> None:
    assert name in {d.name for d in explain(BASIS.parts, other.parts)}
    assert other.key != BASIS.key
    assert other.host_key != BASIS.host_key


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (
            plan(machine=inventory(*BASE, sets=(replace(PROVIDED, digest="c" * 64),))),
            "vulkan",
        ),
        (plan(machine=inventory(*BASE, *SDK)), "glslc"),
        (
            with_recipe(
                replace(
                    RECIPE,
                    backends=(
                        RECIPE.backends[0],
                        replace(VULKAN, options=(Option(name="GGML_VULKAN", value="X"),)),
                    ),
                )
            ),
            "module option GGML_VULKAN",
        ),
    ],
)
def test_the_backends_own_inputs_leave_the_host_alone(other: Plan, name: str) -> None:
    assert name in {d.name for d in explain(BASIS.parts, other.parts)}
    assert other.key != BASIS.key
    assert other.host_key == BASIS.host_key


def test_backends_share_the_host() -> None:
    cpu = plan(request(backend=Backend.CPU))
    assert cpu.host_key == BASIS.host_key
    assert cpu.key != BASIS.key


def test_an_sdk_in_another_place_is_another_key() -> None:
    side, glslc = SDK
    moved = replace(side, path=Path("/opt/sdk2"))
    first, second = (plan(machine=inventory(*BASE, s, glslc)) for s in (side, moved))
    assert first.key != second.key


def test_the_tests_archive_is_another_build() -> None:
    assert plan(replace(request(), with_tests=True)).host_key != BASIS.host_key


def test_names_of_parts_are_unique() -> None:
    for made in (BASIS, plan(machine=inventory(*BASE, *SDK), patches=(OLD_HEADERS, ALWAYS))):
        names = [p.name for p in made.parts]
        assert len(names) == len(set(names))
        assert made.parts[: len(made.host_parts)] == made.host_parts


def test_no_part_names_the_store_or_the_tool_environment() -> None:
    text = " ".join(p.value for p in BASIS.parts)
    assert "/store" not in text
    assert "/usr/bin/ninja" not in text
    assert "/usr/bin/cmake" not in text


def part(name: str, value: str) -> KeyPart:
    return KeyPart(name=name, value=value)


def test_differences_are_told_with_both_sides() -> None:
    a = (part("x", "1"), part("y", "2"), part("z", "3"))
    b = (part("x", "1"), part("y", "other"), part("w", "4"))
    assert explain(a, b) == (
        Difference(name="y", a="2", b="other"),
        Difference(name="z", a="3", b=""),
        Difference(name="w", a="", b="4"),
    )


def test_the_order_of_parts_is_no_difference() -> None:
    a = (part("x", "1"), part("y", "2"))
    assert explain(a, tuple(reversed(a))) == ()
