"""A machine that went down during a proof is remembered; a killed tool is not."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import psutil
import pytest

from llamawright.digest import sha256_file
from llamawright.model.verdict import State
from llamawright.store import Journal
from llamawright.verify import quarantine
from verify_kit import Bench, bench

__all__ = ["bench"]


def power_cut(
    folder: Path, *, artifact: str, boots_ago: float = 3600.0, phase: str = "load"
) -> None:
    """Write what a machine that froze leaves: a phase without an end, of an earlier boot."""
    folder.mkdir(parents=True, exist_ok=True)
    process = {
        "pid": 999_999, "host": socket.gethostname(), "started": 1.0,
        "boot": psutil.boot_time() - boots_ago,
    }  # fmt: skip
    facts = {"artifact": artifact, "run": "device prompt 1", "device": "GPU"}
    record = {
        "begin": f"token-{artifact}-{phase}", "phase": f"verify-{phase}", "process": process,
        "facts": facts, "time": 5.0,
    }  # fmt: skip
    with (folder / "999999-1.jsonl").open("a") as stream:
        stream.write(json.dumps(record) + "\n")


def test_a_freeze_is_found_by_the_artifact_it_happened_to(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    power_cut(tmp_path, artifact="abc")
    (freeze,) = quarantine.freezes(journal, artifact="abc")
    assert (freeze.phase, freeze.run) == ("load", "device prompt 1")
    assert quarantine.freezes(journal, artifact="other") == ()
    ruling = quarantine.ruling((freeze,))
    assert ruling.state is State.QUARANTINED
    assert "phase load" in ruling.why
    assert "--clear-quarantine" in ruling.hint


def test_a_killed_tool_is_no_freeze_and_is_settled(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    power_cut(tmp_path, artifact="abc", boots_ago=0.0)
    assert quarantine.freezes(journal, artifact="abc") == ()
    assert journal.unfinished() == ()


def test_phases_of_other_work_are_left_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    power_cut(tmp_path, artifact="abc")
    text = (tmp_path / "999999-1.jsonl").read_text().replace("verify-load", "compile")
    (tmp_path / "999999-1.jsonl").write_text(text)
    assert quarantine.freezes(journal, artifact="abc") == ()
    assert len(journal.unfinished()) == 1


def test_the_story_of_a_frozen_desktop(bench: Bench) -> None:
    """Froze once: the next proof refuses to run; lifted on purpose, it runs again."""
    bench.hardware = ()
    artifact = bench.artifact({"devices": []})
    power_cut(bench.root / "store" / "journal", artifact=sha256_file(artifact))
    verdict = bench.verify(artifact, driver=bench.driver())
    assert (verdict.state, verdict.failure) == (State.QUARANTINED, "machine-went-down")
    assert verdict.runs == ()
    assert bench.verify(artifact, driver=bench.driver()).state is State.QUARANTINED
    cleared = bench.verify(artifact, driver=bench.driver(), clear_quarantine=True)
    assert cleared.state is State.VERIFIED_SOFTWARE
    assert bench.verify(artifact, driver=bench.driver()).state is State.VERIFIED_SOFTWARE


def test_another_artifact_is_not_held_responsible(bench: Bench) -> None:
    power_cut(bench.root / "store" / "journal", artifact="f" * 64)
    assert bench.prove_in_software().state is State.VERIFIED_SOFTWARE


@pytest.mark.parametrize("phase", ["start", "load", "first-token", "done"])
def test_every_phase_can_be_the_last(tmp_path: Path, phase: str) -> None:
    power_cut(tmp_path, artifact="abc", phase=phase)
    (freeze,) = quarantine.freezes(Journal(tmp_path), artifact="abc")
    assert freeze.phase == phase
    quarantine.lift(Journal(tmp_path), (freeze,))
    assert quarantine.freezes(Journal(tmp_path), artifact="abc") == ()
