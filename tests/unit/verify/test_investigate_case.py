"""The case of a failed proof, and its command line in other shapes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from investigate_kit import ARGV, COMPARE, CRASH, HANG, LIMITS, PROMPT, SAVE, case, finished, table
from llamawright.model.recipe import ModelType, Threshold
from llamawright.model.verdict import Numbers, State, Verdict
from llamawright.process import Ending
from llamawright.verify.conclude import Attempt
from llamawright.verify.investigate_case import (
    Case,
    Kind,
    Shape,
    beyond,
    case_of,
    number_of,
    value_of,
    with_value,
)
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.supervise import Finished, Phase, Task
from verify_kit import verification

GREEDY = ("/r/llama-completion", "-m", "/m", "-p", PROMPT, "-n", "9")


def run(name: str, argv: tuple[str, ...], *, on_device: bool = True, **changes: object) -> Finished:
    task = Task(name=name, argv=argv, cwd=Path("/"), env={"A": name}, log=Path(f"/l/{name}.log"),
                limits=LIMITS, on_device=on_device)  # fmt: skip
    return finished(task, **changes)


def attempt(
    reference: tuple[Finished, ...], device: tuple[Finished, ...], types: tuple[object, ...] = ()
) -> Attempt:
    """Return as much of an attempt as a case is made of."""
    work = SimpleNamespace(batches=(8,), context=8)
    of_types = tuple(r for t in types for r in t.runs)  # type: ignore[attr-defined]
    return cast(
        "Attempt",
        SimpleNamespace(
            runs=SimpleNamespace(reference=reference, device=device),
            runs_of_types=of_types,
            types=types,
            course=SimpleNamespace(verification=verification(), work=work),
            setting=SimpleNamespace(stage=SimpleNamespace(patterns=BUILD_11312)),
        ),
    )


def verdict(failure: str) -> Verdict:
    return Verdict(
        state=State.FAILED, failure=failure, why=f"why {failure}", hint="", artifact="a",
        artifact_sha256="", model="m", model_sha256="", device=None, devices=(), checks=(),
        runs=(), speed=None, kld_per_chunk=(), date="", host=(), seconds=1.0,  # type: ignore[arg-type]
    )  # fmt: skip


OURS = (run("reference prompt 1", GREEDY, on_device=False, stdout=" Paris"),
        run("reference probabilities", SAVE, on_device=False))  # fmt: skip


def test_the_run_that_crashed_is_the_case() -> None:
    crashed = run("device prompt 1", ARGV, **CRASH)  # type: ignore[arg-type]
    found = case_of(attempt(OURS, (crashed,)), verdict("crashed"))
    assert found is not None
    assert (found.kind, found.failure, found.name) == (Kind.RUN, "crashed", "device prompt 1")
    assert (found.argv, found.env, found.phase) == (
        ARGV,
        {"A": "device prompt 1"},
        Phase.FIRST_TOKEN,
    )
    assert found.stops
    assert not found.silent
    assert not found.hangs


def test_a_run_of_the_reference_is_a_case_too() -> None:
    crashed = run("reference prompt 1", GREEDY, on_device=False, **CRASH)
    found = case_of(attempt((crashed,), ()), verdict("reference-crashed"))
    assert found is not None
    assert (found.failure, found.on_device) == ("crashed", False)


def test_a_hang_is_told_from_a_crash() -> None:
    hung = run("device prompt 1", ARGV, **HANG)  # type: ignore[arg-type]
    found = case_of(attempt(OURS, (hung,)), verdict("hang"))
    assert found is not None
    assert found.hangs
    assert not found.silent


@pytest.mark.parametrize("code", [1, 86])
def test_a_program_that_gives_up_is_silent(code: int) -> None:
    ended = run("device prompt 1", ARGV, returncode=code, phase=Phase.LOAD)
    found = case_of(attempt(OURS, (ended,)), verdict("ended-early"))
    assert found is not None
    assert (found.failure, found.silent) == ("ended-early", True)


def test_endless_output_is_a_case() -> None:
    endless = run("device prompt 1", ARGV, ending=Ending.OUTPUT_CAP)
    found = case_of(attempt(OURS, (endless,)), verdict("endless-output"))
    assert found is not None
    assert found.failure == "endless-output"


def test_wrong_words_are_compared_with_the_cpus() -> None:
    wrong = run("device prompt 1", ARGV, stdout=" London")
    found = case_of(attempt(OURS, (wrong,)), verdict("wrong-tokens"))
    assert found is not None
    assert (found.kind, found.reference) == (Kind.TEXT, GREEDY)
    assert found.reference_env == {"A": "reference prompt 1"}
    assert not found.stops


def test_words_that_are_wrong_on_the_cpu_too_are_nobodys_case() -> None:
    same = run("device prompt 1", ARGV, stdout=" Paris")
    assert case_of(attempt(OURS, (same,)), verdict("wrong-answer")) is None


def test_the_comparison_that_is_beyond_its_limit_is_the_case() -> None:
    right = run("device prompt 1", ARGV, stdout=" Paris")
    wrong = run("device probabilities 8", COMPARE, stdout=table("0.50000"))
    found = case_of(attempt(OURS, (right, wrong)), verdict("wrong-numbers"))
    assert found is not None
    assert (found.kind, found.name) == (Kind.NUMBERS, "device probabilities 8")
    assert (found.reference, found.most, found.least) == (SAVE, 0.02, 0.75)
    assert found.kind_of_model == ""


def test_a_quantisation_that_is_wrong_is_named() -> None:
    right = run("device prompt 1", ARGV, stdout=" Paris")
    honest = run("device probabilities 8", COMPARE, stdout=table("0.00100"))
    kind = ModelType(name="F16", max_mean_kld=Threshold(value=0.008, reason="a test"))
    runs = (run("make F16", ("q",)), run("reference F16", SAVE, on_device=False),
            run("device F16", COMPARE, stdout=table("0.01000")))  # fmt: skip
    types = (SimpleNamespace(type=kind, runs=runs),)
    found = case_of(attempt(OURS, (right, honest), types), verdict("wrong-numbers"))
    assert found is not None
    assert (found.name, found.kind_of_model, found.most) == ("device F16", "F16", 0.008)


@pytest.mark.parametrize("failure", ["silent-cpu", "contradiction", "evidence-missing"])
def test_claims_that_do_not_agree_are_a_case_of_the_first_run(failure: str) -> None:
    right = run("device prompt 1", ARGV, stdout=" Paris")
    found = case_of(attempt(OURS, (right,)), verdict(failure))
    assert found is not None
    assert (found.kind, found.failure, found.stops) == (Kind.CLAIMS, failure, False)


def test_without_any_run_there_is_no_case() -> None:
    assert case_of(attempt((), ()), verdict("removed-after-unpack")) is None


def test_a_shape_changes_the_flags_that_are_there_and_adds_none() -> None:
    shape = Shape(prompt="x y", tokens=1, batch=2, layers=3, chunks=4, model=Path("/other"))
    argv = shape.applied(ARGV)
    for flag, value in (("-p", "x y"), ("-n", "1"), ("-ub", "2"), ("-ngl", "3"), ("-m", "/other")):
        assert value_of(argv, flag) == value
    assert "--chunks" not in argv
    assert len(argv) == len(ARGV)
    assert shape.applied(("/bin/x",)) == ("/bin/x",)


def test_an_empty_shape_changes_nothing() -> None:
    assert Shape().applied(ARGV) == ARGV


def test_a_layer_count_of_nothing_is_a_value() -> None:
    assert number_of(Shape(layers=0).applied(ARGV), "-ngl") == 0
    assert "0" in Shape(layers=0).applied(ARGV)


def test_values_are_read_and_set_by_their_flags() -> None:
    assert with_value(("a", "-n", "1", "b"), "-n", "7") == ("a", "-n", "7", "b")
    assert value_of(("a", "-n"), "-n") == ""
    assert number_of(("-n", "-1"), "-n") == 0
    assert number_of(("-n", "x"), "-n") == 0
    assert value_of((), "-n") == ""


def numbers(kld: float, top: float) -> Numbers:
    return Numbers(batch=8, mean_kld=kld, top1=top, positions=6, per_chunk=(kld,))


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (numbers(0.001, 0.9), False),
        (numbers(0.02, 0.75), False),
        (numbers(0.021, 0.9), True),
        (numbers(0.001, 0.7), True),
        (numbers(float("nan"), 0.9), True),
        (numbers(0.001, float("nan")), True),
        (None, True),
    ],
)  # fmt: skip
def test_numbers_are_beyond_when_they_are_not_within(found: Numbers | None, wrong: bool) -> None:
    assert beyond(found, most=0.02, least=0.75) is wrong


def test_a_case_without_changes_is_the_kits() -> None:
    assert isinstance(case(), Case)
