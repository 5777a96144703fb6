"""The mutants as data: whole, distinct, each with an expectation that the tool can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.errors import ExitCode
from llamawright.model.verdict import State
from zoo.catalogue import read_catalogue
from zoo.changes import AFTER, BEFORE
from zoo.model import REFUSED, Mutant, Named

STATES = {str(state) for state in State} | {REFUSED}
GOOD = """[[module]]
name = "a"
tells = "t"
on = "cpu"
do = [["proxy"]]
expect = ["failed", "x", 10]
"""
MUTANTS = read_catalogue()


def write(folder: Path, text: str) -> Path:
    place = folder / "mutants.toml"
    place.write_text(text, encoding="utf-8")
    return place


def test_there_are_more_than_forty_that_are_not_honest() -> None:
    assert len([m for m in MUTANTS if m.group != "honest"]) >= 40


def test_every_state_and_exit_code_is_one_that_the_tool_has() -> None:
    for mutant in MUTANTS:
        for expect in (mutant.expect, *mutant.own.values()):
            assert expect.state in STATES, mutant.name
            assert expect.exit in {int(code) for code in ExitCode}, mutant.name


def test_only_the_honest_and_the_slow_are_verified() -> None:
    passed = {m.group for m in MUTANTS if m.expect.exit == 0}
    assert passed == {"honest"}
    assert all(m.expect.exit == 0 for m in MUTANTS if m.group == "honest")


def test_every_mutant_that_must_fail_has_a_class() -> None:
    assert all(m.expect.failure for m in MUTANTS if m.expect.exit)


def test_every_change_is_a_word_that_is_known() -> None:
    words = {change[0] for m in MUTANTS for change in m.changes}
    assert words <= set(BEFORE) | set(AFTER)
    assert words == set(BEFORE) | set(AFTER), "a word that no mutant uses"


def test_every_sleeper_takes_the_short_limits() -> None:
    sleepers = [m for m in MUTANTS if any("HANG" in w for c in m.changes for w in c)]
    assert sleepers
    assert all(m.short for m in sleepers)


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    more = 'own = { cuda = ["failed", "y", 10] }\nflags = ["--offline"]\nmodel = "synthetic"\n'
    (found,) = read_catalogue(write(tmp_path, GOOD + more + "short = true\n"))
    assert found == Mutant(
        name="a",
        group="module",
        tells="t",
        on="cpu",
        changes=(("proxy",),),
        expect=Named(state="failed", failure="x", exit=10),
        own={"cuda": Named(state="failed", failure="y", exit=10)},
        flags=("--offline",),
        model="synthetic",
        short=True,
    )
    assert found.expected("cuda").failure == "y"
    assert found.expected("cpu").failure == "x"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD + GOOD, "two mutants have one name: a"),
        (GOOD + 'colour = "red"\n', "unknown key colour"),
        (GOOD.replace('"cpu"', '"abacus"'), "'on' is none of"),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_catalogue(write(tmp_path, text))
