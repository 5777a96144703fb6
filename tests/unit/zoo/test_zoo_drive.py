"""What the tool said becomes a name; what it left running is found and ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.config import load_recipe
from zoo import drive
from zoo.base import Base
from zoo.changes import Cage
from zoo.compiling import CannotCompileError, Compiler, find_headers
from zoo.drive import (
    SOURCE_ROOT,
    Keeper,
    child_environment,
    left_behind,
    read_result,
    short_recipe,
)
from zoo.model import Named
from zoo_kit import good_base, mutant


def test_a_verdict_is_its_state_and_class() -> None:
    said = {"class": "crashed", "verdict": {"state": "failed", "failure": "crashed", "why": "w"}}
    named, why = read_result(10, json.dumps(said), "")
    assert named == Named(state="failed", failure="crashed", exit=10)
    assert why == "w"


def test_a_gate_that_fails_after_the_proof_gives_the_class_of_the_run() -> None:
    said = {"class": "too-slow", "verdict": {"state": "verified", "failure": "", "why": ""}}
    named, _ = read_result(10, json.dumps(said), "")
    assert named == Named(state="verified", failure="too-slow", exit=10)


def test_an_error_is_read_from_the_last_line() -> None:
    log = "error: x is cut short\nhint: fetch it\nllamawright: exit 9 (package: truncated)\n"
    named, why = read_result(9, "", log)
    assert named == Named(state="refused", failure="truncated", exit=9)
    assert why == "error: x is cut short"


@pytest.mark.parametrize("stdout", ["", "{", "[]", '{"verdict": null}', '"text"'])
def test_no_verdict_and_no_last_line_is_no_name(stdout: str) -> None:
    assert read_result(70, stdout, "Traceback")[0] == Named(state="refused", failure="", exit=70)


def test_the_short_recipe_is_the_shipped_one_with_other_limits(tmp_path: Path) -> None:
    recipe = load_recipe(short_recipe(tmp_path))
    assert recipe.verification.probe_s == drive.SHORT["probe_s"]
    assert recipe.verification.total_s == drive.SHORT["total_s"]
    assert recipe.verification.output_cap == drive.SMALL_OUTPUT
    assert recipe.verification.model.sha256


def test_nothing_left_behind_is_no_fault() -> None:
    assert left_behind("") == ""
    assert left_behind("zoo-nobody-has-this-name", wait_s=0.0) == ""


def test_a_process_that_outlived_the_tool_is_told_and_ended(tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep
    child = subprocess.Popen(["zoo-test-orphan", "60"], executable=sleep)
    try:
        assert "outlived" in left_behind("zoo-test-orphan", wait_s=0.0)
        assert child.wait(timeout=10) < 0
    finally:
        child.kill()


def test_headers_are_whole_or_absent(tmp_path: Path) -> None:
    place = tmp_path / "patched" / "abc" / "ggml" / "src"
    place.mkdir(parents=True)
    (place / "ggml-impl.h").write_text("")
    assert find_headers(tmp_path) is None
    (place / "ggml-backend-impl.h").write_text("")
    assert find_headers(tmp_path) == place


def keeper(folder: Path) -> Keeper:
    return Keeper(
        store=folder / "store", folder=folder / "zoo", compiler=Compiler(program="", headers=None)
    )


def test_a_mutant_of_two_artifacts_has_a_room_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = []

    def seen(_keeper: Keeper, _base: Base, room: Path) -> Cage:
        rooms.append(room)
        raise CannotCompileError("enough was seen")

    monkeypatch.setattr(Keeper, "_cage", seen)
    base = good_base(tmp_path)
    for backend in ("cuda", "vulkan"):
        keeper(tmp_path).try_mutant(mutant(), replace(base, backend=backend), "key")
    assert rooms[0] != rooms[1]


def test_the_tool_finds_what_this_interpreter_was_led_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/site")
    own, more = child_environment({})["PYTHONPATH"].split(os.pathsep)
    assert (Path(own), more) == (SOURCE_ROOT, "/opt/site")


def test_an_archive_cut_short_is_called_so_by_the_real_command(tmp_path: Path) -> None:
    base = good_base(tmp_path)
    found = keeper(tmp_path).try_mutant(
        mutant(model="synthetic", flags=("--offline",)), base, "key"
    )
    assert found.right, found
    assert found.key == "key"
    assert not any((tmp_path / "zoo" / "cages").iterdir())


def test_a_mutant_that_cannot_be_made_here_is_skipped_and_says_why(tmp_path: Path) -> None:
    found = keeper(tmp_path).try_mutant(mutant(changes=(("proxy",),)), good_base(tmp_path), "")
    assert found.skipped == "there is no C compiler here"
    assert not found.right


def test_a_tool_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = good_base(tmp_path)
    monkeypatch.setattr(drive, "PATIENCE_S", 0.5)
    monkeypatch.setattr(Keeper, "model", lambda *_: tmp_path)
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 30\n")
    sleeper.chmod(0o755)
    slow = Keeper(
        store=tmp_path / "store",
        folder=tmp_path / "zoo",
        compiler=Compiler(program="", headers=None),
        python=str(sleeper),
    )
    found = slow.try_mutant(mutant(changes=()), base, "")
    assert found.seen.state == "hung"
    assert not found.right


@pytest.mark.parametrize("kind", ["synthetic", "truncated", "no-model"])
def test_models_are_made_by_name(tmp_path: Path, kind: str) -> None:
    place = keeper(tmp_path).model(kind, tmp_path)
    assert place.stat().st_size > 1000
    assert (place.read_bytes()[:4] == b"GGUF") is (kind != "no-model")


def test_an_unknown_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no model 'red'"):
        keeper(tmp_path).model("red", tmp_path)


@pytest.mark.parametrize(
    ("flushes", "answers", "runs"),
    [
        (False, ["output-cut-off", "truncated"], 2),
        (False, ["output-cut-off"] * 9, 3),
        (False, ["truncated"], 1),
        (True, ["output-cut-off"], 1),
    ],
)
def test_only_an_artifact_known_to_lose_its_log_is_verified_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushes: bool, answers: list[str], runs: int
) -> None:
    left = iter(answers)
    seen: list[str] = []

    def answer(*_words: object) -> tuple[Named, str]:
        seen.append(next(left))
        return Named(state="refused", failure=seen[-1], exit=9), ""

    monkeypatch.setattr(Keeper, "_verify", answer)
    base = replace(good_base(tmp_path), flushes=flushes)
    found = keeper(tmp_path).try_mutant(mutant(), base, "")
    assert len(seen) == runs
    assert found.right is (answers[runs - 1] == "truncated")


def test_cudas_companion_lies_beside_the_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    companion = tmp_path / "cuda-runtime.tar.zst"
    companion.write_bytes(b"libraries")
    there: list[bytes] = []

    def look(_self: Keeper, _mutant: object, cage: Cage) -> tuple[Named, str]:
        there.append((cage.archive.parent / companion.name).read_bytes())
        return Named(state="refused", failure="truncated", exit=9), ""

    monkeypatch.setattr(Keeper, "_verify", look)
    base = replace(good_base(tmp_path), companion=companion)
    assert keeper(tmp_path).try_mutant(mutant(), base, "").right
    assert there == [b"libraries"]
    assert companion.exists()
