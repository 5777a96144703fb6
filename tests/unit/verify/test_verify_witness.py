"""What the machine says of its devices without the artifact; each probe is a child."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright.model.platform import Backend
from llamawright.process import Command, Ending, Result, base_environment
from llamawright.verify import witness
from llamawright.verify.survey import load_error

ROW = {
    "index": 0, "name": "NVIDIA H200", "type": 2, "vendor": 4318, "api": "1.4.312",
    "driver_id": 4, "driver_name": "NVIDIA", "driver_info": "580.159.04", "uuid": "fc" * 16,
    "pci": "0000:00:06.0", "memory": 150754820096, "storage16": True,
}  # fmt: skip


def result(
    stdout: str = "", *, code: int = 0, tail: tuple[str, ...] = (), ending: Ending = Ending.EXITED
) -> Result:
    return Result(
        command=Command(argv=("/x",), cwd=Path("/")), returncode=code, ending=ending,
        seconds=1.0, output=stdout, stdout=stdout, tail=tail, log=None,
    )  # fmt: skip


def test_a_real_device_is_hardware() -> None:
    sighting = witness.read_vulkan(result(json.dumps([ROW])))
    (device,) = sighting.devices
    assert not device.software
    assert device.driver == "NVIDIA 580.159.04"
    assert device.pci == "0000:00:06.0"
    assert sighting.hardware == (device,)
    assert sighting.problem == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"type": 4},
        {"driver_id": 13},
        {"driver_id": 10},
        {"name": "llvmpipe (LLVM 15)"},
        {"driver_name": "lavapipe"},
        {"name": "Microsoft Basic Render Driver"},
    ],
)
def test_any_sign_of_software_is_enough(changes: dict[str, object]) -> None:
    sighting = witness.read_vulkan(result(json.dumps([{**ROW, **changes}])))
    assert sighting.devices[0].software
    assert sighting.hardware == ()


def test_a_device_without_16_bit_storage_is_not_usable() -> None:
    sighting = witness.read_vulkan(result(json.dumps([{**ROW, "storage16": False}])))
    assert sighting.hardware == ()
    assert not sighting.devices[0].usable


@pytest.mark.parametrize(
    ("outcome", "problem", "words"),
    [
        (result(code=3, tail=("libvulkan.so.1: cannot open",)), "no-loader", "libvulkan.so.1"),
        (result(code=1, tail=("vkCreateInstance: -9",)), "no-driver", "no driver"),
        (result(code=1, tail=("ERROR:   loader_get_json: Failed to open JSON file /x.json",
                              "ERROR:   vkCreateInstance: Found no drivers!",
                              "vkCreateInstance: -9")), "no-driver", "Failed to open JSON file"),
        (result(code=-11), "probe-crashed", "signal 11"),
        (result(ending=Ending.TIMED_OUT), "probe-hung", "timed-out"),
        (result(code=1, tail=("vkCreateInstance: -7",)), "probe-failed", "-7"),
        (result("no json"), "probe-failed", ""),
        (result("[1]"), "probe-failed", ""),
        (result('[{"index": 0}]'), "probe-failed", ""),
    ],
)  # fmt: skip
def test_why_nothing_could_be_seen(outcome: Result, problem: str, words: str) -> None:
    sighting = witness.read_vulkan(outcome)
    assert (sighting.problem, sighting.devices) == (problem, ())
    assert words in sighting.told
    assert sighting.told


def test_nothing_but_the_artifact_speaks_for_some_backends() -> None:
    for backend in (Backend.CPU, Backend.METAL, Backend.CUDA):
        assert witness.look(backend, {}, seconds=1).problem == "no-witness"


def test_the_probe_is_run_with_the_loaders_own_errors_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text("import os, sys\nsys.stderr.write(os.environ['VK_LOADER_DEBUG'])\nsys.exit(1)")
    monkeypatch.setattr(witness, "PROBE", probe)
    sighting = witness.look(Backend.VULKAN, base_environment(), seconds=10)
    assert sighting.told.endswith("error")


def test_a_probe_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(witness, "PROBE", probe)
    sighting = witness.look(Backend.VULKAN, base_environment(), seconds=0.5)
    assert sighting.problem == "probe-hung"


def test_the_real_probe_answers_on_any_machine() -> None:
    """With or without a loader it prints devices or a reason, and never a traceback."""
    sighting = witness.look(Backend.VULKAN, base_environment(), seconds=30)
    assert sighting.devices or sighting.told
    assert "Traceback" not in sighting.told


def test_why_a_module_does_not_load_is_told_by_the_system(tmp_path: Path) -> None:
    module = tmp_path / "libggml-vulkan.so"
    module.write_bytes(b"not a library")
    assert "libggml-vulkan.so" in load_error(module, base_environment(), 10)
    assert "cannot open" in load_error(tmp_path / "absent.so", base_environment(), 10)
