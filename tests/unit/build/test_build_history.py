"""The weights behind the time left."""

from __future__ import annotations

import pytest

from llamawright.build.history import (
    LINK,
    UNITY,
    USUAL,
    Weights,
    finished_in,
    merged,
    name_of,
    read_log,
    steps_of,
    total,
)

LOG = """# ninja log v7
0\t9000\t17\tggml/src/CMakeFiles/ggml-cpu-x64.dir/ggml-cpu/ops.cpp.o\tabc
9000\t20000\t18\tggml/src/CMakeFiles/ggml-cpu-haswell.dir/ggml-cpu/ops.cpp.o\tabd
0\t500\t17\tggml/src/CMakeFiles/ggml-base.dir/ggml.c.o\tabe
500\t2500\t19\tggml/src/CMakeFiles/ggml-base.dir/ggml.c.o\tabf
10\t60010\t20\tggml/src/ggml-vulkan/mul_mm.comp.cpp\tac0
7\t8
5\tx\t2\todd\tac1
30\t"""


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("Building CXX object a/CMakeFiles/b.dir/ggml-cpu/ops.cpp.o", "ops.cpp.o"),
        ("Linking CXX shared library bin/libggml.so.0.25.3", "libggml.so.0.25.3"),
        ("Generate vulkan shaders for mul_mm.comp", "mul_mm.comp"),
        ("", ""),
    ],
)
def test_a_step_is_known_by_what_it_makes(description: str, name: str) -> None:
    assert name_of(description) == name


def test_ninjas_own_log_gives_the_mean_of_all_variants() -> None:
    known = read_log(LOG)
    assert known["ops.cpp.o"] == pytest.approx(10.0)


def test_a_later_line_replaces_an_earlier_one_and_torn_lines_are_left_out() -> None:
    known = read_log(LOG)
    assert known["ggml.c.o"] == pytest.approx(2.0)
    assert set(known) == {"ops.cpp.o", "ggml.c.o", "mul_mm.comp"}


def test_a_shader_step_is_found_by_its_description() -> None:
    weights = Weights(read_log(LOG))
    assert weights.of("Generate vulkan shaders for mul_mm.comp") == pytest.approx(60.0)


def test_no_log_is_no_knowledge() -> None:
    assert read_log("") == {}
    assert read_log("# ninja log v7\n") == {}


def test_the_first_build_on_a_machine_knows_what_is_long() -> None:
    first = Weights()
    assert first.of("Building CXX object x/ggml-vulkan.cpp.o") > 20 * USUAL
    assert first.of("Building CXX object x/Unity/unity_3_cxx.cxx.o") == UNITY
    assert first.of("Building CXX object x/never-seen.cpp.o") == USUAL
    assert first.of("Linking CXX executable bin/llama-cli") == LINK


def test_hits_of_a_cache_do_not_spoil_what_is_known() -> None:
    old = {"ops.cpp.o": 9.0, "gone.cpp.o": 1.0}
    new = {"ops.cpp.o": 0.02, "arg.cpp.o": 14.0}
    assert merged(old, new) == {"ops.cpp.o": 9.0, "gone.cpp.o": 1.0, "arg.cpp.o": 14.0}
    assert merged(old, {"ops.cpp.o": 12.0})["ops.cpp.o"] == pytest.approx(12.0)


def test_the_whole_is_the_sum_of_its_steps() -> None:
    weights = Weights({"a.o": 3.0, "b.o": 4.0})
    assert total(weights, ["x a.o", "y b.o"]) == pytest.approx(7.0)
    assert total(weights, []) == 0


COMMANDS = """/usr/bin/c++ -DX -MF a/ops.cpp.o.d -o ggml/CMakeFiles/x.dir/ops.cpp.o -c /s/ops.cpp
/b/Release/vulkan-shaders-gen --glslc /g --source /s/mul_mm.comp --target-cpp /b/mul_mm.comp.cpp
: && /usr/bin/c++ -fPIC -shared -o bin/libggml.so.0.25.3 a.o && :
cd /b && cmake -E cmake_symlink_library bin/libggml.so
"""


def test_the_steps_to_do_are_known_before_the_first_one() -> None:
    assert steps_of(COMMANDS, ()) == ["ops.cpp.o", "mul_mm.comp", "libggml.so.0.25.3", "libggml.so"]
    weights = Weights()
    assert total(weights, steps_of(COMMANDS, ())) > weights.of("x mul_mm.comp")


def test_what_an_earlier_run_made_is_not_to_do_again() -> None:
    log = (
        "# ninja log v7\n0\t9\t1\tggml/CMakeFiles/x.dir/ops.cpp.o\ta\n"
        "0\t9\t1\tggml/src/mul_mm.comp.cpp\tb\ntorn\t"
    )
    assert finished_in(log) == {"ggml/CMakeFiles/x.dir/ops.cpp.o", "ggml/src/mul_mm.comp.cpp"}
    assert steps_of(COMMANDS, finished_in(log)) == ["libggml.so.0.25.3", "libggml.so"]
