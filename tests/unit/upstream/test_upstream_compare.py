"""Two surveys: what blocks, what is worth a look, and what is only told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamawright.config import load_recipe, locate_recipe
from llamawright.model.bump import Change, Weight
from llamawright.paths import data_root
from llamawright.upstream.compare import Expected, compare_trees
from llamawright.upstream.survey import ENTERED, Survey

TOPICS = (
    "least CMake", "targets", "shader compiler tests", "ggml types", ENTERED,
    "Vulkan header versions asked for", "packages looked for",
)  # fmt: skip
EXPECTED = Expected(
    options=frozenset({"GGML_OURS", "GIT_EXE", "CMAKE_BUILD_TYPE"}),
    targets=frozenset({"llama-cli"}),
    tests=frozenset({"tests/coopmat.comp"}),
    files=("LICENSE",),
)


def surveyed(
    options: dict[str, str] | None = None,
    mentioned: tuple[str, ...] = (),
    **facts: dict[str, str],
) -> Survey:
    """Return a survey; keywords are topics with ``_`` for blanks."""
    given = {name.replace("_", " "): value for name, value in facts.items()}
    named = options or {}
    return Survey(
        options=named,
        facts={topic: given.get(topic, {}) for topic in TOPICS},
        mentioned=frozenset((*named, *mentioned)),
    )


def only(old: Survey, new: Survey, missing: tuple[str, ...] = ()) -> Change:
    (change,) = compare_trees(old, new, EXPECTED, missing)
    return change


def test_equal_trees_have_no_changes() -> None:
    same = surveyed({"GGML_OURS": "ON"}, targets={"llama-cli": "target"})
    assert compare_trees(same, same, EXPECTED, ()) == ()


def test_an_option_that_the_recipe_sets_and_that_is_gone_blocks() -> None:
    change = only(surveyed({"GGML_OURS": "ON"}), surveyed())
    assert change.weight is Weight.BLOCKS
    assert "CMake would ignore it" in change.why


def test_an_option_that_is_still_read_has_only_lost_its_declaration() -> None:
    change = only(surveyed({"GGML_OURS": "ON"}), surveyed(mentioned=("GGML_OURS",)))
    assert change.weight is Weight.INFO


def test_a_variable_that_nothing_declares_and_nobody_reads_any_more_blocks() -> None:
    change = only(surveyed(mentioned=("GIT_EXE",)), surveyed())
    assert (change.name, change.weight) == ("GIT_EXE", Weight.BLOCKS)


def test_cmakes_own_names_are_no_matter_of_the_trees() -> None:
    assert compare_trees(surveyed(), surveyed(), EXPECTED, ()) == ()


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        ({}, {"GGML_NEW": "ON"}, Weight.LOOK),
        ({"GGML_OLD": "ON"}, {}, Weight.INFO),
        ({"GGML_OTHER": "ON"}, {"GGML_OTHER": "OFF"}, Weight.LOOK),
        ({"GGML_OURS": "ON"}, {"GGML_OURS": "OFF"}, Weight.INFO),
    ],
)
def test_options_are_weighed_by_who_sets_them(
    before: dict[str, str], after: dict[str, str], weight: Weight
) -> None:
    assert only(surveyed(before), surveyed(after)).weight is weight


def test_an_empty_default_is_no_missing_one() -> None:
    change = only(surveyed({"GGML_X": ""}), surveyed({"GGML_X": "1"}))
    assert (change.before, change.after) == ("(empty)", "1")


def test_a_target_of_the_recipe_that_is_gone_blocks_and_another_does_not() -> None:
    old = surveyed(targets={"llama-cli": "target", "test-x": "target"})
    found = compare_trees(old, surveyed(), EXPECTED, ())
    assert [(c.name, c.weight) for c in found] == [
        ("llama-cli", Weight.BLOCKS),
        ("test-x", Weight.INFO),
    ]


def test_a_file_of_the_recipe_that_is_missing_blocks() -> None:
    change = only(surveyed(), surveyed(), ("LICENSE",))
    assert (change.name, change.weight) == ("LICENSE", Weight.BLOCKS)


def test_a_new_shader_test_is_a_new_capability_and_a_lost_one_blocks() -> None:
    new = only(surveyed(), surveyed(shader_compiler_tests={"tests/fp4.comp": "GL_EXT_fp4"}))
    assert new.weight is Weight.LOOK
    assert "new capability" in new.why
    lost = only(surveyed(shader_compiler_tests={"tests/coopmat.comp": "GL_X"}), surveyed())
    assert lost.weight is Weight.BLOCKS


def test_a_raised_minimum_is_worth_a_look() -> None:
    change = only(
        surveyed(least_CMake={"CMakeLists.txt": "3.14"}),
        surveyed(least_CMake={"CMakeLists.txt": "3.28"}),
    )
    assert (change.before, change.after, change.weight) == ("3.14", "3.28", Weight.LOOK)
    headers = only(surveyed(), surveyed(Vulkan_header_versions_asked_for={">= 301": "asked for"}))
    assert "min_headers" in headers.why


def test_a_new_type_is_told_and_a_renumbered_one_is_worth_a_look() -> None:
    new = only(surveyed(), surveyed(ggml_types={"GGML_TYPE_Q9": "43"}))
    assert (new.weight, new.after) == (Weight.INFO, "43")
    moved = only(
        surveyed(ggml_types={"GGML_TYPE_Q9": "43"}), surveyed(ggml_types={"GGML_TYPE_Q9": "44"})
    )
    assert moved.weight is Weight.LOOK
    assert "another type" in moved.why


def test_a_folder_that_cmake_enters_and_the_include_lacks_is_worth_a_look() -> None:
    lacking = {"tools/new": "not in the recipe's include"}
    change = only(surveyed(), surveyed(folders_that_CMake_enters=lacking))
    assert change.weight is Weight.LOOK
    assert "include" in change.why
    there = surveyed(folders_that_CMake_enters={"tools/new": "there"})
    assert only(surveyed(), there).weight is Weight.INFO


def test_what_blocks_comes_first() -> None:
    old = surveyed({"GGML_A": "ON", "GGML_OURS": "ON"}, packages_looked_for={"X": ""})
    found = compare_trees(old, surveyed({"GGML_A": "OFF"}), EXPECTED, ("LICENSE",))
    assert [c.weight for c in found] == [
        Weight.BLOCKS, Weight.BLOCKS, Weight.LOOK, Weight.INFO,
    ]  # fmt: skip


def test_the_own_recipe_names_options_targets_tests_and_files() -> None:
    recipe = load_recipe(locate_recipe("llama.cpp", root=data_root() / "recipes"))
    expected = Expected.of(recipe)
    assert {"GGML_BACKEND_DL", "GGML_VULKAN", "GGML_CUDA", "LLAMA_BUILD_TESTS"} <= expected.options
    assert {"llama-cli", "ggml-base", "test-backend-ops"} <= expected.targets
    assert any(t.endswith("coopmat.comp") for t in expected.tests)
    assert {"LICENSE", "tools/server", "vendor"} <= set(expected.files)
    bare = replace(recipe, backends=(), options=(), test_options=())
    assert Expected.of(bare).options == frozenset()
