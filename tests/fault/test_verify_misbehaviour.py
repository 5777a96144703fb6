"""Programs, drivers and archives that lie, crash, hang or never end: each has its class."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest

from llamawright.model.verdict import Outcome, State, Verdict
from verify_kit import (
    GPU,
    LLVMPIPE,
    PROMPTS,
    Bench,
    bench,
    left_running,
    manifest,
    pack,
    verification,
)

__all__ = ["bench"]

FRANCE = PROMPTS[0].text
WRONG = {"32": ["0.61000 41.000", "0.58000 38.000"]}


def seen(verdict: Verdict, name: str) -> tuple[Outcome, str]:
    check = next(c for c in verdict.checks if c.name.startswith(name))
    return check.outcome, check.seen


@pytest.mark.parametrize(
    ("behaviour", "failure", "words"),
    [
        ({"offloaded": "0/31", "assigned": {"CPU": 31}, "weights": {"CPU_Mapped": 1.5}},
         "silent-cpu", "0/31"),
        ({"offloaded": "", "assigned": {"CPU": 31}, "weights": {"CPU_Mapped": 1.5},
          "warning": "no usable GPU found, --gpu-layers option will be ignored"},
         "silent-cpu", "no usable GPU found"),
        ({"offloaded": "12/31", "assigned": {"Vulkan0": 12, "CPU": 19},
          "weights": {"Vulkan0": 0.3, "CPU_Mapped": 1.2}}, "partly-offloaded", "12/31"),
        ({"assigned": {"CPU": 31}}, "contradiction", "31 on CPU"),
        ({"weights": {"CPU_Mapped": 1.5}}, "contradiction", "CPU_Mapped 1.5 MiB"),
        ({"weights": {"Vulkan00": 9.0}}, "contradiction", "Vulkan00 9.0 MiB"),
        ({"warning": "no usable GPU found, ignored"}, "contradiction", "no usable GPU found"),
        ({"weights": {}}, "evidence-missing", "the log names no buffer"),
        ({"offloaded": ""}, "evidence-missing", "the log does not say"),
        ({"assigned": {}}, "evidence-missing", "the log does not say"),
        ({"module_mapped": False, "linger": 0.6}, "contradiction", "not mapped"),
        ({"device_answers": {FRANCE: " Lyon."}}, "wrong-answer", "Lyon"),
        ({"device_answers": {FRANCE: " Paris!"}}, "wrong-tokens", "Paris!"),
        ({"device_answers": {FRANCE: ""}}, "wrong-answer", "nothing was printed"),
        ({"kld": WRONG}, "wrong-numbers", "0.58000 nats"),
        ({"kld": {"32": ["0.00300 41.000", "0.00300 40.000"]}}, "wrong-numbers", "40.0%"),
        ({"kld": {"32": ["nan 0.000", "nan 0.000"]}}, "not-a-number", "not a number"),
        ({"kld": {"32": ["-0.50000 99.000", "-0.50000 99.000"]}}, "wrong-numbers", "-0.50000"),
        ({"kld": {"32": ["inf 90.000", "inf 90.000"]}}, "not-a-number", "not a number"),
        ({"chunks_done": 1}, "evidence-missing", "1 of 2 chunks"),
        ({"chunks_done": 0}, "evidence-missing", "no table"),
        ({"reference_sneaks_device": True}, "reference-not-cpu", "loaded Vulkan"),
        ({"reference_assigned": {"Vulkan0": 31}}, "reference-not-cpu", "layers on Vulkan0"),
        ({"answers": {FRANCE: " Rome."}}, "wrong-answer", "Rome"),
    ],
)  # fmt: skip
def test_what_a_lie_is_called(
    bench: Bench, behaviour: dict[str, object], failure: str, words: str
) -> None:
    verdict = bench.prove_in_software(behaviour)
    assert (verdict.state, verdict.failure) == (State.FAILED, failure)
    assert words in verdict.why
    assert verdict.hint


@pytest.mark.parametrize(
    ("behaviour", "failure", "words"),
    [
        ({"at_load": f"signal:{int(signal.SIGSEGV)}"}, "crashed", "phase load: ended by SIGSEGV"),
        ({"at_first_token": f"signal:{int(signal.SIGILL)}"}, "illegal-instruction", "x64.so"),
        ({"at_first_token": "lost"}, "device-lost", "ErrorDeviceLost"),
        ({"at_init": f"signal:{int(signal.SIGABRT)}"}, "crashed", "SIGABRT"),
        ({"status": 3}, "wrong-exit-status", "exit status 3"),
        ({"at_start": "exit:7"}, "ended-early", "phase start: exit status 7"),
        ({"at_load": "say:llama_model_load: error loading model: bad magic"}, "model-refused",
         "bad magic"),
        ({"at_first_token": "endless"}, "endless-output", "bytes"),
        ({"at_first_token": "endless:lines"}, "endless-output", "bytes"),
        ({"reference_at_first_token": f"signal:{int(signal.SIGILL)}"},
         "reference-illegal-instruction", "libggml-cpu-x64.so"),
        ({"reference_status": 1}, "reference-wrong-exit-status", "reference prompt 1"),
        ({"cut_off": True, "device_answers": {FRANCE: " Par"}}, "output-cut-off", "closing lines"),
        ({"reference_cut_off": True}, "reference-output-cut-off", "reference prompt 1"),
        ({"at_load_of_llama-perplexity": f"signal:{int(signal.SIGBUS)}"}, "crashed", "SIGBUS"),
    ],
)  # fmt: skip
def test_what_a_bad_end_is_called(
    bench: Bench, behaviour: dict[str, object], failure: str, words: str
) -> None:
    verdict = bench.prove_in_software({"linger": 0.0, **behaviour})
    assert (verdict.state, verdict.failure) == (State.FAILED, failure)
    assert words in verdict.why
    assert verdict.hint


@pytest.mark.parametrize("phase", ["start", "load", "first_token", "done"])
def test_a_hang_is_stopped_at_its_phase_and_leaves_no_process(bench: Bench, phase: str) -> None:
    limits = verification(probe_s=0.7, load_s=0.7, first_token_s=0.7, total_s=1.0)
    bench.hardware = ()
    artifact = bench.artifact({"devices": [], "linger": 0.0, f"at_{phase}": "hang"})
    began = time.monotonic()
    verdict = bench.verify(artifact, driver=bench.driver(), verification=limits)
    assert (verdict.state, verdict.failure) == (
        State.FAILED, f"hang-at-{phase.replace('_', '-')}",
    )  # fmt: skip
    assert verdict.runs[-1].returncode is None
    assert time.monotonic() - began < 12
    assert not left_running()


def test_wrong_numbers_at_one_batch_size_only_are_found(bench: Bench) -> None:
    verdict = bench.prove({"kld": WRONG})
    assert verdict.failure == "wrong-numbers"
    assert seen(verdict, "divergence, batch 1")[0] is Outcome.PASS
    assert seen(verdict, "divergence, batch 32")[0] is Outcome.FAIL


def test_a_log_that_claims_a_device_whose_memory_never_rose_is_a_contradiction(
    bench: Bench,
) -> None:
    verdict = bench.prove({"memory_rises": False})
    assert (verdict.state, verdict.failure) == (State.FAILED, "contradiction")
    assert seen(verdict, "device memory rose") == (Outcome.FAIL, "by 0.0 MiB")


def test_a_software_device_must_hold_the_weights_itself(bench: Bench) -> None:
    """A model that stayed on the CPU is mapped from its file, as in the reference."""
    verdict = bench.prove_in_software({"memory_rises": False})
    assert (verdict.state, verdict.failure) == (State.FAILED, "contradiction")
    assert "device memory rose" in verdict.why


def test_a_run_on_another_device_than_the_chosen_one_is_a_contradiction(bench: Bench) -> None:
    verdict = bench.prove({"using_pci": "0000:99:00.0"})
    assert verdict.failure == "contradiction"
    assert "0000:99:00.0" in verdict.why


def test_a_hardware_claim_with_nothing_but_a_software_driver_in_it_is_a_contradiction(
    bench: Bench,
) -> None:
    verdict = bench.prove({"driver": str(bench.root / "libvulkan_lvp.so"), "linger": 0.6})
    assert verdict.failure == "contradiction"
    assert "libvulkan_lvp.so" in verdict.why


def test_llvmpipe_under_the_name_of_a_gpu_is_never_hardware(bench: Bench) -> None:
    """The driver's own word, device type CPU, decides against the name."""
    bench.hardware = ((GPU, 4),)
    verdict = bench.prove()
    assert verdict.state is not State.VERIFIED
    assert verdict.failure == "no-device"


def test_a_software_name_alone_is_enough_to_be_software(bench: Bench) -> None:
    bench.hardware = ((LLVMPIPE, 2),)
    verdict = bench.verify(
        bench.artifact({"devices": [["Vulkan0", LLVMPIPE, 2048]]}), device="Vulkan0"
    )
    assert verdict.state is not State.VERIFIED


def test_a_device_that_the_artifact_does_not_list_fails_it(bench: Bench) -> None:
    verdict = bench.prove({"devices": []})
    assert (verdict.state, verdict.failure) == (State.FAILED, "device-not-listed")
    assert GPU in verdict.why


def test_a_module_that_does_not_load_fails_it_with_the_reason(bench: Bench) -> None:
    verdict = bench.prove({"devices": [], "module_loads": False})
    assert (verdict.state, verdict.failure) == (State.FAILED, "module-not-loaded")
    assert "libggml-vulkan.so" in verdict.why
    assert "header" in verdict.why or "ELF" in verdict.why


def test_a_list_that_is_none_is_missing_evidence(bench: Bench) -> None:
    verdict = bench.prove({"at_list": "exit:0"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "evidence-missing")


@pytest.mark.parametrize(
    ("action", "failure"), [(f"signal:{int(signal.SIGSEGV)}", "crashed"), ("hang", "hang-at-start")]
)
def test_a_plugin_that_kills_the_list_never_takes_the_tool_down(
    bench: Bench, action: str, failure: str
) -> None:
    verdict = bench.verify(bench.artifact({"at_list": action}),
                           verification=verification(probe_s=1.0))  # fmt: skip
    assert (verdict.state, verdict.failure) == (State.FAILED, failure)


def test_a_driver_that_kills_every_program_is_not_the_artifacts_fault(bench: Bench) -> None:
    bench.probe_exit = "os.kill(os.getpid(), signal.SIGSEGV)"
    segv = f"signal:{int(signal.SIGSEGV)}"
    verdict = bench.verify(bench.artifact({"at_list": segv}))
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "driver-crashes")


def test_a_full_device_cannot_verify(bench: Bench) -> None:
    verdict = bench.prove_in_software({"at_load": "say:ggml_vulkan: ErrorOutOfDeviceMemory"})
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "out-of-device-memory")


def test_a_module_taken_out_of_the_archive_fails_by_name(bench: Bench) -> None:
    artifact = bench.artifact()
    told = manifest(bench.tree)
    (bench.tree / "bin" / "libggml-vulkan.so").unlink()
    pack(bench.tree, bench.root, told)
    verdict = bench.verify(artifact)
    assert (verdict.state, verdict.failure) == (State.FAILED, "module-missing")
    assert "libggml-vulkan.so" in verdict.why


def test_a_module_missing_from_archive_and_manifest_alike_fails_too(bench: Bench) -> None:
    (bench.tree / "bin" / "libggml-vulkan.so").unlink()
    verdict = bench.verify(bench.artifact())
    assert (verdict.state, verdict.failure) == (State.FAILED, "module-missing")


def test_a_changed_program_fails_by_its_hash(bench: Bench) -> None:
    artifact = bench.artifact()
    told = manifest(bench.tree)
    with (bench.tree / "bin" / "llama-bench").open("a") as stream:
        stream.write("# one line more\n")
    pack(bench.tree, bench.root, told)
    verdict = bench.verify(artifact)
    assert (verdict.state, verdict.failure) == (State.FAILED, "hash-mismatch")
    assert "llama-bench" in verdict.why


def test_a_file_that_vanishes_while_it_runs_is_named(bench: Bench) -> None:
    """What antivirus software does (case W12)."""
    verdict = bench.prove_in_software({"at_first_token": "remove:llama-bench"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "removed-after-unpack")
    assert "bin/llama-bench: missing" in verdict.why


def test_output_without_a_last_line_end_is_read(bench: Bench) -> None:
    verdict = bench.prove_in_software({"ending": "", "reference_ending": ""})
    assert (verdict.state, verdict.why) == (State.VERIFIED_SOFTWARE, "")


def test_output_is_capped_in_memory_and_on_disk(bench: Bench) -> None:
    verdict = bench.prove_in_software({"at_first_token": "endless"})
    assert verdict.failure == "endless-output"
    logs = list((bench.root / "store" / "logs").rglob("device-prompt-1.log"))
    assert logs[0].stat().st_size < 4 << 20


def test_two_proofs_of_one_artifact_do_not_disturb_each_other(bench: Bench, tmp_path: Path) -> None:
    bench.prove_in_software()
    work = bench.root / "store" / "work"
    shutil.rmtree(work)
    assert bench.prove_in_software().state is State.VERIFIED_SOFTWARE
