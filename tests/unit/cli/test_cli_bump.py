"""The verb bump: measured, compared, told; blocked, built or written as it should be."""

from __future__ import annotations

import json
import shutil
import tomllib
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cli_kit import Line, last_line, line
from llamawright.cli import bump, make
from llamawright.config import load_recipe, locate_recipe
from llamawright.console import Console
from llamawright.errors import ExitCode, UsageError
from llamawright.fetch.newpin import Bumper
from llamawright.model.bump import NewPin
from llamawright.model.plan import SourceTree
from llamawright.model.recipe import SourcePin
from llamawright.patching import Series
from llamawright.patching.maintain import PatchReport
from llamawright.paths import data_root
from llamawright.pipeline import Pipeline
from llamawright.upstream.compare import Expected
from patching_kit import World

__all__ = ["line"]

COMMIT = "c" * 40
OWN = locate_recipe("llama.cpp", root=data_root() / "recipes")


@dataclass
class Upstream:
    """Two trees, a series and a recipe of its own, in place of what would be fetched."""

    world: World
    new: Path
    recipe: Path
    unknown: tuple[str, ...] = ()
    asked: list[dict[str, object]] = field(default_factory=list)

    def measure(self, bumper: Bumper, wanted: str, **given: object) -> NewPin:
        self.asked.append({"wanted": wanted, "least_days": bumper.least_days, **given})
        pin = replace(bumper.pin, commit=COMMIT, tree="e" * 64, build_number=99)
        return NewPin(pin=pin, version=wanted, age_days=12.0, unknown=self.unknown)

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        path = self.new / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.fixture
def upstream(line: Line, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """The next release equals the pinned one, until a test changes it."""
    world = World(line.root / "world")
    world.change("first", ("src/a.cpp", "line 15\n", "line fifteen\n"))
    expected = Expected.of(load_recipe(OWN))
    cmake = "".join(f'option({n} "x" ON)\n' for n in sorted(expected.options))
    for name in expected.files:
        path = world.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.mkdir() if "." not in name and name.islower() else path.touch()
    (world.source / "CMakeLists.txt").write_text(cmake, encoding="utf-8")
    new = line.root / "new"
    shutil.copytree(world.source, new)
    recipe = line.root / "mine.toml"
    recipe.write_text(OWN.read_text(encoding="utf-8"), encoding="utf-8")
    made = Upstream(world, new, recipe)

    def series(_self: Pipeline) -> Series:
        return world.series

    def fetch(pin: SourcePin, **_given: object) -> SourceTree:
        return SourceTree(root=new, digest=pin.tree or "", origin="new")

    monkeypatch.setattr(Pipeline, "series", property(series))
    monkeypatch.setattr(Pipeline, "source_root", lambda _self: world.source)
    monkeypatch.setattr(bump, "fetch_source", fetch)

    def measure(self: Bumper, wanted: str, **given: object) -> NewPin:
        return made.measure(self, wanted, **given)

    monkeypatch.setattr(Bumper, "measure", measure)
    return made


def _copy(source: Path, dest: Path) -> None:
    import shutil

    shutil.copytree(source, dest)


def test_a_free_release_ends_with_0_and_leaves_two_pages(line: Line, upstream: Upstream) -> None:
    assert line("bump", "9.9", "--recipe", upstream.recipe, "--dist", "out") == ExitCode.OK
    page = (line.root / "out" / "bump-llama.cpp-9.9.md").read_text(encoding="utf-8")
    assert "Nothing stands against the new pin" in page
    record = json.loads((line.root / "out" / "bump-llama.cpp-9.9.json").read_text())
    assert record["blocking"] == []
    assert record["report"]["new"]["pin"]["commit"] == COMMIT
    assert record["report"]["patches"][0]["state"] == "applies"
    assert "patch     applies       0001-first" in line.err
    assert "age       12.0 days" in line.err


def test_the_recipe_is_never_touched_without_write(line: Line, upstream: Upstream) -> None:
    before = upstream.recipe.read_bytes()
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.OK
    assert upstream.recipe.read_bytes() == before


def test_write_puts_the_new_pin_into_the_recipe(line: Line, upstream: Upstream) -> None:
    assert line("bump", "9.9", "--write", "--recipe", upstream.recipe) == ExitCode.OK
    source = tomllib.loads(upstream.recipe.read_text(encoding="utf-8"))["source"]
    assert (source["commit"], source["build_number"], source["tree"]) == (COMMIT, 99, "e" * 64)
    assert "nox -s build-vulkan" in line.err


def test_write_refuses_half_a_pin(line: Line, upstream: Upstream) -> None:
    upstream.unknown = ("timestamp: look it up",)
    before = upstream.recipe.read_bytes()
    assert line("bump", "9.9", "--write", "--recipe", upstream.recipe) == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "incomplete-pin")
    assert upstream.recipe.read_bytes() == before


def test_a_lost_option_ends_with_8_and_is_named(line: Line, upstream: Upstream) -> None:
    upstream.edit("CMakeLists.txt", lambda t: t.replace('option(GGML_LTO "x" ON)\n', ""))
    before = upstream.recipe.read_bytes()
    code = line("bump", "9.9", "--write", "--recipe", upstream.recipe, "--dist", "out")
    assert code == ExitCode.BUILD
    assert line.last == last_line(ExitCode.BUILD, "bump-blocked")
    assert "GGML_LTO" in line.err
    assert "bump-llama.cpp-9.9.md" in line.err
    assert upstream.recipe.read_bytes() == before
    assert (line.root / "out" / "bump-llama.cpp-9.9.md").is_file()


def test_a_patch_that_fails_ends_with_7(line: Line, upstream: Upstream) -> None:
    upstream.edit("src/a.cpp", lambda t: t.replace("line 14\n", "another line\n"))
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.PATCH
    assert "patch 0001-first does not apply" in line.err
    assert line.last == last_line(ExitCode.PATCH, "bump-blocked")


def test_a_patch_that_moved_needs_a_refresh_and_blocks_nothing(
    line: Line, upstream: Upstream
) -> None:
    upstream.edit("src/a.cpp", lambda t: f"new first line\n{t}")
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.OK
    assert "needs refresh 0001-first" in line.err


def test_a_patch_that_upstream_took_is_retired(line: Line, upstream: Upstream) -> None:
    upstream.edit("src/a.cpp", lambda t: t.replace("line 15\n", "line fifteen\n"))
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.OK
    assert "retired       0001-first" in line.err


def test_a_missing_licence_blocks(line: Line, upstream: Upstream) -> None:
    (upstream.new / "LICENSE").unlink()
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.BUILD
    assert "LICENSE" in line.err


def test_json_is_the_report(line: Line, upstream: Upstream) -> None:
    assert line("bump", "9.9", "--json", "--recipe", upstream.recipe) == ExitCode.OK
    assert json.loads(line.out)["report"]["recipe"] == "llama.cpp"


def test_the_words_of_the_maintainer_and_the_recipes_age_reach_the_measuring(
    line: Line, upstream: Upstream
) -> None:
    given = ("--commit", "d" * 40, "--build-number", 5, "--recipe", upstream.recipe)
    assert line("bump", "b9", *given) == ExitCode.OK
    assert line("bump", "b9", "--young", *given) == ExitCode.OK
    same = {"wanted": "b9", "commit": "d" * 40, "build_number": 5}
    assert upstream.asked == [{**same, "least_days": 7.0}, {**same, "least_days": 0.0}]


def test_the_recipe_may_ask_for_another_age(line: Line, upstream: Upstream) -> None:
    text = upstream.recipe.read_text(encoding="utf-8")
    text = text.replace("[source]\n", "[source]\nmin_age_days = 30\n", 1)
    upstream.recipe.write_text(text, encoding="utf-8")
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.OK
    assert upstream.asked[0]["least_days"] == 30.0


def test_offline_is_refused(line: Line) -> None:
    assert line("bump", "9.9", "--offline") == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "offline")


def test_build_builds_from_a_recipe_of_its_own(
    line: Line, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Namespace] = []

    def build(flags: Namespace, store: Path, console: Console, stamp: None) -> int:
        del store, console, stamp
        seen.append(flags)
        return int(ExitCode.VERIFICATION)

    monkeypatch.setattr(make, "build", build)
    before = upstream.recipe.read_bytes()
    upstream.unknown = ("build_number: the number of upstream's tag",)
    given = ("--build", "vulkan", "--recipe", upstream.recipe, "--dist", "out", "--jobs", "3")
    assert line("bump", "9.9", *given) == ExitCode.VERIFICATION
    (flags,) = seen
    assert (flags.backend, flags.jobs, flags.no_verify) == ("vulkan", "3", False)
    assert load_recipe(Path(flags.recipe)).source.commit == COMMIT
    assert upstream.recipe.read_bytes() == before


def test_nothing_is_built_when_something_blocks(
    line: Line, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*_arguments: object) -> int:
        raise AssertionError("it was built")

    monkeypatch.setattr(make, "build", build)
    (upstream.new / "LICENSE").unlink()
    given = ("--build", "cpu", "--recipe", upstream.recipe)
    assert line("bump", "9.9", *given) == ExitCode.BUILD


def test_too_young_keeps_its_own_exit(
    line: Line, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def young(*_arguments: object, **_given: object) -> NewPin:
        raise UsageError("9.9 is too young for a pin", kind="too-young")

    monkeypatch.setattr(Bumper, "measure", young)
    assert line("bump", "9.9", "--recipe", upstream.recipe) == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "too-young")


@pytest.mark.parametrize(
    ("state", "lines", "shown"),
    [
        ("applied", ("a: applies",), "applies"),
        ("applied", ("a: applies", "b: applies with an offset (…)"), "needs refresh"),
        ("retired", ("a: already there",), "retired"),
        ("failed", ("a: the context differs",), "failed"),
    ],
)  # fmt: skip
def test_the_state_of_a_patch(state: str, lines: tuple[str, ...], shown: str) -> None:
    (found,) = bump.patch_states((PatchReport(name="p", state=state, lines=lines),))
    assert (found.state, found.lines) == (shown, lines)
