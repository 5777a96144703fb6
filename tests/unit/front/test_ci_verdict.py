"""The last gate of .ci/run: a build only counts with its artifact and its proof."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import bootstrap
import pytest


@pytest.fixture(scope="module")
def gate() -> ModuleType:
    path = bootstrap.CHECKOUT / ".ci" / "check_verdict.py"
    spec = importlib.util.spec_from_file_location("check_verdict", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(dist: Path, **changes: object) -> None:
    (dist / "a.tar.zst").write_bytes(b"archive")
    record: dict[str, object] = {
        "artifact": {"path": "dist/a.tar.zst"},
        "verdict": {"state": "verified-software", "why": "", "checks": []},
        **changes,
    }
    (dist / "a.result.json").write_text(json.dumps(record))


def test_a_proved_artifact_passes(
    gate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result(tmp_path)
    assert gate.main(tmp_path) == 0
    assert "a.result.json: verified-software" in capsys.readouterr().out


@pytest.mark.parametrize("state", ["unverified", "failed", "cannot-verify", "quarantined", None])
def test_any_other_state_fails(gate: ModuleType, tmp_path: Path, state: str | None) -> None:
    result(tmp_path, verdict={"state": state, "why": "no device", "checks": []})
    assert gate.main(tmp_path) == 1


def test_a_failed_check_fails_whatever_the_state_says(gate: ModuleType, tmp_path: Path) -> None:
    checks = [{"name": "answer", "outcome": "fail"}]
    result(tmp_path, verdict={"state": "verified", "why": "", "checks": checks})
    assert gate.main(tmp_path) == 1


def test_an_artifact_that_is_not_there_fails(gate: ModuleType, tmp_path: Path) -> None:
    result(tmp_path)
    (tmp_path / "a.tar.zst").unlink()
    assert gate.main(tmp_path) == 1


def test_an_error_record_fails(
    gate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.result.json").write_text(json.dumps({"error": {"what": "disk full"}}))
    assert gate.main(tmp_path) == 1
    assert "disk full" in capsys.readouterr().out


def test_no_result_at_all_fails(gate: ModuleType, tmp_path: Path) -> None:
    assert gate.main(tmp_path) == 1
