"""The desktop froze while a model was loaded: what every verb says afterwards, end to end."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from cli_kit import Line, line
from llamawright.digest import sha256_file
from llamawright.errors import ExitCode
from llamawright.model.artifact import Artifact
from llamawright.package import read_artifact
from llamawright.pipeline import Pipeline
from llamawright.store import Journal
from llamawright.verify import quarantined
from package_kit import plan
from resolve_kit import BASE, NEW_SYSTEM, PROVIDED, inventory
from verify_kit import GPU, LINUX, NAME, Bench, bench, gguf, recipe, verification

__all__ = ["bench", "line"]

MACHINE = inventory(*BASE, *NEW_SYSTEM, sets=(PROVIDED,))
FROZEN = ExitCode.VERIFICATION


@dataclass
class Desk:
    """A desktop with one card, one command line and one artifact."""

    line: Line
    bench: Bench
    patch: pytest.MonkeyPatch

    @property
    def journal(self) -> Journal:
        return Journal(self.line.root / "store" / "journal")

    def verify(self, artifact: Path, *words: str) -> int:
        self.bench._probe()
        (self.bench.root / "busy").unlink(missing_ok=True)
        return self.line("verify", str(artifact), "--model", str(self.model), *words)

    def build(self, artifact: Path, *words: str) -> int:
        """Build: all is compiled and packed already, as on the second day."""
        packed = Artifact(
            path=artifact, size=artifact.stat().st_size, sha256=sha256_file(artifact),
            manifest=read_artifact(artifact).manifest,
        )  # fmt: skip
        made = plan()
        self.patch.setattr(Pipeline, "plan", lambda *_a: made)
        self.patch.setattr(Pipeline, "_pinned", lambda _self, _plan: (made, None))
        self.patch.setattr(Pipeline, "_artifact", lambda *_a: packed)
        self.patch.setattr("llamawright.package.place", lambda found, _dist: found)
        self.bench._probe()
        (self.bench.root / "busy").unlink(missing_ok=True)
        return self.line("build", "vulkan", "--model", str(self.model), *words)

    @property
    def model(self) -> Path:
        path = self.bench.root / "model.gguf"
        return path if path.exists() else gguf(path)

    def freeze(self, artifact: Path, *, at: str = "load") -> None:
        """Let the power go in a phase of a proof: the child is lost with the whole machine.

        The tool writes its line to the disk before the phase; then nothing comes any more,
        and at the next start the boot is another one.
        """
        real = Journal.begin

        def begin(journal: Journal, phase: str, **facts: object) -> str:
            token = real(journal, phase, **facts)
            if phase == f"verify-{at}" and facts.get("run") == "device prompt 1":
                raise _PowerCut
            return token

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "begin", begin)
            patch.setattr(Journal, "end", lambda *_a, **_k: None)
            with pytest.raises(_PowerCut):
                self.verify(artifact)
        for path in self.journal.folder.glob("*.jsonl"):
            _of_an_earlier_boot(path, keep=f"verify-{at}")


class _PowerCut(BaseException):
    """Nothing of the tool runs any more: no handler, no finally that writes."""


def _of_an_earlier_boot(path: Path, *, keep: str) -> None:
    """Rewrite a journal as a machine finds it after its restart: only the last line is open."""
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    begun = [r for r in lines if "begin" in r]
    for record in begun:
        record["process"] = {
            "pid": 999_999, "host": socket.gethostname(), "started": 1.0,
            "boot": psutil.boot_time() - 3600,
        }  # fmt: skip
    ends = [{"end": r["begin"], "facts": {}} for r in begun if r["phase"] != keep
            or r["facts"].get("run") != "device prompt 1"]  # fmt: skip
    path.unlink()
    path.with_name("999999-1.jsonl").write_text(
        "".join(f"{json.dumps(r)}\n" for r in (*begun, *ends))
    )


@pytest.fixture
def desk(line: Line, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Desk:
    room = "llamawright.pipeline"
    quick = replace(recipe(), verification=verification())
    monkeypatch.setattr(f"{room}.detect_platform", lambda: LINUX)
    monkeypatch.setattr(f"{room}.load_recipe", lambda _path: quick)
    monkeypatch.setattr(f"{room}.take_inventory", lambda *_a, **_k: MACHINE)
    monkeypatch.setattr(f"{room}.vulkan_notes", lambda *_a: ())
    monkeypatch.setattr(f"{room}.cuda_notes", lambda *_a: ())
    return Desk(line, bench, monkeypatch)


def test_the_whole_story(desk: Desk) -> None:
    """Frozen once; verify, build and doctor all say so; another build is free; lifted."""
    artifact = desk.bench.artifact()
    desk.freeze(artifact)

    assert desk.verify(artifact) == FROZEN
    assert desk.line.last == "llamawright: exit 10 (verification: machine-went-down)"
    for part in (NAME, GPU, "the driver", "'device prompt 1'", "phase load", "another backend",
                 "-ub", "newer driver", "--clear-quarantine"):  # fmt: skip
        assert part in desk.line.err, part

    assert desk.build(artifact) == FROZEN
    assert NAME in desk.line.err
    assert GPU in desk.line.err

    assert desk.line("doctor") == 0
    (note,) = [text for text in desk.line.out.splitlines() if "quarantined" in text]
    assert note.startswith(f"  ! quarantined: {NAME} on {GPU} with the driver ")
    assert "llamawright verify FILE --clear-quarantine lifts this" in note

    assert desk.verify(artifact, "--clear-quarantine") == ExitCode.OK
    assert desk.verify(artifact) == ExitCode.OK
    desk.line("doctor")
    assert "quarantined" not in desk.line.out


def test_nothing_of_a_quarantined_artifact_is_started(desk: Desk) -> None:
    artifact = desk.bench.artifact()
    desk.freeze(artifact)
    started = []
    desk.patch.setattr("llamawright.verify.supervise.run", lambda *a, **_k: started.append(a))
    desk.verify(artifact)
    assert started == []


def test_an_artifact_of_another_backend_is_free(desk: Desk) -> None:
    artifact = desk.bench.artifact()
    desk.freeze(artifact)
    (desk.bench.tree / "another-build").touch()
    other = desk.bench.artifact()
    assert desk.verify(other) == ExitCode.OK
    assert desk.line("doctor") == 0
    assert "quarantined" in desk.line.out


def test_build_lifts_it_too(desk: Desk) -> None:
    artifact = desk.bench.artifact()
    desk.freeze(artifact)
    assert desk.build(artifact, "--clear-quarantine") == ExitCode.OK
    assert desk.build(artifact, "--force") == ExitCode.OK


def test_the_verdict_as_data_says_what_froze(desk: Desk) -> None:
    artifact = desk.bench.artifact()
    desk.freeze(artifact, at="first-token")
    desk.verify(artifact, "--json")
    record = json.loads(desk.line.out)
    assert (record["code"], record["class"]) == (10, "machine-went-down")
    assert record["verdict"]["state"] == "quarantined"
    assert "phase first-token" in record["verdict"]["why"]
    assert GPU in record["verdict"]["why"]


def test_doctor_as_data_has_the_note(desk: Desk) -> None:
    desk.freeze(desk.bench.artifact())
    desk.line("doctor", "--json")
    (note,) = json.loads(desk.line.out)["notes"]
    assert note.startswith("quarantined: ")


def test_doctor_settles_nothing(desk: Desk) -> None:
    desk.freeze(desk.bench.artifact())
    before = sorted(p.read_bytes() for p in desk.journal.folder.iterdir())
    desk.line("doctor")
    assert sorted(p.read_bytes() for p in desk.journal.folder.iterdir()) == before


def test_a_freeze_before_a_device_was_chosen_is_told_as_that(tmp_path: Path) -> None:
    _write(tmp_path, {"artifact": "abc", "name": "one", "run": "device list"})
    (note,) = quarantined(Journal(tmp_path))
    assert note.startswith("quarantined: one before it had chosen a device: ")
    assert "'device list'" in note


def test_several_freezes_of_one_artifact_are_one_note(tmp_path: Path) -> None:
    for run, at in (("device prompt 1", 5.0), ("soak round", 9.0)):
        facts = {"artifact": "abc", "name": "one", "device": "GPU", "driver": "1.0", "run": run}
        _write(tmp_path, facts, at=at)
    _write(tmp_path, {"artifact": "def", "name": "two", "device": "GPU", "run": "x"}, at=1.0)
    notes = quarantined(Journal(tmp_path))
    assert len(notes) == 2
    assert any("one on GPU with the driver 1.0" in n and "'soak round'" in n for n in notes)
    assert any("two on GPU: " in n for n in notes)


@pytest.mark.parametrize("boots_ago", [0.0, 30.0])
def test_a_killed_tool_is_no_note(tmp_path: Path, boots_ago: float) -> None:
    _write(tmp_path, {"artifact": "abc"}, boots_ago=boots_ago)
    assert quarantined(Journal(tmp_path)) == ()


@pytest.mark.parametrize("facts", [{}, {"artifact": 5, "name": None, "device": ["x"], "run": 1.5}])
def test_odd_facts_are_no_crash(tmp_path: Path, facts: dict[str, object]) -> None:
    _write(tmp_path, facts)
    assert len(quarantined(Journal(tmp_path))) == 1


def test_other_work_that_lost_its_machine_is_no_quarantine(tmp_path: Path) -> None:
    _write(tmp_path, {"artifact": "abc"}, phase="compile")
    assert quarantined(Journal(tmp_path)) == ()


def _write(
    folder: Path, facts: Mapping[str, object], *, at: float = 5.0, boots_ago: float = 3600.0,
    phase: str = "verify-load",
) -> None:  # fmt: skip
    process = {
        "pid": 999_999, "host": socket.gethostname(), "started": 1.0,
        "boot": psutil.boot_time() - boots_ago,
    }  # fmt: skip
    record = {
        "begin": f"t{at}{facts.get('artifact')}", "phase": phase, "process": process,
        "facts": facts, "time": at,
    }  # fmt: skip
    with (folder / "999999-1.jsonl").open("a") as stream:
        stream.write(json.dumps(record) + "\n")
