"""Recorded output of real llama.cpp builds: what must not be misread."""

from __future__ import annotations

from pathlib import Path

from llamawright.build import gates
from llamawright.build.backends.vulkan import SAID
from llamawright.build.failures import classify, failing_part, first_error
from llamawright.build.fileapi import Reply
from llamawright.build.history import Weights, read_log

GOLDEN = Path(__file__).parents[2] / "golden" / "build"
NOTHING = Reply(targets=(), cache=(), compilers=())


def text(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def test_an_honest_configure_raises_no_alarm() -> None:
    log = text("configure-vulkan.log")
    assert list(gates.unused(log, set())) == []
    assert list(gates.downloads(NOTHING, log)) == []
    assert SAID in log


def test_a_failed_step_of_the_ui_shows_cmakes_own_error() -> None:
    log = text("failed-ui-step.log")
    lines = first_error(log)
    assert lines[0].startswith("FAILED: [code=1] tools/ui/CMakeFiles/llama-ui-assets")
    assert any("CMake Error at" in line for line in lines)
    assert any("ui.h.in" in line for line in lines)
    assert classify(log).kind == "compile-failed"


def test_warnings_of_the_steps_beside_it_are_no_part_of_a_failure() -> None:
    log = text("failed-ui-step.log")
    assert len(failing_part(log.splitlines())) < len(log.splitlines())
    assert "avx512fintrin" not in "\n".join(first_error(log))


def test_a_real_ninja_log_knows_the_longest_steps() -> None:
    known = read_log(text("module.ninja_log"))
    weights = Weights(known)
    shaders = weights.of("Generate vulkan shaders for mul_mm.comp")
    module = weights.of(
        "Building CXX object ggml/src/ggml-vulkan/CMakeFiles/ggml-vulkan.dir/ggml-vulkan.cpp.o"
    )
    assert shaders > module > weights.of("Linking CXX shared module bin/libggml-vulkan.so")
    assert module > 10
