"""The whole way of a CUDA artifact to its verdict, on machines with fake cards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright import codec
from llamawright.errors import NoDeviceError, UsageError
from llamawright.model.verdict import Outcome, State, Verdict
from llamawright.verify import summary, write_report
from verify_cuda_kit import (
    COMPANION,
    H200,
    H200_PCI,
    CudaBench,
    check,
    cuda,
    cuda_facts,
    imports,
    outcome,
)
from verify_kit import verification

__all__ = ["cuda"]

PTX = cuda_facts("sm_61", "sm_89", "compute_61", driver_jit="550.54.14")


def test_an_honest_artifact_is_verified_by_its_machine_code(cuda: CudaBench) -> None:
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure, verdict.why) == (State.VERIFIED, "", "")
    assert verdict.device is not None
    assert (verdict.device.id, verdict.device.name) == ("CUDA0", H200)
    assert (verdict.device.pci, verdict.device.driver) == (H200_PCI, "NVIDIA 580.159.04")
    assert check(verdict, "device code").seen == "sm_90 machine code"
    assert check(verdict, "compute capability").seen == f"{H200}, 9.0"
    assert check(verdict, "driver mapped").seen == "libcuda.so.580.159.04"
    assert check(verdict, "module mapped").seen == "libggml-cuda.so"
    assert check(verdict, "device memory rose").source == "nvidia-smi"
    assert verdict.speed.jit_s == 0.0
    assert "libggml-cuda.so" in verdict.reference
    assert Outcome.FAIL not in {c.outcome for c in verdict.checks}


def test_the_memory_of_the_process_itself_is_taken_where_it_can_be_read(cuda: CudaBench) -> None:
    cuda.has("h200", lists_processes=True, process_mib=512, memory_rises=False)
    verdict = cuda.prove_cuda({"linger": 0.3})
    memory = check(verdict, "device memory rose")
    assert (memory.source, memory.seen) == ("nvidia-smi, this process", "by 512.0 MiB")
    assert verdict.state is State.VERIFIED


def test_a_card_whose_memory_never_rose_is_a_contradiction(cuda: CudaBench) -> None:
    cuda.has("h200", memory_rises=False)
    assert cuda.prove_cuda().failure == "contradiction"


def test_machine_code_for_other_cards_cannot_be_verified_and_nothing_runs(cuda: CudaBench) -> None:
    cuda.codes = cuda_facts("sm_61", "sm_89")
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "no-kernel-image")
    assert "sm_61, sm_89" in verdict.why
    assert f"{H200} has the compute capability 9.0" in verdict.why
    assert "llamawright build cuda --arch sm_90" in verdict.hint
    assert "--arch native" in verdict.hint
    assert cuda.ran() == set()


def test_ptx_verifies_by_jit_and_says_so(cuda: CudaBench, tmp_path: Path) -> None:
    cuda.codes = PTX
    verdict = cuda.prove_cuda({"jit_s": 0.8})
    assert (verdict.state, verdict.failure) == (State.VERIFIED, "")
    assert verdict.why == f"by JIT of compute_61 PTX on {H200} (9.0): no proof for sm_61 hardware"
    code = check(verdict, "device code")
    assert code.outcome is Outcome.PASS
    assert code.seen == "compute_61 PTX, compiled by the driver (JIT)"
    assert "sm_61, sm_89, compute_61" in code.expected
    assert 0.4 < verdict.speed.jit_s < 5
    assert verdict.speed.first_token_s < 0.5
    assert verdict.runs[-1].name == "device prompt 1 again"
    assert any(verdict.why in line for line in summary(verdict))
    data, page = write_report(verdict, None, tmp_path / "dist")
    again = codec.decode(Verdict, json.loads(data.read_text(encoding="utf-8")), what="verdict")
    assert again == verdict
    assert "no proof for sm_61 hardware" in page.read_text(encoding="utf-8")


def test_the_compiler_in_the_process_is_named(cuda: CudaBench) -> None:
    cuda.codes = PTX
    (cuda.tree / "bin" / "libnvidia-ptxjitcompiler.so.580").write_bytes(b"jit" * 300)
    verdict = cuda.prove_cuda({"maps": ["libnvidia-ptxjitcompiler.so.580"]})
    assert "libnvidia-ptxjitcompiler.so.580 was mapped" in check(verdict, "device code").seen


def test_a_driver_that_compiles_gets_minutes(cuda: CudaBench) -> None:
    cuda.codes = PTX
    quick = verification(first_token_s=0.4, load_s=5.0, probe_s=5.0, total_s=10.0)
    verdict = cuda.prove_cuda({"jit_s": 1.0}, verification=quick)
    assert verdict.state is State.VERIFIED
    cuda.codes = cuda_facts("sm_90")
    slow = cuda.prove_cuda({"jit_s": 1.5}, verification=quick)
    assert slow.failure == "hang-at-first-token", "machine code gets no minutes"


def test_every_proof_compiles_into_a_cache_of_its_own(cuda: CudaBench) -> None:
    told = ["CUDA_CACHE_PATH", "CUDA_DEVICE_ORDER", "CUDA_FORCE_PTX_JIT", "LD_LIBRARY_PATH"]
    cuda.prove_cuda({"tells": told})
    log = cuda.log("device-prompt-1")
    assert f"CUDA_CACHE_PATH={cuda.root / 'store' / 'work'}" in log
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in log
    assert "CUDA_FORCE_PTX_JIT=unset" in log
    assert "LD_LIBRARY_PATH=unset" in log


def test_forced_jit_is_named(cuda: CudaBench) -> None:
    cuda.patch.setenv("CUDA_FORCE_PTX_JIT", "1")
    cuda.codes = cuda_facts("sm_90", "compute_90")
    verdict = cuda.prove_cuda({"tells": ["CUDA_FORCE_PTX_JIT"]})
    assert verdict.state is State.VERIFIED
    assert "(CUDA_FORCE_PTX_JIT=1)" in verdict.why
    assert "forced by CUDA_FORCE_PTX_JIT=1" in check(verdict, "device code").seen
    assert ("CUDA_FORCE_PTX_JIT", "1") in verdict.host
    assert "CUDA_FORCE_PTX_JIT=1" in cuda.log("device-prompt-1")


def test_forced_jit_without_ptx_and_forbidden_jit_with_nothing_else_are_named(
    cuda: CudaBench,
) -> None:
    cuda.patch.setenv("CUDA_FORCE_PTX_JIT", "1")
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "no-kernel-image")
    assert "with CUDA_FORCE_PTX_JIT=1" in verdict.why
    assert verdict.hint.startswith("unset CUDA_FORCE_PTX_JIT")
    cuda.patch.delenv("CUDA_FORCE_PTX_JIT")
    cuda.patch.setenv("CUDA_DISABLE_PTX_JIT", "1")
    cuda.codes = PTX
    verdict = cuda.prove_cuda()
    assert verdict.failure == "no-kernel-image"
    assert "with CUDA_DISABLE_PTX_JIT=1" in verdict.why


def test_other_variables_reach_the_program_and_the_verdict(cuda: CudaBench) -> None:
    cuda.patch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    verdict = cuda.prove_cuda({"tells": ["CUDA_LAUNCH_BLOCKING"]})
    assert (verdict.state, verdict.why) == (State.VERIFIED, "with CUDA_LAUNCH_BLOCKING=1 set")
    assert "CUDA_LAUNCH_BLOCKING=1" in cuda.log("device-prompt-1")
    assert ("CUDA_LAUNCH_BLOCKING", "1") in verdict.host


def test_a_driver_below_the_toolkits_floor_cannot_verify(cuda: CudaBench) -> None:
    """Case C13: 535 and CUDA 13."""
    cuda.has("pascal")
    cuda.codes = cuda_facts("sm_75", toolkit="13.0.88", driver="580.65.06")
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "driver-too-old")
    assert "535.129.03" in verdict.why
    assert "580.65.06" in verdict.why
    assert "--cuda-toolkit 12.9" in verdict.hint
    assert cuda.ran() == set()


def test_a_driver_that_does_not_know_the_capability_is_still_compared(cuda: CudaBench) -> None:
    cuda.has("old")
    verdict = cuda.prove_cuda()
    assert verdict.failure == "driver-too-old"
    assert "--cuda-toolkit 11.8" in verdict.hint


def test_a_card_without_a_capability_is_left_to_the_runs(cuda: CudaBench) -> None:
    cuda.has("old")
    cuda.codes = cuda_facts("sm_61", driver="450.36.06")
    verdict = cuda.prove_cuda({"init_lines": []})
    assert verdict.state is State.VERIFIED
    assert outcome(verdict, "device code") is Outcome.UNKNOWN
    assert outcome(verdict, "compute capability") is Outcome.UNKNOWN


def test_ptx_of_a_newer_toolkit_than_the_driver_cannot_verify(cuda: CudaBench) -> None:
    """Case C4: the provided PTX was compiled with an unsupported toolchain."""
    cuda.codes = replace(PTX, driver_jit="590.10.00")
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "driver-too-old-for-ptx")
    assert "590.10.00" in verdict.why
    assert "580.159.04" in verdict.why
    assert "--arch sm_90" in verdict.hint


def test_without_a_driver_it_is_unverified(cuda: CudaBench) -> None:
    cuda.has_no_nvidia()
    verdict = cuda.prove_cuda({"devices": [], "module_loads": False})
    assert (verdict.state, verdict.failure) == (State.UNVERIFIED, "no-device")
    assert "nvidia-smi" in verdict.why
    assert "driver" in verdict.hint


def test_without_a_card_it_is_unverified(cuda: CudaBench) -> None:
    cuda.has("none")
    verdict = cuda.prove_cuda({"devices": []})
    assert (verdict.state, verdict.failure) == (State.UNVERIFIED, "no-device")
    assert "shows no card" in verdict.why


def test_no_software_driver_stands_for_a_card(cuda: CudaBench) -> None:
    cuda.has("none")
    verdict = cuda.prove_cuda({"devices": []}, driver=cuda.driver())
    assert verdict.state is State.UNVERIFIED


@pytest.mark.parametrize("value", ["", "-1", "7"])
def test_a_variable_that_hides_every_card_is_named(cuda: CudaBench, value: str) -> None:
    cuda.patch.setenv("CUDA_VISIBLE_DEVICES", value)
    artifact = cuda.cuda_artifact()
    verdict = cuda.verify(artifact)
    assert (verdict.state, verdict.failure) == (State.UNVERIFIED, "no-device")
    assert f"CUDA_VISIBLE_DEVICES='{value}' hides {H200}" in verdict.why
    assert "unset CUDA_VISIBLE_DEVICES" in verdict.hint
    assert ("CUDA_VISIBLE_DEVICES", value) in verdict.host
    for name in (H200, "CUDA0", H200_PCI):
        with pytest.raises(NoDeviceError) as caught:
            cuda.verify(artifact, device=name)
        assert "CUDA_VISIBLE_DEVICES" in caught.value.why
        assert int(caught.value.code) == 11


@pytest.mark.parametrize(
    "selector", ["CUDA1", "cuda1", "NVIDIA GeForce RTX 4090", "4090", "41:00.0", "0000:41:00.0",
                 "GPU-cccc3333-0000-0000-0000-000000000002"],
)  # fmt: skip
def test_a_card_of_several_can_be_named_in_every_way(cuda: CudaBench, selector: str) -> None:
    cuda.has("mixed")
    cuda.codes = cuda_facts("sm_89")
    verdict = cuda.prove_cuda(device=selector)
    assert (verdict.state, verdict.why) == (State.VERIFIED, "")
    assert verdict.device is not None
    assert (verdict.device.id, verdict.device.pci) == ("CUDA1", H200_PCI)


def test_of_several_cards_the_one_with_machine_code_comes_first(cuda: CudaBench) -> None:
    cuda.has("mixed")
    cuda.codes = cuda_facts("sm_89")
    verdict = cuda.prove_cuda()
    assert verdict.device is not None
    assert verdict.device.name == "NVIDIA GeForce RTX 4090"
    cuda.codes = cuda_facts("sm_89", "compute_61")
    assert "JIT" not in cuda.prove_cuda().why


def test_the_other_card_of_several_has_no_code(cuda: CudaBench) -> None:
    cuda.has("mixed")
    cuda.codes = cuda_facts("sm_89")
    for selector in ("CUDA0", "1080", "21:00.0"):
        verdict = cuda.prove_cuda(device=selector)
        assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "no-kernel-image")
        assert "6.1" in verdict.why


def test_twins_are_told_apart_by_their_place(cuda: CudaBench) -> None:
    cuda.has("twins")
    with pytest.raises(UsageError) as caught:
        cuda.prove_cuda(device=H200)
    assert caught.value.kind == "ambiguous-device"
    verdict = cuda.prove_cuda(device="41:00.0")
    assert verdict.device is not None
    assert verdict.device.id == "CUDA1"
    assert verdict.state is State.VERIFIED


def test_a_visible_card_is_counted_anew(cuda: CudaBench) -> None:
    cuda.has("mixed")
    cuda.patch.setenv("CUDA_VISIBLE_DEVICES", "1")
    cuda.codes = cuda_facts("sm_89")
    lines = ["  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes"]
    verdict = cuda.prove_cuda({"init_lines": lines})
    assert verdict.device is not None
    assert (verdict.device.id, verdict.device.pci) == ("CUDA0", H200_PCI)
    assert verdict.why == "with CUDA_VISIBLE_DEVICES=1 set"
    with pytest.raises(NoDeviceError) as caught:
        cuda.prove_cuda({"init_lines": lines}, device="1080")
    assert "hidden by CUDA_VISIBLE_DEVICES='1'" in caught.value.why


def test_a_card_that_is_not_there_is_refused(cuda: CudaBench) -> None:
    with pytest.raises(NoDeviceError) as caught:
        cuda.prove_cuda(device="RTX 5090")
    assert f"CUDA0: {H200} [{H200_PCI}]" in caught.value.why


def test_cuda_and_nvidias_tool_must_speak_of_one_card(cuda: CudaBench) -> None:
    line = f"  Device 0: {H200}, compute capability 8.0, VMM: yes, VRAM: 9 MiB"
    verdict = cuda.prove_cuda({"init_lines": [line]})
    assert verdict.failure == "contradiction"
    assert "8.0" in verdict.why


def test_a_cuda_claim_without_libcuda_is_a_contradiction(cuda: CudaBench) -> None:
    driver = str(cuda.root / "libGLX_nvidia.so.1")
    verdict = cuda.prove_cuda({"driver": driver, "linger": 0.6})
    assert verdict.failure == "contradiction"
    assert "libcuda" in verdict.why


def test_an_artifact_without_facts_is_left_to_the_runs(cuda: CudaBench) -> None:
    cuda.codes = None
    verdict = cuda.prove_cuda()
    assert verdict.state is State.VERIFIED
    assert outcome(verdict, "device code") is Outcome.UNKNOWN


def test_the_plugin_taken_out_fails(cuda: CudaBench) -> None:
    (cuda.tree / "bin" / "libggml-cuda.so").unlink()
    assert cuda.prove_cuda().failure == "module-missing"


def test_a_silent_run_on_the_cpu_fails(cuda: CudaBench) -> None:
    verdict = cuda.prove_cuda(
        {"offloaded": "0/31", "assigned": {"CPU": 31}, "weights": {"CPU_Mapped": 1.5}}
    )
    assert (verdict.state, verdict.failure) == (State.FAILED, "silent-cpu")


def test_the_companion_is_unpacked_over_the_artifact(cuda: CudaBench) -> None:
    cuda.binaries = (imports("libcudart.so.12", "libcublas.so.12"),)
    companion = cuda.companion("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12")
    cuda.codes = cuda_facts(companion=companion)
    verdict = cuda.prove_cuda({"maps": ["libcudart.so.12", "libcublas.so.12"]})
    assert (verdict.state, verdict.why) == (State.VERIFIED, "")
    libraries = check(verdict, "CUDA's runtime libraries")
    assert libraries.expected == f"those of the companion {COMPANION}"
    assert libraries.seen == "libcublas.so.12 of the companion, libcudart.so.12 of the companion"
    assert libraries.outcome is Outcome.PASS


def test_a_companion_of_another_build_fails_the_artifact(cuda: CudaBench) -> None:
    companion = cuda.companion("libcudart.so.12")
    cuda.codes = cuda_facts(companion=replace(companion, sha256="0" * 64))
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure) == (State.FAILED, "companion-mismatch")
    assert companion.sha256 in verdict.why
    assert "0" * 64 in verdict.why
    assert verdict.hint
    cuda.has_no_nvidia()
    assert cuda.verify(cuda.root / "llama.cpp-0c1e57098-cuda-linux_x86_64.tar.zst").failure == (
        "companion-mismatch"
    ), "that needs no card"


def test_libraries_that_nobody_has_cannot_verify(cuda: CudaBench) -> None:
    cuda.binaries = (imports("libcudart.so.99", "libcublas.so.99", "libc.so.6"),)
    companion = cuda.companion("libcudart.so.99")
    (cuda.root / COMPANION).unlink()
    cuda.codes = cuda_facts(companion=companion)
    verdict = cuda.prove_cuda()
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "runtime-missing")
    assert "libcublas.so.99, libcudart.so.99" in verdict.why
    assert f"put {COMPANION} beside the artifact" in verdict.hint
    assert cuda.ran() == set()
    cuda.codes = cuda_facts()
    verdict = cuda.prove_cuda()
    assert verdict.failure == "runtime-missing"
    assert "install the CUDA runtime" in verdict.hint


def test_libraries_in_a_folder_that_the_loader_does_not_search_are_a_hint(cuda: CudaBench) -> None:
    folder = cuda.root / "cuda-99.1" / "lib64"
    folder.mkdir(parents=True)
    (folder / "libcudart.so.99").write_bytes(b"x")
    cuda.patch.setattr(
        "llamawright.verify.cuda_runtime.TOOLKIT_FOLDERS", (f"{cuda.root}/cuda*/lib64",)
    )
    cuda.binaries = (imports("libcudart.so.99"),)
    verdict = cuda.prove_cuda()
    assert verdict.failure == "runtime-missing", "it is never added silently"
    assert f"{folder} has it" in verdict.why
    assert "ldconfig" in verdict.hint
    assert f"LD_LIBRARY_PATH={folder}" in verdict.hint


def test_libraries_of_the_system_are_told_in_a_check(cuda: CudaBench) -> None:
    folder = a_library(cuda.root / "own", "libcudart.so.99")
    cuda.patch.setenv("LD_LIBRARY_PATH", str(folder))
    cuda.binaries = (imports("libcudart.so.99"),)
    companion = cuda.companion("libcudart.so.99")
    (cuda.root / COMPANION).unlink()
    cuda.codes = cuda_facts(companion=companion)
    verdict = cuda.prove_cuda()
    assert verdict.state is State.VERIFIED
    told = check(verdict, "CUDA's runtime libraries").expected
    assert told.startswith("the system's libcudart.so.99")
    assert f"{COMPANION} is not beside the artifact" in told
    assert f"LD_LIBRARY_PATH={folder}" in verdict.why


def a_library(folder: Path, name: str) -> Path:
    """Put a real library under another name into a folder."""
    import _ctypes

    folder.mkdir()
    (folder / name).symlink_to(Path(_ctypes.__file__))
    return folder
