"""CUDA artifacts and NVIDIA drivers that crash, hang, lie or are half there."""

from __future__ import annotations

import signal

import pytest

from llamawright.errors import NoDeviceError
from llamawright.model.verdict import State
from verify_cuda_kit import H200, CudaBench, check, cuda, cuda_facts
from verify_kit import verification

__all__ = ["cuda"]


@pytest.mark.parametrize(
    ("phase", "words", "state", "failure"),
    [
        ("first_token", "CUDA error: no kernel image is available for execution on the device",
         State.FAILED, "no-kernel-image"),
        ("first_token", "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
         State.CANNOT_VERIFY, "driver-too-old-for-ptx"),
        ("load", "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
         State.CANNOT_VERIFY, "out-of-device-memory"),
        ("first_token", "CUDA error: an illegal memory access was encountered",
         State.FAILED, "illegal-memory-access"),
        ("first_token", "CUDA error: unspecified launch failure", State.FAILED, "launch-failed"),
        ("first_token", "CUDA error: invalid argument", State.FAILED, "mixed-toolkits"),
        ("load", "CUDA error: all CUDA-capable devices are busy or unavailable",
         State.CANNOT_VERIFY, "device-busy"),
    ],
)  # fmt: skip
def test_what_a_run_that_failed_is_called(
    cuda: CudaBench, phase: str, words: str, state: State, failure: str
) -> None:
    verdict = cuda.prove_cuda({f"at_{phase}": f"say:{words}"})
    assert (verdict.state, verdict.failure) == (state, failure)
    assert words in verdict.why
    assert verdict.hint
    assert verdict.device is not None
    assert verdict.device.name == H200


def test_a_program_that_crashes_is_no_more_than_that(cuda: CudaBench) -> None:
    verdict = cuda.prove_cuda({"at_load": f"signal:{int(signal.SIGSEGV)}"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "crashed")


def test_a_hang_advises_another_backend(cuda: CudaBench) -> None:
    quick = verification(first_token_s=0.7)
    verdict = cuda.prove_cuda({"at_first_token": "hang"}, verification=quick)
    assert verdict.failure == "hang-at-first-token"
    assert "another backend" in verdict.hint


@pytest.mark.parametrize("name", ["mismatch", "not-loaded", "lost", "page", "err"])
def test_a_driver_that_does_not_answer_rightly_cannot_verify(cuda: CudaBench, name: str) -> None:
    cuda.has(name)
    verdict = cuda.prove_cuda({"devices": []})
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "driver-broken")
    assert "nvidia-smi" in verdict.why
    assert verdict.hint
    assert cuda.prove_cuda({"devices": []}, device="CUDA0").failure == "driver-broken"


def test_a_tool_that_hangs_does_not_take_the_proof_with_it(cuda: CudaBench) -> None:
    cuda.has("hung")
    verdict = cuda.prove_cuda({"devices": []}, verification=verification(probe_s=1.5))
    assert verdict.failure == "driver-broken"
    assert "hangs" in verdict.why


def test_a_card_that_the_artifact_does_not_list_fails_it(cuda: CudaBench) -> None:
    verdict = cuda.prove_cuda({"devices": []})
    assert (verdict.state, verdict.failure) == (State.FAILED, "device-not-listed")
    assert H200 in verdict.why
    for selector in ("CUDA0", H200, "41:00.0", "GPU-aaaa1111"):
        named = cuda.prove_cuda({"devices": []}, device=selector)
        assert (named.state, named.failure) == (State.FAILED, "device-not-listed")
    with pytest.raises(NoDeviceError):
        cuda.prove_cuda({"devices": []}, device="CUDA1")


def test_a_module_that_does_not_load_fails_it_with_the_loaders_words(cuda: CudaBench) -> None:
    verdict = cuda.prove_cuda({"devices": [], "module_loads": False})
    assert (verdict.state, verdict.failure) == (State.FAILED, "module-not-loaded")
    assert "libggml-cuda.so" in verdict.why
    assert "header" in verdict.why or "ELF" in verdict.why


@pytest.mark.parametrize(
    ("why", "failure"),
    [
        ("CUDA driver version is insufficient for CUDA runtime version", "driver-too-old"),
        ("no CUDA-capable device is detected", "device-hidden"),
        ("system not yet initialized", "driver-not-ready"),
        ("forward compatibility was attempted on non supported HW", "compat-unsupported"),
    ],
)
def test_a_cuda_that_does_not_start_is_the_machines_fault(
    cuda: CudaBench, why: str, failure: str
) -> None:
    line = f"ggml_cuda_init: failed to initialize CUDA: {why}"
    verdict = cuda.prove_cuda({"devices": [], "init_lines": [line]})
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, failure)
    assert why in verdict.why
    assert verdict.hint


def test_a_card_that_nobody_can_name_may_still_be_proved(cuda: CudaBench) -> None:
    """nvidia-smi is not on the PATH, but CUDA works."""
    (cuda.root / "no-driver").write_text("NVRM version: 580")
    artifact = cuda.cuda_artifact()
    cuda.has_no_nvidia()
    verdict = cuda.verify(artifact)
    assert verdict.state is State.VERIFIED
    assert "nvidia-smi is not here" in check(verdict, "device as its driver shows it").seen
    assert check(verdict, "device memory rose").outcome.value == "unknown"


def test_wrong_numbers_on_ptx_are_a_failure_like_any(cuda: CudaBench) -> None:
    cuda.codes = cuda_facts("compute_61")
    verdict = cuda.prove_cuda({"kld": {"32": ["0.61000 41.000", "0.58000 38.000"]}})
    assert (verdict.state, verdict.failure) == (State.FAILED, "wrong-numbers")
    assert "JIT" not in verdict.why
    assert "JIT" in check(verdict, "device code").seen


def test_a_second_run_that_fails_is_not_forgotten(cuda: CudaBench) -> None:
    """The run that is only made to tell the JIT's time counts like the others."""
    cuda.codes = cuda_facts("compute_61")
    verdict = cuda.prove_cuda(
        {"at_again": "say:CUDA error: unspecified launch failure", "jit_s": 0.1}
    )
    assert (verdict.state, verdict.failure) == (State.FAILED, "launch-failed")
    assert "device prompt 1 again" in verdict.why
