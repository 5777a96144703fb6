"""A whole calibration with fakes: the proof first, then other seeds, texts and figures."""

from __future__ import annotations

import pytest

from llamawright.errors import VerificationError
from llamawright.model.calibration import Calibration, Figure
from llamawright.model.recipe import ModelType, SyntheticRules, Threshold, TypeSource, TypeWork
from llamawright.verify.calibrate import calibrate
from verify_kit import Bench, bench, verification

__all__ = ["bench"]

WORK = TypeWork(context=8, chunks=2, batches=(8, 1))
F16 = ModelType(
    name="F16", max_mean_kld=Threshold(value=0.002, reason="a test"), source=TypeSource.SYNTHETIC
)


def measure(bench: Bench, runs: int, **behaviour: object) -> Calibration:
    demands = verification(
        types=(F16,), synthetic=SyntheticRules(hardware=WORK, software=WORK),
        max_repeat=Threshold(value=0.0005, reason="a test"),
    )  # fmt: skip
    kld = {f"synthetic-F16 {b}": ["0.00010 100.000", "0.00010 100.000"] for b in (8, 1)}
    artifact = bench.artifact({"kld": kld, **behaviour})
    bench._probe()
    asked = bench.request(artifact, verification=demands)
    return calibrate(asked, runs, store=bench.store, reporter=bench.told)


def test_the_proof_is_the_first_run_and_others_follow(bench: Bench) -> None:
    found = measure(bench, 3)
    assert found.runs == 3
    assert len(set(found.seeds)) == 3
    told = [(s.type, s.batch, s.figure) for s in found.spreads]
    assert told[:2] == [("", 1, Figure.MEAN_KLD), ("", 1, Figure.TOP1)]
    assert ("synthetic F16", 1, Figure.MEAN_KLD) in told
    assert all(len(s.values) == 3 for s in found.spreads)


def test_one_run_is_the_proof_alone(bench: Bench) -> None:
    assert measure(bench, 1).runs == 1


def test_figures_beyond_their_limit_are_what_it_is_for(bench: Bench) -> None:
    wrong = {f"synthetic-F16 {b}": ["0.00500 100.000", "0.00500 100.000"] for b in (8, 1)}
    found = measure(bench, 2, kld=wrong)
    (worst,) = [s for s in found.spreads if s.margin < 0 and s.batch == 1]
    assert (worst.type, worst.figure) == ("synthetic F16", Figure.MEAN_KLD)


@pytest.mark.parametrize(
    "behaviour", [{"at_load": "signal:11"}, {"offloaded": "0/31", "assigned": {"CPU": 31}}]
)
def test_a_proof_that_fails_otherwise_is_not_calibrated(
    bench: Bench, behaviour: dict[str, object]
) -> None:
    with pytest.raises(VerificationError) as caught:
        measure(bench, 2, **behaviour)
    assert caught.value.kind
    assert "nothing to calibrate" in caught.value.what


def test_nothing_is_left_behind(bench: Bench) -> None:
    measure(bench, 2)
    assert not list(bench.root.rglob("calibration*"))
