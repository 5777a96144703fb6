"""Which compiler, cmake, ninja, cache and git a plan takes, and what it says without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import ExitCode, LlamawrightError, ToolchainConflictError, ToolMissingError
from llamawright.model.inventory import Fault, Found, Inventory, Rejected, Role
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend
from llamawright.model.request import CacheChoice, Request
from llamawright.model.toolchain import Hint, KnownBad, Minimum, Toolchains
from llamawright.resolve import resolve
from resolve_kit import (
    BASE,
    CCACHE,
    CLANG,
    CMAKE,
    GCC,
    GIT,
    NINJA,
    NO_TOOLCHAINS,
    SCCACHE,
    found,
    inventory,
    refused,
    request,
)

CPU = request(backend=Backend.CPU)
APT = Hint(role=Role.CXX, system="debian", command="sudo apt-get install g++")


def plan(machine: Inventory, wanted: Request = CPU, toolchains: Toolchains = NO_TOOLCHAINS) -> Plan:
    return resolve(wanted, machine, toolchains, ())


def refusal(
    machine: Inventory, wanted: Request = CPU, toolchains: Toolchains = NO_TOOLCHAINS
) -> LlamawrightError:
    with pytest.raises(LlamawrightError) as caught:
        plan(machine, wanted, toolchains)
    return caught.value


def compiler(made: Plan) -> Found:
    tool = made.tool(Role.CXX)
    assert tool is not None
    return tool


def test_the_first_that_fits_is_taken() -> None:
    assert compiler(plan(inventory(GCC, CLANG, CMAKE, NINJA))) == GCC
    assert compiler(plan(inventory(CLANG, GCC, CMAKE, NINJA))) == CLANG


@pytest.mark.parametrize(("wanted", "tool"), [("gcc", GCC), ("clang", CLANG)])
def test_a_family_may_be_named(wanted: str, tool: Found) -> None:
    machine = inventory(GCC, CLANG, CMAKE, NINJA)
    assert compiler(plan(machine, replace(CPU, compiler=wanted))) == tool


def test_a_named_file_must_be_the_one() -> None:
    machine = inventory(GCC, CLANG, CMAKE, NINJA)
    assert compiler(plan(machine, replace(CPU, compiler="/usr/bin/clang++"))) == CLANG
    gone = refused(Role.CXX, "it does not exist", Fault.ABSENT, "--compiler", "/opt/g++")
    error = refusal(
        inventory(GCC, CMAKE, NINJA, rejected=(gone,)), replace(CPU, compiler="/opt/g++")
    )
    assert error.what == "the compiler /opt/g++ cannot be used"
    assert error.why == "/opt/g++ (--compiler): it does not exist"
    assert "--compiler auto" in error.hint


def test_no_compiler_is_a_missing_tool_with_the_systems_command() -> None:
    error = refusal(inventory(CMAKE, NINJA), toolchains=replace(NO_TOOLCHAINS, hints=(APT,)))
    assert isinstance(error, ToolMissingError)
    assert error.code is ExitCode.TOOL_MISSING
    assert error.kind == "compiler-absent"
    assert error.what == "no C++ compiler can be used"
    assert error.hint == "sudo apt-get install g++"


def test_a_system_nobody_wrote_a_hint_for_still_gets_a_cure() -> None:
    error = refusal(inventory(CMAKE, NINJA))
    assert error.hint == "install c++ compiler by your system's package manager"


def test_every_refused_compiler_is_listed() -> None:
    bad = (
        refused(Role.CXX, "it crashed", Fault.CRASHED, path="/a/g++"),
        refused(Role.CXX, "no headers", Fault.FAILED, path="/b/clang++"),
    )
    error = refusal(inventory(CMAKE, NINJA, rejected=bad))
    assert error.why.splitlines() == ["/a/g++ (PATH): it crashed", "/b/clang++ (PATH): no headers"]
    assert error.kind == "compiler-crashed"
    assert error.hint.splitlines() == ["cure of it crashed", "cure of no headers"]


def test_the_other_family_is_offered() -> None:
    error = refusal(inventory(CLANG, CMAKE, NINJA), replace(CPU, compiler="gcc"))
    assert error.what == "no gcc can be used"
    assert "--compiler clang" in error.hint


def test_a_broken_compiler_of_the_environment_is_no_reason_for_another() -> None:
    bad = refused(Role.CXX, "it is a link to nothing", Fault.DANGLING, "CXX", "/opt/g++")
    machine = inventory(GCC, CMAKE, NINJA, rejected=(bad,))
    error = refusal(machine)
    assert error.what == "the compiler that CXX names cannot be used"
    assert "unset CXX" in error.hint
    assert compiler(plan(machine, replace(CPU, compiler="gcc"))) == GCC


def test_a_tool_that_works_and_does_not_fit_is_a_conflict() -> None:
    leak = refused(Role.CXX, "conda's linker", Fault.LEAK)
    error = refusal(inventory(CMAKE, NINJA, rejected=(leak,)))
    assert isinstance(error, ToolchainConflictError)
    assert error.code is ExitCode.TOOLS_CONFLICT
    assert error.kind == "compiler-foreign-linker"


def test_limits_hold_whatever_the_inventory_says() -> None:
    limits = replace(
        NO_TOOLCHAINS,
        minimums=(Minimum(role=Role.CXX, name="gcc", version="13", reason="new options"),),
    )
    assert compiler(plan(inventory(GCC, CLANG, CMAKE, NINJA), toolchains=limits)) == CLANG
    error = refusal(inventory(GCC, CMAKE, NINJA), toolchains=limits)
    assert isinstance(error, ToolchainConflictError)
    assert "gcc 12.2.0 is older than 13: new options" in error.why
    assert error.kind == "compiler-too-old"


def test_known_bad_builds_are_passed_over() -> None:
    bad = KnownBad(role=Role.NINJA, versions="==1.13.0", reason="hangs", link="upstream#2")
    older = found(Role.NINJA, "ninja", "1.12.1", "/opt/ninja")
    machine = inventory(GCC, CMAKE, NINJA, older)
    made = plan(machine, toolchains=replace(NO_TOOLCHAINS, known_bad=(bad,)))
    assert made.tool(Role.NINJA) == older


def test_all_conflicts_come_at_once_with_all_cures() -> None:
    hints = (APT, Hint(role=Role.CMAKE, system="*", command="pip install cmake"))
    error = refusal(
        inventory(),
        replace(CPU, cache=CacheChoice.SCCACHE, source="git"),
        replace(NO_TOOLCHAINS, hints=hints),
    )
    assert isinstance(error, ToolMissingError)
    assert error.kind == "tools-missing"
    assert error.what.startswith("5 tools are missing: no C++ compiler can be used; ")
    for word in ("cmake", "ninja", "sccache", "git"):
        assert word in error.what
    assert "sudo apt-get install g++" in error.hint
    assert "pip install cmake" in error.hint
    assert "--cache off" in error.hint
    assert "--source auto" in error.hint


def test_one_misfit_among_missing_tools_is_a_conflict() -> None:
    old = refused(Role.CMAKE, "too old", Fault.TOO_OLD)
    error = refusal(inventory(rejected=(old,)))
    assert isinstance(error, ToolchainConflictError)
    assert error.what.startswith("3 conflicts: ")


def test_a_named_cmake_that_fails_is_told_alone() -> None:
    bad = refused(Role.CMAKE, "it hangs", Fault.HUNG, "--cmake", "/opt/cmake")
    other = refused(Role.CMAKE, "of no interest", Fault.FAILED)
    machine = inventory(GCC, CMAKE, NINJA, rejected=(bad, other))
    error = refusal(machine, replace(CPU, cmake="/opt/cmake"))
    assert error.what == "the cmake /opt/cmake cannot be used"
    assert error.why == "/opt/cmake (--cmake): it hangs"
    assert "leave --cmake out" in error.hint


@pytest.mark.parametrize(
    ("choice", "tools", "name"),
    [
        (CacheChoice.AUTO, (SCCACHE, CCACHE), "ccache"),
        (CacheChoice.AUTO, (SCCACHE,), None),
        (CacheChoice.AUTO, (), None),
        (CacheChoice.OFF, (CCACHE,), None),
        (CacheChoice.CCACHE, (CCACHE, SCCACHE), "ccache"),
        (CacheChoice.SCCACHE, (CCACHE, SCCACHE), "sccache"),
    ],
)
def test_the_cache_is_the_chosen_one(
    choice: CacheChoice, tools: tuple[Found, ...], name: str | None
) -> None:
    made = plan(inventory(GCC, CMAKE, NINJA, *tools), replace(CPU, cache=choice))
    tool = made.tool(Role.CACHE)
    assert (tool.name if tool else None) == name
    launchers = [o for o in made.host_options if o.name.endswith("_LAUNCHER")]
    assert [o.value for o in launchers] == ([f"/usr/bin/{name}"] * 2 if name else [])


def test_the_first_of_two_caches_is_taken() -> None:
    second = replace(CCACHE, path=Path("/opt/ccache"))
    made = plan(inventory(GCC, CMAKE, NINJA, CCACHE, second))
    assert made.tool(Role.CACHE) == CCACHE


def test_a_cache_that_fails_is_told_when_it_was_asked_for() -> None:
    bad = Rejected(
        role=Role.CACHE, name="sccache", path=Path("/usr/bin/sccache"), where="PATH",
        reason="exit status 1", cure="--cache off", fault=Fault.FAILED,
    )  # fmt: skip
    machine = inventory(*BASE, rejected=(bad,))
    assert plan(machine).tool(Role.CACHE) == CCACHE
    error = refusal(machine, replace(CPU, cache=CacheChoice.SCCACHE))
    assert error.what == "sccache cannot be used"
    assert error.why == "/usr/bin/sccache (PATH): exit status 1"
    assert error.hint == "--cache off"


@pytest.mark.parametrize("source", ["git", f"git+https://example.org/x@{'a' * 40}"])
def test_a_git_source_needs_git(source: str) -> None:
    wanted = replace(CPU, source=source)
    error = refusal(inventory(GCC, CMAKE, NINJA), wanted)
    assert isinstance(error, ToolMissingError)
    assert error.kind == "git-absent"
    assert plan(inventory(GCC, CMAKE, NINJA, GIT), wanted).source == source


def test_other_sources_do_not() -> None:
    assert plan(inventory(GCC, CMAKE, NINJA), replace(CPU, source="index"))
