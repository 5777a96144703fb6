"""The build room over a tiny project with llama.cpp's shape: real cmake, ninja and compiler."""

from __future__ import annotations

import hashlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import package_kit
from llamawright.build import build_host, build_module
from llamawright.build.arguments import TUNING
from llamawright.config import load_recipe
from llamawright.errors import BuildError
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Capability, Option
from llamawright.paths import data_root
from llamawright.store import Store
from package_kit import Told

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(tiny C CXX)
option(GGML_VULKAN "" OFF)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(ggml-base SHARED base.cpp)
set_target_properties(ggml-base PROPERTIES VERSION 0.1.2 SOVERSION 0)
add_library(ggml-cpu-x64 MODULE cpu.cpp)
target_link_libraries(ggml-cpu-x64 PRIVATE ggml-base)
add_library(tiny SHARED one.cpp two.cpp)
target_link_libraries(tiny PRIVATE ggml-base)
add_executable(tiny-cli main.cpp)
target_link_libraries(tiny-cli PRIVATE tiny ggml-base)
set(GGML_AVAILABLE_BACKENDS ggml-cpu-x64 CACHE INTERNAL "")
if(TINY_WIDE_NAMES)
  target_compile_definitions(ggml-base PUBLIC GGML_MAX_NAME=128)
endif()
if(GGML_VULKAN)
  add_library(ggml-vulkan MODULE vulkan.cpp)
  target_link_libraries(ggml-vulkan PRIVATE ggml-base)
  target_compile_definitions(ggml-vulkan PRIVATE COOPMAT)
  message(STATUS "Including Vulkan backend")
endif()
"""
SOURCES = {
    "base.cpp": "const char *where() { return __FILE__; }\n",
    "cpu.cpp": 'const char *where();\nextern "C" const char *cpu() { return where(); }\n',
    "one.cpp": "static int f() { return 1; }\nint one() { return f(); }\n",
    "two.cpp": "static int g() { return 2; }\nint two() { return g(); }\n",
    "main.cpp": "#include <cstdio>\nint one();\nconst char *where();\n"
    'int main() { std::printf("%d %s\\n", one(), where()); }\n',
    "vulkan.cpp": 'const char *where();\nextern "C" const char *v() { return where(); }\n',
    "LICENSE": "Do as you like.\n",
}  # fmt: skip


def find(role: Role, name: str, program: str, **facts: str) -> Found:
    own = Path(sys.executable).parent / program
    path = str(own) if own.is_file() else shutil.which(program)
    assert path, f"{program} is needed: the tool environment has cmake and ninja, the machine g++"
    return Found(
        role=role, name=name, path=Path(path), version="1", where="PATH", sha256="0" * 64,
        facts=tuple(facts.items()),
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> PatchedTree:
    root = tmp_path / "src"
    root.mkdir()
    for name, text in {**SOURCES, "CMakeLists.txt": PROJECT}.items():
        (root / name).write_text(text)
    return PatchedTree(root=root, digest="p" * 64, source_digest="s" * 64, applied=(), retired=())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def plan(**changes: object) -> Plan:
    gcc = shutil.which("gcc") or shutil.which("cc") or ""
    tools = (
        find(Role.CXX, "gcc", "g++", c_compiler=gcc),
        find(Role.CMAKE, "cmake", "cmake"),
        find(Role.NINJA, "ninja", "ninja"),
    )
    vulkan = BackendRule(
        backend=Backend.VULKAN, targets=("ggml-vulkan",), modules=("ggml-vulkan",),
        capabilities=(
            Capability(name="coopmat", define="COOPMAT", feature_test="", cost="slow"),
            Capability(name="bf16", define="BF16", feature_test="", cost="slower"),
        ),
    )  # fmt: skip
    cpu = BackendRule(backend=Backend.CPU, targets=("ggml-cpu-*",), modules=("ggml-cpu-*",))
    recipe = package_kit.recipe(
        programs=("tiny-cli",), libraries=("tiny", "ggml-base"), licenses=("LICENSE",),
        backends=(cpu, vulkan), test_programs=(),
    )  # fmt: skip
    cxx = tools[0].path.as_posix()
    options = (
        Option(name="CMAKE_BUILD_TYPE", value="Release", type="STRING"),
        Option(name="CMAKE_C_COMPILER", value=gcc, type="FILEPATH"),
        Option(name="CMAKE_CXX_COMPILER", value=cxx, type="FILEPATH"),
        Option(name="CMAKE_MAKE_PROGRAM", value=tools[2].path.as_posix(), type="FILEPATH"),
        Option(name="LLAMAWRIGHT_UNITY", value="tiny", type="STRING"),
        Option(name="LLAMAWRIGHT_O2", value="tiny", type="STRING"),
    )
    base = package_kit.plan(
        recipe=recipe, tools=tools, host_options=options,
        module_options=(Option(name="GGML_VULKAN", value="ON"),),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def test_host_and_module_are_built_and_belong_together(store: Store, source: PatchedTree) -> None:
    told = Told()
    host = build_host(plan(), source, store=store, reporter=told)
    module = build_module(plan(), source, host, store=store, reporter=told)
    assert host.abi == module.abi
    assert set(host.files) >= {
        "bin/tiny-cli", "bin/libtiny.so", "bin/libggml-base.so.0.1.2", "bin/libggml-cpu-x64.so",
        "licenses/LICENSE",
    }  # fmt: skip
    assert module.files == ("bin/libggml-vulkan.so",)
    assert [(c.name, c.present) for c in module.capabilities] == [
        ("coopmat", True),
        ("bf16", False),
    ]
    assert (host.root / "bin/libggml-base.so.0").is_symlink()
    assert (host.root / "bin/tiny-cli").stat().st_mode & 0o111


def test_no_folder_of_this_machine_is_in_a_binary(store: Store, source: PatchedTree) -> None:
    host = build_host(plan(), source, store=store, reporter=Told())
    for name in host.files:
        data = (host.root / name).read_bytes()
        assert str(source.root).encode() not in data, name
        assert str(store.root).encode() not in data, name
    assert b"$ORIGIN" in (host.root / "bin/tiny-cli").read_bytes()


def test_a_second_build_with_the_same_key_compiles_nothing(
    store: Store, source: PatchedTree
) -> None:
    first = build_host(plan(), source, store=store, reporter=Told())
    told = Told()
    assert build_host(plan(), source, store=store, reporter=told) == first
    assert any("built before" in line for line in told.lines)


def test_two_folders_give_the_same_bytes(tmp_path: Path, source: PatchedTree) -> None:
    other = tmp_path / "elsewhere" / "tree"
    shutil.copytree(source.root, other)
    one = build_host(plan(), source, store=Store(tmp_path / "a"), reporter=Told())
    two = build_host(
        plan(), replace(source, root=other), store=Store(tmp_path / "b b"), reporter=Told()
    )
    for name in one.files:
        assert (one.root / name).read_bytes() == (two.root / name).read_bytes(), name


def test_an_option_the_project_does_not_know_fails(store: Store, source: PatchedTree) -> None:
    odd = plan(module_options=(Option(name="LLAMA_VULKAN", value="ON"),))
    host = build_host(odd, source, store=store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(odd, source, host, store=store, reporter=Told())
    assert "LLAMA_VULKAN was given and never read" in caught.value.why


def test_a_backend_that_stays_off_fails(store: Store, source: PatchedTree) -> None:
    off = plan(module_options=(Option(name="GGML_VULKAN", value="OFF"),))
    host = build_host(off, source, store=store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(off, source, host, store=store, reporter=Told())
    assert caught.value.kind == "configure-gate"
    assert "CMake did not say: Including Vulkan backend" in caught.value.why


def test_a_compile_error_shows_its_line_command_and_log(store: Store, source: PatchedTree) -> None:
    (source.root / "one.cpp").write_text("int one() { return nothing; }\n")
    with pytest.raises(BuildError) as caught:
        build_host(plan(), source, store=store, reporter=Told())
    error = caught.value
    assert error.kind == "compile-failed"
    assert any("nothing" in line for line in error.tail)
    assert "ninja -C" in error.command.replace(str(plan().tools[2].path), "ninja")
    assert "one.cpp" in Path(error.log).read_text()


def test_a_cured_source_goes_on_where_it_stopped(store: Store, source: PatchedTree) -> None:
    good = (source.root / "one.cpp").read_text()
    (source.root / "one.cpp").write_text("int one() { return nothing; }\n")
    with pytest.raises(BuildError):
        build_host(plan(), source, store=store, reporter=Told())
    (source.root / "one.cpp").write_text(good)
    assert "bin/tiny-cli" in build_host(plan(), source, store=store, reporter=Told()).files


def test_a_program_that_is_not_made_is_named(store: Store, source: PatchedTree) -> None:
    base = plan()
    recipe = replace(base.recipe, libraries=(*base.recipe.libraries, "gone"))
    with pytest.raises(BuildError) as caught:
        build_host(replace(base, recipe=recipe), source, store=store, reporter=Told())
    assert "libgone.so" in caught.value.what


def test_a_missing_licence_text_is_refused(store: Store, source: PatchedTree) -> None:
    (source.root / "LICENSE").unlink()
    with pytest.raises(BuildError) as caught:
        build_host(plan(), source, store=store, reporter=Told())
    assert caught.value.kind == "license-missing"


def test_a_tuned_target_that_is_gone_is_named(store: Store, source: PatchedTree) -> None:
    base = plan()
    extra = Option(name="LLAMAWRIGHT_O2", value="tiny;renamed", type="STRING")
    options = (*(o for o in base.host_options if o.name != extra.name), extra)
    with pytest.raises(BuildError) as caught:
        build_host(replace(base, host_options=options), source, store=store, reporter=Told())
    assert "renamed" in "\n".join(caught.value.tail)


def test_the_recipe_knows_the_tuning_it_was_measured_with() -> None:
    recipe = load_recipe(data_root() / "recipes" / "llama.cpp.toml")
    said = next(o.value for o in recipe.options if o.name == "LLAMAWRIGHT_TUNING")
    assert said == hashlib.sha256((data_root() / TUNING).read_bytes()).hexdigest()
