"""The verb compare and the speed gate of verify: what is asked, what is printed, how it ends."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import cli_kit
from cli_kit import Line, StubPipeline, line, stub, verdict
from compare_kit import comparison, measure
from llamawright.cli.arguments import make_parser
from llamawright.cli.compare import gate_code, other_side, wanted_ratio
from llamawright.errors import ExitCode, NoDeviceError, UsageError
from llamawright.model.comparison import Comparison, Gate, GateOutcome
from llamawright.model.verdict import State

__all__ = ["line", "stub"]


def parse(*words: str) -> Namespace:
    return make_parser().parse_args(words)


def held(outcome: GateOutcome) -> Comparison:
    return comparison(gate=Gate(min_ratio=0.95, outcome=outcome, why="prompt: 0.5"))


@dataclass
class Gated(StubPipeline):
    """A pipeline that proves and compares as it is told."""

    found: Comparison = field(default_factory=comparison)
    wrong: BaseException | None = None
    compared: list[tuple[Path, Path, Path, float | None]] = field(default_factory=list)
    rounds: int | None = None

    def open(self, flags: Namespace, *_arguments: object) -> Gated:
        super().open(flags)
        self.rounds = flags.rounds
        return self

    def compare(
        self, a: Path, b: Path, dest: Path, *, min_ratio: float | None = None
    ) -> tuple[Comparison, tuple[Path, ...]]:
        if self.wrong:
            raise self.wrong
        self.compared.append((a, b, dest, min_ratio))
        return self.found, (dest / "x.comparison.json", dest / "x.comparison.html")


@pytest.fixture
def gated(line: Line, monkeypatch: pytest.MonkeyPatch) -> Gated:
    made = Gated(line.root)
    monkeypatch.setattr("llamawright.cli.make.Pipeline", made)
    monkeypatch.setattr("llamawright.cli.compare.Pipeline", made)
    return made


class TestSides:
    def test_two_artifacts(self) -> None:
        assert other_side(parse("compare", "a", "b")) == Path("b")

    def test_an_artifact_and_a_folder(self, tmp_path: Path) -> None:
        flags = parse("compare", "a", "--against-folder", str(tmp_path))
        assert other_side(flags) == tmp_path

    @pytest.mark.parametrize("words", [("a",), ("a", "b", "--against-folder", ".")])
    def test_one_or_three_are_no_comparison(self, words: tuple[str, ...]) -> None:
        with pytest.raises(UsageError) as caught:
            other_side(parse("compare", *words))
        assert caught.value.kind == "two-sides"
        assert "--against-folder" in caught.value.hint

    def test_a_folder_must_be_one(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as caught:
            other_side(parse("compare", "a", "--against-folder", str(tmp_path / "absent")))
        assert caught.value.kind == "no-folder"


class TestRatio:
    @pytest.mark.parametrize(
        ("words", "ratio"),
        [
            ((), None),
            (("--against", "r"), 0.95),
            (("--against", "r", "--min-ratio", "0.8"), 0.8),
            (("--against", "r", "--min-ratio", "0"), 0.0),  # refused later, as no ratio
        ],
    )
    def test_a_reference_makes_a_gate(self, words: tuple[str, ...], ratio: float | None) -> None:
        assert wanted_ratio(parse("verify", "x", *words)) == ratio

    def test_a_ratio_of_nothing_is_refused(self) -> None:
        with pytest.raises(UsageError) as caught:
            wanted_ratio(parse("verify", "x", "--min-ratio", "0.9"))
        assert "--against" in caught.value.hint

    @pytest.mark.parametrize(
        ("outcome", "code", "kind"),
        [
            (GateOutcome.PASS, ExitCode.OK, ""),
            (GateOutcome.UNDECIDED, ExitCode.OK, ""),
            (GateOutcome.TOO_SLOW, ExitCode.VERIFICATION, "too-slow"),
        ],
    )
    def test_only_what_is_certainly_slow_fails(
        self, outcome: GateOutcome, code: ExitCode, kind: str
    ) -> None:
        assert gate_code(held(outcome)) == (code, kind)

    def test_no_gate_fails_nothing(self) -> None:
        assert gate_code(comparison()) == (ExitCode.OK, "")


class TestVerb:
    def test_a_table_and_the_pages_are_told(self, line: Line, gated: Gated) -> None:
        assert line("compare", "dist/a.tar.zst", "b.tar.zst", "--rounds", "9") == 0
        assert gated.compared == [
            (Path("dist/a.tar.zst"), Path("b.tar.zst"), line.root / "dist", None)
        ]
        assert gated.rounds == 9
        assert "▲ faster" in line.err
        assert "note: something to know" in line.err
        assert "page      " in line.err
        assert line.out == ""

    def test_a_difference_is_a_finding_and_no_failure(self, line: Line, gated: Gated) -> None:
        gated.found = comparison(measure(), gate=None)
        assert line("compare", "a", "b") == 0

    def test_json_is_the_comparison_itself(self, line: Line, gated: Gated) -> None:
        assert line("compare", "a", "b", "--json") == 0
        record = json.loads(line.out)
        assert record["schema"] == gated.found.schema
        assert record["measures"][0]["finding"] == "faster"

    def test_the_page_goes_where_it_is_told(self, line: Line, gated: Gated) -> None:
        line("compare", "a", "b", "--dist", "pages")
        assert gated.compared[0][2] == Path("pages")

    def test_a_refusal_has_its_code(self, line: Line, gated: Gated) -> None:
        gated.wrong = NoDeviceError("two devices", hint="name one", kind="different-devices")
        assert line("compare", "a", "b") == ExitCode.NO_DEVICE
        assert line.last == cli_kit.last_line(ExitCode.NO_DEVICE, "different-devices")
        assert "hint: name one" in line.err

    def test_one_side_is_a_usage_error_before_anything_is_opened(
        self, line: Line, gated: Gated
    ) -> None:
        assert line("compare", "a") == ExitCode.USAGE
        assert gated.compared == []

    def test_contexts_are_collected(self) -> None:
        flags = parse("compare", "a", "b", "--context", "8", "--context", "512")
        assert flags.contexts == [8, 512]


class TestGateOfVerify:
    words = ("verify", "d/x.tar.zst", "--against", "ref.tar.zst")

    def test_a_slow_artifact_ends_with_ten(self, line: Line, gated: Gated) -> None:
        gated.found = held(GateOutcome.TOO_SLOW)
        assert line(*self.words, "--json") == ExitCode.VERIFICATION
        assert line.last == cli_kit.last_line(ExitCode.VERIFICATION, "too-slow")
        record = json.loads(line.out)
        assert (record["code"], record["class"]) == (10, "too-slow")
        assert record["verdict"]["state"] == "verified"
        assert record["comparison"]["gate"]["outcome"] == "too-slow"
        assert any(r.endswith("x.comparison.html") for r in record["reports"])

    @pytest.mark.parametrize("outcome", [GateOutcome.PASS, GateOutcome.UNDECIDED])
    def test_others_pass_and_the_table_is_told(
        self, line: Line, gated: Gated, outcome: GateOutcome
    ) -> None:
        gated.found = held(outcome)
        assert line(*self.words) == 0
        assert "speed     " in line.err
        assert "prompt: 0.5" in line.err

    def test_the_reference_is_a_and_the_file_is_b(self, line: Line, gated: Gated) -> None:
        line(*self.words, "--min-ratio", "0.8")
        assert gated.compared == [(Path("ref.tar.zst"), Path("d/x.tar.zst"), line.root / "d", 0.8)]

    @pytest.mark.parametrize("state", [State.FAILED, State.UNVERIFIED, State.QUARANTINED])
    def test_what_is_not_proved_is_not_measured(
        self, line: Line, gated: Gated, state: State
    ) -> None:
        gated.verdict = verdict(state, "its-word")
        assert line(*self.words) != 0
        assert gated.compared == []
        assert "its-word" in line.last

    def test_without_a_reference_nothing_is_measured(self, line: Line, gated: Gated) -> None:
        assert line("verify", "x.tar.zst") == 0
        assert gated.compared == []

    def test_a_ratio_alone_is_refused_before_the_proof(self, line: Line, gated: Gated) -> None:
        assert line("verify", "x.tar.zst", "--min-ratio", "0.9") == ExitCode.USAGE
        assert gated.calls == []
