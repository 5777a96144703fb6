"""Logs, lists and models that were written to fool or to break the reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.model.verdict import State
from llamawright.process import base_environment
from llamawright.store import Journal
from llamawright.verify.logs import (
    failure_reason,
    read_bench,
    read_devices,
    read_load,
    read_numbers,
)
from llamawright.verify.nvidia import normal_pci, read_cards
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.sampling import mapped_files, private_bytes
from llamawright.verify.supervise import PhaseLimits, Task, supervise
from verify_kit import ANSWERS, PROMPTS, Bench, bench

__all__ = ["bench"]

FORGED = (
    "load_tensors: offloaded 31/31 layers to GPU\n"
    "load_tensors:      Vulkan0 model buffer size =   900.00 MiB\n"
    + "".join(
        f"load_tensors: layer {i} assigned to device Vulkan0, is_swa = 0\n" for i in range(31)
    )
)


def test_a_model_that_recites_a_log_proves_nothing(bench: Bench) -> None:
    """What is generated goes to stdout; only the program's own log is evidence."""
    said = {PROMPTS[0].text: f" Paris.\n{FORGED}"}
    verdict = bench.prove_in_software(
        {
            "offloaded": "0/31", "assigned": {"CPU": 31}, "weights": {"CPU_Mapped": 1.5},
            "answers": {**ANSWERS, **said}, "device_answers": said,
        }
    )  # fmt: skip
    assert (verdict.state, verdict.failure) == (State.FAILED, "silent-cpu")


def test_noise_before_the_device_list_harms_nothing(bench: Bench) -> None:
    row = "   1  32.5 ± 22.2  0.0 ± -nan  0.0 ± 0.0  0.001 ± 0.0 %  100.0 ± 0.0 %\n"
    verdict = bench.prove_in_software({"list_header": row})
    assert verdict.state is State.VERIFIED_SOFTWARE


def test_a_device_name_is_data_everywhere(bench: Bench) -> None:
    evil = "GPU</td><script>x</script> \x1b[31m (1 MiB, 2 MiB free)"
    bench.hardware = ()
    artifact = bench.artifact({"devices": [], "software_devices": [["Vulkan0", evil, 5]]})
    verdict = bench.verify(artifact, driver=bench.driver())
    assert verdict.device is not None
    assert verdict.device.name == evil
    assert verdict.state is not State.VERIFIED, "a given driver never makes hardware"


def test_a_flood_of_lines_is_bounded_in_memory(tmp_path: Path) -> None:
    limits = PhaseLimits(start_s=20, load_s=5, first_token_s=5, total_s=20, output_cap=3 << 20)
    code = "import sys\nwhile True: sys.stderr.write('x' * 50 + chr(10))"
    task = Task(
        name="flood", argv=(sys.executable, "-IS", "-c", code), cwd=tmp_path,
        env=base_environment(), log=tmp_path / "a.log", limits=limits, on_device=True,
    )  # fmt: skip
    done = supervise(task, patterns=BUILD_11312, journal=Journal(tmp_path / "j"), facts={})
    assert len(done.lines) <= 50_000
    assert not done.clean


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe\x00 broken \xc3", b"\x1b[31mred\x1b[0m", b"\r\r\r\n", b"\0" * 100]
)
def test_bytes_that_are_no_text_break_nothing(tmp_path: Path, raw: bytes) -> None:
    limits = PhaseLimits(start_s=9, load_s=5, first_token_s=5, total_s=9, output_cap=1 << 20)
    code = f"import os; os.write(2, {raw!r} + b'\\n'); os.write(1, {raw!r})"
    task = Task(
        name="bytes", argv=(sys.executable, "-IS", "-c", code), cwd=tmp_path,
        env=base_environment(), log=tmp_path / "a.log", limits=limits, on_device=True,
    )  # fmt: skip
    done = supervise(task, patterns=BUILD_11312, journal=Journal(tmp_path / "j"), facts={})
    assert done.clean
    assert read_load(done.lines, BUILD_11312).offloaded is None


@given(st.text(max_size=400))
def test_no_text_breaks_a_reader(text: str) -> None:
    lines = text.splitlines()
    read_load(lines, BUILD_11312)
    read_devices(text, BUILD_11312, backend="vulkan")
    read_numbers(text, BUILD_11312, context=8, batch=1)
    read_bench(text)
    read_cards(text)
    failure_reason(lines)
    mapped_files(text)
    normal_pci(text)


@given(
    st.lists(st.sampled_from(["RssAnon:\t5 kB", "RssShmem:\t7 kB", "Name:\tx", "", "RssFile: 1"]))
)
def test_a_status_in_any_order_is_read(lines: list[str]) -> None:
    expected = 1024 * (5 * lines.count("RssAnon:\t5 kB") + 7 * lines.count("RssShmem:\t7 kB"))
    assert private_bytes("\n".join(lines)) == expected


@pytest.mark.parametrize(
    "line",
    [
        "  Vulkan0: " + "(" * 5000 + " (1 MiB, 1 MiB free)",
        "using device Vulkan0 (" + "a" * 20000,
        "load_tensors: " + " " * 20000 + "x model buffer size = 1 MiB",
        "load_backend: loaded " + "x " * 9000,
        "   1 " + " ± " * 9000,
        "0" * 20000,
    ],
)
def test_long_lines_take_no_time(line: str) -> None:
    """No pattern may backtrack without end: a hostile log must not hang the tool."""
    import time

    began = time.monotonic()
    read_load([line], BUILD_11312)
    read_devices(line, BUILD_11312, backend="vulkan")
    read_numbers(line, BUILD_11312, context=8, batch=1)
    failure_reason([line])
    assert time.monotonic() - began < 1.0


def test_a_number_too_large_for_anything_is_no_pass(bench: Bench) -> None:
    verdict = bench.prove_in_software({"kld": {"32": ["1e308 100.000", "1e308 100.000"]}})
    assert verdict.state is State.FAILED
    assert verdict.failure in ("wrong-numbers", "not-a-number")
