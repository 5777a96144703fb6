"""The whole way from a packed file to a verdict, with programs that behave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright import codec
from llamawright.errors import (
    DownloadError,
    NoDeviceError,
    PackageError,
    UsageError,
)
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.verdict import Outcome, State, Verdict
from llamawright.verify import summary, write_report
from verify_kit import GPU, LLVMPIPE, PCI, PROMPTS, Bench, bench, gguf, left_running, verification

__all__ = ["bench"]


def test_an_honest_artifact_is_verified_on_hardware(bench: Bench) -> None:
    verdict = bench.prove()
    assert (verdict.state, verdict.failure, verdict.why) == (State.VERIFIED, "", "")
    assert verdict.device is not None
    assert (verdict.device.name, verdict.device.pci) == (GPU, PCI)
    assert {c.outcome for c in verdict.checks} == {Outcome.PASS}
    assert [n.batch for n in verdict.numbers] == [1, 32]
    assert verdict.speed.generation_tps == pytest.approx(67.8)
    assert verdict.speed.prompt_tps > 0
    memory = next(c for c in verdict.checks if c.name == "device memory rose")
    assert (memory.source, memory.seen) == ("nvidia-smi", "by 296.0 MiB")
    assert "libggml-vulkan.so" in verdict.reference
    assert [r.name for r in verdict.runs[:2]] == ["device list", "reference prompt 1"]


def test_an_honest_artifact_is_verified_in_software_and_never_more(bench: Bench) -> None:
    verdict = bench.prove_in_software()
    assert (verdict.state, verdict.failure, verdict.why) == (State.VERIFIED_SOFTWARE, "", "")
    assert verdict.device is not None
    assert verdict.device.software
    assert verdict.device.name == LLVMPIPE
    drivers = next(c for c in verdict.checks if c.name == "driver mapped")
    assert drivers.seen == "libvulkan_lvp.so"
    assert verdict.runs[0].command[-1] == "--list-devices"


def test_the_verdict_survives_json_and_becomes_a_report(bench: Bench, tmp_path: Path) -> None:
    verdict = bench.prove_in_software()
    data, page = write_report(verdict, None, tmp_path / "dist")
    again = codec.decode(Verdict, json.loads(data.read_text(encoding="utf-8")), what="verdict")
    assert again == verdict
    assert data.name == "llama.cpp-0c1e57098-vulkan-linux_x86_64.verdict.json"
    assert "verified in software" in page.read_text(encoding="utf-8")
    assert next(iter(summary(verdict))).startswith("✓ verified in software on llvmpipe")


def test_nothing_is_left_behind_and_nothing_still_runs(bench: Bench) -> None:
    bench.prove_in_software()
    assert not list((bench.root / "store" / "work").glob("verify-*"))
    assert not left_running()


def test_each_phase_is_in_the_journal_before_it_begins_and_ended_after(bench: Bench) -> None:
    bench.prove_in_software()
    records = list(bench.store.journal.records())
    phases = [r["phase"] for r in records if "begin" in r]
    assert phases[:2] == ["verify-start", "verify-start"]  # the list, then the first run
    assert {"verify-load", "verify-first-token", "verify-done"} <= set(phases)
    assert bench.store.journal.unfinished() == ()
    facts = [r["facts"] for r in records if "begin" in r]
    assert facts[-1]["device"] == LLVMPIPE  # type: ignore[index]
    assert facts[-1]["artifact"]  # type: ignore[index]


def test_every_run_leaves_its_whole_log(bench: Bench) -> None:
    bench.prove_in_software()
    logs = {p.name for p in (bench.root / "store" / "logs").rglob("*.log")}
    assert logs == {
        "device-list.log", "reference-prompt-1.log", "reference-probabilities.log",
        "device-prompt-1.log", "device-probabilities-32.log",
    }  # fmt: skip


def test_a_cpu_artifact_is_compared_with_its_plainest_variant(bench: Bench) -> None:
    (bench.tree / "bin" / "libggml-vulkan.so").unlink()
    (bench.tree / "bin" / "libggml-cpu-zen4.so").write_bytes(b"zen" * 300)
    verdict = bench.verify(bench.artifact({"devices": []}, Backend.CPU))
    assert (verdict.state, verdict.failure, verdict.why) == (State.VERIFIED, "", "")
    assert verdict.device is not None
    assert verdict.device.id == "CPU"
    assert verdict.reference == "the same archive with no CPU variant but libggml-cpu-x64.so"


def test_a_cpu_artifact_of_one_variant_is_compared_with_its_plain_paths(bench: Bench) -> None:
    (bench.tree / "bin" / "libggml-vulkan.so").unlink()
    verdict = bench.verify(bench.artifact({"devices": []}, Backend.CPU))
    assert verdict.state is State.VERIFIED
    assert "without repacked weights" in verdict.reference
    reference = next(r for r in verdict.runs if r.name == "reference prompt 1")
    assert "--no-repack" in reference.command
    assert "--no-repack" not in verdict.runs[-1].command


def test_without_any_device_it_is_unverified_and_says_what_to_do(bench: Bench) -> None:
    bench.hardware = ()
    bench.probe_exit = "sys.stderr.write('no libvulkan.so.1\\n'); sys.exit(3)"
    verdict = bench.verify(bench.artifact({"devices": []}))
    assert (verdict.state, verdict.failure) == (State.UNVERIFIED, "no-device")
    assert "no libvulkan.so.1" in verdict.why
    assert "driver" in verdict.hint


def test_an_empty_driver_folder_is_unverified_too(bench: Bench) -> None:
    bench.probe_exit = (
        "sys.stderr.write('ERROR:  loader_get_json: Failed to open /x.json\\n"
        "vkCreateInstance: -9\\n'); sys.exit(1)"
    )
    verdict = bench.verify(bench.artifact({"devices": []}))
    assert verdict.state is State.UNVERIFIED
    assert "Failed to open /x.json" in verdict.why


def test_a_software_device_alone_is_not_taken_unasked(bench: Bench) -> None:
    bench.hardware = ((LLVMPIPE, 4),)
    verdict = bench.verify(bench.artifact({"devices": []}))
    assert (verdict.state, verdict.failure) == (State.UNVERIFIED, "no-device")
    assert LLVMPIPE in verdict.hint


def test_a_software_device_of_the_system_is_taken_when_it_is_named(bench: Bench) -> None:
    bench.hardware = ((LLVMPIPE, 4),)
    library = str(bench.root / "libvulkan_lvp.so")
    verdict = bench.verify(bench.artifact({"devices": [], "driver": library}), device="llvmpipe")
    assert (verdict.state, verdict.why) == (State.VERIFIED_SOFTWARE, "")


def test_a_named_device_that_is_not_there_is_refused_with_all_that_are(bench: Bench) -> None:
    with pytest.raises(NoDeviceError) as caught:
        bench.verify(bench.artifact(), device="RTX 4090")
    assert f"Vulkan0: {GPU} [{PCI}]" in caught.value.why
    assert int(caught.value.code) == 11


def test_the_device_can_be_named_by_its_pci_place(bench: Bench) -> None:
    verdict = bench.verify(bench.artifact(), device="41:00.0")
    assert verdict.state is State.VERIFIED
    with pytest.raises(NoDeviceError):
        bench.verify(bench.artifact(), device="0000:42:00.0")


def test_of_two_devices_with_one_name_the_id_decides(bench: Bench) -> None:
    bench.hardware = ((GPU, 2), (GPU, 2))
    twins = [["Vulkan0", GPU, 16000], ["Vulkan1", GPU, 16000]]
    artifact = bench.artifact(
        {"devices": twins, "using_pci": "0000:42:00.0", "memory_rises": False}
    )
    with pytest.raises(UsageError) as caught:
        bench.verify(artifact, device=GPU)
    assert caught.value.kind == "ambiguous-device"
    assert "Vulkan1" in caught.value.why
    verdict = bench.verify(artifact, device="Vulkan1")
    assert verdict.device is not None
    assert (verdict.device.id, verdict.device.pci) == ("Vulkan1", "0000:42:00.0")
    assert verdict.state is State.VERIFIED


def test_hardware_can_be_required(bench: Bench) -> None:
    bench.hardware = ()
    with pytest.raises(NoDeviceError) as caught:
        bench.verify(bench.artifact({"devices": []}), driver=bench.driver(), require_hardware=True)
    assert caught.value.kind == "no-hardware-device"


def test_a_driver_is_only_provided_when_there_is_no_hardware(bench: Bench) -> None:
    from llamawright.verify import verify

    asked: list[str] = []

    def provide() -> None:
        asked.append("asked")

    artifact = bench.artifact({"at_start": "exit:1"})
    bench._probe()
    verify(bench.request(artifact), store=bench.store, reporter=bench.told, provide_driver=provide)
    assert asked == []
    bench.hardware = ()
    bench._probe()
    artifact = bench.artifact({"devices": []})
    proof = verify(
        bench.request(artifact), store=bench.store, reporter=bench.told, provide_driver=provide
    )
    assert asked == ["asked"]
    assert proof.manifest is not None
    assert proof.verdict.state is State.UNVERIFIED


def test_an_artifact_of_another_system_cannot_be_verified_here(bench: Bench) -> None:
    verdict = bench.verify(bench.artifact(), platform=Platform(System.LINUX, "aarch64"))
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "other-platform")


def test_a_missing_or_broken_archive_is_an_error_not_a_verdict(bench: Bench) -> None:
    artifact = bench.artifact()
    whole = artifact.read_bytes()
    artifact.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PackageError) as caught:
        bench.verify(artifact)
    assert caught.value.kind == "truncated"
    with pytest.raises(PackageError) as caught:
        bench.verify(bench.root / "nothing.tar.zst")
    assert caught.value.kind == "absent"


def test_a_flipped_byte_in_the_pinned_model_is_refused_before_anything_runs(bench: Bench) -> None:
    request = bench.request(bench.artifact())
    data = bytearray(request.model.read_bytes())
    data[-100] ^= 1
    request.model.write_bytes(data)
    with pytest.raises(DownloadError) as caught:
        bench.verify(request.artifact, model_sha256=request.model_sha256)
    assert caught.value.kind == "wrong-model"
    assert request.model_sha256 in caught.value.why
    assert not (bench.root / "store" / "logs").exists()


def test_a_truncated_model_of_ones_own_is_refused_before_anything_runs(bench: Bench) -> None:
    gguf(bench.root / "own.gguf", cut=40)
    with pytest.raises(UsageError) as caught:
        bench.verify(bench.artifact(), model=bench.root / "own.gguf", model_sha256="")
    assert caught.value.kind == "truncated-model"
    assert "40 bytes" in caught.value.why


def test_a_model_of_ones_own_is_judged_by_its_probabilities(bench: Bench) -> None:
    bench.hardware = ()
    model = gguf(bench.root / "own.gguf", layers=12)
    behaviour = {
        "devices": [],
        "layers": 13,
        "reference_layers": 13,
        "answers": {PROMPTS[0].text: " a city.", PROMPTS[1].text: " four"},
        "device_answers": {PROMPTS[0].text: " a town."},
    }
    artifact = bench.artifact(behaviour)
    verdict = bench.verify(artifact, driver=bench.driver(), model=model, model_sha256="")
    assert (verdict.state, verdict.why) == (State.VERIFIED_SOFTWARE, "")
    tokens = next(c for c in verdict.checks if c.name.startswith("greedy tokens"))
    assert tokens.outcome is Outcome.UNKNOWN


def test_a_model_that_needs_more_time_to_be_read_gets_it(bench: Bench) -> None:
    bench.hardware = ()
    slow = verification(load_s=0.05, total_s=30.0)
    verdict = bench.verify(
        bench.artifact({"devices": [], "linger": 0.0, "at_load": "hang"}), driver=bench.driver(),
        verification=slow,
    )  # fmt: skip
    assert verdict.failure == "hang-at-load"
