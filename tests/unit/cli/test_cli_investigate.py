"""``verify --investigate`` on the command line: how long, with what, and what it prints."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from cli_kit import Line, StubPipeline, last_line, line, stub, verdict
from investigate_kit import investigation
from llamawright.cli.arguments import make_parser
from llamawright.cli.investigate import Looked, offers, wanted_investigation, with_investigation
from llamawright.config import load_toolchains
from llamawright.errors import ExitCode, UsageError
from llamawright.model.inventory import Role
from llamawright.model.verdict import State
from llamawright.paths import data_root
from llamawright.pipeline import Outcome
from llamawright.verify import Attachment

__all__ = ["line", "stub"]


def flags(**given: object) -> Namespace:
    return Namespace(**{"investigate": True, "investigate_limit": None, "soak": None, **given})


def looked(outcome: Outcome, attached: Attachment | None) -> Looked:
    pages = (Path("x.investigation/report.md"), Path("x.investigation.zip")) if attached else ()
    return Looked(outcome=outcome, attached=attached, pages=pages)


def test_without_the_flag_nothing_is_looked_into() -> None:
    assert wanted_investigation(flags(investigate=False)) is None
    assert wanted_investigation(Namespace()) is None


def test_five_minutes_are_the_limit_unless_another_is_named() -> None:
    assert wanted_investigation(flags()) == 300.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("0.5h", 1800), ("10s", 10)]
)
def test_a_limit_is_read_in_every_unit(text: str, seconds: float) -> None:
    assert wanted_investigation(flags(investigate_limit=text)) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "m", "-5m", "9s", "0s", "25h", "5 m", "inf", "nan", "5M", "1e3s", "٣m"]
)
def test_what_is_no_limit_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted_investigation(flags(investigate_limit=text))
    assert caught.value.kind == "bad-duration"
    assert "--investigate-limit 10m" in caught.value.hint


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        wanted_investigation(flags(investigate=False, investigate_limit="5m"))
    assert caught.value.hint == "add --investigate"


def test_a_soak_goes_on_after_what_passed_so_both_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        wanted_investigation(flags(soak="20m"))
    assert caught.value.kind == "flags-conflict"


def test_the_parser_knows_both_flags() -> None:
    given = make_parser().parse_args(["verify", "x", "--investigate", "--investigate-limit", "9m"])
    assert (given.investigate, given.investigate_limit) == (True, "9m")
    plain = make_parser().parse_args(["verify", "x"])
    assert (plain.investigate, plain.investigate_limit) == (False, None)


def result() -> dict[str, object]:
    return {"code": 10, "class": "crashed", "summary": ["verdict   FAILED"], "reports": ["a.json"]}


def test_what_was_found_is_added_and_the_verdict_stands(stub: StubPipeline) -> None:
    attached = Attachment(found=investigation(), logs=())
    told = with_investigation(result(), looked(stub.verify_file(Path("x")), attached))
    assert (told["code"], told["class"]) == (10, "crashed")
    summary = told["summary"]
    assert isinstance(summary, list)
    assert summary[0] == "verdict   FAILED"
    assert summary[1].startswith("inquiry   cause: SIGSEGV in the driver's")
    assert summary[-1] == "report    x.investigation.zip"
    assert told["reports"] == ["a.json", "x.investigation/report.md", "x.investigation.zip"]
    json.dumps(told["investigation"])


def test_a_proof_that_passed_says_nothing_more(stub: StubPipeline) -> None:
    assert with_investigation(result(), looked(stub.verify_file(Path("x")), None)) == result()


@pytest.mark.parametrize("attach", [True, False])
def test_the_exit_code_is_the_proofs_own(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch, attach: bool
) -> None:
    failed = replace(verdict(State.FAILED), failure="crashed")
    outcome = replace(stub.verify_file(Path("x")), verdict=failed)
    attached = Attachment(found=investigation(), logs=()) if attach else None
    asked: list[float | None] = []

    def investigated(_pipeline: object, _path: Path, limit_s: float | None) -> Looked:
        asked.append(limit_s)
        return looked(outcome, attached)

    monkeypatch.setattr("llamawright.cli.investigate.investigated", investigated)
    assert line("verify", "x.tar.zst", "--investigate", "--investigate-limit", "90s") == 10
    assert asked == [90.0]
    assert ("inquiry   cause" in line.err) is attach
    assert line.last == last_line(ExitCode.VERIFICATION, "crashed")


def test_the_platform_has_a_debugger_and_layers_or_says_so() -> None:
    toolchains = load_toolchains(data_root() / "toolchains")
    here = Namespace(platform=Namespace(tag="linux_x86_64"), toolchains=toolchains)
    given = offers(here)  # type: ignore[arg-type]
    assert given.debugger is not None
    assert given.layers is not None
    there = Namespace(platform=Namespace(tag="windows_x86_64"), toolchains=toolchains)
    none = offers(there)  # type: ignore[arg-type]
    assert (none.debugger, none.layers) == (None, None)


@pytest.mark.parametrize(("role", "name"), [(Role.DEBUGGER, "gdb"), (Role.LAYERS, "vulkan-layers")])
def test_the_pinned_sets_are_whole(role: Role, name: str) -> None:
    toolchains = load_toolchains(data_root() / "toolchains")
    (found,) = [s for s in toolchains.sets if s.role is role]
    assert found.name == f"{name}-debian12"
    assert all(f.sha256 and f.sha1 and f.size for f in found.files)
    assert len({f.package for f in found.files}) == len(found.files)
