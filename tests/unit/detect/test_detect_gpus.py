"""NVIDIA's cards: absent, unknown, broken and present, each with its own words (C3, C13)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cuda_kit import around, machines, stand_up_cuda
from llamawright.detect.gpus import see_gpus
from llamawright.detect.nvml import read_nvml, read_smi
from llamawright.model.cuda import Gpus, Presence

FILE = "cuda-gpus"
H200 = "GPU-a14848b2-feae-43ac-7184-9cb3a00f1aa2"


def look(root: Path, name: str, **env: str) -> Gpus:
    machine = stand_up_cuda(name, root, FILE)
    seen = around(machine, env)
    return see_gpus(seen.env, nvml=seen.nvml, root=seen.root, limit_s=seen.short_s)


def test_nvml_tells_a_card_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    seen = look(tmp_path, "nvml")
    (card,) = seen.cards
    assert (seen.presence, seen.source) == (Presence.PRESENT, "NVML")
    assert (seen.driver, seen.cuda, seen.reason) == ("580.159.04", "13.0", "")
    assert (card.index, card.name, card.capability) == (0, "NVIDIA H200", 90)
    assert (card.pci, card.uuid) == ("0000:00:06.0", H200)
    assert card.memory == 150754820096
    assert (card.persistence, card.mig, card.ecc) == (True, False, True)


def test_nvidia_smi_is_asked_when_nvmls_module_is_not_there(tmp_path: Path) -> None:
    seen = look(tmp_path, "smi")
    (card,) = seen.cards
    assert (seen.presence, seen.source) == (Presence.PRESENT, "nvidia-smi")
    assert (card.name, card.capability, card.pci) == ("NVIDIA H200", 90, "0000:00:06.0")
    assert card.memory == 143771 << 20
    assert (card.persistence, card.mig, card.ecc) == (True, False, True)
    assert (seen.driver, seen.cuda, seen.reason) == ("580.159.04", "", "")


def test_cards_of_several_generations_keep_their_own_capability(tmp_path: Path) -> None:
    seen = look(tmp_path, "nvml-mixed")
    assert [c.capability for c in seen.cards] == [61, 89, 120]
    assert [c.pci for c in seen.cards] == ["0000:01:00.0", "0000:02:00.0", "0001:02:00.0"]
    assert seen.cards[0].mig is None
    assert seen.cuda == "12.2"
    assert seen.reason == "not readable: card 3: GPU is lost"
    assert seen.cure.startswith("reboot")


def test_what_nvidia_smi_does_not_know_stays_unknown(tmp_path: Path) -> None:
    seen = look(tmp_path, "smi-several")
    old, new = seen.cards
    assert (old.capability, old.persistence, old.mig, old.ecc) == (61, False, None, True)
    assert (new.capability, new.memory, new.uuid, new.persistence) == (121, 0, "", None)
    assert new.pci == "000f:01:00.0"


def test_hidden_modes_do_not_hide_the_card(tmp_path: Path) -> None:
    (card,) = look(tmp_path, "smi-some-permissions").cards
    assert (card.capability, card.mig, card.ecc) == (80, None, None)


def test_a_lost_card_is_told_beside_the_others(tmp_path: Path) -> None:
    seen = look(tmp_path, "smi-one-lost")
    assert (seen.presence, len(seen.cards)) == (Presence.PRESENT, 1)
    assert "GPU0000:02:00.0: GPU is lost" in seen.reason
    assert seen.cure.startswith("reboot")


@pytest.mark.parametrize(
    ("name", "presence", "said", "cure"),
    [
        ("nothing", Presence.ABSENT, "no NVIDIA card and no driver", ""),
        ("card", Presence.ABSENT, "an NVIDIA card at 0000:01:00.0, and no driver",
         "install NVIDIA's driver"),
        ("nvml-no-card", Presence.ABSENT, "finds no card (No devices were found)", "--gpus all"),
        ("nvml-card-refused", Presence.ABSENT, "does not take the card at 0000:01:00.0", "dmesg"),
        ("smi-no-devices", Presence.ABSENT, "finds no card (No devices were found)", "--gpus all"),
        ("not-loaded-no-card", Presence.ABSENT, "kernel module is not loaded", "modprobe"),
        ("nvml-all-lost", Presence.BROKEN, "no card answers: card 0: GPU is lost", "reboot"),
        ("mismatch", Presence.BROKEN, "driver/library version mismatch", "reboot"),
        ("not-loaded", Presence.BROKEN, "kernel module is not loaded", "sudo modprobe nvidia"),
        ("no-permission", Presence.BROKEN, "insufficient permissions", "usermod"),
        ("unknown-error", Presence.BROKEN, "unknown error", "start the container again"),
        ("smi-mismatch", Presence.BROKEN, "driver/library version mismatch", "reboot"),
        ("smi-not-loaded", Presence.BROKEN, "kernel module is not loaded", "sudo modprobe nvidia"),
        ("smi-permissions", Presence.BROKEN, "insufficient permissions", "usermod"),
        ("smi-lost", Presence.BROKEN, "a card is lost", "reboot"),
        ("smi-no-library", Presence.BROKEN, "without libnvidia-ml", "NVIDIA_DRIVER_CAPABILITIES"),
        ("smi-empty", Presence.BROKEN, "nvidia-smi: no output", "by hand"),
        ("smi-not-available", Presence.BROKEN, "tells no compute capability: 0, Tesla V100", ""),
        ("smi-header-only", Presence.BROKEN, "nvidia-smi: | NVIDIA-SMI", "by hand"),
        ("smi-old", Presence.UNKNOWN, "too old to tell compute capabilities", "nvidia-ml-py"),
        ("both-hang", Presence.BROKEN,
         "NVML: it gave no answer within 0.6 s; nvidia-smi: it gave no answer", "by hand"),
        ("both-crash", Presence.BROKEN,
         "NVML: it crashed with SIGSEGV (exit status 139); nvidia-smi: it crashed", "by hand"),
        ("garbage", Presence.BROKEN, "NVML: its answer cannot be read; nvidia-smi: hello", ""),
        ("garbage-without-traces", Presence.UNKNOWN, "NVML: its answer cannot be read", ""),
        ("container-without-utility", Presence.BROKEN, "without libnvidia-ml",
         "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        ("host-without-library", Presence.BROKEN, "without libnvidia-ml", "user libraries"),
        ("nobody-to-ask", Presence.UNKNOWN, "neither nvidia-ml-py nor nvidia-smi", "pip install"),
    ],
)  # fmt: skip
def test_every_state_without_a_card_has_its_own_reason_and_cure(
    tmp_path: Path, name: str, presence: Presence, said: str, cure: str
) -> None:
    seen = look(tmp_path, name)
    assert seen.presence is presence
    assert said in seen.reason
    assert cure in seen.cure
    assert seen.cards == ()


@pytest.mark.parametrize("name", list(machines(FILE)))
def test_only_cards_make_presence_and_everything_else_says_why(tmp_path: Path, name: str) -> None:
    seen = look(tmp_path, name)
    assert bool(seen.cards) == (seen.presence is Presence.PRESENT)
    assert seen.cards or seen.reason
    if seen.presence in (Presence.BROKEN, Presence.UNKNOWN):
        assert seen.cure


def test_nvml_that_hangs_is_left_for_nvidia_smi_within_its_limit(tmp_path: Path) -> None:
    start = time.monotonic()
    seen = look(tmp_path, "nvml-hangs")
    assert time.monotonic() - start < 8
    assert (seen.presence, seen.source) == (Presence.PRESENT, "nvidia-smi")
    assert seen.reason == "NVML: it gave no answer within 0.6 s"


def test_a_broken_driver_still_tells_its_version(tmp_path: Path) -> None:
    assert look(tmp_path, "mismatch").driver == "580.159.04"
    assert look(tmp_path / "old", "smi-old").driver == "470.82.01"


def test_hiding_cards_from_programs_does_not_hide_them_here(tmp_path: Path) -> None:
    assert len(look(tmp_path, "nvml", CUDA_VISIBLE_DEVICES="").cards) == 1
    assert len(look(tmp_path / "b", "smi", CUDA_VISIBLE_DEVICES="-1").cards) == 1


def test_a_child_that_cannot_start_is_no_failure_of_ours(tmp_path: Path) -> None:
    machine = stand_up_cuda("smi", tmp_path, FILE)
    seen = see_gpus(machine.env, nvml=(str(tmp_path / "gone"),), root=tmp_path, limit_s=5)
    assert seen.presence is Presence.PRESENT
    assert seen.reason.startswith("NVML: it cannot start")


def test_a_capability_is_never_read_from_the_headers_cuda_version() -> None:
    header = "| NVIDIA-SMI 580.159.04  Driver Version: 580.159.04  CUDA Version: 13.0 |"
    assert read_smi(header, ("index", "compute_cap")).cards == ()
    assert read_smi("0, 13.0 |", ("index", "compute_cap")).cards == ()


@pytest.mark.parametrize(
    ("number", "release"),
    [(13000, "13.0"), (12020, "12.2"), (11080, "11.8"), (None, ""), (7, ""), ("13000", "")],
)
def test_the_drivers_cuda_version_is_read_from_nvmls_number(number: object, release: str) -> None:
    written = f'"{number}"' if isinstance(number, str) else str(number).replace("None", "null")
    answer = read_nvml(f'{{"driver": "1.2", "cuda": {written}, "cards": [], "lost": []}}')
    assert answer is not None
    assert answer.cuda == release
