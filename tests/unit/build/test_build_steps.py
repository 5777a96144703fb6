"""The whole room over a fake cmake and ninja: what is decided between the two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import package_kit
from build_fakes import CMAKE_SAYS, Machine
from llamawright.build import build_host, build_module
from llamawright.errors import BuildError, ToolMissingError
from llamawright.model.inventory import Available, Found, Role
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Capability
from reporter_kit import Told

COOPMAT = Capability(
    name="cooperative_matrix", define="COOPMAT", feature_test="", cost="slower prompts",
    extension="GL_KHR_cooperative_matrix",
)  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def glslc(*able: str) -> Found:
    return Found(
        role=Role.GLSLC, name="glslc", path=Path("/g"), version="2025.2", where="PATH",
        sha256="0" * 64, facts=(("capabilities", " ".join(able)),),
    )  # fmt: skip


def vulkan(*required: str) -> BackendRule:
    return BackendRule(
        backend=Backend.VULKAN, targets=("ggml-vulkan",), modules=("ggml-vulkan",),
        capabilities=(COOPMAT,), required_capabilities=required,
    )  # fmt: skip


def test_host_and_module_are_two_entries_of_one_abi(machine: Machine) -> None:
    told = Told()
    host = build_host(machine.plan(), machine.source, store=machine.store, reporter=told)
    module = build_module(machine.plan(), machine.source, host, store=machine.store, reporter=told)
    assert host.abi == module.abi
    assert host.key == machine.plan().host_key
    assert module.key == machine.plan().key
    assert module.files == ("bin/libggml-vulkan.so",)
    assert {e.name: e.value for e in module.effective}["GGML_VULKAN"] == "ON"
    assert [t.stage for t in host.timings] == ["configure host", "compile host"]


def test_ninja_is_told_the_targets_and_no_more(machine: Machine) -> None:
    host = build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    build_module(machine.plan(), machine.source, host, store=machine.store, reporter=Told())
    first, second = machine.ninja_runs()
    assert first[-3:] == ["tiny-cli", "ggml-cpu-x64", "ggml-cpu-haswell"]
    assert second[-1:] == ["ggml-vulkan"]
    assert first[first.index("-j") + 1] == "2"


def test_progress_ends_at_the_whole(machine: Machine) -> None:
    told = Told()
    build_host(machine.plan(), machine.source, store=machine.store, reporter=told)
    label, done, total = told.done[-1]
    assert (label, done, total) == ("compiling the host", 100, 100)


def test_the_time_left_learns_from_every_build(machine: Machine) -> None:
    build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    name = f"tiny-{machine.plan().platform.tag}"
    assert machine.store.read_record("builds", name, "seconds") == {"a.cpp.o": 7.0}


def test_a_second_run_asks_neither_cmake_nor_ninja(machine: Machine) -> None:
    first = build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    runs = len(machine.ninja_runs())
    again = build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    assert again == first
    assert len(machine.ninja_runs()) == runs


def test_another_key_is_another_build(machine: Machine) -> None:
    build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    other = replace(machine.plan(), host_key="j" * 64)
    build_host(other, machine.source, store=machine.store, reporter=Told())
    assert len(machine.ninja_runs()) == 2


def test_a_module_of_another_host_is_refused(machine: Machine) -> None:
    host = build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    stranger = replace(host, abi="0" * 64)
    with pytest.raises(BuildError) as caught:
        build_module(machine.plan(), machine.source, stranger, store=machine.store, reporter=Told())
    assert caught.value.kind == "abi-differs"
    assert "000000000000" in caught.value.why


def test_cmake_that_counts_on_an_unproved_extension_is_stopped(machine: Machine) -> None:
    # What a glslc that crashes in ggml's own probe leads to (case V8).
    plan = machine.plan(rule=vulkan(), tools=(glslc(),))
    host = build_host(plan, machine.source, store=machine.store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(plan, machine.source, host, store=machine.store, reporter=Told())
    assert caught.value.kind == "capability-contradiction"


def test_the_same_for_a_shader_compiler_that_is_provided(machine: Machine) -> None:
    item = Available(
        role=Role.VULKAN, name="set", version="1", digest="d" * 64, size=1, root=Path("/t"),
        present=True, facts=(("capabilities", "integer_dot"),),
    )  # fmt: skip
    plan = replace(machine.plan(rule=vulkan()), provisions=(item,))
    host = build_host(plan, machine.source, store=machine.store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(plan, machine.source, host, store=machine.store, reporter=Told())
    assert "proved by compiling: integer_dot" in caught.value.why


def test_a_proved_extension_that_cmake_left_out_is_a_warning(machine: Machine) -> None:
    machine.defines = ()
    told = Told()
    plan = machine.plan(rule=vulkan(), tools=(glslc("cooperative_matrix"),))
    host = build_host(plan, machine.source, store=machine.store, reporter=told)
    module = build_module(plan, machine.source, host, store=machine.store, reporter=told)
    assert [(c.name, c.present) for c in module.capabilities] == [("cooperative_matrix", False)]
    assert told.warnings == ["CMake left out cooperative_matrix, and the shader compiler has it"]


def test_a_required_capability_that_is_not_there_stops_the_build(machine: Machine) -> None:
    machine.defines = ()
    plan = machine.plan(rule=vulkan("cooperative_matrix"), tools=(glslc(),))
    host = build_host(plan, machine.source, store=machine.store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(plan, machine.source, host, store=machine.store, reporter=Told())
    assert caught.value.kind == "capability-missing"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Could NOT find Vulkan (missing: glslc)", "glslc-missing"),
        ("No CMAKE_CXX_COMPILER could be found.", "no-compiler"),
        ("CMake Error: Error: generator : Ninja\nDoes not match the generator used previously",
         "stale-build-folder"),
        ("file cannot create directory: No space left on device", "disk-full"),
    ],
)  # fmt: skip
def test_a_configure_that_fails_has_a_class_a_command_and_a_log(
    machine: Machine, text: str, kind: str
) -> None:
    machine.says, machine.code = text, 1
    with pytest.raises(Exception, match="configuring the host failed") as caught:
        build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    error = caught.value
    assert getattr(error, "kind", "") == kind
    assert "-G Ninja" in getattr(error, "command", "")
    assert text.splitlines()[0] in Path(getattr(error, "log", "")).read_text()


def test_an_ignored_option_stops_the_build_before_ninja(machine: Machine) -> None:
    machine.says = (
        f"{CMAKE_SAYS}\nCMake Warning:\n  Manually-specified variables were not used by the "
        "project:\n\n    LLAMA_VULKAN\n\n"
    )
    with pytest.raises(BuildError) as caught:
        build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    assert "LLAMA_VULKAN was given and never read" in caught.value.why
    assert machine.ninja_runs() == []


def test_a_backend_without_rules_here_is_refused(machine: Machine) -> None:
    rule = BackendRule(backend=Backend.METAL, targets=("ggml-metal",), modules=("ggml-metal",))
    plan = replace(machine.plan(rule=rule), backend=Backend.METAL)
    host = build_host(plan, machine.source, store=machine.store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(plan, machine.source, host, store=machine.store, reporter=Told())
    assert caught.value.kind == "backend-unknown"


def test_the_cpu_backend_has_no_module_of_its_own(machine: Machine) -> None:
    plan = replace(machine.plan(), backend=Backend.CPU)
    host = build_host(plan, machine.source, store=machine.store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(plan, machine.source, host, store=machine.store, reporter=Told())
    assert caught.value.kind == "no-module"


def test_a_recipe_without_cpu_modules_makes_no_host(machine: Machine) -> None:
    base = machine.plan()
    plan = replace(base, recipe=replace(base.recipe, backends=()))
    with pytest.raises(BuildError) as caught:
        build_host(plan, machine.source, store=machine.store, reporter=Told())
    assert caught.value.kind == "no-cpu-backend"


def test_a_plan_without_ninja_is_told_as_a_missing_tool(machine: Machine) -> None:
    base = machine.plan()
    tools = tuple(t for t in base.tools if t.role is not Role.NINJA)
    with pytest.raises(ToolMissingError, match="ninja"):
        build_host(
            replace(base, tools=tools), machine.source, store=machine.store, reporter=Told()
        )  # fmt: skip


def test_the_environment_of_both_runs_is_the_plans_and_clean(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", "-march=native")
    monkeypatch.setenv("VULKAN_SDK", "/stale/sdk")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/conda/lib")
    build_host(machine.plan(), machine.source, store=machine.store, reporter=Told())
    for env in machine.environments():
        assert not {"CXXFLAGS", "VULKAN_SDK", "LD_LIBRARY_PATH"} & set(env)
        assert env["SOURCE_DATE_EPOCH"] == str(package_kit.DATE)
        assert (env["LC_ALL"], env["TZ"]) == ("C.UTF-8", "UTC")
        assert env["GIT_CEILING_DIRECTORIES"] == str(machine.store.root)
