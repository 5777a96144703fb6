"""The gates after configure, over recorded shapes of CMake's answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import package_kit
from llamawright.build import gates
from llamawright.build.fileapi import Compiler, Group, Reply, Target
from llamawright.errors import BuildError
from llamawright.model.inventory import Found, Role
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Capability, Option

UNUSED = """
-- Configuring done
CMake Warning:
  Manually-specified variables were not used by the project:

    LLAMA_VULKAN
    FETCHCONTENT_FULLY_DISCONNECTED


-- Build files have been written to: /b
"""
COOPMAT = Capability(
    name="cooperative_matrix", define="COOPMAT", feature_test="x.comp", cost="slower prompts",
    extension="GL_KHR_cooperative_matrix",
)  # fmt: skip
RULE = BackendRule(
    backend=Backend.VULKAN, targets=("ggml-vulkan",), modules=("ggml-vulkan",),
    capabilities=(COOPMAT,),
)  # fmt: skip


def target(name: str, *defines: str) -> Target:
    group = Group(language="CXX", flags=("-O3",), defines=defines, includes=())
    return Target(name=name, type="MODULE_LIBRARY", groups=(group,))


def reply(*targets: Target, cxx: str = "/usr/bin/g++", **cache: str) -> Reply:
    compilers = (
        Compiler(language="C", path="/usr/bin/gcc"),
        Compiler(language="CXX", path=cxx),
    )
    return Reply(targets=targets, cache=tuple(cache.items()), compilers=compilers)


def compiler() -> Found:
    return Found(
        role=Role.CXX, name="gcc", path=Path("/usr/bin/g++"), version="12", where="PATH",
        sha256="0" * 64, facts=(("c_compiler", "/usr/bin/gcc"),),
    )  # fmt: skip


def test_an_option_that_nothing_read_is_a_fault() -> None:
    assert list(gates.unused(UNUSED, set())) == [
        "LLAMA_VULKAN was given and never read",
        "FETCHCONTENT_FULLY_DISCONNECTED was given and never read",
    ]


def test_a_guard_may_go_unread() -> None:
    seen = list(gates.unused(UNUSED, {"FETCHCONTENT_FULLY_DISCONNECTED"}))
    assert seen == ["LLAMA_VULKAN was given and never read"]


def test_windows_line_ends_hide_nothing() -> None:
    assert len(list(gates.unused(UNUSED.replace("\n", "\r\n"), set()))) == 2


@pytest.mark.parametrize("value", ["ON", "1", "TRUE", "on", "Yes"])
def test_cmake_has_many_words_for_on(value: str) -> None:
    assert gates.same(Option(name="GGML_VULKAN", value="ON"), value)


@pytest.mark.parametrize("value", ["OFF", "0", "", "NOTFOUND"])
def test_off_is_not_on(value: str) -> None:
    assert not gates.same(Option(name="GGML_VULKAN", value="ON"), value)


def test_text_must_be_the_same_text() -> None:
    option = Option(name="LLAMA_BUILD_COMMIT", value="0c1e57098", type="STRING")
    assert gates.same(option, "0c1e57098")
    assert not gates.same(option, "unknown")


def test_an_option_that_cmake_overrode_is_a_fault() -> None:
    options = (Option(name="GGML_VULKAN", value="ON"), Option(name="GONE", value="ON"))
    assert list(gates.changed(options, reply(GGML_VULKAN="OFF"))) == [
        "GGML_VULKAN is OFF, not ON",
        "GONE is absent, not ON",
    ]


def test_the_chosen_compiler_must_be_the_one_used() -> None:
    plan = package_kit.plan(tools=(compiler(),))
    assert list(gates.other_compiler(plan, reply())) == []
    assert list(gates.other_compiler(plan, reply(cxx="/usr/bin/c++"))) == [
        "CXX is compiled by /usr/bin/c++, not by /usr/bin/g++"
    ]


def test_all_faults_are_told_at_once() -> None:
    plan = package_kit.plan(tools=(compiler(),))
    options = (Option(name="GGML_VULKAN", value="ON"), Option(name="LLAMA_VULKAN", value="ON"))
    with pytest.raises(BuildError) as caught:
        gates.check_configured(plan, options, reply(cxx="/c++", GGML_VULKAN="0"), UNUSED)
    assert caught.value.kind == "configure-gate"
    for part in ("LLAMA_VULKAN was given", "GGML_VULKAN is 0", "CXX is compiled by /c++"):
        assert part in caught.value.why
    assert "renamed" in caught.value.hint


def test_a_configure_as_planned_passes() -> None:
    plan = package_kit.plan(tools=(compiler(),))
    options = (Option(name="GGML_VULKAN", value="ON"),)
    gates.check_configured(plan, options, reply(GGML_VULKAN="ON"), "-- Configuring done\n")


def test_patterns_name_every_variant() -> None:
    answer = reply(target("ggml-cpu-x64"), target("ggml-cpu-haswell"), target("llama-cli"))
    found = gates.matching(answer, ("llama-cli", "ggml-cpu-*"), "host")
    assert found == ("llama-cli", "ggml-cpu-x64", "ggml-cpu-haswell")


def test_a_backend_without_its_target_was_not_switched_on() -> None:
    with pytest.raises(BuildError) as caught:
        gates.matching(reply(target("ggml")), ("ggml-vulkan",), "vulkan module")
    assert caught.value.kind == "no-target"
    assert "ggml-vulkan" in caught.value.what


@pytest.mark.parametrize(
    ("define", "present"), [("COOPMAT", True), ("COOPMAT=1", True), ("X", False)]
)
def test_capabilities_are_what_the_module_is_compiled_with(define: str, *, present: bool) -> None:
    states = gates.capabilities(RULE, reply(target("ggml-vulkan", define), target("o", "COOPMAT")))
    assert [(s.name, s.present) for s in states] == [("cooperative_matrix", present)]


def test_a_capability_that_was_never_proved_is_a_contradiction() -> None:
    states = gates.capabilities(RULE, reply(target("ggml-vulkan", "COOPMAT")))
    assert gates.cross_check(RULE, states, frozenset({"cooperative_matrix"})) == ()
    with pytest.raises(BuildError) as caught:
        gates.cross_check(RULE, states, frozenset())
    assert caught.value.kind == "capability-contradiction"


def test_a_release_recipe_can_demand_a_capability() -> None:
    states = gates.capabilities(RULE, reply(target("ggml-vulkan")))
    gates.required(RULE, states)
    strict = replace(RULE, required_capabilities=("cooperative_matrix",))
    with pytest.raises(BuildError) as caught:
        gates.required(strict, states)
    assert "slower prompts" in caught.value.why


def test_options_in_effect_come_from_the_cache() -> None:
    options = (Option(name="B", value="ON"), Option(name="A", value="x", type="STRING"))
    rows = gates.effective(options, reply(B="ON", A="y"))
    assert [(r.name, r.value) for r in rows] == [("A", "y"), ("B", "ON")]


def test_a_proved_capability_that_cmake_left_out_is_told() -> None:
    states = gates.capabilities(RULE, reply(target("ggml-vulkan")))
    assert gates.cross_check(RULE, states, frozenset({"cooperative_matrix"})) == (
        "cooperative_matrix",
    )


def test_what_no_probe_can_ask_for_is_not_compared() -> None:
    rule = replace(RULE, capabilities=(replace(COOPMAT, extension=""),))
    states = gates.capabilities(rule, reply(target("ggml-vulkan", "COOPMAT")))
    assert gates.cross_check(rule, states, frozenset()) == ()


def test_a_project_that_declares_content_to_fetch_is_refused() -> None:
    module = "/usr/share/cmake/Modules/FetchContent.cmake"
    answer = replace(reply(), inputs=("CMakeLists.txt", module))
    assert list(gates.downloads(answer, "")) == [
        "the project reads CMake's FetchContent.cmake: it would download"
    ]


@pytest.mark.parametrize(
    "line",
    ["-- Downloading ui.tar.gz from a bucket", "Cloning into 'boringssl'...", "-- Fetching it"],
)
def test_words_of_a_download_in_the_log_are_refused(line: str) -> None:
    assert list(gates.downloads(reply(), f"-- one\n{line}\n-- two\n")) == [f"CMake said: {line}"]


def test_a_quiet_configure_downloads_nothing() -> None:
    log = "-- Found Threads: TRUE\n-- UI: prebuilt assets are off\n-- Configuring done\n"
    assert list(gates.downloads(replace(reply(), inputs=("ExternalProject.cmake",)), log)) == []


def test_a_backends_own_faults_are_among_all_of_them() -> None:
    plan = package_kit.plan(tools=(compiler(),))
    with pytest.raises(BuildError, match="did not configure") as caught:
        gates.check_configured(plan, (), reply(), "", more=iter(["headers of another root"]))
    assert caught.value.why == "headers of another root"
