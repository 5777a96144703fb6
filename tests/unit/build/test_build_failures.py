"""Real lines of failing builds and what they mean."""

from __future__ import annotations

import pytest

from llamawright.build.failures import CLASSES, classify, first_error

LINES = {
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
}


@pytest.mark.parametrize(("text", "kind"), LINES.items(), ids=list(LINES.values()))
def test_a_line_names_its_class(text: str, kind: str) -> None:
    assert classify(f"[1/2] Building\n{text}\nninja: build stopped\n").kind == kind


def test_every_class_has_a_cure_and_a_fixture() -> None:
    assert all(c.hint for c in CLASSES)
    assert {c.kind for c in CLASSES} - set(LINES.values()) <= {"downloads"}


def test_only_what_can_pass_a_second_time_is_tried_again() -> None:
    assert {c.kind for c in CLASSES if c.retry} == {"out-of-memory"}


def test_a_warning_about_an_error_is_no_crash() -> None:
    assert classify("warning: errors are treated as warnings").kind == "compile-failed"


def test_the_first_error_is_shown_with_the_line_before_it() -> None:
    log = "\n".join(["[1/9] ok", "FAILED: a.o", "g++ -c a", "a.cpp:1: error: bad", *"bcdefghij"])
    lines = first_error(log)
    assert lines[0] == "[1/9] ok"
    assert lines[1] == "FAILED: a.o"
    assert "a.cpp:1: error: bad" in lines


def test_without_any_error_the_last_lines_are_shown() -> None:
    assert first_error("\n".join("abcdefghijkl"), count=3) == ("j", "k", "l")
