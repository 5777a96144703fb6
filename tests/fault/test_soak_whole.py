"""A soak from the packed file to its report, on a fake machine; killed, frozen, gone on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from test_verify_freeze import power_cut

from llamawright.digest import sha256_file
from llamawright.errors import UsageError
from llamawright.model.platform import Backend
from llamawright.model.soak import SoakReport, SoakRound
from llamawright.model.verdict import Proof, State
from llamawright.store import Journal
from llamawright.verify import soak
from llamawright.verify.soak_round import Rounds
from soak_kit import RULES, ScriptedLog
from verify_kit import PCI, Bench, bench, left_running, verification

__all__ = ["bench"]

SOAK_RULES = verification(soak=RULES)


@dataclass
class Soaking:
    """A fake machine whose soaks take as many rounds as a test wants: each counts 10 s."""

    bench: Bench
    patch: pytest.MonkeyPatch
    log: ScriptedLog = field(default_factory=ScriptedLog)
    changes: dict[int, Mapping[str, object]] = field(default_factory=dict)
    kill_at: int = 0

    def __post_init__(self) -> None:
        take = Rounds.take
        soaking = self

        def counted(
            rounds: Rounds, number: int, session: int, *, first: bool, at: float
        ) -> SoakRound:
            if number == soaking.kill_at:
                raise KeyboardInterrupt
            done = take(rounds, number, session, first=first, at=at)
            return replace(done, at=at + 10.0, **soaking.changes.get(number, {}))  # type: ignore[arg-type]

        self.patch.setattr(Rounds, "take", counted)
        self.patch.setattr("llamawright.verify.soak_run.open_kernel_log", lambda: self.log)

    def run(
        self, artifact: Path, seconds: float = 30.0, **changes: object
    ) -> tuple[Proof, SoakReport | None]:
        self.bench._probe()
        # What the fake card's memory holds goes with the programs of an earlier run.
        (self.bench.root / "busy").unlink(missing_ok=True)
        changes = {"verification": SOAK_RULES, **changes}
        request = self.bench.request(artifact, **changes)
        return soak(request, seconds, store=self.bench.store, reporter=self.bench.told)

    def held(self, artifact: Path, seconds: float = 30.0, **changes: object) -> SoakReport:
        proof, report = self.run(artifact, seconds, **changes)
        assert report is not None, proof.verdict.why
        return report

    def lines(self) -> list[dict[str, object]]:
        (path,) = (self.bench.root / "store" / "soaks").glob("*.jsonl")
        return [json.loads(text) for text in path.read_text().splitlines()]


@pytest.fixture
def soaking(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Soaking:
    return Soaking(bench, monkeypatch)


def test_an_honest_card_is_soaked_after_its_proof(soaking: Soaking) -> None:
    report = soaking.held(soaking.bench.artifact())
    assert (report.state, report.failure, report.count) == (State.VERIFIED, "", 3)
    assert (report.device.pci, report.sessions) == (PCI, 1)
    assert report.artifact_sha256 == sha256_file(soaking.bench.root / report.artifact)
    assert report.answer.startswith(" three, four")
    first = report.rounds[0]
    assert (first.first, first.exit, first.phase) == (True, 0, "done")
    assert first.memory_before is not None
    assert first.memory_peak is not None
    assert first.memory_source == "nvidia-smi"
    assert soaking.log.closed
    assert [*map(list, soaking.lines())] == [["round"], ["round"], ["round"], ["end"]]


def test_each_round_is_in_the_journal_with_its_number_and_ended(soaking: Soaking) -> None:
    soaking.held(soaking.bench.artifact(), 20.0)
    journal = Journal(soaking.bench.root / "store" / "journal")
    rounds = [r["facts"] for r in journal.records() if "begin" in r]
    numbers = {f.get("round") for f in rounds if isinstance(f, dict)}
    assert {"1", "2"} <= numbers
    assert journal.unfinished() == ()


def test_nothing_is_left_running_or_lying_about(soaking: Soaking) -> None:
    soaking.held(soaking.bench.artifact(), 20.0)
    assert left_running() == []
    work = soaking.bench.root / "store" / "work"
    assert not work.exists() or not any(work.iterdir())


def test_a_software_device_is_soaked_with_its_own_limits(soaking: Soaking) -> None:
    soaking.bench.hardware = ()
    report = soaking.held(soaking.bench.artifact({"devices": []}), driver=soaking.bench.driver())
    assert report.state is State.VERIFIED_SOFTWARE
    assert report.limits[0].value == RULES.max_software_slowdown.value
    assert report.rounds[0].memory_source == "/proc/PID/status, the process's own"


def test_a_failed_proof_is_not_soaked(soaking: Soaking) -> None:
    proof, report = soaking.run(soaking.bench.artifact({"device_answers": {"One, two,": " x"}}))
    assert (proof.verdict.state, report) == (State.FAILED, None)
    assert not (soaking.bench.root / "store" / "soaks").exists()


def test_a_recipe_without_limits_is_told_before_anything_runs(soaking: Soaking) -> None:
    with pytest.raises(UsageError) as caught:
        soaking.run(soaking.bench.artifact(), verification=verification(soak=None))
    assert caught.value.kind == "no-soak-limits"
    assert soaking.bench.told.done == []


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ({"at_done": "signal:11"}, "crashed"),
        ({"at_first_token": "lost"}, "device-lost"),
        ({"at_load": "hang"}, "hang-at-load"),
        ({"at_start": "exit:3"}, "ended-early"),
    ],
)
def test_a_round_that_fails_ends_it_with_the_runs_own_class(
    soaking: Soaking, behaviour: Mapping[str, object], kind: str
) -> None:
    """The programs change after the proof: as a driver does that breaks after hours."""
    bench, patch = soaking.bench, soaking.patch
    patch.setattr("llamawright.verify.conclude.recheck", lambda *_a: ())
    command = Rounds._command

    def broken(rounds: Rounds) -> tuple[str, ...]:
        argv = command(rounds)
        spec = Path(argv[0]).parent / "behaviour.json"
        told = {**json.loads(spec.read_text()), **behaviour}
        spec.write_text(json.dumps(told))
        return argv

    artifact = bench.artifact()
    patch.setattr(Rounds, "_command", broken)
    quick = replace(SOAK_RULES, load_s=1.0)
    report = soaking.held(artifact, verification=quick)
    assert (report.state, report.failure, report.count) == (State.FAILED, kind, 1)
    assert report.rounds[0].failure == kind
    assert left_running() == []


def test_a_round_that_leaves_the_device_in_silence_fails(soaking: Soaking) -> None:
    command = Rounds._command

    def silent(rounds: Rounds) -> tuple[str, ...]:
        argv = list(command(rounds))
        argv[argv.index("--device") + 1] = "none"
        return tuple(argv)

    soaking.patch.setattr(Rounds, "_command", silent)
    report = soaking.held(soaking.bench.artifact())
    assert (report.failure, report.count) == ("silent-cpu", 1)
    assert "asked for Vulkan0" in report.why


def test_another_answer_after_an_hour_fails(soaking: Soaking) -> None:
    soaking.changes[3] = {"answer": "f" * 16, "text": " three, five"}
    report = soaking.held(soaking.bench.artifact(), 100.0)
    assert (report.failure, report.count) == ("soak-answer-changed", 3)
    assert "' three, five'" in report.why


def test_a_line_of_the_kernel_about_this_card_fails(soaking: Soaking) -> None:
    place = PCI.removesuffix(".0")
    soaking.log.after = {2: (f"NVRM: Xid (PCI:{place}): 31, pid=1, MMU Fault",)}
    report = soaking.held(soaking.bench.artifact(), 100.0)
    assert (report.failure, report.count) == ("device-reset", 2)
    assert "MMU Fault" in report.why


def test_a_soak_that_was_interrupted_goes_on(soaking: Soaking) -> None:
    artifact = soaking.bench.artifact()
    soaking.kill_at = 3
    with pytest.raises(KeyboardInterrupt):
        soaking.run(artifact)
    assert len(soaking.lines()) == 2
    soaking.kill_at = 0
    report = soaking.held(artifact)
    assert [(r.number, r.session) for r in report.rounds] == [(1, 1), (2, 1), (3, 2)]
    assert "soak: goes on after round 2, 20 s were done before" in soaking.bench.told.lines


def test_a_soak_whose_tool_was_killed_goes_on_as_well(soaking: Soaking) -> None:
    """SIGKILL runs no cleanup: the process is gone, its journal line stays open."""
    artifact = soaking.bench.artifact()
    soaking.bench._probe()
    pid = os.fork()
    if pid == 0:
        soaking.kill_at = 0
        take = Rounds.take

        def die(rounds: Rounds, number: int, session: int, **more: object) -> SoakRound:
            if number == 2:
                rounds.attempt.course.stage.journal.begin("verify-load", artifact="x")
                os._exit(137)
            return take(rounds, number, session, **more)  # type: ignore[arg-type]

        Rounds.take = die  # type: ignore[method-assign, assignment]
        try:
            soaking.run(artifact)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 137
    report = soaking.held(artifact)
    assert [(r.number, r.session) for r in report.rounds] == [(1, 1), (2, 2), (3, 2)]


def test_a_machine_that_went_down_in_a_round_quarantines_and_goes_on_when_lifted(
    soaking: Soaking,
) -> None:
    artifact = soaking.bench.artifact()
    soaking.kill_at = 2
    with pytest.raises(KeyboardInterrupt):
        soaking.run(artifact)
    soaking.kill_at = 0
    power_cut(soaking.bench.root / "store" / "journal", artifact=sha256_file(artifact))
    proof, report = soaking.run(artifact)
    assert (proof.verdict.state, report) == (State.QUARANTINED, None)
    assert len(soaking.lines()) == 1
    report = soaking.held(artifact, clear_quarantine=True)
    assert [r.session for r in report.rounds] == [1, 2, 2]


def test_another_backends_artifact_has_a_record_of_its_own(soaking: Soaking) -> None:
    soaking.held(soaking.bench.artifact(), 10.0)
    (soaking.bench.tree / "extra").write_text("another build")
    soaking.held(soaking.bench.artifact(), 10.0)
    assert len(list((soaking.bench.root / "store" / "soaks").iterdir())) == 2


def test_a_cpu_artifact_can_be_soaked_too(soaking: Soaking) -> None:
    (soaking.bench.tree / "bin" / "libggml-vulkan.so").unlink()
    report = soaking.held(soaking.bench.artifact({"devices": []}, Backend.CPU))
    assert (report.device.id, report.count, report.failure) == ("CPU", 3, "")
    assert report.limits[0].value == RULES.max_software_slowdown.value
