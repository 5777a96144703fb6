"""Hostile source trees: whatever stands in a CMake file or header, it is only read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamawright.upstream.survey import bare, enum_of, options_of, survey, targets

QUICK = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = st.lists(
    st.sampled_from(
        [
            "option(", "set(", "CACHE", "STRING", '"', "\\", ")", "(", "#", "#[[", "]]", "\n", " ",
            "GGML_X", "ON", "${Y}", "add_library(", "cmake_minimum_required(VERSION ", "3.14",
            "...", "add_subdirectory(", "../..", "enum ggml_type {", "}", ",", "=", "/*", "//",
        ]
    ),
    max_size=60,
)  # fmt: skip
# Seconds for a text of 200 kB, on a busy machine; a pattern that backtracks takes minutes.
PATIENCE_S = 10.0


@QUICK
@given(words=WORDS)
def test_any_text_is_read_to_its_end(words: list[str]) -> None:
    text = "".join(words)
    plain = bare(text)
    assert len(plain) <= len(text)
    for name, value in options_of([plain]).items():
        assert name.isidentifier() or name.isalnum()
        assert value
    assert all(targets([plain]))
    assert "GGML_TYPE_COUNT" not in enum_of(text, "ggml_type")


@QUICK
@given(content=st.binary(max_size=400))
def test_any_bytes_in_every_file_are_survived(tmp_path: Path, content: bytes) -> None:
    for name in (
        "CMakeLists.txt", "ggml/include/ggml.h", "include/llama.h", "ggml/src/ggml-vulkan/x.cpp",
        "ggml/src/ggml-vulkan/vulkan-shaders/feature-tests/x.comp",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert survey(tmp_path).facts["shader compiler tests"]


@pytest.mark.parametrize(
    "text",
    [
        "set(" * 50_000,
        'option(A "' * 20_000,
        'set(A "' + "\\" * 200_000,
        "#[[" * 60_000,
        "set(A " + "x " * 100_000,
        "add_subdirectory(" + "../" * 60_000 + ")",
    ],
    ids=["sets", "options", "backslashes", "brackets", "values", "dots"],
)
def test_no_text_makes_a_pattern_run_wild(text: str) -> None:
    start = time.monotonic()
    plain = bare(text)
    options_of([plain])
    targets([plain])
    assert time.monotonic() - start < PATIENCE_S


def test_a_folder_that_leads_out_of_the_tree_is_named_and_not_entered(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "CMakeLists.txt").write_text('option(OUTSIDE "x" ON)', encoding="utf-8")
    inside = tmp_path / "tree" / "CMakeLists.txt"
    inside.write_text('add_subdirectory(..)\noption(INSIDE "x" ON)', encoding="utf-8")
    assert list(survey(tmp_path / "tree").options) == ["INSIDE"]


def test_a_folder_called_like_a_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").mkdir()
    (tmp_path / "x.cmake").mkdir()
    assert survey(tmp_path).options == {}
