"""The command lines of a comparison, and the small things around a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compare_kit import QUICK
from llamawright.model.verdict import Device
from llamawright.verify.commands import Target
from llamawright.verify.compare_runs import (
    CpuWatch,
    bench,
    device_memory,
    first_token,
    prompt_text,
)
from llamawright.verify.memory import MemoryWatch
from llamawright.verify.sampling import ProcSampler
from llamawright.verify.supervise import Phase

PROGRAM, MODEL = Path("/x/bin/llama"), Path("/m.gguf")
GPU = Target(device="Vulkan0", threads=4)
CPU = Target(threads=4)


def after(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_a_prompt_comes_from_a_file_and_one_token_is_made() -> None:
    argv = first_token(PROGRAM, MODEL, GPU, Path("/p.txt"), tokens=512)
    assert argv[0] == str(PROGRAM)
    assert after(argv, "-f") == "/p.txt"
    assert after(argv, "-n") == "1"
    assert int(after(argv, "-c")) == 1024
    assert after(argv, "--device") == "Vulkan0"
    assert "--no-warmup" in argv
    assert "-no-cnv" in argv  # it would wait for a person


def test_a_short_prompt_gets_a_usual_context() -> None:
    assert after(first_token(PROGRAM, MODEL, GPU, Path("/p"), tokens=4), "-c") == "256"


def test_the_benchmark_runs_once_each_round() -> None:
    argv = bench(PROGRAM, MODEL, GPU, QUICK)
    assert (after(argv, "-p"), after(argv, "-n"), after(argv, "-r")) == ("16", "8", "1")
    assert after(argv, "-o") == "jsonl"
    assert after(argv, "--device") == "Vulkan0"


def test_a_cpu_artifact_has_no_device_to_name() -> None:
    argv = bench(PROGRAM, MODEL, CPU, QUICK)
    assert "--device" not in argv
    assert "-ngl" not in argv


@pytest.mark.parametrize(("tokens", "words"), [(1, 1), (13, 10), (130, 100), (2600, 2000)])
def test_a_prompt_has_about_the_length_that_was_asked_for(tokens: int, words: int) -> None:
    made = prompt_text("one two three four five six seven", tokens).split()
    assert len(made) == words
    assert made[:7] == ["one", "two", "three", "four", "five", "six", "seven"][: min(7, words)]


class TestCpuWatch:
    def test_per_cent_of_one_core_at_the_last_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spent = iter([0.5, 2.0, 0.0])
        clock = iter([101.0, 102.0, 103.0])
        monkeypatch.setattr(
            "llamawright.verify.compare_runs.tree_cpu_seconds", lambda _pid: next(spent)
        )
        watch = CpuWatch(clock=lambda: next(clock), began=100.0)
        for _ in range(3):  # the third look finds it gone
            watch(1, Phase.START)
        assert watch.percent == pytest.approx(100.0)

    def test_a_child_that_was_never_seen_has_no_figure(self) -> None:
        assert CpuWatch().percent is None

    def test_this_process_has_one(self) -> None:
        watch = CpuWatch(began=0.0)
        watch(os.getpid(), Phase.START)
        assert watch.percent is not None
        assert watch.percent > 0


class TestDeviceMemory:
    def watch(self, *, software: bool, private: int = 0) -> MemoryWatch:
        device = Device(
            id="Vulkan0", name="x", backend="vulkan", memory=1, software=software,
            pci="0000:01:00.0",
        )  # fmt: skip
        return MemoryWatch(device=device, sampler=ProcSampler(private=private))

    def test_in_software_it_is_the_processs_own(self) -> None:
        size, source = device_memory(self.watch(software=True, private=5 << 20), cpu=False)
        assert size == 5 << 20
        assert "own memory" in source

    def test_nothing_readable_gives_the_reason(self) -> None:
        size, source = device_memory(self.watch(software=True), cpu=False)
        assert size is None
        assert "does not show" in source
        size, source = device_memory(self.watch(software=False), cpu=False)
        assert size is None
        assert "neither" in source

    def test_a_card_is_asked_as_in_a_proof(self) -> None:
        watch = self.watch(software=False)
        watch.monitor.before["0000:01:00.0"] = 4 << 20
        watch.monitor.peak["0000:01:00.0"] = 300 << 20
        assert device_memory(watch, cpu=False) == (296 << 20, "nvidia-smi")

    def test_a_cpu_artifact_has_its_processs_memory(self) -> None:
        assert device_memory(self.watch(software=False, private=7), cpu=True)[0] == 7
