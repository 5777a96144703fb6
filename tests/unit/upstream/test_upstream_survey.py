"""What is read from a tree: options however they are written, minimums, targets, enums."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.upstream.survey import (
    ENTERED,
    FEATURE_TESTS,
    bare,
    enum_of,
    options_of,
    survey,
    targets,
)

GGML_H = """
enum ggml_type {
    GGML_TYPE_F32 = 0,  // plain
    // GGML_TYPE_Q4_2 = 4, support has been removed
    GGML_TYPE_Q4_0, /* next */
    GGML_TYPE_COUNT = 42,
};
enum ggml_op { GGML_OP_NONE = 0, GGML_OP_ADD, GGML_OP_COUNT };
"""
FILES = {
    "CMakeLists.txt": """
        cmake_minimum_required(VERSION 3.14...3.28) # 3.99 is not meant
        option(LLAMA_A "llama: a (really)" ON)
        add_subdirectory(ggml)
        add_subdirectory(tools/none)
        add_subdirectory(${WHEREVER})
        find_package(Threads REQUIRED)
    """,
    "ggml/CMakeLists.txt": """
        if (X)
          cmake_minimum_required(VERSION 3.9)
        endif()
        cmake_minimum_required(VERSION 3.21)
        ggml_add_backend_library(ggml-vulkan x.cpp)
        target_compile_features(ggml PUBLIC c_std_11 cxx_std_17)
    """,
    "ggml/src/ggml-cuda/CMakeLists.txt": (
        'if (CUDAToolkit_VERSION VERSION_GREATER_EQUAL "12.8")\nendif()'
    ),
    "ggml/include/ggml.h": GGML_H,
    "include/llama.h": "enum llama_ftype { LLAMA_FTYPE_ALL_F32 = 0 };",
    "ggml/src/ggml-vulkan/ggml-vulkan.cpp": "#if VK_HEADER_VERSION >= 287\n#endif\n",
    f"{FEATURE_TESTS}/coopmat.comp": "#extension GL_KHR_cooperative_matrix : enable\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('option(A "text" ON)', {"A": "ON"}),
        ('OPTION ( A "text" OFF )', {"A": "OFF"}),
        ('option(A "text")', {"A": "OFF"}),
        ('option(A\n  "with (brackets) and \\"quotes\\""\n  ${B})', {"A": "${B}"}),
        ('option(A "x" ON)\noption(A "x" OFF)', {"A": "ON or OFF"}),
        ('set(A "1;2" CACHE STRING "text")', {"A": '"1;2"'}),
        ('set( A ${B}\n CACHE PATH "x")', {"A": "${B}"}),
        ('set(A "" CACHE STRING "x" FORCE)', {"A": '""'}),
        ('set(A ON CACHE INTERNAL "")', {}),
        ("set(A_CACHE_DIR x)", {}),
        ("set(A b)\nset(C d CACHE STRING x)", {"C": "d"}),
        ('# option(A "x" ON)', {}),
        ('#[[ option(A "x" ON) ]]', {}),
        ('message("# no comment") option(A "x" ON)', {"A": "ON"}),
        ('my_option(A "x" ON)', {}),
        ("option(", {}),
    ],
)
def test_options_are_read_however_they_are_written(text: str, found: dict[str, str]) -> None:
    assert options_of([bare(text)]) == found


def test_targets_are_libraries_programs_and_backends() -> None:
    text = """
        add_library(ggml-base SHARED a.c)
        add_executable(${TARGET} b.c)
        set(TARGET llama-cli)
        ggml_add_backend_library(ggml-cuda c.cu)
        add_executable (llama-bench d.cpp)
    """
    assert list(targets([text])) == ["ggml-base", "ggml-cuda", "llama-bench", "llama-cli"]


def test_an_enum_is_read_without_comments_and_counters() -> None:
    assert enum_of(GGML_H, "ggml_type") == {"GGML_TYPE_F32": "0", "GGML_TYPE_Q4_0": "next"}
    assert enum_of(GGML_H, "ggml_op") == {"GGML_OP_NONE": "0", "GGML_OP_ADD": "next"}
    assert enum_of(GGML_H, "ggml") == {}
    assert enum_of("enum x {", "x") == {}


def test_a_whole_tree_is_read(tree: Path) -> None:
    found = survey(tree)
    facts = found.facts
    assert found.options == {"LLAMA_A": "ON"}
    assert facts["least CMake"] == {"CMakeLists.txt": "3.14", "ggml/CMakeLists.txt": "3.21"}
    assert facts["C and C++ standard"] == {"ggml/CMakeLists.txt": "c_std_11, cxx_std_17"}
    assert facts["packages looked for"] == {"Threads": "REQUIRED"}
    assert facts["CUDA toolkit versions asked for"] == {"12.8 (greater equal)": "asked for"}
    assert facts["targets"] == {"ggml-vulkan": "target"}
    assert facts["Vulkan header versions asked for"] == {">= 287": "asked for"}
    assert facts["shader compiler tests"] == {
        f"{FEATURE_TESTS}/coopmat.comp": "GL_KHR_cooperative_matrix"
    }
    assert facts["quantisations of a model file"] == {"LLAMA_FTYPE_ALL_F32": "0"}
    assert facts[ENTERED] == {"ggml": "there", "tools/none": "not in the recipe's include"}
    assert "LLAMA_A" in found.mentioned


def test_an_empty_tree_has_no_facts_and_no_failure(tmp_path: Path) -> None:
    found = survey(tmp_path)
    assert not found.options
    assert not any(found.facts.values())


def test_files_that_are_no_text_do_not_stop_the_reading(tree: Path) -> None:
    (tree / "ggml" / "CMakeLists.txt").write_bytes(b'\xff\xfe option(GGML_B "x" ON)\0')
    assert survey(tree).options == {"GGML_B": "ON", "LLAMA_A": "ON"}
