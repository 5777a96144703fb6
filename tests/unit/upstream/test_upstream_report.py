"""The report, the pin as TOML, and a recipe that gets it: what is written can be read again."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.config import load_recipe, locate_recipe
from llamawright.errors import ExitCode, UsageError
from llamawright.model.bump import BumpReport, Change, NewPin, PatchState, Weight
from llamawright.model.recipe import (
    ArchiveOrigin,
    GitOrigin,
    IndexOrigin,
    PathOrigin,
    SourcePin,
)
from llamawright.paths import data_root
from llamawright.upstream.report import pin_block, report_page, with_pin

NEW = "b" * 40
RECIPE = locate_recipe("llama.cpp", root=data_root() / "recipes")


def new_pin(**changes: object) -> NewPin:
    """Return the next release of the project's own recipe."""
    old = load_recipe(RECIPE).source
    origins = (
        IndexOrigin(
            project="llama-cpp-python", version="9.9", filename="llama_cpp_python-9.9.tar.gz",
            size=123, sha256="c" * 64, subdir="vendor/llama.cpp",
        ),
        ArchiveOrigin(
            url=f"https://github.com/ggml-org/llama.cpp/archive/{NEW}.tar.gz", size=209715200
        ),
        GitOrigin(url="https://github.com/ggml-org/llama.cpp", commit=NEW),
    )  # fmt: skip
    pin = replace(
        old, commit=NEW, build_number=12345, version="0.6.0-dev", tree="d" * 64,
        timestamp=1_800_000_000, origins=origins,
    )  # fmt: skip
    told: dict[str, object] = {"pin": pin, "version": "9.9", "age_days": 30.0, **changes}
    return NewPin(**told)  # type: ignore[arg-type]


def report(**changes: object) -> BumpReport:
    told: dict[str, object] = {
        "recipe": "llama.cpp",
        "old": load_recipe(RECIPE).source,
        "new": new_pin(),
        "patches": (PatchState(name="0001-x", state="applies", lines=("a.c: applies",)),),
        "changes": (),
        **changes,
    }
    return BumpReport(**told)  # type: ignore[arg-type]


def test_a_recipe_with_the_new_pin_is_that_recipe_with_that_pin(tmp_path: Path) -> None:
    old = load_recipe(RECIPE)
    new = new_pin()
    path = tmp_path / "llama.cpp.toml"
    path.write_text(with_pin(RECIPE.read_text(encoding="utf-8"), new), encoding="utf-8")
    found = load_recipe(path)
    assert found.source == new.pin
    assert replace(found, source=old.source, path=old.path, digest=old.digest) == old


def test_only_the_lines_of_the_pin_change() -> None:
    before = RECIPE.read_text(encoding="utf-8")
    after = with_pin(before, new_pin())
    changed = [b for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    keys = [line.partition("=")[0].strip() for line in changed]
    assert keys == [
        "commit", "build_number", "version", "timestamp", "tree",
        "version", "filename", "size", "sha256", "url", "commit",
    ]  # fmt: skip
    assert not any("b11312" in line for line in changed)


def test_the_same_pin_changes_nothing() -> None:
    text = RECIPE.read_text(encoding="utf-8")
    same = NewPin(pin=load_recipe(RECIPE).source, version="same", age_days=None)
    assert with_pin(text, same) == text


def test_half_a_pin_is_not_written() -> None:
    with pytest.raises(UsageError, match="not complete") as refused:
        with_pin("", new_pin(unknown=("timestamp: look it up",)))
    assert refused.value.code is ExitCode.USAGE
    assert refused.value.why == "timestamp: look it up"


def test_the_block_is_toml_that_holds_the_whole_pin() -> None:
    new = new_pin()
    source = tomllib.loads(pin_block(new))["source"]
    pin: SourcePin = new.pin
    assert tuple(source["include"]) == pin.include
    assert (source["commit"], source["tree"], source["build_number"]) == (NEW, "d" * 64, 12345)
    assert source["index"] == [
        {
            "project": "llama-cpp-python", "version": "9.9", "size": 123, "sha256": "c" * 64,
            "filename": "llama_cpp_python-9.9.tar.gz", "subdir": "vendor/llama.cpp",
        }
    ]  # fmt: skip
    assert "sha256" not in source["archive"][0]
    assert source["git"] == [{"url": "https://github.com/ggml-org/llama.cpp", "commit": NEW}]


def test_a_folder_is_no_pin() -> None:
    with pytest.raises(ValueError, match="no pin"):
        pin_block(replace(new_pin(), pin=replace(new_pin().pin, origins=(PathOrigin(path="/x"),))))


def test_a_free_report_says_so_and_shows_both_pins() -> None:
    page = report_page(report())
    assert page.startswith("# llama.cpp: 9.9\n")
    assert "Nothing stands against the new pin" in page
    assert f"`{NEW}`" in page
    assert "30.0 days" in page
    assert "- **applies** 0001-x" in page
    assert "a.c: applies" not in page
    assert "```toml\n[source]" in page


def test_a_blocked_report_tells_everything_in_order_of_weight() -> None:
    changes = (
        Change(
            topic="CMake options", name="GGML_X", before="ON", after="", weight=Weight.BLOCKS,
            why="it is gone",
        ),
        Change(topic="ggml types", name="GGML_TYPE_Q", before="", after="43", weight=Weight.LOOK),
        Change(topic="targets", name="t", before="1", after="2"),
    )  # fmt: skip
    failed = PatchState(name="0002-y", state="failed", lines=("b.c: the context differs",))
    told = report(changes=changes, patches=(failed,), new=new_pin(unknown=("commit: silent",)))
    assert told.blocking == ("patch 0002-y does not apply", "GGML_X: it is gone")
    page = report_page(told)
    assert "**2 things must be solved" in page
    assert "- unknown: commit: silent" in page
    assert "  - b.c: the context differs" in page
    order = ["gone: `GGML_X` (was `ON`): it is gone", "new: `GGML_TYPE_Q` = `43`", "`1` → `2`"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)


def test_an_unknown_age_and_no_patches_are_told_too() -> None:
    page = report_page(report(new=new_pin(age_days=None), patches=()))
    assert "| age | | unknown |" in page
    assert "The recipe has none." in page
