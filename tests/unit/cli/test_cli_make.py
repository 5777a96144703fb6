from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import cli_kit
from cli_kit import Line, StubPipeline, line, stub, verdict
from llamawright import errors
from llamawright.cli.make import build_code, verify_code, write_result
from llamawright.errors import ExitCode
from llamawright.model.verdict import State

__all__ = ["line", "stub"]

OK, NO_DEVICE, WRONG = ExitCode.OK, ExitCode.NO_DEVICE, ExitCode.VERIFICATION
# state: (build, build with hardware required, verify, verify with hardware required)
TABLE = {
    State.VERIFIED: (OK, OK, OK, OK),
    State.VERIFIED_SOFTWARE: (OK, NO_DEVICE, OK, NO_DEVICE),
    State.UNVERIFIED: (OK, NO_DEVICE, NO_DEVICE, NO_DEVICE),
    State.CANNOT_VERIFY: (NO_DEVICE, NO_DEVICE, NO_DEVICE, NO_DEVICE),
    State.FAILED: (WRONG, WRONG, WRONG, WRONG),
    State.QUARANTINED: (WRONG, WRONG, WRONG, WRONG),
}
CASES = [(s, *case) for s, row in TABLE.items() for case in zip(
    itertools.product(("build", "verify"), (False, True)), row, strict=True)]  # fmt: skip
FUNCTIONS = {"build": build_code, "verify": verify_code}


def test_the_table_speaks_of_every_state() -> None:
    assert set(TABLE) == set(State)


@pytest.mark.parametrize(("state", "how", "code"), CASES)
def test_a_state_has_its_code(state: State, how: tuple[str, bool], code: ExitCode) -> None:
    verb, hardware = how
    decide = FUNCTIONS[verb]
    seen, kind = decide(verdict(state, "its-word"), require_hardware=hardware)
    assert seen is code
    assert kind == ("" if code is OK else "its-word")


@pytest.mark.parametrize(("state", "how", "code"), CASES)
def test_the_process_ends_with_the_state_s_code(
    state: State, how: tuple[str, bool], code: ExitCode, line: Line, stub: StubPipeline
) -> None:
    verb, hardware = how
    stub.verdict = verdict(state)
    words = ["build", "vulkan"] if verb == "build" else ["verify", "x.tar.zst"]
    assert line(*words, "--json", *(["--require-hardware"] if hardware else [])) == code
    record = json.loads(line.out)
    assert record["code"] == code
    assert record["verdict"]["state"] == state
    if code is not OK:
        assert line.last == cli_kit.last_line(code, record["class"])
        assert record["class"]
    else:
        assert "exit" not in line.last


@pytest.mark.parametrize("state", [s for s, row in TABLE.items() if row[3] is not OK])
def test_a_failure_without_a_word_of_its_own_still_gets_one(state: State) -> None:
    _code, kind = verify_code(verdict(state), require_hardware=True)
    assert kind == (str(state) if TABLE[state][3] is WRONG else "no-hardware-device")


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_no_proof_was_asked_for_so_none_is_missed(verb: str) -> None:
    assert FUNCTIONS[verb](None, require_hardware=True) == (OK, "")


def test_the_result_file_holds_what_json_prints(line: Line, stub: StubPipeline) -> None:
    line("build", "vulkan", "--json")
    record = json.loads(stub.result_file.read_text())
    assert record == json.loads(line.out)
    assert record["name"] == cli_kit.NAME
    assert record["artifact"]["sha256"] == "c" * 64
    assert [t["stage"] for t in record["timings"]] == ["plan"]
    assert record["reports"] == [str(line.root / "dist" / "report.md")]


def test_without_a_proof_the_artifact_is_called_unverified(line: Line, stub: StubPipeline) -> None:
    assert line("build", "vulkan", "--no-verify") == 0
    assert stub.calls == ["build prove=False"]
    assert "UNVERIFIED" in line.err
    assert json.loads(stub.result_file.read_text())["verdict"] is None


def test_a_failed_build_replaces_the_result_of_the_one_before(
    line: Line, stub: StubPipeline
) -> None:
    line("build", "vulkan")
    stub.fails = errors.BuildError("no", kind="compile-failed")
    line("build", "vulkan", "--force")
    assert json.loads(stub.result_file.read_text()) == {"error": stub.fails.as_record()}


def test_a_failed_proof_is_written_and_leaves_no_stamp(line: Line, stub: StubPipeline) -> None:
    stub.verdict = verdict(State.FAILED, "wrong-numbers")
    assert line("build", "vulkan") == WRONG
    record = json.loads(stub.result_file.read_text())
    assert (record["code"], record["class"]) == (10, "wrong-numbers")
    assert not list(line.store.glob("runs/*"))


def test_a_failure_is_told_although_its_result_cannot_be_written(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("llamawright.cli.make.write_result", full)
    stub.fails = errors.PatchError("drift", kind="patch-drift")
    assert line("build", "vulkan") == ExitCode.PATCH
    assert line.last == cli_kit.last_line(ExitCode.PATCH, "patch-drift")
    stub.fails = None
    assert line("build", "vulkan") == ExitCode.DISK


def test_a_dist_that_is_a_file_is_refused_before_anything_is_built(
    line: Line, stub: StubPipeline
) -> None:
    (line.root / "dist").write_text("a file where the folder should be")
    assert line("build", "vulkan") == ExitCode.USAGE
    assert stub.calls == []
    assert "--dist DIR" in line.err
    assert (line.root / "dist").read_text().startswith("a file")


def test_verify_leaves_no_result_in_a_dist_it_was_not_asked_about(
    line: Line, stub: StubPipeline
) -> None:
    assert line("verify", "some/x.tar.zst", "--require-hardware") == 0
    assert stub.calls == ["verify x.tar.zst require_hardware=True"]
    assert not (line.root / "dist").exists()


def test_a_result_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "x.result.json"
    write_result(path, {"code": 0})

    def half(self: Path, text: str, **named: str) -> None:
        self.write_bytes(text.encode()[:5])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="No space"):
        write_result(path, {"code": 1, "what": "never seen"})
    assert json.loads(path.read_text()) == {"code": 0}
    assert [p.name for p in path.parent.iterdir()] == ["x.result.json"]


def test_the_same_result_is_the_same_bytes(tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    write_result(a, {"x": 1, "y": [2]})
    write_result(b, {"y": [2], "x": 1})
    assert a.read_bytes() == b.read_bytes()
    assert a.read_bytes().endswith(b"\n")
