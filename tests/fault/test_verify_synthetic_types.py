"""Types of the tiny model: everywhere, at each batch size, against widened weights, twice."""

from __future__ import annotations

from typing import cast

import pytest

from llamawright.model.platform import Backend
from llamawright.model.recipe import (
    ModelType,
    OperationSet,
    SyntheticRules,
    Threshold,
    TypeSource,
    TypeWork,
)
from llamawright.model.verdict import Outcome, State, Verdict
from llamawright.verify.prove import with_limits
from verify_kit import Bench, bench, manifest, pack, recipe, verification

__all__ = ["bench"]

WORK = TypeWork(context=8, chunks=2, batches=(8, 1))
SOFTWARE = TypeWork(context=8, chunks=1, batches=(8, 1))
RULES = SyntheticRules(hardware=WORK, software=SOFTWARE)
REPEAT = Threshold(value=0.0005, reason="a test")
CLOSE = ["0.00010 100.000", "0.00010 100.000"]


def synthetic(name: str, **changes: object) -> ModelType:
    limit = Threshold(value=0.002, reason="a test")
    values = {"name": name, "max_mean_kld": limit, "source": TypeSource.SYNTHETIC, **changes}
    return ModelType(**values)  # type: ignore[arg-type]


F16, Q8, IQ2 = synthetic("F16"), synthetic("Q8_0"), synthetic("IQ2_XS", importance=True)
HONEST = {f"synthetic-{t} {b}": CLOSE for t in ("F16", "Q8_0", "IQ2_XS") for b in (8, 1)}


def prove(
    bench: Bench,
    *types: ModelType,
    kld: dict[str, list[str]] | None = None,
    repeat: Threshold | None = None,
    own: bool = False,
    **behaviour: object,
) -> Verdict:
    artifact = bench.artifact({"kld": {**HONEST, **(kld or {})}, **behaviour})
    demands = verification(types=types or (F16,), synthetic=RULES, max_repeat=repeat)
    more = {"model_sha256": ""} if own else {}
    return bench.verify(artifact, verification=demands, **more)


def in_software(bench: Bench, *types: ModelType, **behaviour: object) -> Verdict:
    bench.hardware = ()
    artifact = bench.artifact({"devices": [], "kld": HONEST, **behaviour})
    demands = verification(types=types, synthetic=RULES, max_repeat=REPEAT)
    return bench.verify(artifact, driver=bench.driver(), verification=demands)


def names(verdict: Verdict) -> list[str]:
    return [r.name for r in verdict.runs if "synthetic" in r.name or "repeated" in r.name]


def test_a_type_is_made_widened_and_compared_at_each_batch_size(bench: Bench) -> None:
    verdict = prove(bench)
    assert verdict.state is State.VERIFIED
    assert names(verdict) == [
        "make synthetic F16", "widen synthetic F16", "reference synthetic F16",
        "device synthetic F16 8", "device synthetic F16 1",
    ]  # fmt: skip
    told = [(n.type, n.batch) for n in verdict.numbers if n.type]
    assert told == [("synthetic F16", 8), ("synthetic F16", 1)]


def test_the_reference_computes_the_widened_weights_and_the_device_the_type(bench: Bench) -> None:
    runs = {r.name: r.command for r in prove(bench, Q8).runs}
    made, kind = runs["make synthetic Q8_0"][-2:]
    assert kind == "Q8_0"
    assert "--pure" in runs["make synthetic Q8_0"]
    assert runs["make synthetic Q8_0"][-3].endswith("synthetic.gguf")
    assert runs["widen synthetic Q8_0"][-3] == made
    wide = runs["widen synthetic Q8_0"][-2]
    assert runs["widen synthetic Q8_0"][-1] == "F32"
    assert wide in runs["reference synthetic Q8_0"]
    assert made in runs["device synthetic Q8_0 8"]
    assert wide not in runs["device synthetic Q8_0 8"]


def test_only_a_type_that_needs_it_gets_an_importance_matrix(bench: Bench) -> None:
    runs = {r.name: r.command for r in prove(bench, F16, IQ2).runs}
    assert "--imatrix" in runs["make synthetic IQ2_XS"]
    assert "--imatrix" not in runs["make synthetic F16"]


def test_each_limit_and_each_check_names_the_model_it_is_made_from(bench: Bench) -> None:
    verdict = prove(bench)
    assert any(x.name == "mean KL divergence of synthetic F16 at most" for x in verdict.limits)
    checks = {c.name for c in verdict.checks}
    assert {"divergence, synthetic F16, batch 8", "divergence, synthetic F16, batch 1"} <= checks


@pytest.mark.parametrize("batch", [8, 1])
def test_one_batch_size_of_one_type_that_is_wrong_fails(bench: Bench, batch: int) -> None:
    wrong = ["0.00400 100.000", "0.00400 100.000"]
    verdict = prove(bench, F16, Q8, kld={f"synthetic-Q8_0 {batch}": wrong})
    assert (verdict.state, verdict.failure) == (State.FAILED, "wrong-numbers")
    assert f"synthetic Q8_0, batch {batch}" in verdict.why


def test_a_user_s_own_model_is_proved_with_the_same_types(bench: Bench) -> None:
    verdict = prove(bench, own=True)
    assert verdict.state is State.VERIFIED
    assert "device synthetic F16 1" in names(verdict)


def test_a_software_device_gets_its_own_smaller_work(bench: Bench) -> None:
    verdict = in_software(bench, F16, synthetic("Q8_0", software_batches=(8,)))
    assert verdict.state is State.VERIFIED_SOFTWARE
    compared = [(n.type, n.batch, len(n.per_chunk)) for n in verdict.numbers if n.type]
    assert compared == [
        ("synthetic F16", 8, 1), ("synthetic F16", 1, 1), ("synthetic Q8_0", 8, 1),
    ]  # fmt: skip


def test_a_cpu_artifact_gets_the_whole_work(bench: Bench) -> None:
    artifact = bench.artifact({"kld": HONEST}, backend=Backend.CPU)
    demands = verification(types=(F16,), synthetic=RULES)
    verdict = bench.verify(artifact, verification=demands)
    assert [r.name for r in verdict.runs if r.name.startswith("device synthetic")] == [
        "device synthetic F16 8", "device synthetic F16 1",
    ]  # fmt: skip


def test_nothing_of_a_type_is_left_behind(bench: Bench) -> None:
    prove(bench, F16, Q8)
    assert not list(bench.root.rglob("synthetic*"))


def test_a_quantiser_that_fails_ends_it_as_the_artifact_s_failure(bench: Bench) -> None:
    verdict = prove(bench, F16, Q8, reference_at_make="exit:1")
    assert verdict.state is State.FAILED
    assert names(verdict)[-1] == "make synthetic F16"


def test_a_crash_on_the_device_ends_it(bench: Bench) -> None:
    kld = {"synthetic-F16 8": ["nan 0.000", "nan 0.000"]}
    verdict = prove(bench, F16, kld=kld)
    assert (verdict.state, verdict.failure) == (State.FAILED, "not-a-number")


class TestRepeated:
    def test_the_model_and_the_first_type_are_compared_twice(self, bench: Bench) -> None:
        verdict = prove(bench, F16, Q8, repeat=REPEAT)
        assert verdict.state is State.VERIFIED
        assert [n for n in names(verdict) if n.endswith("repeated")] == [
            "device probabilities 32 repeated", "device synthetic F16 8 repeated",
            "device synthetic F16 1 repeated",
        ]  # fmt: skip
        same = [c for c in verdict.checks if c.name.startswith("the same again")]
        assert [c.outcome for c in same] == [Outcome.PASS] * 3
        assert {c.seen for c in same} == {"the same to the last digit"}

    def test_in_software_the_model_itself_is_not_repeated(self, bench: Bench) -> None:
        assert [n for n in names(in_software(bench, F16)) if n.endswith("repeated")] == [
            "device synthetic F16 8 repeated", "device synthetic F16 1 repeated",
        ]  # fmt: skip

    def test_other_numbers_the_second_time_are_flaky(self, bench: Bench) -> None:
        """Both are within the limit: only that they differ tells."""
        later = {"synthetic-F16 8": ["0.00010 100.000", "0.00090 100.000"]}
        verdict = prove(bench, F16, repeat=REPEAT, later_kld=later)
        assert (verdict.state, verdict.failure) == (State.FAILED, "flaky")
        assert "calibrate" in verdict.hint

    def test_numbers_that_are_wrong_only_at_times_are_flaky_too(self, bench: Bench) -> None:
        later = {"synthetic-F16 1": ["0.90000 10.000", "0.90000 10.000"]}
        verdict = prove(bench, F16, repeat=REPEAT, later_kld=later)
        assert verdict.failure == "flaky"

    def test_wrong_in_the_same_way_twice_is_wrong(self, bench: Bench) -> None:
        kld = {"synthetic-F16 8": ["0.90000 10.000", "0.90000 10.000"]}
        assert prove(bench, F16, repeat=REPEAT, kld=kld).failure == "wrong-numbers"


OPERATIONS = (
    OperationSet(names=("ROPE", "ADD"), seconds=5.0, params="type=f32", software=True),
    OperationSet(names=("MUL_MAT",), seconds=0.5),
)


def with_tests(
    bench: Bench, *, software: bool = False, other: bool = False, **behaviour: object
) -> Verdict:
    """Prove an artifact whose ``-tests`` archive lies beside it."""
    artifact = bench.artifact({**({"devices": []} if software else {}), **behaviour})
    program = bench.tree / "bin" / "test-backend-ops"
    program.write_bytes((bench.tree / "bin" / "llama-bench").read_bytes())
    program.chmod(0o755)
    module = bench.tree / "bin" / "libggml-vulkan.so"
    if other:
        module.write_bytes(b"another build")
    name = artifact.name.removesuffix(".tar.zst") + "-tests"
    pack(bench.tree, bench.root, manifest(bench.tree, name=name))
    if software:
        bench.hardware = ()
    more = {"driver": bench.driver()} if software else {}
    return bench.verify(artifact, verification=verification(operations=OPERATIONS), **more)


def of_operations(verdict: Verdict) -> list[tuple[Outcome, str]]:
    return [(c.outcome, c.seen) for c in verdict.checks if c.name.startswith("operations ")]


class TestOperations:
    def test_each_set_is_run_on_the_device_and_counted(self, bench: Bench) -> None:
        verdict = with_tests(bench)
        assert verdict.state is State.VERIFIED
        assert of_operations(verdict) == [(Outcome.PASS, "3 of 3 cases passed")] * 2
        runs = {r.name: r.command for r in verdict.runs}
        assert runs["operations ROPE"][1:] == (
            "test", "-b", "Vulkan0", "-o", "ROPE,ADD", "-p", "type=f32",
        )  # fmt: skip

    def test_without_the_archive_it_is_unknown_with_the_reason(self, bench: Bench) -> None:
        verdict = bench.verify(bench.artifact(), verification=verification(operations=OPERATIONS))
        assert verdict.state is State.VERIFIED
        assert {o for o, _ in of_operations(verdict)} == {Outcome.UNKNOWN}
        assert all("--with-tests" in seen for _, seen in of_operations(verdict))

    def test_a_wrong_case_fails_by_name(self, bench: Bench) -> None:
        text = "  ROPE(type=f32,n=1): [ROPE] ERR = 0.9 > 0.1 FAIL\n  2/3 tests passed\n"
        verdict = with_tests(bench, operations={"ROPE": text})
        assert (verdict.state, verdict.failure) == (State.FAILED, "wrong-operation")
        assert "ROPE(type=f32,n=1)" in verdict.why

    def test_another_build_s_module_proves_nothing(self, bench: Bench) -> None:
        verdict = with_tests(bench, other=True)
        assert verdict.state is State.VERIFIED
        assert {o for o, _ in of_operations(verdict)} == {Outcome.UNKNOWN}
        assert "another build" in of_operations(verdict)[0][1]

    def test_a_software_device_runs_only_what_is_quick_there(self, bench: Bench) -> None:
        first, second = of_operations(with_tests(bench, software=True))
        assert first == (Outcome.PASS, "3 of 3 cases passed")
        assert second[0] is Outcome.UNKNOWN
        assert "software" in second[1]

    def test_what_takes_too_long_is_not_held_against_the_device(self, bench: Bench) -> None:
        verdict = with_tests(bench, reference_at_operations="hang")
        assert of_operations(verdict)[1][0] is Outcome.UNKNOWN
        assert "0.5 s" in of_operations(verdict)[1][1]
        assert verdict.state is State.VERIFIED

    def test_a_crash_is(self, bench: Bench) -> None:
        verdict = with_tests(bench, reference_at_operations="signal:11")
        assert verdict.failure == "wrong-operation"

    def test_a_filter_that_fits_nothing_is_unknown(self, bench: Bench) -> None:
        verdict = with_tests(bench, operations={"ROPE": "  0/0 tests passed\n"})
        assert of_operations(verdict)[0] == (Outcome.UNKNOWN, "no case was tried")


def test_the_shipped_recipe_proves_the_types_that_the_issue_names() -> None:
    types = [t for t in recipe().verification.types if t.source is TypeSource.SYNTHETIC]
    assert {"F16", "Q8_0", "Q4_K", "Q4_1"} <= {t.name for t in types}
    assert any(t.name.startswith("IQ") for t in types)
    rules = cast("SyntheticRules", recipe().verification.synthetic)
    for work in (rules.hardware, rules.software):
        assert 1 in work.batches
        assert max(work.batches) > 1


def test_a_backend_has_limits_of_its_own_for_a_type(bench: Bench) -> None:
    wide = Threshold(value=0.01, reason="its kernels round more")
    kind = synthetic("Q8_0", backends={"cuda": wide})
    asked = bench.request(bench.root / "x", verification=verification(types=(F16, kind)))
    of_cuda = with_limits(asked, Backend.CUDA).verification.types
    assert [t.max_mean_kld.value for t in of_cuda] == [0.002, 0.01]
    assert with_limits(asked, Backend.VULKAN).verification.types == (F16, kind)
