"""The smallest case: every quantity, the switches, the model's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from investigate_kit import ARGV, COMPARE, CRASH, HANG, PROMPT, SAVE, Bench, case, shape, table
from llamawright.model.investigation import Reduction
from llamawright.model.platform import Backend
from llamawright.verify.investigate_case import Case, Kind, Shape, number_of, value_of
from llamawright.verify.investigate_reduce import (
    SWITCHES,
    TYPES,
    powers,
    reductions,
    with_number,
)

Argv = tuple[str, ...]
Fails = Callable[[Argv, Mapping[str, str]], bool]


def reduced(
    root: Path, fails: Fails, *, what: Case | None = None, quantiser: Path | None = None,
    layers: int = 31, limit_s: float = 3000.0, backend: Backend = Backend.VULKAN,
) -> tuple[Shape, dict[str, Reduction], Bench]:  # fmt: skip
    bench = Bench(root, lambda argv, env: CRASH if fails(argv, env) else {})
    lab = bench.lab(what or case(), limit_s=limit_s)
    steps = list(
        reductions(
            lab, backend, layers=layers, quantiser=quantiser, model=Path("/models/tiny.gguf")
        )
    )
    last = steps[-1][0] if steps else Shape()
    return last, {step.name: step for _, step in steps}, bench


def on_device(argv: Argv) -> bool:
    return "none" not in argv


def test_every_quantity_is_made_as_small_as_it_goes(tmp_path: Path) -> None:
    def fails(argv: Argv, env: Mapping[str, str]) -> bool:
        return (
            on_device(argv)
            and len(value_of(argv, "-p").split()) >= 5
            and number_of(argv, "-ub") >= 2
            and number_of(argv, "-ngl") >= 17
        )

    found, steps, _ = reduced(tmp_path, fails)
    assert (found.tokens, found.batch, found.layers) == (1, 2, 17)
    assert found.prompt == " ".join(PROMPT.split()[:5])
    assert steps["layers (-ngl)"].passes == "16"
    assert steps["batch (-ub)"].passes == "1"
    assert steps["prompt, words"].before == "12"
    assert steps["device"].told == "passes on the CPU"


def test_what_always_fails_ends_at_the_least_of_all(tmp_path: Path) -> None:
    found, steps, _ = reduced(tmp_path, lambda argv, _e: on_device(argv))
    assert (found.tokens, found.batch, found.layers) == (1, 1, 0)
    assert found.prompt == "We"
    assert steps["switches"].passes == ""


def test_what_fails_only_as_it_was_stays_as_it_was(tmp_path: Path) -> None:
    found, steps, _ = reduced(tmp_path, lambda argv, _e: argv == ARGV)
    assert found.applied(ARGV)[: ARGV.index("-ngl")] == ARGV[: ARGV.index("-ngl")]
    assert found.prompt is None
    assert steps["tokens generated"].least == "9"


def test_a_failure_of_the_cpu_is_told(tmp_path: Path) -> None:
    _, steps, _ = reduced(tmp_path, lambda _a, _e: True)
    assert (steps["device"].least, steps["device"].told) == ("none", "fails on the CPU too")


def test_a_switch_that_cures_is_found(tmp_path: Path) -> None:
    _, steps, _ = reduced(
        tmp_path, lambda argv, env: on_device(argv) and "GGML_VK_DISABLE_FUSION" not in env
    )
    assert steps["switches"].passes == "GGML_VK_DISABLE_FUSION=1"
    assert "GGML_VK_DISABLE_F16=1" in steps["switches"].told


def test_flash_attention_is_a_switch(tmp_path: Path) -> None:
    _, steps, _ = reduced(
        tmp_path, lambda argv, _e: on_device(argv) and argv[-2:] != ("-fa", "off")
    )
    assert steps["switches"].passes == "-fa off"


def test_a_failure_that_comes_now_and_then_is_not_taken_for_cured(tmp_path: Path) -> None:
    seen: set[str] = set()

    def flaky(argv: Argv, env: Mapping[str, str]) -> bool:
        key = next((k for k in env if k.startswith("GGML_VK")), "")
        first = key not in seen
        seen.add(key)
        return on_device(argv) and not (key and first)

    _, steps, _ = reduced(tmp_path, flaky)
    assert steps["switches"].passes == ""


@pytest.mark.parametrize("backend", list(SWITCHES))
def test_each_backend_has_its_own_switches(tmp_path: Path, backend: Backend) -> None:
    _, _, bench = reduced(tmp_path, lambda argv, _e: on_device(argv), backend=backend)
    tried = {k for _, _, env, _ in bench.runs for k in env if k in str(SWITCHES)}
    assert tried == set(SWITCHES[backend])


def test_the_models_types_are_made_by_the_artifacts_own_quantiser(tmp_path: Path) -> None:
    def fails(argv: Argv, _env: Mapping[str, str]) -> bool:
        kind = Path(value_of(argv, "-m")).stem
        return "quantize" not in argv[0] and on_device(argv) and kind in ("tiny", "Q4_0", "Q8_0")

    _, steps, bench = reduced(tmp_path, fails, quantiser=Path("/a/llama-quantize"))
    assert steps["model type"].least == "Q8_0, Q4_0"
    assert steps["model type"].passes == "F16, Q4_K_M, IQ4_NL"
    made = [argv for _, argv, *_ in bench.runs if argv[0] == "/a/llama-quantize"]
    assert [argv[-1] for argv in made] == list(TYPES)
    assert all("--allow-requantize" in argv for argv in made)


def test_a_type_that_cannot_be_made_is_not_told(tmp_path: Path) -> None:
    def fails(argv: Argv, _env: Mapping[str, str]) -> bool:
        return argv[-1] == "IQ4_NL" or on_device(argv)

    _, steps, _ = reduced(tmp_path, fails, quantiser=Path("/a/llama-quantize"))
    assert "model type" not in steps


def test_types_of_a_comparison_get_numbers_of_their_own(tmp_path: Path) -> None:
    what = case(kind=Kind.NUMBERS, failure="wrong-numbers", argv=COMPARE, reference=SAVE,
                reference_env={}, most=0.02, least=0.75)  # fmt: skip

    def behave(argv: Argv, _env: Mapping[str, str]) -> Mapping[str, object]:
        wrong = "F16" not in value_of(argv, "-m")
        return {"stdout": table("0.50000" if wrong else "0.00100")}

    bench = Bench(tmp_path, behave)
    lab = bench.lab(what, limit_s=3000.0)
    steps = {
        step.name: step
        for _, step in reductions(
            lab, Backend.VULKAN, layers=4, quantiser=Path("/q"), model=Path("/models/tiny.gguf")
        )
    }
    assert steps["model type"].passes == "F16"
    assert steps["chunks"].least == "1"
    assert "prompt, words" not in steps
    saved = [a for _, a, *_ in bench.runs if "--save-all-logits" in a]
    assert len(saved) == 1 + len(TYPES)
    assert not list(tmp_path.glob("*.kld"))


def test_a_case_of_the_cpu_is_reduced_without_a_device(tmp_path: Path) -> None:
    what = case(on_device=False, argv=("/r/llama", "-m", "/m", "-p", "a b c", "-n", "9"))
    found, steps, bench = reduced(tmp_path, lambda _a, _e: True, what=what)
    assert set(steps) == {"tokens generated", "prompt, words"}
    assert found.prompt == "a"
    assert all("GGML_VK" not in str(env) for _, _, env, _ in bench.runs)


def test_a_case_without_quantities_has_no_steps(tmp_path: Path) -> None:
    what = case(on_device=False, argv=("/r/llama-quantize", "a", "b"))
    assert reduced(tmp_path, lambda _a, _e: True, what=what)[1] == {}


def test_when_the_time_ends_what_was_found_stays(tmp_path: Path) -> None:
    found, steps, bench = reduced(tmp_path, lambda argv, _e: on_device(argv), limit_s=6.0)
    assert bench.clock.at <= 6.0
    assert found.tokens == 1
    assert steps["layers (-ngl)"].told == "not looked at to the end"


def test_runs_that_come_to_no_end_stop_a_search_not_the_others(tmp_path: Path) -> None:
    def behave(argv: Argv, _env: Mapping[str, str]) -> Mapping[str, object]:
        return HANG if number_of(argv, "-n") == 1 else CRASH if on_device(argv) else {}

    lab = Bench(tmp_path, behave).lab(case(), limit_s=3000.0)
    steps = {
        s.name: s
        for _, s in reductions(lab, Backend.VULKAN, layers=3, quantiser=None, model=Path("/m"))
    }
    assert steps["tokens generated"].least == "9"
    assert steps["batch (-ub)"].least == "1"


@pytest.mark.parametrize(
    ("most", "values"),
    [(1, (1,)), (4, (1, 2, 4)), (6, (1, 2, 4, 6)), (256, tuple(1 << n for n in range(9)))],
)
def test_batches_go_up_by_powers(most: int, values: tuple[int, ...]) -> None:
    assert powers(most) == values


def test_each_number_has_its_place() -> None:
    assert with_number(shape(), "-n", 1) == shape(tokens=1)
    assert with_number(shape(), "-ub", 2) == shape(batch=2)
    assert with_number(shape(), "--chunks", 3) == shape(chunks=3)
    assert with_number(shape(), "-ngl", 4) == shape(layers=4)
    with pytest.raises(AssertionError):
        with_number(shape(), "-t", 5)
