"""The verb calibrate: what it asks the rooms for, what it prints, how it ends."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from llamawright.cli import calibrate
from llamawright.cli.arguments import make_parser
from llamawright.console import Console
from llamawright.model.calibration import Calibration, Figure, Spread
from llamawright.model.verdict import Device

FOUND = Calibration(
    artifact="a.tar.zst", artifact_sha256="a" * 64,
    device=Device(id="CPU", name="A CPU", backend="cpu", memory=0, software=False),
    runs=2, seeds=(5, 6), date="2026-01-01", host=(), seconds=1.0,
    spreads=(Spread(type="", batch=8, figure=Figure.MEAN_KLD, limit=0.02, values=(0.1, 0.2)),),
)  # fmt: skip


def flags(*words: str) -> Namespace:
    return make_parser().parse_args(("calibrate", "a.tar.zst", *words))


def test_ten_runs_are_the_default_and_a_device_may_be_named() -> None:
    assert flags().runs == 10
    found = flags("--runs", "3", "--device", "Vulkan0")
    assert (found.artifact, found.runs, found.device) == (Path("a.tar.zst"), 3, "Vulkan0")


@pytest.mark.parametrize("as_json", [True, False])
def test_it_prints_the_table_and_json_on_demand(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(calibrate, "_measure", lambda _pipeline, _flags: FOUND)
    asked = flags(*(["--json"] if as_json else []))
    code = calibrate.run(asked, tmp_path, Console.for_process(quiet=False))
    seen = capsys.readouterr()
    # Beyond its limit, and still no failure: that is what was asked for.
    assert code == 0
    assert "beyond its limit: the model, batch 8, mean KLD" in seen.err
    if as_json:
        assert json.loads(seen.out)["spreads"][0]["values"] == [0.1, 0.2]
    else:
        assert not seen.out
