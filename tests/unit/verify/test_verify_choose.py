"""Which device is proved: two lists and a selector in, a choice or a refusal out."""

from __future__ import annotations

import pytest

from llamawright.errors import UsageError
from llamawright.model.verdict import Device
from llamawright.verify.choose import (
    match_up,
    no_such_device,
    refuse_several,
    select,
    told,
    witnessed,
)
from llamawright.verify.witness import Sighting, Witness


def device(number: int, name: str, *, software: bool = False) -> Device:
    return Device(
        id=f"Vulkan{number}", name=name, backend="vulkan", memory=1 << 30, software=software
    )


def witness(
    index: int, name: str, *, software: bool = False, pci: str = "", usable: bool = True
) -> Witness:
    return Witness(
        index=index, name=name, software=software, driver="d 1.0", pci=pci, memory=1, usable=usable
    )


TWO = Sighting(
    devices=(witness(0, "A", pci="0000:01:00.0"), witness(1, "B", pci="0000:02:00.0")),
)


def test_devices_get_their_place_and_driver_from_the_machine() -> None:
    first, second = match_up([device(0, "A"), device(1, "B")], TWO)
    assert (first.device.pci, first.device.driver) == ("0000:01:00.0", "d 1.0")
    assert second.device.pci == "0000:02:00.0"


def test_twins_are_matched_in_the_loaders_order() -> None:
    twins = Sighting(
        devices=(witness(0, "A", pci="0000:01:00.0"), witness(1, "A", pci="0000:02:00.0"))
    )
    places = [c.device.pci for c in match_up([device(0, "A"), device(1, "A")], twins)]
    assert places == ["0000:01:00.0", "0000:02:00.0"]


def test_a_device_that_the_machine_does_not_know_has_no_witness() -> None:
    (only,) = match_up([device(0, "Ghost")], TWO)
    assert only.witness is None
    assert only.device.pci == ""


@pytest.mark.parametrize(("ours", "theirs"), [(True, False), (False, True), (True, True)])
def test_either_side_can_make_a_device_software(*, ours: bool, theirs: bool) -> None:
    sighting = Sighting(devices=(witness(0, "X", software=theirs),))
    (only,) = match_up([device(0, "X", software=ours)], sighting)
    assert only.device.software
    assert select([only], None) is None


def test_without_a_selector_the_first_hardware_device_is_taken() -> None:
    candidates = match_up([device(0, "llvmpipe", software=True), device(1, "B")], TWO)
    chosen = select(candidates, None)
    assert chosen is not None
    assert chosen.device.id == "Vulkan1"
    assert select([], None) is None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("Vulkan1", "Vulkan1"),
        ("vulkan1", "Vulkan1"),
        (" Vulkan0 ", "Vulkan0"),
        ("0000:02:00.0", "Vulkan1"),
        ("02:00.0", "Vulkan1"),
        ("00000000:02:00.0", "Vulkan1"),
        ("NVIDIA H200", "Vulkan0"),
        ("nvidia h200", "Vulkan0"),
        ("arc", "Vulkan1"),
    ],
)
def test_a_device_can_be_named_in_many_ways(selector: str, expected: str) -> None:
    sighting = Sighting(
        devices=(
            witness(0, "NVIDIA H200", pci="0000:01:00.0"),
            witness(1, "Intel Arc A770", pci="0000:02:00.0"),
        )
    )
    listed = [device(0, "NVIDIA H200"), device(1, "Intel Arc A770")]
    chosen = select(match_up(listed, sighting), selector)
    assert chosen is not None
    assert chosen.device.id == expected


@pytest.mark.parametrize("selector", ["Vulkan2", "0000:09:00.0", "RTX", "", "03:00.0"])
def test_what_is_not_there_is_not_chosen(selector: str) -> None:
    assert select(match_up([device(0, "A"), device(1, "B")], TWO), selector) is None


def test_an_exact_name_beats_a_part_of_another() -> None:
    listed = [device(0, "NVIDIA H200 NVL"), device(1, "NVIDIA H200")]
    chosen = select(match_up(listed, Sighting()), "NVIDIA H200")
    assert chosen is not None
    assert chosen.device.id == "Vulkan1"


def test_an_ambiguous_name_is_refused_with_the_way_out() -> None:
    candidates = match_up([device(0, "A"), device(1, "A")], TWO)
    with pytest.raises(UsageError) as caught:
        select(candidates, "A")
    assert caught.value.kind == "ambiguous-device"
    assert "--device Vulkan0" in caught.value.hint
    assert caught.value.why.count("\n") == 1


def test_a_refusal_lists_what_ggml_leaves_out_too() -> None:
    sighting = Sighting(
        devices=(
            witness(0, "A"), witness(1, "llvmpipe", software=True), witness(2, "Old", usable=False),
        ),
    )  # fmt: skip
    error = no_such_device("RTX", match_up([device(0, "A")], sighting), sighting)
    assert "Vulkan0: A" in error.why
    assert "llvmpipe (software)" in error.why
    assert "Old (not used by ggml)" in error.why
    assert int(error.code) == 11


def test_a_refusal_on_a_machine_without_devices_says_why() -> None:
    sighting = Sighting(problem="no-loader", told="there is no Vulkan loader: libvulkan.so.1")
    error = no_such_device("RTX", (), sighting)
    assert error.why == "there is no Vulkan loader: libvulkan.so.1"
    assert "driver" in error.hint
    assert no_such_device("RTX", (), Sighting()).why == "the artifact lists no device"


def test_the_machines_own_list_can_be_searched() -> None:
    sighting = Sighting(
        devices=(witness(0, "A", pci="0000:01:00.0"), witness(1, "llvmpipe", software=True))
    )
    found = witnessed(sighting, "LLVMpipe")
    assert found is not None
    assert found.index == 1
    assert witnessed(sighting, "01:00.0") is sighting.devices[0]
    assert witnessed(sighting, "nothing") is None
    assert witnessed(Sighting(devices=(witness(0, "A"), witness(1, "A"))), "A") is None


def test_a_name_of_several_devices_of_the_machine_is_refused_with_the_way_out() -> None:
    several = Sighting(devices=(witness(0, "llvmpipe (LLVM 15)"), witness(1, "llvmpipe (LLVM 15)")))
    with pytest.raises(UsageError) as caught:
        refuse_several(several, "LLVMpipe (llvm")
    assert caught.value.kind == "ambiguous-device"
    assert caught.value.why.count("llvmpipe (LLVM 15)") == 2
    assert "VK_DRIVER_FILES" in caught.value.hint
    refuse_several(several, "nothing")
    refuse_several(Sighting(devices=several.devices[:1]), "llvmpipe")


def test_a_device_as_one_line() -> None:
    (one,) = match_up([device(0, "A")], TWO)
    assert told(one.device) == "Vulkan0: A [0000:01:00.0]"
    assert told(device(3, "llvmpipe", software=True)) == "Vulkan3: llvmpipe (software)"
