from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from llamawright import __version__
from llamawright.cli.arguments import make_parser
from llamawright.config.request import NAMES

VERBS = {
    "build": ["build", "vulkan"],
    "verify": ["verify", "x.tar.zst"],
    "compare": ["compare", "a.tar.zst", "b.tar.zst"],
    "wheel": ["wheel", "x.tar.zst"],
    "doctor": ["doctor"],
    "plan": ["plan", "cpu"],
    "explain": ["explain", "a", "b"],
    "fetch": ["fetch", "vulkan"],
    "gc": ["gc"],
    "keygen": ["keygen", "d"],
    "attest": ["attest", "x.tar.zst"],
    "check": ["check", "x.tar.zst"],
    "patch list": ["patch", "list"],
    "patch check": ["patch", "check"],
    "patch refresh": ["patch", "refresh"],
    "patch new": ["patch", "new", "n", "--from", "d", "--type", "bugfix", "--reason", "r"],
}
PLANNING = [VERBS[name] for name in ("build", "doctor", "plan", "fetch")]


def parse(*words: str) -> argparse.Namespace:
    return make_parser().parse_args(words)


@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS.keys())
def test_every_verb_has_the_common_flags_and_none_is_on_by_itself(words: list[str]) -> None:
    bare = parse(*words)
    assert (bare.json, bare.quiet, bare.offline, bare.store) == (False, False, None, None)
    full = parse(*words, "--json", "--quiet", "--offline", "--store", "d")
    assert (full.json, full.quiet, full.offline, full.store) == (True, True, True, Path("d"))


@pytest.mark.parametrize("words", PLANNING, ids=lambda w: str(w[0]))
def test_a_flag_that_was_not_given_is_none_so_that_settings_can_speak(words: list[str]) -> None:
    """A default here would beat the environment and the settings file."""
    flags = vars(parse(*words))
    given = {n: flags[n] for n in NAMES if n in flags and n != "backend"}
    assert set(given.values()) == {None}
    assert {"source", "vulkan", "compiler", "cmake", "ninja", "cache", "jobs"} <= set(given)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_setting_of_a_request_has_its_flag(name: str) -> None:
    assert hasattr(parse("build", "cpu"), name)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["bild", "cpu"],
        ["build"],
        ["build", "metal"],
        ["plan", "CPU"],
        ["verify"],
        ["compare"],
        ["compare", "a", "b", "c"],
        ["compare", "a", "b", "--rounds", "many"],
        ["verify", "x", "--min-ratio", "much"],
        ["explain", "a"],
        ["patch"],
        ["patch", "new", "n"],
        ["patch", "new", "n", "--from", "d", "--type", "bugfix"],
        ["gc", "--keep-days", "soon"],
        ["build", "cpu", "--no-such-flag"],
    ],
    ids=" ".join,
)
def test_a_line_that_is_not_understood_ends_with_two(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(*words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: llamawright")


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse("--version")
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"llamawright {__version__}\n"


def test_help_of_every_verb_points_at_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for name in {words[0] for words in VERBS.values()}:
        with pytest.raises(SystemExit):
            parse(name, "--help")
        assert "docs/reference/exit-codes.md" in capsys.readouterr().out


def test_what_collects_garbage_keeps_a_month_and_takes_parts_of_days() -> None:
    assert parse("gc").keep_days == 30.0
    assert parse("gc", "--keep-days", "0.5").keep_days == 0.5


def test_a_new_patch_is_described_whole() -> None:
    flags = parse(*VERBS["patch new"], "--upstream", "https://example.org/1")
    assert (flags.name, flags.edited, flags.type) == ("n", Path("d"), "bugfix")
    assert (flags.reason, flags.upstream) == ("r", "https://example.org/1")
