"""``verify --investigate`` from the packed file to the attachment, on a fake machine."""

from __future__ import annotations

import getpass
import json
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from test_verify_freeze import power_cut

from llamawright.digest import sha256_file
from llamawright.errors import InterruptedRunError, NoDeviceError
from llamawright.model.investigation import Investigation, Use
from llamawright.model.platform import Backend
from llamawright.model.verdict import Proof, State, Verdict
from llamawright.verify import Attachment, Offers, investigate, investigate_layers
from llamawright.verify import investigate_look as look
from llamawright.verify.investigate_lab import Lab
from llamawright.verify.investigate_probe import Findings, begin
from verify_kit import Bench, bench, gguf, left_running, verification

__all__ = ["bench"]

GDB = Path(__file__).parents[1] / "fakes" / "investigate_gdb.py"


def unseen(*arguments: object, **more: object) -> Findings:
    """Begin without what makes the fakes wait until somebody has looked at them."""
    found = begin(*arguments, **more)  # type: ignore[arg-type]
    case = found.lab.case
    kept = {k: v for k, v in case.env.items() if k != "FAKE_SEEN"}
    ours = {k: v for k, v in (case.reference_env or {}).items() if k != "FAKE_SEEN"}
    found.lab.case = replace(case, env=kept, reference_env=ours)
    return found


@dataclass
class Inquiring:
    """A fake machine with a gdb and no validation layers; each test changes one thing."""

    bench: Bench
    patch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        program = self.bench.root / "path" / "gdb"
        shebang = f"#!{sys.executable} -IS\n"
        program.write_text(shebang + GDB.read_text(encoding="utf-8"), encoding="utf-8")
        program.chmod(0o755)
        self.patch.setattr(investigate_layers, "FOLDERS", (str(self.bench.root / "none"),))
        self.patch.setattr("llamawright.verify.investigate_reduce.TYPES", ("Q8_0",))
        # The real lists are the reductions' own tests' business: each entry is a run.
        switches = {Backend.VULKAN: ("GGML_VK_DISABLE_FUSION",)}
        self.patch.setattr("llamawright.verify.investigate_reduce.SWITCHES", switches)
        gguf(self.bench.root / "model.gguf", layers=2)
        self.patch.setattr("llamawright.verify.investigate_run.begin", unseen)

    def look(
        self,
        behaviour: Mapping[str, object],
        *,
        limit_s: float = 60.0,
        backend: Backend = Backend.VULKAN,
        **changes: object,
    ) -> tuple[Proof, Attachment | None]:
        return self.of(self.bench.artifact(behaviour, backend), limit_s, **changes)

    def of(
        self, artifact: Path, limit_s: float = 60.0, **changes: object
    ) -> tuple[Proof, Attachment | None]:
        self.bench._probe()
        return investigate(
            self.bench.request(artifact, **changes), limit_s=limit_s, store=self.bench.store,
            reporter=self.bench.told, offers=Offers(),
        )  # fmt: skip

    def found(
        self, behaviour: Mapping[str, object], **more: object
    ) -> tuple[Verdict, Investigation]:
        proof, attached = self.look(behaviour, **more)  # type: ignore[arg-type]
        assert attached is not None, proof.verdict
        assert not left_running()
        return proof.verdict, attached.found


@pytest.fixture
def inquiring(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Inquiring:
    return Inquiring(bench, monkeypatch)


def step(found: Investigation, name: str) -> str:
    return next(s.least for s in found.reductions if s.name == name)


def use(found: Investigation, name: str) -> Use:
    return next(i.use for i in found.instruments if i.name == name)


def test_an_honest_artifact_is_not_looked_into(inquiring: Inquiring) -> None:
    proof, attached = inquiring.look({})
    assert proof.verdict.state is State.VERIFIED
    assert attached is None


def test_a_crash_is_found_again_and_made_small(inquiring: Inquiring) -> None:
    verdict, found = inquiring.found({"at_first_token": "signal:11"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "crashed")
    assert (found.failure, found.run) == ("crashed", "device prompt 1")
    assert (found.reproduced, found.repeated) == (2, 2)
    assert step(found, "device") == "needed"
    assert step(found, "tokens generated") == "1"
    assert step(found, "batch (-ub)") == "1"
    assert step(found, "prompt, words") == "1"
    assert step(found, "model type") == "Q8_0"


def test_the_verdict_is_the_one_without_looking(inquiring: Inquiring) -> None:
    behaviour = {"at_first_token": "signal:11"}
    plain = inquiring.bench.verify(inquiring.bench.artifact(behaviour))
    verdict, _ = inquiring.found(behaviour)
    for name in ("state", "failure", "why", "hint", "devices", "device", "checks", "reference"):
        assert getattr(verdict, name) == getattr(plain, name), name
    assert [r.name for r in verdict.runs] == [r.name for r in plain.runs]


def test_a_debugger_names_the_place(inquiring: Inquiring) -> None:
    _, found = inquiring.found({"at_load": "signal:6"})
    assert found.halt is not None
    assert (found.halt.signal, found.halt.seen_by) == ("SIGABRT", "gdb")
    assert found.cause.evidence == "gdb"
    assert "wait_for_the_device" in found.cause.told
    assert use(found, "gdb") is Use.USED


def test_a_hang_is_interrupted_and_its_threads_are_seen(
    inquiring: Inquiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamawright.verify.investigate_lab.LEAST_HANG_S", 1.0)
    began = time.monotonic()
    verdict, found = inquiring.found(
        {"at_load": "hang"}, limit_s=10.0, verification=verification(load_s=1.0)
    )
    assert time.monotonic() - began < 40
    assert verdict.failure == "hang-at-load"
    assert found.halt is not None
    assert found.halt.signal == "hang"
    assert found.cause.told.startswith("hangs in wait_for_the_device")
    assert found.seconds <= 20


def test_what_the_time_did_not_allow_is_said_once(
    inquiring: Inquiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamawright.verify.investigate_lab.LEAST_HANG_S", 1.0)
    _, found = inquiring.found(
        {"at_load": "hang"}, limit_s=5.0, verification=verification(load_s=1.0)
    )
    (late,) = [text for text in found.limits if "the time was over" in text]
    assert "not run: " in late


def test_a_crash_while_listing_is_looked_into_without_any_attempt(inquiring: Inquiring) -> None:
    verdict, found = inquiring.found({"at_list": "signal:11"})
    assert verdict.failure == "crashed"
    assert found.run == "device list"
    assert found.reproduced == 2
    assert found.halt is not None
    assert found.reductions == ()


def test_wrong_words_are_made_small_against_the_cpu(inquiring: Inquiring) -> None:
    text = "The capital of France is"
    verdict, found = inquiring.found({"device_answers": {text: " London."}})
    assert verdict.failure in ("wrong-answer", "wrong-tokens")
    assert found.failure == verdict.failure
    assert found.halt is None
    assert step(found, "prompt, words") == "5"
    assert any("on the CPU, for comparison" in line for line in found.commands)


def test_wrong_numbers_are_followed_to_their_batch(inquiring: Inquiring) -> None:
    wrong = ["0.50000 100.000", "0.50000 100.000"]
    verdict, found = inquiring.found({"kld": {"32": wrong}})
    assert verdict.failure == "wrong-numbers"
    assert found.run == "device probabilities 32"
    assert step(found, "batch (-ub)") == "32"
    assert step(found, "chunks") == "1"


def test_claims_that_disagree_get_what_can_be_had(inquiring: Inquiring) -> None:
    verdict, found = inquiring.found({"offloaded": 0})
    assert verdict.state is State.FAILED
    assert found.failure == verdict.failure
    assert found.halt is None


def test_a_failure_that_does_not_come_back_is_not_explained(inquiring: Inquiring) -> None:
    inquiring.patch.setattr(Lab, "class_of", lambda _lab, _run: "")
    _, found = inquiring.found({"at_first_token": "exit:3"})
    assert (found.reproduced, found.repeated) == (0, 2)
    assert found.reductions == ()
    assert any("did not fail again" in text for text in found.limits)


def test_an_archive_that_is_not_whole_is_not_run(inquiring: Inquiring) -> None:
    (inquiring.bench.tree / "bin" / "libggml-vulkan.so").unlink()
    verdict, found = inquiring.found({})
    assert verdict.failure == "module-missing"
    assert found.trials == ()
    assert found.limits[0].startswith("nothing was run: the archive is not whole")


def test_what_froze_the_machine_is_never_run_again(inquiring: Inquiring) -> None:
    artifact = inquiring.bench.artifact({"at_load": "hang"})
    power_cut(inquiring.bench.root / "store" / "journal", artifact=sha256_file(artifact))
    proof, attached = inquiring.of(artifact)
    assert proof.verdict.state is State.QUARANTINED
    assert attached is not None
    assert attached.found.trials == ()
    assert "froze the machine" in attached.found.limits[0]


def test_a_machine_without_a_device_is_no_failure(inquiring: Inquiring) -> None:
    inquiring.bench.hardware = ()
    proof, attached = inquiring.look({"devices": []})
    assert proof.verdict.state is State.UNVERIFIED
    assert attached is None


def test_a_device_that_is_not_there_is_told_as_always(inquiring: Inquiring) -> None:
    with pytest.raises(NoDeviceError):
        inquiring.look({}, device="No Such Card")


def test_without_any_debugger_the_tracer_looks_and_the_package_is_named(
    inquiring: Inquiring,
) -> None:
    (inquiring.bench.root / "path" / "gdb").unlink()
    inquiring.patch.setenv("PATH", str(inquiring.bench.root / "path"))
    _, found = inquiring.found({"at_load": "signal:6"})
    (tool,) = [i for i in found.instruments if "gdb is not installed" in i.told]
    assert "install the package gdb" in tool.told
    assert tool.name == "ptrace"


def test_a_debugger_that_breaks_takes_nothing_else_with_it(inquiring: Inquiring) -> None:
    def broken(_lab: Lab, _offers: Offers) -> look.Looked:
        raise OSError("no space left on device")

    inquiring.patch.setattr(look, "look_at_stack", broken)
    verdict, found = inquiring.found({"at_load": "signal:6"})
    assert verdict.failure == "crashed"
    assert step(found, "tokens generated") == "1"
    assert any("no space left" in i.told for i in found.instruments)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), ZeroDivisionError(), OSError(28, "full")])
def test_a_bug_in_the_looking_never_reaches_the_verdict(
    inquiring: Inquiring, error: Exception
) -> None:
    def broken(*_arguments: object, **_more: object) -> None:
        raise error

    inquiring.patch.setattr("llamawright.verify.investigate_probe.reductions", broken)
    verdict, found = inquiring.found({"at_load": "signal:6"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "crashed")
    assert found.halt is not None
    assert any("ended early" in text for text in found.limits)
    assert any("ended early" in text for text in inquiring.bench.told.warnings)


def test_a_bug_before_the_first_run_never_reaches_the_verdict(inquiring: Inquiring) -> None:
    def broken(*_arguments: object, **_more: object) -> None:
        raise RuntimeError("a bug")

    inquiring.patch.setattr("llamawright.verify.investigate_run.begin", broken)
    verdict, found = inquiring.found({"at_load": "signal:6"})
    assert verdict.failure == "crashed"
    assert "a bug" in found.limits[0]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), InterruptedRunError("interrupted")])
def test_an_interrupt_ends_the_looking_and_keeps_what_was_found(
    inquiring: Inquiring, stop: BaseException
) -> None:
    fails = Lab.fails

    def interrupted(lab: Lab, name: str, shape: object) -> bool | None:
        if name.startswith("tokens"):
            raise stop
        return fails(lab, name, shape)  # type: ignore[arg-type]

    inquiring.patch.setattr(Lab, "fails", interrupted)
    verdict, found = inquiring.found({"at_load": "signal:6"})
    assert verdict.failure == "crashed"
    assert found.reproduced == 2
    assert found.halt is not None
    assert any("interrupted" in text for text in found.limits)


def test_nothing_private_is_in_the_attachment(inquiring: Inquiring) -> None:
    proof, attached = inquiring.look({"at_load": "signal:6"})
    assert attached is not None
    texts = [json.dumps(str(attached.found)), *(text for _, text in attached.logs)]
    private = [str(inquiring.bench.root), str(Path.home()) + "/", socket.gethostname()]
    private += [getpass.getuser()] if getpass.getuser() != "root" else []
    for text in texts:
        for word in private:
            assert word not in text.split(), word
            assert f"{word}/" not in text, word
    assert proof.verdict.failure == "crashed"


def test_the_logs_of_every_run_are_attached(inquiring: Inquiring) -> None:
    _, attached = inquiring.look({"at_load": "signal:6"})
    assert attached is not None
    names = [name for name, _ in attached.logs]
    assert names[0] == "device-prompt-1.log"
    assert len(names) >= len(attached.found.trials)
    assert all("/" not in name for name in names)


def test_a_person_sees_how_long_it_may_take_and_each_run(inquiring: Inquiring) -> None:
    inquiring.look({"at_load": "signal:6"}, limit_s=45.0)
    told = inquiring.bench.told
    assert any("45 s at most" in line for line in told.lines)
    done = [d for label, d, _ in told.done if label == "investigate"]
    assert done == sorted(done)
    assert any("again 1: crashed" in note for note in told.notes)


def test_nothing_is_left_in_the_store(inquiring: Inquiring) -> None:
    inquiring.look({"at_list": "signal:11"})
    inquiring.look({"at_load": "signal:6"})
    work = inquiring.bench.store.root / "work"
    assert not [p for p in work.iterdir() if p.is_dir()]


def test_a_cpu_artifact_is_looked_into_as_well(inquiring: Inquiring) -> None:
    verdict, found = inquiring.found({"reference_at_load": "signal:11"}, backend=Backend.CPU)
    assert verdict.state is State.FAILED
    assert found.failure == "crashed"
    assert not [i for i in found.instruments if "Vulkan" in i.name]
