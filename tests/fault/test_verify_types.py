"""Other types of the model: made by the artifact's quantiser, and held to limits of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamawright.model.platform import Backend
from llamawright.model.recipe import ModelType, Threshold, TypeSource
from llamawright.model.verdict import State, Verdict
from llamawright.verify.prove import with_limits
from verify_kit import Bench, bench, recipe, verification

__all__ = ["bench"]

F16 = ModelType(name="F16", max_mean_kld=Threshold(value=0.002, reason="nothing is rounded"))
Q8 = ModelType(name="Q8_0", max_mean_kld=Threshold(value=0.01, reason="a test"))
CLOSE = ["0.00010 100.000", "0.00010 100.000"]
HONEST = {"F16 8": CLOSE, "Q8_0 8": CLOSE}


def prove(
    bench: Bench, *types: ModelType, kld: dict[str, list[str]] | None = None, **behaviour: object
) -> Verdict:
    artifact = bench.artifact({"kld": HONEST if kld is None else kld, **behaviour})
    return bench.verify(artifact, verification=verification(types=types or (F16,)))


def names(verdict: Verdict) -> list[str]:
    return [r.name for r in verdict.runs]


def test_a_type_is_made_compared_and_told(bench: Bench) -> None:
    verdict = prove(bench)
    assert verdict.state is State.VERIFIED
    assert names(verdict)[-3:] == ["make F16", "reference F16", "device F16"]
    (check,) = [c for c in verdict.checks if c.name == "divergence, F16, batch 8"]
    assert check.seen.startswith("0.00010 nats")
    assert "0.002" in check.expected
    assert [n.type for n in verdict.numbers if n.type] == ["F16"]
    assert any(x.name == "mean KL divergence of F16 at most" for x in verdict.limits)


def test_the_reference_of_a_type_uses_the_same_file_on_the_cpu(bench: Bench) -> None:
    runs = {r.name: r.command for r in prove(bench).runs}
    assert runs["make F16"][-1] == "F16"
    model = runs["make F16"][-2]
    assert model in runs["reference F16"]
    assert model in runs["device F16"]
    assert "none" in runs["reference F16"]
    assert "Vulkan0" in runs["device F16"]


def test_a_divergence_that_the_model_s_own_type_would_hide_is_found(bench: Bench) -> None:
    """0.01 nats pass for Q4_1; in F16 they are a hundred times too much."""
    verdict = prove(bench, kld={"F16 8": ["0.01000 100.000", "0.01000 100.000"]})
    assert (verdict.state, verdict.failure) == (State.FAILED, "wrong-numbers")


def test_nan_in_one_type_alone_is_named(bench: Bench) -> None:
    verdict = prove(bench, kld={"F16 8": ["nan 0.000", "nan 0.000"]})
    assert (verdict.state, verdict.failure) == (State.FAILED, "not-a-number")


def test_a_type_without_numbers_is_missing_evidence(bench: Bench) -> None:
    verdict = prove(bench, kld={"F16 8": ["0.00010 100.000"]})
    assert verdict.state is State.FAILED
    assert verdict.failure == "evidence-missing"


def test_every_type_is_proved_and_the_first_failure_ends_it(bench: Bench) -> None:
    assert [n for n in names(prove(bench, F16, Q8)) if n.startswith("device ")][-2:] == [
        "device F16", "device Q8_0",
    ]  # fmt: skip
    verdict = prove(bench, F16, Q8, reference_at_make="exit:1")
    assert verdict.state is State.FAILED
    assert names(verdict)[-1] == "make F16"


def test_a_quantiser_that_hangs_or_crashes_is_the_artifact_s_failure(bench: Bench) -> None:
    verdict = prove(bench, reference_at_make="signal:11")
    assert verdict.state is State.FAILED
    assert "make F16" in verdict.why or names(verdict)[-1] == "make F16"


def test_an_own_model_is_not_made_anew(bench: Bench) -> None:
    """It may be a hundred gigabytes."""
    artifact = bench.artifact({"kld": HONEST})
    verdict = bench.verify(artifact, verification=verification(types=(F16,)), model_sha256="")
    assert verdict.state is State.VERIFIED
    assert not [n for n in names(verdict) if "F16" in n]


def test_a_software_device_is_spared(bench: Bench) -> None:
    bench.hardware = ()
    artifact = bench.artifact({"devices": []})
    verdict = bench.verify(artifact, driver=bench.driver(), verification=verification(types=(F16,)))
    assert verdict.state is State.VERIFIED_SOFTWARE
    assert not [n for n in names(verdict) if "F16" in n]


def test_nothing_of_a_type_is_left_behind(bench: Bench) -> None:
    prove(bench)
    assert not list(bench.root.rglob("F16.gguf"))
    assert not list(bench.root.rglob("F16.kld"))


def test_the_shipped_recipe_proves_f16_and_lets_cuda_round_more() -> None:
    shipped = recipe()
    (f16,) = [
        t for t in shipped.verification.types if t.name == "F16" and t.source is TypeSource.PINNED
    ]
    assert f16.max_mean_kld.value < shipped.verification.max_mean_kld.value
    rule = shipped.rule(Backend.CUDA)
    assert rule is not None
    assert rule.max_mean_kld is not None
    assert rule.max_mean_kld.value > shipped.verification.max_mean_kld.value
    assert "H200" in rule.max_mean_kld.reason


@pytest.mark.parametrize("backend", [Backend.CPU, Backend.VULKAN])
def test_a_backend_without_limits_of_its_own_has_the_recipe_s(
    bench: Bench, backend: Backend
) -> None:
    asked = bench.request(bench.root / "x")
    assert with_limits(asked, backend) is asked


def test_cuda_s_own_limit_counts_for_cuda_alone(bench: Bench) -> None:
    asked = bench.request(bench.root / "x")
    own = with_limits(asked, Backend.CUDA)
    rule = recipe().rule(Backend.CUDA)
    assert rule is not None
    assert own.verification.max_mean_kld == rule.max_mean_kld
    assert replace(own, verification=asked.verification) == asked
