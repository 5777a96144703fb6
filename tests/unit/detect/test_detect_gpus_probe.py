"""The child that asks NVML, with a module in NVML's place that has its names and its errors."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from llamawright.detect import nvml_probe
from llamawright.detect.nvml import read_nvml
from llamawright.detect.surroundings import nvml_command
from llamawright.process import ask


class NVMLError(Exception):
    """As pynvml's: ``value`` is NVML's number."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


def refuse(value: int) -> Any:
    def call(*_: object) -> object:
        raise NVMLError(value)

    return call


def fake(**changes: object) -> ModuleType:
    """Return a pynvml with one A100; ``changes`` replace its functions."""
    names: dict[str, object] = {
        "NVMLError": NVMLError,
        "nvmlInit": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: b"580.159.04",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 13000,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetCudaComputeCapability": lambda _: (8, 0),
        "nvmlDeviceGetName": lambda _: b"NVIDIA A100",
        "nvmlDeviceGetPciInfo": lambda _: SimpleNamespace(busId=b"00000000:01:00.0"),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=42949672960),
        "nvmlDeviceGetUUID": lambda _: "GPU-1",
        "nvmlDeviceGetPersistenceMode": lambda _: 0,
        "nvmlDeviceGetMigMode": lambda _: [1, 1],
        "nvmlDeviceGetEccMode": lambda _: [1, 1],
    }
    module = ModuleType("pynvml")
    for name, value in (names | changes).items():
        if value is not None:
            setattr(module, name, value)
    return module


def examined(**changes: object) -> dict[str, object]:
    return nvml_probe.examine(fake(**changes))


def test_a_card_is_told_with_bytes_and_strings_alike() -> None:
    answer = read_nvml(json.dumps(examined()))
    assert answer is not None
    (card,) = answer.cards
    assert (answer.driver, answer.cuda) == ("580.159.04", "13.0")
    assert (card.name, card.capability, card.pci) == ("NVIDIA A100", 80, "0000:01:00.0")
    assert (card.memory, card.uuid) == (42949672960, "GPU-1")
    assert (card.persistence, card.mig, card.ecc) == (False, True, True)


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("nvmlInit", "init"),
        ("nvmlSystemGetDriverVersion", "driver"),
        ("nvmlDeviceGetCount", "count"),
    ],
)
@pytest.mark.parametrize("code", [4, 9, 12, 18, 999])
def test_a_refusal_keeps_nvmls_number_and_says_where(name: str, stage: str, code: int) -> None:
    report = examined(**{name: refuse(code)})
    assert report == {"error": {"stage": stage, "code": code, "text": f"error {code}"}}


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("nvmlDeviceGetMigMode", "mig"),
        ("nvmlDeviceGetEccMode", "ecc"),
        ("nvmlDeviceGetPersistenceMode", "persistence"),
    ],
)
@pytest.mark.parametrize("how", [refuse(3), None])
def test_what_a_card_does_not_support_is_unknown(name: str, field: str, how: object) -> None:
    answer = read_nvml(json.dumps(examined(**{name: how})))
    assert answer is not None
    assert getattr(answer.cards[0], field) is None


def test_a_card_without_memory_of_its_own_has_none() -> None:
    answer = read_nvml(json.dumps(examined(nvmlDeviceGetMemoryInfo=refuse(3))))
    assert answer is not None
    assert answer.cards[0].memory == 0


def test_an_old_driver_tells_no_cuda_version() -> None:
    answer = read_nvml(json.dumps(examined(nvmlSystemGetCudaDriverVersion_v2=None)))
    assert answer is not None
    assert (answer.cuda, len(answer.cards)) == ("", 1)


def test_one_lost_card_does_not_hide_the_next() -> None:
    def handle(index: int) -> int:
        if index == 0:
            raise NVMLError(15)
        return index

    report = examined(nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=handle)
    answer = read_nvml(json.dumps(report))
    assert answer is not None
    assert [c.index for c in answer.cards] == [1]
    assert answer.odd == ("card 0: error 15",)


def test_the_child_prints_one_object_whatever_is_installed() -> None:
    result = ask(nvml_command(), seconds=20)
    assert result.ok
    record = json.loads(result.stdout)
    assert "error" in record or "cards" in record
    assert read_nvml(result.stdout) is not None


def test_the_child_is_isolated_from_the_users_modules(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(77)\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = ask(nvml_command(), seconds=20, env=env, cwd=tmp_path)
    assert result.ok


def test_a_missing_module_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml_probe.main()
    answer = read_nvml(capsys.readouterr().out)
    assert answer is not None
    assert answer.code == -1
    assert "pynvml" in answer.error
