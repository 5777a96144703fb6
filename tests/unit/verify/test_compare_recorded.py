"""Samples of real comparisons, judged anew: what was found stays found."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import cast

import pytest

from llamawright.model.comparison import Finding, MetricKind
from llamawright.verify.compare_statistics import judge

Row = dict[str, object]
FILE = Path(__file__).resolve().parents[2] / "fakes" / "comparisons.toml"
ROWS = cast("list[Row]", tomllib.loads(FILE.read_text(encoding="utf-8"))["measure"])


def name(row: Row) -> str:
    return f"{str(row['of']).partition(' ')[0]} {row['name']}"


def judged(row: Row, a: list[float], b: list[float]) -> Finding:
    kind, least = MetricKind(str(row["kind"])), float(cast("float", row["resolution"]))
    return judge(a, b, kind, resolution=least, seed=1).finding


def samples(row: Row, side: str) -> list[float]:
    return [float(v) for v in cast("list[float]", row[side])]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_a_recorded_comparison_is_judged_as_it_was(row: Row) -> None:
    found = judged(row, samples(row, "a"), samples(row, "b"))
    assert found is Finding(str(row["finding"]))


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_a_side_against_itself_is_never_a_difference(row: Row) -> None:
    for side in ("a", "b"):
        own = samples(row, side)
        assert judged(row, own, own) is Finding.SAME


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_turned_over_the_finding_turns_over(row: Row) -> None:
    opposite = {
        Finding.FASTER: Finding.SLOWER, Finding.SLOWER: Finding.FASTER,
        Finding.MORE: Finding.LESS, Finding.LESS: Finding.MORE,
    }  # fmt: skip
    found = Finding(str(row["finding"]))
    turned = judged(row, samples(row, "b"), samples(row, "a"))
    assert turned is opposite.get(found, found)
