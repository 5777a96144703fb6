"""Files that were damaged or made to do harm end in a UsageError, never in anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llamawright.config import load_recipe, load_toolchains
from llamawright.errors import UsageError
from llamawright.model.recipe import Recipe
from llamawright.paths import data_root

SHIPPED = data_root() / "recipes" / "llama.cpp.toml"
LINES = SHIPPED.read_text(encoding="utf-8").splitlines()
ENTRIES = [n for n, line in enumerate(LINES) if " = " in line and not line.startswith(" ")]
STRANGE = ("true", "[]", "{}", "-1", '""', '"../../etc/passwd"', "nan", "1979-05-27", '"\\u0000"')


def attempt(folder: Path, text: str) -> Recipe | UsageError:
    """Load a recipe; any other exception than a UsageError fails the test."""
    path = folder / "r.toml"
    path.write_text(text, encoding="utf-8")
    try:
        return load_recipe(path)
    except UsageError as error:
        told = error
    assert str(path) in told.what
    assert told.kind
    return told


def test_every_line_taken_out(tmp_path: Path) -> None:
    for number, line in enumerate(LINES):
        outcome = attempt(tmp_path, "\n".join(LINES[:number] + LINES[number + 1 :]))
        if isinstance(outcome, Recipe):
            assert outcome.source.tree, line


def test_every_line_twice(tmp_path: Path) -> None:
    for number, line in enumerate(LINES):
        text = "\n".join([*LINES[:number], line, *LINES[number:]])
        outcome = attempt(tmp_path, text)
        if number in ENTRIES:
            assert isinstance(outcome, UsageError), line


@pytest.mark.parametrize("value", STRANGE)
def test_every_value_replaced(tmp_path: Path, value: str) -> None:
    refusals = 0
    for number in ENTRIES:
        key = LINES[number].partition(" = ")[0]
        text = "\n".join([*LINES[:number], f"{key} = {value}", *LINES[number + 1 :]])
        refusals += isinstance(attempt(tmp_path, text), UsageError)
    assert refusals > len(ENTRIES) / 3


def test_cut_short_anywhere(tmp_path: Path) -> None:
    whole = "\n".join(LINES)
    for end in range(0, len(whole) - 400, 997):
        assert isinstance(attempt(tmp_path, whole[:end]), UsageError)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{a = " * 20_000,
        "a = " + "9" * 50_000,
        "a" + ".a" * 2_000 + " = 1",
        "\x00",
        "\ufeffname = 'x'",
        "[" * 10_000,
        "name = 'x'\n" * 5_000,
        "# much\n" * 200_000,
    ],
    ids=["lists", "tables", "number", "dots", "nul", "bom", "brackets", "repeated", "large"],
)
def test_bombs(tmp_path: Path, text: str) -> None:
    assert isinstance(attempt(tmp_path, text), UsageError)


def test_the_limit_for_recursion_is_left_alone(tmp_path: Path) -> None:
    before = sys.getrecursionlimit()
    attempt(tmp_path, "a = " + "[" * 100_000)
    assert sys.getrecursionlimit() == before


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_recipe(path)


def test_unknown_keys_with_control_characters_stay_on_one_line(tmp_path: Path) -> None:
    outcome = attempt(tmp_path, '"evil\\u001b[31m\\nkey" = 1\n' + "\n".join(LINES))
    assert isinstance(outcome, UsageError)
    assert "\n" not in outcome.what
    assert "\x1b" not in outcome.what


def test_toolchain_files_taken_apart(tmp_path: Path) -> None:
    for shipped in sorted((data_root() / "toolchains").glob("*.toml")):
        lines = shipped.read_text(encoding="utf-8").splitlines()
        for number in range(0, len(lines), 7):
            path = tmp_path / "t.toml"
            path.write_text("\n".join(lines[:number] + lines[number + 1 :]), encoding="utf-8")
            told = "t.toml"
            try:
                load_toolchains(tmp_path)
            except UsageError as error:
                told = error.what
            assert "t.toml" in told
