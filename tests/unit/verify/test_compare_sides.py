"""Which device both sides get, and what is refused before anything is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from compare_kit import entrant
from llamawright.errors import NoDeviceError, PackageError, VerificationError
from llamawright.model.comparison import Letter
from llamawright.model.platform import Backend
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Device, State
from llamawright.verify.choose import Candidate
from llamawright.verify.compare_sides import (
    PROGRAMS,
    Ready,
    find_programs,
    refusal,
    require_one_device,
    selector_for,
    stand_in,
)
from llamawright.verify.judge import Ruling
from llamawright.verify.setup import Setting
from llamawright.verify.survey import Chosen
from verify_kit import GPU, LINUX, PCI, manifest


def ready(
    letter: Letter = Letter.A,
    *,
    name: str = GPU,
    pci: str = PCI,
    backend: str = "vulkan",
    software: bool = False,
) -> Ready:
    """Return a side that was led to a device; nothing is unpacked for it."""
    device = Device(
        id=f"{backend.title()}0", name=name, backend=backend, memory=1, software=software, pci=pci
    )  # fmt: skip
    setting = cast("Setting", SimpleNamespace(cpu=backend == "cpu"))
    return Ready(
        entrant=entrant(letter, backend=backend, device=device),
        setting=setting,
        chosen=Chosen(candidate=Candidate(device=device), view=None, env={}),
    )


def asking(folder: Path) -> VerifyRequest:
    return VerifyRequest(
        artifact=folder, model=folder, model_sha256="", verification=None,  # type: ignore[arg-type]
        rules=(), platform=LINUX,
    )  # fmt: skip


class TestOneDevice:
    @pytest.mark.parametrize(
        ("first", "backend", "asked", "selector"),
        [
            (ready(), "vulkan", None, None),
            (ready(), "vulkan", "Vulkan1", "Vulkan1"),
            # ids and orders of another backend differ: the card's place counts
            (ready(), "cuda", None, PCI),
            (ready(), "cuda", "Vulkan0", PCI),
            (ready(pci=""), "cuda", "Vulkan0", GPU),
            (ready(software=True), "cuda", None, None),
            (ready(backend="cpu"), "vulkan", None, None),
        ],
    )
    def test_the_other_side_finds_the_card_of_the_first(
        self, first: Ready, backend: str, asked: str | None, selector: str | None
    ) -> None:
        assert selector_for(first, backend, asked) == selector

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (ready(), ready(Letter.B)),
            (ready(), ready(Letter.B, name="NVIDIA calls it otherwise", backend="cuda")),
            (ready(pci=""), ready(Letter.B, name=GPU.upper(), pci="")),
            (ready(pci=""), ready(Letter.B)),
        ],
    )
    def test_one_card_is_one_card(self, a: Ready, b: Ready) -> None:
        assert require_one_device(a, b) == ""

    @pytest.mark.parametrize(
        "b",
        [ready(Letter.B, pci="0000:42:00.0"), ready(Letter.B, name="Another", pci="")],
    )
    def test_two_cards_are_refused_with_both_named(self, b: Ready) -> None:
        with pytest.raises(NoDeviceError) as caught:
            require_one_device(ready(), b)
        assert caught.value.kind == "different-devices"
        assert PCI in caught.value.why
        assert b.device.name in caught.value.why
        assert "--device" in caught.value.hint

    def test_a_cpu_side_is_meant_and_told(self) -> None:
        cpu = ready(Letter.B, name="Some CPU", backend="cpu", pci="")
        assert require_one_device(ready(), cpu) == f"A computes on {GPU}, B on Some CPU"
        assert require_one_device(cpu, cpu) == ""


class TestFolder:
    @pytest.mark.parametrize("place", ["", "bin", "build/bin"])
    def test_programs_are_found_where_upstream_puts_them(self, tmp_path: Path, place: str) -> None:
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            (tmp_path / place / name).touch()
        assert find_programs(tmp_path, asking(tmp_path)).resolve() == (tmp_path / place).resolve()

    def test_half_of_the_programs_is_not_enough(self, tmp_path: Path) -> None:
        (tmp_path / PROGRAMS[0]).touch()
        with pytest.raises(PackageError) as caught:
            find_programs(tmp_path, asking(tmp_path))
        assert PROGRAMS[1] in caught.value.why

    def test_it_stands_in_for_a_manifest_of_the_artifacts_backend(self, tmp_path: Path) -> None:
        folder = tmp_path / "llama-b9999-vulkan"
        folder.mkdir()
        like = replace(manifest(tmp_path), backend=Backend.VULKAN, build_number=11312)
        made = stand_in(asking(folder), like)
        assert (made.name, made.backend, made.build_number) == (folder.name, like.backend, 11312)
        assert made.files == ()


class TestRefusal:
    @pytest.mark.parametrize(
        ("state", "kind"),
        [
            (State.FAILED, VerificationError),
            (State.QUARANTINED, VerificationError),
            (State.CANNOT_VERIFY, NoDeviceError),
            (State.UNVERIFIED, NoDeviceError),
        ],
    )
    def test_what_is_the_machines_fault_fails_nobody(
        self, state: State, kind: type[Exception]
    ) -> None:
        error = refusal(Letter.B, Ruling(state=state, failure="a-word", why="because"))
        assert isinstance(error, kind)
        assert (error.kind, error.why) == ("a-word", "because")
        assert error.what.startswith("B ")
        assert error.hint

    def test_a_ruling_without_a_word_has_its_states(self) -> None:
        assert refusal(Letter.A, Ruling(state=State.UNVERIFIED)).kind == "unverified"
