"""Real lines of failing builds and what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.build.failures import (
    CLASSES,
    READ_BYTES,
    classify,
    failing_part,
    first_error,
    last_part,
)

LINES = {
    "CMake Error: Could NOT find CUDAToolkit (missing: CUDAToolkit_INCLUDE_DIR)": "cuda-toolkit",
    "fatal error: error writing to /tmp/cc.s: No space left on device": "disk-full",
    "c++: fatal error: Killed signal terminated program cc1plus": "out-of-memory",
    "C:\\x.cpp(1): fatal error C1060: compiler is out of heap space": "out-of-memory",
    "ninja: fatal: CreateProcess: 0xC000012D": "out-of-memory",
    "x.cpp:3:1: internal compiler error: Segmentation fault": "compiler-crashed",
    "ggml-vulkan.cpp:7: error: 'LayerSettingEXT' is not a member of 'vk'": "headers-too-old",
    "error: 'VkPhysicalDeviceCooperativeMatrixFeaturesKHR' was not declared": "headers-too-old",
    "error: conversion from 'int' to 'vk::PipelineCache' is ambiguous": "headers-too-old",
    "fatal error: spirv/unified1/spirv.hpp: No such file or directory": "spirv-headers-missing",
    'a package configuration file provided by "SPIRV-Headers"': "spirv-headers-missing",
    "Could NOT find Vulkan (missing: glslc) (found version 1.3)": "glslc-missing",
    "/bin/sh: 1: Vulkan_GLSLC_EXECUTABLE-NOTFOUND: not found": "glslc-missing",
    "cannot compile mul_mm.comp": "shader-failed",
    "Error: generator : Ninja\nDoes not match the generator used previously": "stale-build-folder",
    "#error -- unsupported GNU version! gcc versions later than 13": "host-compiler",
    "error: unsupported Microsoft Visual Studio version! Only 2017": "host-compiler",
    "nvcc fatal : Unsupported gpu architecture 'compute_61'": "gpu-arch",
    "No CUDA toolset found.": "toolset-integration",
    "maximum full path to an object file is 250 (see CMAKE_OBJECT_PATH_MAX)": "path-too-long",
    "ld: undefined reference to `GOMP_barrier'": "link-failed",
    "The CXX compiler is not able to compile a simple test program.": "no-compiler",
    "x.cpp:1:1: error: expected ';'": "compile-failed",
    "ccache: error: failed to create temporary file": "compiler-cache",
    "sccache: encountered fatal error": "compiler-cache",
    "/bin/sh: 1: vulkan-shaders-gen: not found": "generator-missing",
    "ninja: error: 'vulkan-shaders-gen', missing and no known rule": "generator-missing",
    "x.cpp:1:10: fatal error: curl/curl.h: No such file or directory": "header-missing",
    "x.cpp:1:10: fatal error: 'curl/curl.h' file not found": "header-missing",
    "terminate called: Failed to create pipes": "out-of-memory",
}


@pytest.mark.parametrize(("text", "kind"), LINES.items(), ids=list(LINES.values()))
def test_a_line_names_its_class(text: str, kind: str) -> None:
    assert classify(f"[1/2] Building\n{text}\nninja: build stopped\n").kind == kind


def test_every_class_has_a_cure_and_a_fixture() -> None:
    assert all(c.hint for c in CLASSES)
    assert {c.kind for c in CLASSES} - set(LINES.values()) <= {"downloads"}


def test_only_what_can_pass_a_second_time_is_tried_again() -> None:
    assert {c.kind for c in CLASSES if c.retry} == {"out-of-memory"}
    assert {c.kind for c in CLASSES if c.uncached} == {"compiler-cache"}


WARNINGS = """[1/3] Building CXX object a.o
a.cpp:9: warning: 'No space left on device' and out of memory are only words here
FAILED: [code=1] b.o
/usr/bin/c++ -c b.cpp -o b.o
b.cpp:1: error: expected ';'
[3/3] Building CXX object c.o
c.cpp:4: warning: internal compiler error handling is unused
ninja: build stopped: subcommand failed.
"""


def test_what_other_steps_printed_decides_nothing() -> None:
    assert classify(WARNINGS).kind == "compile-failed"
    assert failing_part(WARNINGS.splitlines())[0] == "FAILED: [code=1] b.o"
    assert len(failing_part(WARNINGS.splitlines())) == 3


def test_every_failed_step_counts() -> None:
    log = "FAILED: a.o\nx\n[2/9] ok\nFAILED: b.o\nKilled signal terminated program cc1\n[3/9] y"
    assert classify(log).kind == "out-of-memory"


def test_the_tail_names_the_step_and_its_error_even_far_apart() -> None:
    log = "\n".join(["FAILED: ui.h", *["note"] * 40, "CMake Error at x.cmake:1", "  no file"])
    lines = first_error(log)
    assert lines[0] == "FAILED: ui.h"
    assert "CMake Error at x.cmake:1" in lines
    assert len(lines) < 10


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    log.write_bytes(b"w" * (READ_BYTES + 100) + b"\nFAILED: a.o\n\xff No space left on device\n")
    assert classify(last_part(log)).kind == "disk-full"


def test_a_warning_about_an_error_is_no_crash() -> None:
    assert classify("warning: errors are treated as warnings").kind == "compile-failed"


def test_the_first_error_is_shown_with_the_line_before_it() -> None:
    log = "\n".join(["[1/9] ok", "FAILED: a.o", "g++ -c a", "a.cpp:1: error: bad", *"bcdefghij"])
    lines = first_error(log)
    assert lines[0] == "FAILED: a.o"
    assert "a.cpp:1: error: bad" in lines


def test_without_any_error_the_last_lines_are_shown() -> None:
    assert first_error("\n".join("abcdefghijkl"), count=3) == ("j", "k", "l")
