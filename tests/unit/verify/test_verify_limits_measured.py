"""The recipe's limits stand between what honest devices showed and what must be called wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import cast

import pytest

from llamawright.config import load_recipe
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import Recipe
from llamawright.model.request import VerifyRequest
from llamawright.verify.prove import with_limits

HERE = Path(__file__).resolve().parents[2]
ROOT = HERE.parent
Row = dict[str, object]
TABLE = cast("dict[str, list[Row]]", tomllib.loads((HERE / "fakes/calibrations.toml").read_text()))
# A figure may come closer to its limit on a device that nobody has measured yet.
MARGIN = 1.25


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load_recipe(ROOT / "recipes" / "llama.cpp.toml")


def limit(recipe: Recipe, backend: str, source: str, kind: str) -> float:
    """Return the limit that a proof of this backend is held to."""
    asked = VerifyRequest(
        artifact=Path("x"), model=Path("m"), model_sha256="", verification=recipe.verification,
        rules=recipe.backends, platform=Platform(System.LINUX, "x86_64"),
    )  # fmt: skip
    request = with_limits(asked, Backend(backend))
    if not kind:
        return request.verification.max_mean_kld.value
    found = [t for t in request.verification.types if t.name == kind and str(t.source) == source]
    assert len(found) == 1, (source, kind)
    return found[0].max_mean_kld.value


def figures(row: Row) -> list[float]:
    return [float(v) for v in cast("list[float]", row["mean_kld"])]


def name(row: Row) -> str:
    return " ".join(str(row.get(k, "")) for k in ("backend", "what", "device", "source", "type"))


@pytest.mark.parametrize("row", TABLE["honest"], ids=name)
def test_an_honest_device_keeps_a_margin(recipe: Recipe, row: Row) -> None:
    most = limit(recipe, str(row["backend"]), str(row["source"]), str(row["type"]))
    low, middle, high = figures(row)
    assert low <= high or middle == high == 0
    assert high * MARGIN <= most


@pytest.mark.parametrize("row", TABLE["honest"], ids=name)
def test_honest_devices_agree_on_the_likeliest_token(recipe: Recipe, row: Row) -> None:
    assert float(cast("float", row["top1"])) >= recipe.verification.min_top1.value


@pytest.mark.parametrize("row", TABLE["wrong"], ids=name)
@pytest.mark.parametrize("backend", ["cpu", "vulkan"])
def test_a_fault_of_five_per_cent_is_found(recipe: Recipe, row: Row, backend: str) -> None:
    most = limit(recipe, backend, str(row["source"]), str(row["type"]))
    assert min(figures(row)) > most


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "IQ4_XS"])
def test_cuda_is_held_to_the_same_limit_where_it_keeps_it(recipe: Recipe, kind: str) -> None:
    """Only the types whose block sums CUDA keeps in half precision have limits of its own."""
    assert limit(recipe, "cuda", "synthetic", kind) == limit(recipe, "cpu", "synthetic", kind)


@pytest.mark.parametrize("kind", ["Q4_1", "Q4_K"])
def test_where_cuda_deviates_its_own_limit_stays_below_twice_the_fault(
    recipe: Recipe, kind: str
) -> None:
    faults = [max(figures(r)) for r in TABLE["wrong"] if r["type"] == kind]
    assert limit(recipe, "cuda", "synthetic", kind) < 2 * max(faults)
