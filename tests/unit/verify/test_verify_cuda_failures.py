"""What CUDA says when a run fails: each its class, its state and its cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.model.verdict import State
from llamawright.process import Ending
from llamawright.verify.judge import CANNOT, HINTS, hint_of, rule_failure, run_failure
from llamawright.verify.logs import failure_reason, read_devices, read_load
from llamawright.verify.patterns import BUILD_11312, FAILURES, patterns_for
from llamawright.verify.patterns_cuda import (
    CUDA_FAILURES,
    DRIVER_MAPPED,
    JIT_MAPPED,
    RUNTIME_LIBRARY,
    RUNTIME_MAPPED,
)
from llamawright.verify.supervise import Finished, Phase, PhaseLimits, Task

MACHINE, ARTIFACT = State.CANNOT_VERIFY, State.FAILED
START = "ggml_cuda_init: failed to initialize CUDA"
ALLOC = "ggml_backend_cuda_buffer_type_alloc_buffer"
LOADER = "cannot open shared object file: No such file or directory"

# The words are those of cudaGetErrorString (CUDA 11 to 13), ggml-cuda.cu and the loader.
WORDS = [
    ("CUDA error: no kernel image is available for execution on the device",
     "no-kernel-image", ARTIFACT),
    ("CUDA error: device kernel image is invalid", "invalid-kernel-image", MACHINE),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.",
     "driver-too-old-for-ptx", MACHINE),
    ("CUDA error: PTX JIT compiler library was not found", "jit-unavailable", MACHINE),
    ("CUDA error: PTX JIT compilation was disabled", "jit-unavailable", MACHINE),
    ("CUDA error: a PTX JIT compilation failed", "jit-unavailable", MACHINE),
    (f"{START}: CUDA driver version is insufficient for CUDA runtime version",
     "driver-too-old", MACHINE),
    ("CUDA error: out of memory", "out-of-device-memory", MACHINE),
    (f"{ALLOC}: allocating 8000.00 MiB on device 0: cudaMalloc failed: out of memory",
     "out-of-device-memory", MACHINE),
    ("llama_model_load: error loading model: unable to allocate CUDA0 buffer",
     "out-of-device-memory", MACHINE),
    ("ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 123",
     "out-of-device-memory", MACHINE),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "out-of-device-memory", MACHINE),
    ("CUDA error: unspecified launch failure", "launch-failed", ARTIFACT),
    ("CUDA error: an illegal instruction was encountered", "launch-failed", ARTIFACT),
    ("CUDA error: an illegal memory access was encountered", "illegal-memory-access", ARTIFACT),
    ("CUDA error: misaligned address", "illegal-memory-access", ARTIFACT),
    ("CUDA error: the launch timed out and was terminated", "launch-timed-out", ARTIFACT),
    ("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", "gpu-lost", ARTIFACT),
    ("CUDA error: uncorrectable ECC error encountered", "gpu-memory-error", MACHINE),
    ("CUDA error: invalid argument", "mixed-toolkits", ARTIFACT),
    ("CUDA error: system has unsupported display driver / cuda driver combination",
     "driver-mismatch", MACHINE),
    ("CUDA error: forward compatibility was attempted on non supported HW",
     "compat-unsupported", MACHINE),
    ("CUDA error: all CUDA-capable devices are busy or unavailable", "device-busy", MACHINE),
    ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "device-busy", MACHINE),
    (f"{START}: no CUDA-capable device is detected",
     "device-hidden", MACHINE),
    (f"{START}: unknown error", "driver-not-ready", MACHINE),
    (f"{START}: system not yet initialized",
     "driver-not-ready", MACHINE),
    (f"{START}: initialization error",
     "driver-not-ready", MACHINE),
    ("CUDA error: CUDA driver is a stub library", "driver-stub", MACHINE),
    (f"libcudart.so.12: {LOADER}", "runtime-missing", MACHINE),
    (f"libcublasLt.so.13: {LOADER}", "runtime-missing", MACHINE),
    (f"libcuda.so.1: {LOADER}", "driver-library-missing", MACHINE),
    ("device lost", "device-lost", ARTIFACT),
]  # fmt: skip


def ended(*lines: str, code: int = -6, stdout: str = "") -> Finished:
    limits = PhaseLimits(start_s=1, load_s=1, first_token_s=1, total_s=1, output_cap=1)
    task = Task(
        name="device prompt 1", argv=("/x",), cwd=Path("/"), env={}, log=Path("/x.log"),
        limits=limits, on_device=True,
    )  # fmt: skip
    return Finished(
        task=task, returncode=code, ending=Ending.EXITED, seconds=1.0, stdout=stdout, lines=lines,
        phase=Phase.LOAD, overran=None, marks={}, tokens=(),
    )  # fmt: skip


@pytest.mark.parametrize(("words", "kind", "state"), WORDS)
def test_each_word_of_cuda_has_its_class_state_and_cure(
    words: str, kind: str, state: State
) -> None:
    failure = run_failure(ended("0.01.000.000 I something", f"0.01.000.001 E {words}"))
    assert failure is not None
    assert failure[0] == kind
    assert words in failure[1]
    ruling = rule_failure(*failure, of_reference=False)
    assert (ruling.state, ruling.failure) == (state, kind)
    assert ruling.hint


def test_every_class_of_the_table_is_tried_by_a_word() -> None:
    tried = {kind for _, kind, _ in WORDS} | {"no-device-code"}
    assert {f.kind for f in CUDA_FAILURES} <= tried
    assert len({f.kind for f in CUDA_FAILURES}) == len(CUDA_FAILURES)


def test_every_class_has_a_cure_that_names_something_to_do() -> None:
    for failure in CUDA_FAILURES:
        assert HINTS[failure.kind] == failure.cure == hint_of(failure.kind)
        assert len(failure.cure) > 20
        assert (failure.kind in CANNOT) == failure.machine


def test_vulkans_classes_are_what_they_were() -> None:
    for words, kind, state in (
        ("vk::Queue::submit: ErrorDeviceLost", "device-lost", ARTIFACT),
        ("ggml_vulkan: ErrorOutOfDeviceMemory", "out-of-device-memory", MACHINE),
        ("ggml_vulkan: Vulkan 1.2 required", "driver-too-old", MACHINE),
        ("error loading model: unable to allocate Vulkan0 buffer", "model-refused", ARTIFACT),
    ):
        failure = run_failure(ended(words))
        assert failure is not None
        assert failure[0] == kind
        assert rule_failure(*failure, of_reference=False).state is state


def test_a_kernel_on_the_wrong_card_says_so_on_stdout() -> None:
    """Case C8: the trap that follows only says 'unspecified launch failure'."""
    printed = (
        "mmq.cuh:3000: ERROR: CUDA kernel mul_mat_q has no device code compatible with CUDA arch "
        "610. ggml-cuda.cu was compiled for: 610,800\n"
    )
    failure = run_failure(ended("CUDA error: unspecified launch failure", stdout=printed))
    assert failure is not None
    assert failure[0] == "no-device-code"
    assert "610,800" in failure[1]
    assert run_failure(ended(code=0, stdout=printed)) is None, "a model may write anything"
    text = "CUDA error: out of memory\n"
    crashed = run_failure(ended(stdout=text))
    assert crashed is not None
    assert crashed[0] == "crashed", "other words on stdout are the model's"


@pytest.mark.parametrize("words", ["ErrorDeviceLost", "NVRM: Xid (PCI:0000:41:00): 79"])
def test_a_lost_card_fails_even_a_run_that_ended_well(words: str) -> None:
    failure = run_failure(ended(words, code=0))
    assert failure is not None
    assert failure[0] in ("device-lost", "gpu-lost")


def test_the_reason_comes_before_what_follows_from_it() -> None:
    lines = (
        "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
        "error: failed to load model",
    )
    assert failure_reason(lines) == ("out-of-device-memory", lines[0])


def test_the_tables_tell_cuda_before_the_general_words() -> None:
    kinds = [kind for kind, _ in FAILURES]
    assert kinds.index("runtime-missing") < kinds.index("library-missing")
    assert kinds.index("out-of-device-memory") < kinds.index("model-refused")
    assert kinds[0] == "device-lost"


# As ggml-cuda.cu of commit 0c1e57098 words them, on the machine of FACTS.
LOG = """\
0.00.150.001 I ggml_cuda_init: found 1 CUDA devices (Total VRAM: 143155 MiB):
0.00.150.002 I   Device 0: NVIDIA H200, compute capability 9.0, VMM: yes, VRAM: 143155 MiB
0.00.150.003 I load_backend: loaded CUDA backend from /opt/proof/artifact/bin/libggml-cuda.so
0.00.151.001 I llama_model_loader: loaded meta data with 30 key-value pairs and 272 tensors
0.00.155.001 I llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (0000:00:06.0) - \
142639 MiB free
0.00.160.001 D load_tensors: layer   0 assigned to device CUDA0, is_swa = 0
0.00.165.001 I load_tensors: offloaded 31/31 layers to GPU
0.00.165.002 I load_tensors:   CPU_Mapped model buffer size =    28.69 MiB
0.00.165.003 I load_tensors:        CUDA0 model buffer size =    92.10 MiB
"""


def test_a_log_of_cuda_is_read_like_any_other() -> None:
    facts = read_load(LOG.splitlines(), BUILD_11312)
    assert [b.name for b in facts.backends] == ["CUDA"]
    assert facts.cards == {0: ("NVIDIA H200", 90)}
    assert facts.using == ("CUDA0",)
    assert facts.pci == "0000:00:06.0"
    assert facts.offloaded == (31, 31)
    assert facts.assigned == {"CUDA0": 1}
    assert facts.weights["CUDA0"] == int(92.10 * (1 << 20))
    assert BUILD_11312.cuda_found.search(LOG)


def test_several_cards_keep_their_numbers() -> None:
    lines = (
        "  Device 0: NVIDIA GeForce GTX 1080, compute capability 6.1, VMM: yes, VRAM: 8 MiB",
        "  Device 1: NVIDIA B200 (rev 2), compute capability 10.0, VMM: yes, VRAM: 9 MiB",
    )
    assert read_load(lines, BUILD_11312).cards == {
        0: ("NVIDIA GeForce GTX 1080", 61),
        1: ("NVIDIA B200 (rev 2)", 100),
    }


def test_a_start_that_fails_is_in_the_log() -> None:
    line = "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"
    found = BUILD_11312.cuda_failed.search(line)
    assert found is not None
    assert found["why"] == "no CUDA-capable device is detected"


def test_the_list_of_devices_is_read() -> None:
    text = "Available devices:\n  CUDA0: NVIDIA H200 (143155 MiB, 142639 MiB free)\n"
    found = read_devices(text, patterns_for(11312), backend="cuda")
    assert found is not None
    assert (found[0].id, found[0].name, found[0].backend) == ("CUDA0", "NVIDIA H200", "cuda")
    assert found[0].memory == 143155 << 20
    assert not found[0].software


@pytest.mark.parametrize(
    ("name", "runtime", "driver", "jit"),
    [
        ("libcudart.so.12", True, False, False),
        ("libcublas.so.12.4.5.8", True, False, False),
        ("libcublasLt.so.13", True, False, False),
        ("cublas64_12.dll", True, False, False),
        ("cudart64_12.dll", True, False, False),
        ("libcuda.so.580.159.04", False, True, False),
        ("nvcuda64.dll", False, True, False),
        ("libnvidia-ptxjitcompiler.so.580.159.04", False, False, True),
        ("libggml-cuda.so", False, False, False),
        ("libcudadebugger.so.1", False, False, False),
        ("libc.so.6", False, False, False),
    ],
)
def test_libraries_are_known_by_their_names(
    name: str, *, runtime: bool, driver: bool, jit: bool
) -> None:
    assert bool(RUNTIME_MAPPED.match(name)) == runtime
    assert bool(DRIVER_MAPPED.match(name)) == driver
    assert bool(JIT_MAPPED.match(name)) == jit


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("libcudart.so.12", True), ("libcublas.so.13", True), ("libcublasLt.so.12", True),
        ("libcudart.so.11.0", True), ("libcudart.so", False),
        ("cublas64_12.dll", True), ("CUDART64_12.dll", True), ("libcuda.so.1", False),
        ("libcudnn.so.9", False), ("libc.so.6", False), ("nvcuda.dll", False),
    ],
)  # fmt: skip
def test_what_the_runtime_is_and_what_the_driver(name: str, *, known: bool) -> None:
    assert bool(RUNTIME_LIBRARY.fullmatch(name)) == known
