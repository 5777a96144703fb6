"""A tiny project with llama.cpp's shape, and a plan for it with this machine's tools."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import package_kit
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Capability, Option

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


def tiny_tree(root: Path) -> PatchedTree:
    """Return the tree that stands at ``root``."""
    return PatchedTree(root=root, digest="p" * 64, source_digest="s" * 64, applied=(), retired=())


def tiny_source(root: Path) -> PatchedTree:
    """Write the project to ``root``."""
    root.mkdir(parents=True)
    for name, text in {**SOURCES, "CMakeLists.txt": PROJECT}.items():
        (root / name).write_text(text)
    return tiny_tree(root)


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
