"""test-backend-ops: what it prints of cases that fail, and where its archive lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.verify.investigate_ops import (
    MOST_MESSAGES,
    archive_of_tests,
    argv,
    last_begun,
    read_count,
    read_failures,
)

# The words are those of tests/test-backend-ops.cpp of commit 0c1e57098.
OK = "  MUL_MAT(type_a=f16,type_b=f32,m=16,n=1,k=256,bs=[1,1],nr=[1,1]): \x1b[1;32mOK\x1b[0m\n"
BAD = (
    "  MUL_MAT(type_a=q4_1,type_b=f32,m=16,n=1,k=256,bs=[1,1],nr=[1,1]): "
    "[MUL_MAT] NMSE = 0.123456789 > 0.000500000 \x1b[1;31mFAIL\x1b[0m\n"
)
PLAIN = "  SOFT_MAX(type=f32,ne=[16,2,1,1],mask=1): \x1b[1;31mFAIL\x1b[0m\n"
NAN = "  ROPE(type=f32,ne_a=[128,32,2,1]): [ROPE] NaN at index 7 (Vulkan0=nan CPU=0.1) FAIL\n"


def test_each_case_that_fails_is_told_with_its_reason() -> None:
    found = read_failures(OK + BAD + PLAIN + NAN)
    assert [m.id for m in found] == ["MUL_MAT", "SOFT_MAX", "ROPE"]
    assert "NMSE = 0.123456789 > 0.000500000" in found[0].text
    assert found[0].text.startswith("MUL_MAT(type_a=q4_1")
    assert found[1].text == "SOFT_MAX(type=f32,ne=[16,2,1,1],mask=1)"
    assert "NaN at index 7" in found[2].text


@pytest.mark.parametrize(
    "text", ["", OK, "Backend Vulkan0: FAIL\n", "FAIL", "  12/12 tests passed"]
)
def test_what_is_no_failing_case_is_none(text: str) -> None:
    assert read_failures(text) == ()


def test_hundreds_of_cases_are_some() -> None:
    assert len(read_failures(BAD * 300)) == MOST_MESSAGES


def test_the_count_is_read() -> None:
    assert read_count("  \x1b[1m118/120\x1b[0m tests passed\n") == (118, 120)
    assert read_count("  118/120 tests passed\n") == (118, 120)
    assert read_count("") is None


@pytest.mark.parametrize(
    ("output", "case"),
    [
        (OK + "  MUL_MAT(type_a=q4_1,m=16): ", "MUL_MAT(type_a=q4_1,m=16)"),
        (OK + "  MUL_MAT(type_a=q4_1,m=16):", "MUL_MAT(type_a=q4_1,m=16)"),
        (OK, ""),
        ("", ""),
        ("Testing 1 devices\n", ""),
    ],
)  # fmt: skip
def test_the_case_at_which_a_run_died_is_the_last_one_begun(output: str, case: str) -> None:
    assert last_begun(output) == case


@pytest.mark.parametrize("ending", [".tar.zst", ".zip"])
def test_the_archive_of_tests_lies_beside_the_artifact(tmp_path: Path, ending: str) -> None:
    artifact = tmp_path / f"llama.cpp-0c1e57098-vulkan{ending}"
    assert archive_of_tests(artifact) is None
    beside = tmp_path / f"llama.cpp-0c1e57098-vulkan-tests{ending}"
    beside.write_bytes(b"")
    assert archive_of_tests(artifact) == beside


def test_a_file_of_another_name_has_none(tmp_path: Path) -> None:
    (tmp_path / "x-tests").write_bytes(b"")
    assert archive_of_tests(tmp_path / "x") is None


def test_one_operation_is_tested_on_one_device() -> None:
    line = argv(Path("/t/test-backend-ops"), "Vulkan0", "MUL_MAT")
    assert line == ("/t/test-backend-ops", "test", "-b", "Vulkan0", "-o", "MUL_MAT")
