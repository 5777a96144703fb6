"""Calibration: the text that is turned, the spreads and margins, the table, the refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.errors import UsageError
from llamawright.model.calibration import Calibration, Figure, Spread
from llamawright.model.recipe import ModelType, SyntheticRules, Threshold, TypeSource, TypeWork
from llamawright.model.verdict import Device, Numbers
from llamawright.verify.calibrate import calibration_lines, require_count, spreads, turned
from verify_kit import verification

WORK = TypeWork(context=8, chunks=2, batches=(8, 1))
F16 = ModelType(
    name="F16", max_mean_kld=Threshold(value=0.001, reason="a test"), source=TypeSource.SYNTHETIC
)
LIMITS = verification(types=(F16,), synthetic=SyntheticRules(hardware=WORK, software=WORK))
TEXT = "One ship came. Two ships left. Nobody saw them."


def numbers(kld: float, top1: float, *, kind: str = "", batch: int = 8) -> Numbers:
    return Numbers(
        batch=batch, mean_kld=kld, top1=top1, positions=6, per_chunk=(kld, kld), type=kind
    )


def spread(values: tuple[float, ...], figure: Figure = Figure.MEAN_KLD) -> Spread:
    return Spread(type="", batch=8, figure=figure, limit=0.02, values=values)


class TestText:
    def test_it_begins_later_and_loses_nothing(self) -> None:
        assert turned(TEXT, 1) == "Two ships left. Nobody saw them. One ship came.\n"
        assert turned(TEXT, 2).startswith("Nobody saw them. One")

    def test_after_a_whole_turn_it_is_the_same(self) -> None:
        assert turned(TEXT, 3) == turned(TEXT, 0)

    def test_a_text_without_sentences_stays(self) -> None:
        assert turned(" \n", 5) == " \n"

    @given(st.integers(0, 50))
    def test_all_words_stay(self, number: int) -> None:
        assert sorted(turned(TEXT, number).split()) == sorted(TEXT.split())


class TestSpreads:
    RUNS = (
        (numbers(0.003, 0.9), numbers(0.0001, 1.0, kind="synthetic F16")),
        (numbers(0.005, 0.8), numbers(0.0004, 0.9, kind="synthetic F16")),
        (numbers(0.004, 0.95), numbers(0.0002, 1.0, kind="synthetic F16")),
    )

    def test_each_figure_has_its_least_median_and_greatest(self) -> None:
        first = spreads(self.RUNS, LIMITS)[0]
        assert (first.low, first.middle, first.high) == (0.003, 0.004, 0.005)
        assert first.values == (0.003, 0.005, 0.004)

    def test_each_figure_is_held_to_its_own_limit(self) -> None:
        found = {(s.type, s.figure): s for s in spreads(self.RUNS, LIMITS)}
        assert found["", Figure.MEAN_KLD].limit == LIMITS.max_mean_kld.value
        assert found["synthetic F16", Figure.MEAN_KLD].limit == 0.001
        assert found["synthetic F16", Figure.TOP1].limit == LIMITS.min_top1.value

    def test_batches_are_kept_apart(self) -> None:
        runs = ((numbers(0.1, 1, batch=8), numbers(0.2, 1, batch=1)),)
        assert [s.batch for s in spreads(runs, LIMITS)] == [8, 8, 1, 1]

    def test_the_margin_is_that_of_the_worst_run(self) -> None:
        assert spread((0.001, 0.015)).margin == pytest.approx(0.005)
        assert spread((0.001, 0.03)).margin == pytest.approx(-0.01)
        top1 = Spread(type="", batch=8, figure=Figure.TOP1, limit=0.75, values=(0.9, 0.8))
        assert top1.margin == pytest.approx(0.05)


def calibration(*found: Spread) -> Calibration:
    device = Device(id="Vulkan0", name="Imaginary", backend="vulkan", memory=1, software=False)
    return Calibration(
        artifact="a.tar.zst", artifact_sha256="a" * 64, device=device, runs=2, seeds=(5, 6),
        spreads=found, date="2026-01-01", host=(), seconds=3.0,
    )  # fmt: skip


class TestTable:
    def test_it_has_a_head_and_a_line_for_each_figure(self) -> None:
        lines = calibration_lines(calibration(spread((0.001, 0.003))))
        assert "Vulkan0 Imaginary, 2 runs" in lines[0]
        assert lines[1].split()[:3] == ["type", "batch", "figure"]
        assert lines[2].split() == [
            "the", "model", "8", "mean", "KLD", "0.00100", "0.00200", "0.00300", "0.02000",
            "0.01700",
        ]  # fmt: skip
        assert len(lines) == 3

    def test_a_figure_beyond_its_limit_is_named_last(self) -> None:
        lines = calibration_lines(calibration(spread((0.001, 0.03))))
        assert lines[-1] == "beyond its limit: the model, batch 8, mean KLD"


@pytest.mark.parametrize("runs", [0, -1, 1001])
def test_a_count_that_makes_no_sense_is_refused(runs: int) -> None:
    with pytest.raises(UsageError) as caught:
        require_count(runs)
    assert "--runs" in caught.value.hint


@pytest.mark.parametrize("runs", [1, 10, 1000])
def test_other_counts_are_taken(runs: int) -> None:
    require_count(runs)
