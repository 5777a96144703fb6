"""Finished runs to speed, numbers and records; the draft of a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.model.recipe import Workload
from llamawright.model.verdict import Device, Outcome
from llamawright.process import Ending
from llamawright.verify.collect import Demand, Runs, collect, records
from llamawright.verify.draft import Draft, cpu_name, host_facts, limits_of
from llamawright.verify.evidence import Expected, Observed
from llamawright.verify.judge import Ruling
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.runs import SPEED_RUN
from llamawright.verify.supervise import Finished, Phase, PhaseLimits, Task
from verify_kit import GOLDEN, GPU, PROMPTS, verification

LIMITS = PhaseLimits(start_s=1, load_s=1, first_token_s=1, total_s=1, output_cap=1)
DEVICE = Device(id="Vulkan0", name="NVIDIA H200", backend="vulkan", memory=1, software=False,
                pci="0000:00:06.0")  # fmt: skip
MARKS = {Phase.LOAD: 0.1, Phase.FIRST_TOKEN: 0.5, Phase.DONE: 2.5}


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def run(
    name: str,
    log: str,
    *,
    stdout: str = "",
    tokens: tuple[float, ...] = (),
    rows: tuple[float, ...] = (),
    device: bool = True,
) -> Finished:
    task = Task(name=name, argv=("/x/llama", "-m", "m"), cwd=Path("/"), env={}, log=Path("/l"),
                limits=LIMITS, on_device=device)  # fmt: skip
    return Finished(
        task=task, returncode=0, ending=Ending.EXITED, seconds=3.0, stdout=stdout,
        lines=tuple(log.splitlines()), phase=Phase.DONE, overran=None, marks=MARKS,
        tokens=tokens, rows=rows,
    )  # fmt: skip


def whole(*, bench: bool = False) -> tuple[Runs, Demand, Observed]:
    """Return a proof made of the H200's real logs."""
    reference = golden("llvmpipe-reference-prompt.log")
    answers = (" Paris.\n\n", " three, four\n\n")
    first = tuple(
        run(f"reference prompt {i + 1}", reference, stdout=a, device=False)
        for i, a in enumerate(answers)
    )
    first += (run("reference probabilities", golden("llvmpipe-reference-probabilities.log"),
                  device=False),)  # fmt: skip
    prompt, table = golden("h200-prompt.log"), golden("h200-probabilities.log")
    then: tuple[Finished, ...] = (
        run("device prompt 1", prompt, stdout=answers[0], tokens=(2.5, 2.6)),
        run("device prompt 2", prompt, stdout=answers[1], tokens=(1.0, 1.1, 1.3, 1.5)),
        run("device probabilities 32", table, stdout=table, rows=(2.5, 3.0)),
    )
    if bench:
        rate = '{"n_prompt": 0, "n_gen": 64, "avg_ts": 400.5}\n'
        then += (run(SPEED_RUN, "", stdout=rate),)
    demand = Demand(
        expected=Expected(device=DEVICE, layers=31, weights=66_495_744),
        verification=verification(prompts=PROMPTS),
        work=Workload(context=128, chunks=2, batches=(32,), prompts=(256, 4)),
        pinned=True,
        witness="NVIDIA H200",
        forbidden=("Vulkan", "CUDA"),
    )
    observed = Observed(
        libraries=frozenset({"/a/libggml-vulkan.so", "/usr/lib/libGLX_nvidia.so.580"}),
        settled=True, memory=262 << 20, memory_source="nvidia-smi",
        modules=("/a/libggml-vulkan.so",),
    )  # fmt: skip
    return Runs(reference=first, device=then), demand, observed


def test_the_real_logs_of_the_h200_pass_as_a_whole() -> None:
    found = collect(*whole(), BUILD_11312)
    assert {e.check.outcome for e in found.evidence} == {Outcome.PASS}
    assert len(found.evidence) == 16
    (numbers,) = found.numbers
    assert numbers.mean_kld == pytest.approx(0.00285)


def test_speed_is_ours_where_no_benchmark_ran() -> None:
    found = collect(*whole(), BUILD_11312)
    assert found.speed.generation_tps == pytest.approx(6.0)  # 3 tokens in 0.5 s
    assert found.speed.load_s == 0.5
    assert found.speed.first_token_s == 2.0
    assert found.speed.prompt_tps == pytest.approx(256.0)  # 128 tokens in 0.5 s
    assert found.token_s == pytest.approx((0.1, 0.2, 0.2))


def test_speed_is_the_benchmarks_where_it_ran() -> None:
    found = collect(*whole(bench=True), BUILD_11312)
    assert found.speed.generation_tps == 400.5
    assert found.speed.prompt_tps == pytest.approx(256.0), "the benchmark measures no prompt"
    assert {e.check.outcome for e in found.evidence} == {Outcome.PASS}


def test_another_models_unknown_answer_is_not_asked_for() -> None:
    from dataclasses import replace

    runs, demand, observed = whole()
    strange = tuple(replace(r, stdout=" a city") for r in runs.reference[:2]) + runs.reference[2:]
    other = replace(demand, pinned=False)
    found = collect(replace(runs, reference=strange), other, observed, BUILD_11312)
    assert not [e for e in found.evidence if e.check.name.startswith("known answer")]
    pinned = collect(replace(runs, reference=strange), demand, observed, BUILD_11312)
    failed = [e for e in pinned.evidence if e.check.outcome is Outcome.FAIL]
    assert "known answer (prompt 1, reference)" in [e.check.name for e in failed]


def test_records_keep_the_lines_that_were_read() -> None:
    (record,) = records((whole()[0].device[0],), BUILD_11312)
    text = "\n".join(record.excerpt)
    for words in ("offloaded 31/31", "Vulkan0 model buffer size", "using device Vulkan0",
                  "generate: n_ctx"):  # fmt: skip
        assert words in text
    assert "create_tensor" not in text
    assert record.command == ("/x/llama", "-m", "m")


def test_a_draft_becomes_a_verdict_with_its_limits() -> None:
    draft = Draft(
        artifact="a.tar.zst", artifact_sha256="a" * 64, model="m.gguf", model_sha256="b" * 64,
        limits=limits_of(verification()), began=0.0,
    )  # fmt: skip
    from llamawright.model.verdict import State

    verdict = draft.verdict(Ruling(state=State.UNVERIFIED, failure="no-device", why="w", hint="h"))
    assert (verdict.state, verdict.failure, verdict.why, verdict.hint) == (
        State.UNVERIFIED, "no-device", "w", "h",
    )  # fmt: skip
    assert [x.value for x in verdict.limits] == [0.02, 0.75]
    assert verdict.date.endswith("+00:00")
    assert verdict.seconds > 0
    assert (verdict.checks, verdict.runs, verdict.numbers) == ((), (), ())


def test_the_processor_has_a_name_everywhere(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel name\t: x\n")
    assert cpu_name(info) == "Some CPU @ 3 GHz"
    assert cpu_name(tmp_path / "absent")
    facts = dict(host_facts())
    assert facts["system"]
    assert facts["cpu"]
    assert GPU not in facts.values()


def test_prompt_speed_is_taken_from_a_pass_whose_kernels_are_compiled() -> None:
    from dataclasses import replace

    runs, demand, observed = whole()
    four = replace(demand, work=replace(demand.work, chunks=4, context=64, batches=(128,)))
    slow_first = replace(runs.device[2], rows=(9.0, 9.01, 9.26, 9.27))
    found = collect(
        replace(runs, device=(*runs.device[:2], slow_first)), four, observed, BUILD_11312
    )
    assert found.speed.prompt_tps == pytest.approx(512.0)  # 128 tokens in 0.25 s
    one_pass = replace(runs.device[2], rows=())
    found = collect(replace(runs, device=(*runs.device[:2], one_pass)), four, observed, BUILD_11312)
    assert found.speed.prompt_tps == pytest.approx(64.0)  # 128 tokens in 2 s
