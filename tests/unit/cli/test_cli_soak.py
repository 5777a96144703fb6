"""``verify --soak`` on the command line: how long, what it prints, what it ends with."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_kit import Line, StubPipeline, last_line, line, stub, verdict
from llamawright.cli.soak import soak_code, wanted_soak
from llamawright.errors import ExitCode, UsageError
from llamawright.model.soak import SoakReport
from llamawright.model.verdict import State
from llamawright.pipeline import Outcome
from soak_kit import series, soak_report

__all__ = ["line", "stub"]

ROUNDS = series(30)
Ends = Callable[[SoakReport | None], list[float]]


@pytest.fixture
def ends(stub: StubPipeline, monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Let the pipeline's soak end with a report; gives the seconds that it was asked for."""

    def put(report: SoakReport | None) -> list[float]:
        asked: list[float] = []

        def soak_file(
            _self: StubPipeline, path: Path, seconds: float
        ) -> tuple[Outcome, SoakReport | None, tuple[Path, ...]]:
            asked.append(seconds)
            pages = (path.with_name("tiny.soak.json"), path.with_name("tiny.soak.html"))
            return stub.verify_file(path), report, pages if report else ()

        monkeypatch.setattr(StubPipeline, "soak_file", soak_file, raising=False)
        return asked

    return put


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20m", 1200), ("72h", 259_200), ("90s", 90), ("3d", 259_200), ("1h30m", 5400),
     ("0.5h", 1800), ("60d", 60 * 86_400)],
)  # fmt: skip
def test_a_length_is_read_in_every_unit(text: str, seconds: float) -> None:
    assert wanted_soak(Namespace(soak=text)) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "20", "m", "-5m", "20 m", "1e9s", "0s", "0.1s", "61d", "9" * 400 + "d", "20mm", "h20",
     "٣m", "20M", "inf", "nan"],
)  # fmt: skip
def test_what_is_no_length_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted_soak(Namespace(soak=text))
    assert caught.value.kind == "bad-duration"
    assert "--soak 20m" in caught.value.hint


def test_without_the_flag_there_is_no_soak(line: Line, stub: StubPipeline, ends: Ends) -> None:
    asked = ends(soak_report(ROUNDS))
    assert wanted_soak(Namespace()) is None
    assert line("verify", "x.tar.zst") == 0
    assert asked == []


def test_a_wrong_length_ends_before_anything_runs(line: Line, stub: StubPipeline) -> None:
    assert line("verify", "x.tar.zst", "--soak", "long") == ExitCode.USAGE
    assert stub.calls == []
    assert line.last == last_line(ExitCode.USAGE, "bad-duration")


def test_a_soak_that_held_is_told_after_the_proof(
    line: Line, stub: StubPipeline, ends: Ends
) -> None:
    asked = ends(soak_report(ROUNDS))
    assert line("verify", "x.tar.zst", "--soak", "20m") == 0
    assert asked == [1200.0]
    assert "soak      ✓ verified: 30 rounds in 5 min of 20 min" in line.err
    assert "report    tiny.soak.html" in line.err


def test_a_soak_that_failed_ends_with_its_class(line: Line, stub: StubPipeline, ends: Ends) -> None:
    ends(soak_report(ROUNDS, state=State.FAILED, failure="soak-leak", why="W", hint="H"))
    assert line("verify", "x.tar.zst", "--soak", "20m") == ExitCode.VERIFICATION
    assert line.last == last_line(ExitCode.VERIFICATION, "soak-leak")
    assert "  hint: H" in line.err


def test_a_proof_that_failed_is_what_counts(line: Line, stub: StubPipeline, ends: Ends) -> None:
    ends(None)
    stub.verdict = verdict(State.FAILED, "wrong-answer")
    assert line("verify", "x.tar.zst", "--soak", "20m") == ExitCode.VERIFICATION
    assert line.last == last_line(ExitCode.VERIFICATION, "wrong-answer")
    assert "soak " not in line.err


def test_required_hardware_is_asked_of_the_proof_first(
    line: Line, stub: StubPipeline, ends: Ends
) -> None:
    ends(soak_report(ROUNDS, state=State.VERIFIED_SOFTWARE))
    stub.verdict = verdict(State.VERIFIED_SOFTWARE)
    code = line("verify", "x.tar.zst", "--soak", "20m", "--require-hardware")
    assert code == ExitCode.NO_DEVICE


def test_the_result_as_data_holds_the_soak_without_its_rounds(
    line: Line, stub: StubPipeline, ends: Ends
) -> None:
    ends(soak_report(ROUNDS, state=State.FAILED, failure="soak-slowed"))
    line("verify", "x.tar.zst", "--soak", "20m", "--json")
    record = json.loads(line.out)
    assert (record["code"], record["class"]) == (10, "soak-slowed")
    assert record["soak"]["failure"] == "soak-slowed"
    assert record["soak"]["rounds"] == 30
    assert record["reports"][-1] == "tiny.soak.html"
    assert record["verdict"]["state"] == "verified"


@pytest.mark.parametrize("state", [State.VERIFIED, State.VERIFIED_SOFTWARE])
def test_what_held_ends_with_nought(state: State) -> None:
    assert soak_code(soak_report(ROUNDS, state=state)) == (ExitCode.OK, "")
