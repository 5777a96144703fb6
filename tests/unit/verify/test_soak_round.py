"""What one round says of a device's memory and speed."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from llamawright.verify import soak_round
from llamawright.verify.memory import MemoryWatch
from llamawright.verify.nvidia import Card
from llamawright.verify.soak_round import PeakRss, digest_of, readings, speed_of
from llamawright.verify.supervise import Phase
from soak_kit import DEVICE, MIB, PCI

SOFT = replace(DEVICE, software=True, pci="")


def card(used: int, pci: str = PCI) -> Card:
    return Card(pci=pci, name=DEVICE.name, used=used * MIB, total=1 << 34, driver="580")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak_round, "PAUSE_S", 0.0)
    monkeypatch.setattr(soak_round, "find_smi", lambda: None)
    monkeypatch.setattr(soak_round, "vram_used", dict)


def test_speed_is_between_the_first_and_the_last_token() -> None:
    assert speed_of((1.0, 1.5, 2.0)) == 2.0
    assert speed_of((1.0,)) is None
    assert speed_of(()) is None
    assert speed_of((1.0, 1.0)) is None


def test_answers_are_told_apart_by_every_character() -> None:
    assert digest_of("Paris") != digest_of("Paris ")
    assert digest_of("Paris") == digest_of("Paris")
    assert len(digest_of("")) == 16


def test_the_most_resident_memory_of_a_child_is_kept() -> None:
    peak = PeakRss()
    peak(os.getpid(), Phase.LOAD)
    seen = peak.peak
    assert seen > MIB
    peak(2**22 + 1, Phase.DONE)
    assert peak.peak == seen


def test_a_software_devices_memory_is_the_process_own() -> None:
    watch = MemoryWatch(device=SOFT)
    watch.sampler.private = 7 * MIB
    told = readings(watch, cpu=False)
    assert (told.before, told.peak, told.after) == (None, 7 * MIB, None)
    assert told.source == "/proc/PID/status, the process's own"


@pytest.mark.parametrize("cpu", [True, False])
def test_what_nobody_shows_is_unknown_with_a_reason(*, cpu: bool) -> None:
    told = readings(MemoryWatch(device=DEVICE), cpu=cpu)
    assert (told.before, told.peak, told.after) == (None, None, None)
    assert told.source == "not shown by this system"


def test_nvidias_tool_tells_all_three(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = MemoryWatch(device=DEVICE)
    watch.monitor.before[PCI], watch.monitor.peak[PCI] = 4 * MIB, 300 * MIB
    looks = iter([300, 120, 4, 99])
    monkeypatch.setattr(soak_round, "list_cards", lambda _smi: (card(next(looks)),))
    told = readings(watch, cpu=False)
    assert (told.before, told.peak, told.after) == (4 * MIB, 300 * MIB, 4 * MIB)
    assert told.source == "nvidia-smi"


def test_memory_that_is_never_given_back_is_told_as_the_least_that_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = MemoryWatch(device=DEVICE)
    watch.monitor.before[PCI], watch.monitor.peak[PCI] = 4 * MIB, 300 * MIB
    looks = iter([90, 80, 85, *[82] * 20])
    monkeypatch.setattr(soak_round, "list_cards", lambda _smi: (card(next(looks)),))
    assert readings(watch, cpu=False).after == 80 * MIB


def test_a_card_that_fell_off_meanwhile_has_no_reading_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = MemoryWatch(device=DEVICE)
    watch.monitor.before[PCI], watch.monitor.peak[PCI] = 4 * MIB, 300 * MIB
    monkeypatch.setattr(soak_round, "list_cards", lambda _smi: (card(4, "0000:99:00.0"),))
    told = readings(watch, cpu=False)
    assert (told.peak, told.after) == (300 * MIB, None)


def test_the_only_nvidia_card_is_meant_by_a_device_without_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = MemoryWatch(device=replace(DEVICE, name="NVIDIA H200", pci=""))
    watch.monitor.before[PCI], watch.monitor.peak[PCI] = 1 * MIB, 2 * MIB
    monkeypatch.setattr(soak_round, "list_cards", lambda _smi: (card(1),))
    assert readings(watch, cpu=False).peak == 2 * MIB


def test_amds_kernel_driver_tells_all_three(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = MemoryWatch(device=DEVICE, vram_before={PCI: 50 * MIB})
    watch.sampler.vram[PCI] = 400 * MIB
    monkeypatch.setattr(soak_round, "list_cards", lambda _smi: ())
    monkeypatch.setattr(soak_round, "vram_used", lambda: {PCI: 51 * MIB})
    told = readings(watch, cpu=False)
    assert (told.before, told.peak, told.after) == (50 * MIB, 400 * MIB, 51 * MIB)


def test_other_kernel_drivers_tell_the_peak_of_the_process_alone() -> None:
    watch = MemoryWatch(device=DEVICE)
    watch.sampler.drm[PCI] = 12 * MIB
    told = readings(watch, cpu=False)
    assert (told.before, told.peak, told.after) == (None, 12 * MIB, None)
    assert told.source == "/proc/PID/fdinfo"
