"""NVIDIA's own list of cards: absent, unknown and broken are three things."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llamawright.process import Ending, base_environment
from llamawright.verify import cuda_cards
from llamawright.verify.cuda_cards import Row, look_cuda, read_cuda, read_rows, visible_rows
from llamawright.verify.nvidia import Monitor, monitoring, read_processes
from verify_cuda_kit import install_smi, nvidia_machine, smi_result

MIB = 1 << 20
LINE = "0, 00000000:41:00.0, GPU-aaaa1111-2, NVIDIA H200, 143771, 580.159.04, 9.0"
OTHER = "1, 00000000:c1:00.0, GPU-bbbb2222-3, NVIDIA A100-SXM4-80GB, 81920, 580.159.04, 8.0"


def row(index: int, uuid: str = "") -> Row:
    return Row(
        index=index, pci=f"0000:{index:02x}:00.0", uuid=uuid or f"GPU-{index}000-1",
        name=f"Card {index}", memory=1, driver="580.1", capability=90,
    )  # fmt: skip


ROWS = (row(0), row(1), row(2))


def test_a_card_is_read_whole() -> None:
    sighting = read_cuda(smi_result(LINE), None)
    (card,) = sighting.hardware
    assert (card.name, card.pci, card.capability) == ("NVIDIA H200", "0000:41:00.0", 90)
    assert (card.uuid, card.memory) == ("GPU-aaaa1111-2", 143771 * MIB)
    assert card.driver == "NVIDIA 580.159.04"
    assert sighting.driver == "580.159.04"
    assert (sighting.problem, sighting.told, sighting.hidden) == ("", "", ())


def test_cards_come_in_the_order_of_their_places() -> None:
    """With CUDA_DEVICE_ORDER=PCI_BUS_ID that is CUDA's order too."""
    names = [w.name for w in read_cuda(smi_result(f"{OTHER}\n{LINE}"), None).devices]
    assert names == ["NVIDIA H200", "NVIDIA A100-SXM4-80GB"]
    indexes = [w.index for w in read_cuda(smi_result(f"{OTHER}\n{LINE}"), None).devices]
    assert indexes == [0, 1]


@pytest.mark.parametrize(
    ("text", "memory", "capability"),
    [
        (LINE.replace("143771", "[N/A]"), 0, 90),
        (LINE.replace("9.0", "[N/A]"), 143771 * MIB, 0),
        (LINE.replace(", 9.0", ""), 143771 * MIB, 0),
        (LINE.replace("9.0", "12.0"), 143771 * MIB, 120),
    ],
)
def test_what_a_driver_does_not_tell_is_zero(text: str, memory: int, capability: int) -> None:
    (found,), odd = read_rows(text)
    assert (found.memory, found.capability, odd) == (memory, capability, "")


@pytest.mark.parametrize(
    ("text", "code", "problem", "words"),
    [
        ("No devices were found", 6, "no-card", "shows no card"),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "driver-broken",
         "version mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9,
         "driver-broken", "status 9"),
        ("Unable to determine the device handle: GPU is lost.", 15, "driver-broken", "lost"),
        ("", 0, "driver-broken", "no word"),
        ("<html>, a, page, of, a, proxy, yes", 0, "driver-broken", "<html>"),
        ("0, ERR!, ERR!, ERR!, ERR!, 580.1, ERR!", 0, "driver-broken", "ERR!"),
        (LINE, -11, "driver-broken", "status -11"),
    ],
)  # fmt: skip
def test_why_there_are_no_cards(text: str, code: int, problem: str, words: str) -> None:
    sighting = read_cuda(smi_result(text, code=code), None)
    assert (sighting.problem, sighting.devices) == (problem, ())
    assert words in sighting.told
    assert bool(sighting.cure) == (problem == "driver-broken")


def test_the_cure_fits_the_words() -> None:
    mismatch = read_cuda(smi_result("Driver/library version mismatch", code=18), None)
    lost = read_cuda(smi_result("GPU is lost", code=15), None)
    other = read_cuda(smi_result("what?", code=1), None)
    assert "two versions" in mismatch.cure
    assert "Xid" in lost.cure
    assert "modprobe" in other.cure
    assert len({mismatch.cure, lost.cure, other.cure}) == 3


def test_a_tool_that_hangs_is_a_broken_driver() -> None:
    sighting = read_cuda(smi_result("", code=-9, ending=Ending.TIMED_OUT), None)
    assert sighting.problem == "driver-broken"
    assert "hangs" in sighting.told


def test_one_broken_card_does_not_hide_the_others() -> None:
    rows, odd = read_rows(f"{LINE}\n1, 00000000:42:00.0, ERR!, ERR!, ERR!, 580.1, ERR!")
    assert [r.name for r in rows] == ["NVIDIA H200"]
    assert "ERR!" in odd
    assert read_cuda(smi_result(f"{LINE}\n1, ERR!, , , , , "), None).hardware


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, (0, 1, 2)), ("0", (0,)), ("2,0", (2, 0)), (" 1 , 2 ", (1, 2)), ("", ()), ("-1", ()),
        ("0,-1,1", (0,)), ("7", ()), ("0,7,1", (0,)), ("GPU-1000-1", (1,)), ("GPU-2", (2,)),
        ("GPU-", ()), ("GPU-9", ()), ("none", ()), ("NoDevFiles", ()),
    ],
)  # fmt: skip
def test_what_the_variable_shows_is_what_cuda_shows(
    value: str | None, shown: tuple[int, ...]
) -> None:
    kept = visible_rows(ROWS, value)
    assert kept is not None
    assert tuple(r.index for r in kept) == shown


def test_a_part_of_a_card_is_left_to_the_artifact() -> None:
    assert visible_rows(ROWS, "MIG-1c2d/1/0") is None
    sighting = read_cuda(smi_result(LINE), "MIG-1c2d/1/0")
    assert (sighting.problem, sighting.devices) == ("no-witness", ())
    assert "MIG" in sighting.told
    assert sighting.driver == "580.159.04"


def test_hidden_cards_are_told_with_the_variable() -> None:
    sighting = read_cuda(smi_result(f"{LINE}\n{OTHER}"), "1")
    assert [w.name for w in sighting.devices] == ["NVIDIA A100-SXM4-80GB"]
    assert sighting.devices[0].index == 0
    assert sighting.hidden == ("NVIDIA H200 [0000:41:00.0] (hidden by CUDA_VISIBLE_DEVICES='1')",)
    none = read_cuda(smi_result(LINE), "")
    assert none.problem == "all-hidden"
    assert none.told == "CUDA_VISIBLE_DEVICES='' hides NVIDIA H200 [0000:41:00.0]"
    assert len(none.hidden) == 1


def machine(tmp_path: Path, patch: pytest.MonkeyPatch, name: str) -> Path:
    folder = tmp_path / "path"
    program = install_smi(folder, {**nvidia_machine(name), "busy": str(tmp_path / "busy")})
    patch.setenv("PATH", os.fspath(folder))
    patch.setattr(cuda_cards, "KERNEL_DRIVER", tmp_path / "absent")
    return program


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("h200", ""), ("pascal", ""), ("old", ""), ("mixed", ""), ("twins", ""),
        ("shared-memory", ""), ("none", "no-card"), ("mismatch", "driver-broken"),
        ("not-loaded", "driver-broken"), ("lost", "driver-broken"), ("empty", "driver-broken"),
        ("page", "driver-broken"), ("err", "driver-broken"),
    ],
)  # fmt: skip
def test_machines_as_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    machine(tmp_path, monkeypatch, name)
    sighting = look_cuda({}, seconds=10)
    assert sighting.problem == problem
    assert bool(sighting.devices) == (not problem)
    assert bool(sighting.told) == bool(problem)


def test_an_old_driver_is_asked_again_without_the_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, monkeypatch, "old")
    sighting = look_cuda({}, seconds=10)
    assert (sighting.driver, sighting.devices[0].capability) == ("450.80.02", 0)


def test_a_tool_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, "hung")
    assert look_cuda({}, seconds=0.5).problem == "driver-broken"


def test_absent_unknown_and_unstartable_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = machine(tmp_path, monkeypatch, "h200")
    program.write_bytes(b"\x7fELF not really")
    broken = look_cuda({}, seconds=5)
    assert broken.problem == "driver-broken"
    assert "nvidia-smi" in broken.told
    program.unlink()
    absent = look_cuda({}, seconds=5)
    assert (absent.problem, absent.cure) == ("no-driver", "")
    (tmp_path / "absent").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159\n")
    unknown = look_cuda({}, seconds=5)
    assert unknown.problem == "no-witness"
    assert "PATH" in unknown.cure


def test_processes_are_read_and_noise_is_left_out() -> None:
    text = (
        "00000000:41:00.0, 4711, 520\n00000000:41:00.0, [N/A], 520\n"
        "00000000:41:00.0, 12, [N/A]\nno, such\n"
    )
    assert read_processes(text) == (("0000:41:00.0", 4711, 520 * MIB),)
    assert read_processes("[Insufficient Permissions]\n") == ()


def test_the_most_memory_of_our_own_processes_counts() -> None:
    monitor = Monitor()
    for used in (100, 300, 200):
        monitor.take_process(f"00000000:41:00.0, 7, {used}")
    monitor.take_process("00000000:41:00.0, 8, 9000")
    assert monitor.used_by({7, 9}, "0000:41:00.0") == 300 * MIB
    assert monitor.used_by({9}, "0000:41:00.0") is None
    assert monitor.used_by({7}, "0000:42:00.0") is None


def test_cards_and_processes_are_followed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, busy = tmp_path / "path", tmp_path / "busy"
    spec = {**nvidia_machine("h200"), "busy": str(busy), "lists_processes": True}
    program = install_smi(folder, spec)
    monkeypatch.setenv("PATH", os.fspath(folder))
    with monitoring(program, processes=True) as monitor:
        busy.write_text("4711")
        for _ in range(100):
            if monitor.used_by({4711}, "0000:41:00.0"):
                break
            _pause()
    assert monitor.before == {"0000:41:00.0": 4 * MIB}
    assert monitor.used_by({4711}, "0000:41:00.0") == 300 * MIB


def _pause() -> None:
    import time

    time.sleep(0.05)


def test_the_real_machine_answers_without_a_traceback() -> None:
    sighting = look_cuda(base_environment(), seconds=30)
    assert sighting.devices or sighting.told
    assert "Traceback" not in sighting.told
