"""Device code against cards, before anything runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.model.cuda import older
from llamawright.model.verdict import Device, State
from llamawright.verify.choose import Candidate, match_up, no_such_device, select
from llamawright.verify.cuda_gate import (
    Access,
    access,
    build_command,
    gate,
    meant,
    preferred,
)
from llamawright.verify.judge import Ruling
from llamawright.verify.witness import Sighting, Witness
from verify_cuda_kit import cuda_facts

DRIVER = "580.159.04"


def card(capability: int, *, index: int = 0, name: str = "", uuid: str = "") -> Witness:
    return Witness(
        index=index, name=name or f"Card {capability}", software=False, driver=f"NVIDIA {DRIVER}",
        pci=f"0000:{index + 1:02x}:00.0", memory=1, capability=capability, uuid=uuid,
    )  # fmt: skip


def seen(*cards: Witness, driver: str = DRIVER) -> Sighting:
    return Sighting(devices=cards, driver=driver)


def accepted(found: Access | Ruling) -> Access:
    assert isinstance(found, Access), found
    return found


def refused(found: Access | Ruling | None) -> Ruling:
    assert isinstance(found, Ruling), found
    assert found.state is State.CANNOT_VERIFY
    assert found.why
    assert found.hint
    return found


@pytest.mark.parametrize(
    ("codes", "capability", "taken"),
    [
        (("sm_90",), 90, "sm_90"),
        (("sm_86",), 89, "sm_86"),  # same major version, lower minor one
        (("sm_80", "sm_86"), 89, "sm_86"),
        (("sm_80", "compute_80"), 80, "sm_80"),  # machine code before PTX
        (("sm_61", "compute_61"), 90, "compute_61"),
        (("sm_61", "compute_61", "compute_80"), 90, "compute_80"),  # the newest that fits
        (("compute_61", "compute_80"), 75, "compute_61"),  # case C8
        (("sm_120a",), 120, "sm_120a"),
        (("sm_100f",), 103, "sm_100f"),
    ],
)
def test_the_code_that_the_driver_takes(
    codes: tuple[str, ...], capability: int, taken: str
) -> None:
    found = accepted(access(cuda_facts(*codes), card(capability), DRIVER, {}))
    assert found.code is not None
    assert found.code.name == taken
    assert found.jit == taken.startswith("compute")
    assert bool(found.told) == found.jit
    assert gate(cuda_facts(*codes), seen(card(capability)), None, {}) is None


@pytest.mark.parametrize(
    ("codes", "capability"),
    [
        (("sm_86",), 61),  # case C5
        (("sm_89",), 90),
        (("sm_90a",), 100),
        (("sm_120a",), 121),
        (("compute_90",), 89),
        (("compute_90a",), 100),
    ],
)
def test_a_card_that_can_run_none_of_it(codes: tuple[str, ...], capability: int) -> None:
    ruling = refused(gate(cuda_facts(*codes), seen(card(capability)), None, {}))
    assert ruling.failure == "no-kernel-image"
    assert codes[0] in ruling.why
    assert f"{capability // 10}.{capability % 10}" in ruling.why
    assert f"--arch sm_{capability}" in ruling.hint
    assert "--arch native" in ruling.hint


def test_what_is_said_of_ptx_names_code_card_and_limit() -> None:
    found = accepted(access(cuda_facts("compute_61"), card(90, name="NVIDIA H200"), DRIVER, {}))
    assert found.told == (
        "by JIT of compute_61 PTX on NVIDIA H200 (9.0): no proof for sm_61 hardware"
    )
    assert Access(card="x", capability=90).told == ""


@pytest.mark.parametrize("value", ["0", "", "yes"])
def test_variables_count_only_as_cuda_counts_them(value: str) -> None:
    found = accepted(access(cuda_facts("sm_90"), card(90), DRIVER, {"CUDA_FORCE_PTX_JIT": value}))
    assert (found.jit, found.variable) == (False, "")


def test_forcing_and_forbidding_the_jit() -> None:
    both = cuda_facts("sm_90", "compute_90")
    forced = accepted(access(both, card(90), DRIVER, {"CUDA_FORCE_PTX_JIT": "1"}))
    assert (forced.jit, forced.variable) == (True, "CUDA_FORCE_PTX_JIT=1")
    assert forced.told.endswith("(CUDA_FORCE_PTX_JIT=1): no proof for sm_90 hardware")
    forbidden = accepted(access(both, card(90), DRIVER, {"CUDA_DISABLE_PTX_JIT": "1"}))
    assert (forbidden.jit, forbidden.variable) == (False, "")
    for env, codes in (
        ({"CUDA_FORCE_PTX_JIT": "1"}, ("sm_90",)),
        ({"CUDA_DISABLE_PTX_JIT": "1"}, ("compute_61",)),
    ):
        ruling = refused(access(cuda_facts(*codes), card(90), DRIVER, env))
        assert next(iter(env)) in ruling.why
        assert ruling.hint.startswith(f"unset {next(iter(env))}")
    # What no variable took is not blamed on one.
    plain = refused(access(cuda_facts("sm_89"), card(90), DRIVER, {"CUDA_FORCE_PTX_JIT": "1"}))
    assert "CUDA_FORCE_PTX_JIT" not in plain.why


@pytest.mark.parametrize(
    ("version", "than", "is_older"),
    [
        ("535.129.03", "580.65.06", True),
        ("580.65.06", "580.65.06", False),
        ("580.65", "580.65.06", True),
        ("590", "580.65.06", False),
        ("99.1", "525", True),
        ("", "525", False),
        ("[N/A]", "525", False),
        ("525", "", False),
    ],
)
def test_driver_versions_are_compared_by_number(version: str, than: str, *, is_older: bool) -> None:
    assert older(version, than) is is_older


@pytest.mark.parametrize(
    ("driver", "served"),
    [("535.129.03", "12.9"), ("470.256.02", "11.8"), ("580.10", "13.0"), ("390.157", "")],
)
def test_a_driver_too_old_is_told_with_a_toolkit_that_it_serves(driver: str, served: str) -> None:
    facts = cuda_facts("sm_90", toolkit="13.2.51", driver="595.45.04")
    ruling = refused(gate(facts, seen(card(90), driver=driver), None, {}))
    assert ruling.failure == "driver-too-old"
    assert f"{driver}; code of CUDA 13.2.51 needs 595.45.04" in ruling.why
    assert "install driver 595.45.04" in ruling.hint
    assert (f"--cuda-toolkit {served}" in ruling.hint) == bool(served)


def test_ptx_needs_a_newer_driver_than_machine_code() -> None:
    facts = cuda_facts("sm_80", "compute_80", driver="525.60.13", driver_jit="550.54.14")
    assert gate(facts, seen(card(80), driver="535.1"), None, {}) is None
    ruling = refused(gate(facts, seen(card(90), driver="535.1"), None, {}))
    assert ruling.failure == "driver-too-old-for-ptx"
    for words in ("compute_80 PTX", "550.54.14", "535.1", "Card 90 (9.0)"):
        assert words in ruling.why
    assert build_command(90) in ruling.hint


def test_nothing_is_refused_that_is_not_known() -> None:
    assert gate(cuda_facts("sm_89"), Sighting(), None, {}) is None
    assert accepted(access(cuda_facts("sm_89"), card(0), DRIVER, {})).code is None
    assert accepted(access(cuda_facts("garbage"), card(90), DRIVER, {})).code is None
    assert gate(cuda_facts("sm_90"), seen(card(90), driver=""), None, {}) is None


MIXED = seen(
    card(61, index=0, name="GTX 1080", uuid="GPU-1111-a"),
    card(89, index=1, name="RTX 4090", uuid="GPU-2222-b"),
)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        (None, ["GTX 1080", "RTX 4090"]), ("CUDA1", ["RTX 4090"]), ("cuda0", ["GTX 1080"]),
        ("02:00.0", ["RTX 4090"]), ("GPU-2222", ["RTX 4090"]), ("gpu-2222-B", ["RTX 4090"]),
        ("rtx 4090", ["RTX 4090"]), ("tx", ["GTX 1080", "RTX 4090"]), ("H200", []),
        ("CUDA7", []), ("", []), ("GPU-9", []),
    ],
)  # fmt: skip
def test_a_selector_means_cards(selector: str | None, names: list[str]) -> None:
    assert [c.name for c in meant(MIXED, selector)] == names


def test_one_card_that_fits_is_enough_unless_another_is_named() -> None:
    facts = cuda_facts("sm_89")
    assert gate(facts, MIXED, None, {}) is None
    assert gate(facts, MIXED, "4090", {}) is None
    assert refused(gate(facts, MIXED, "1080", {})).failure == "no-kernel-image"
    assert gate(facts, MIXED, "no such card", {}) is None, "that is another refusal's business"


def listed(*names: str) -> tuple[Device, ...]:
    return tuple(
        Device(id=f"CUDA{i}", name=n, backend="cuda", memory=1, software=False)
        for i, n in enumerate(names)
    )


def test_cards_with_machine_code_come_first_then_those_that_compile() -> None:
    sighting = seen(card(61), card(75, index=1), card(89, index=2), card(50, index=3))
    names = ("Card 61", "Card 75", "Card 89", "Card 50", "Ghost")
    candidates = match_up(listed(*names), sighting)
    facts = cuda_facts("sm_89", "compute_61")
    order = [c.device.name for c in preferred(facts, candidates, DRIVER, {})]
    assert order == ["Card 89", "Card 61", "Card 75", "Ghost", "Card 50"]


def test_a_uuid_selects_a_listed_device_too() -> None:
    candidates = match_up(listed("GTX 1080", "RTX 4090"), MIXED)
    for selector in ("GPU-2222-b", "gpu-22", "GPU-2222"):
        found = select(candidates, selector)
        assert found is not None
        assert found.device.id == "CUDA1"
    assert select(candidates, "GPU-3") is None
    assert select((Candidate(device=candidates[0].device),), "GPU-1111") is None


def test_hidden_cards_are_in_the_refusal() -> None:
    hidden = Sighting(told="x", hidden=("RTX 4090 [p] (hidden by CUDA_VISIBLE_DEVICES='')",))
    error = no_such_device("4090", (), hidden)
    assert "hidden by CUDA_VISIBLE_DEVICES" in error.why
    assert int(error.code) == 11


@given(
    st.lists(st.sampled_from(["sm_61", "sm_80", "sm_89", "sm_90a", "compute_61", "compute_80"]),
             min_size=1),
    st.sampled_from([50, 61, 75, 80, 86, 89, 90, 100, 120]),
)  # fmt: skip
def test_a_card_is_refused_exactly_when_no_code_runs_on_it(
    codes: list[str], capability: int
) -> None:
    facts = cuda_facts(*codes)
    found = access(facts, card(capability), DRIVER, {})
    fitting = {
        "sm_61": capability == 61,
        "sm_80": capability in (80, 86, 89),
        "sm_89": capability == 89,
        "sm_90a": capability == 90,
        "compute_61": capability >= 61,
        "compute_80": capability >= 80,
    }
    assert isinstance(found, Access) == any(fitting[c] for c in codes)
