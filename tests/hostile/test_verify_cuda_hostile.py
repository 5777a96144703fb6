"""What NVIDIA's tool may print, and what a user may set: read without falling over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.model.cuda import older
from llamawright.verify.choose import match_up
from llamawright.verify.cuda_cards import FIELDS, read_cuda, read_rows, visible_rows
from llamawright.verify.cuda_gate import access, meant
from llamawright.verify.judge import Ruling
from llamawright.verify.logs import read_load
from llamawright.verify.nvidia import read_cards, read_processes
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.witness import Witness
from verify_cuda_kit import cuda_facts, smi_result

LINE = "0, 00000000:41:00.0, GPU-aaaa1111-2, NVIDIA H200, 143771, 580.159.04, 9.0"
CELLS = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from(["[N/A]", "ERR!", "0", "9.0", "41:00.0"])),
    min_size=len(FIELDS),
    max_size=len(FIELDS),
)


@given(st.text(max_size=400), st.integers(-15, 40), st.one_of(st.none(), st.text(max_size=20)))
def test_any_output_is_cards_or_a_reason(text: str, code: int, visible: str | None) -> None:
    sighting = read_cuda(smi_result(text, code=code), visible)
    assert sighting.devices or sighting.told
    assert bool(sighting.problem) == (not sighting.devices)


@given(st.lists(CELLS, max_size=4))
def test_any_table_is_read(table: list[list[str]]) -> None:
    text = "\n".join(", ".join(cells) for cells in table)
    rows, _ = read_rows(text)
    assert all(r.pci and r.capability >= 0 and r.memory >= 0 for r in rows)
    read_processes(text)


@given(st.text(max_size=40))
def test_any_value_of_the_variable_is_understood(value: str) -> None:
    rows, _ = read_rows(LINE)
    kept = visible_rows(rows, value)
    assert kept is None or set(kept) <= set(rows)


@given(st.text(max_size=40))
def test_any_selector_means_some_cards_or_none(selector: str) -> None:
    sighting = read_cuda(smi_result(LINE), None)
    assert set(meant(sighting, selector)) <= set(sighting.devices)


@given(st.lists(st.text(max_size=15), max_size=5), st.text(max_size=15), st.integers(0, 200))
def test_any_manifest_gives_an_answer(codes: list[str], driver: str, capability: int) -> None:
    card = Witness(index=0, name="x", software=False, driver="", pci="", memory=0,
                   capability=capability)  # fmt: skip
    found = access(cuda_facts(*codes), card, driver, {})
    if isinstance(found, Ruling):
        assert found.why
        assert found.hint


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_two_versions_are_compared_one_way(left: str, right: str) -> None:
    assert not (older(left, right) and older(right, left))


@given(st.text(max_size=200))
def test_any_log_line_is_read(line: str) -> None:
    facts = read_load([line, f"  Device 0: {line}, compute capability 9.0"], BUILD_11312)
    assert all(capability >= 0 for _, capability in facts.cards.values())


@pytest.mark.parametrize("odd", ["²", "٣", "9" * 5000, "-0", "1e3", "0x1"])
def test_digits_that_are_no_numbers_are_left_out(odd: str) -> None:
    rows, _ = read_rows(LINE)
    assert visible_rows(rows, odd) == ()
    assert read_rows(LINE.replace("143771", odd))[0][0].memory == 0
    assert read_rows(LINE.replace("9.0", odd))[0][0].capability == 0
    assert read_processes(f"41:00.0, {odd}, {odd}") == ()
    assert read_cards(f"41:00.0, x, {odd}, {odd}, 580") == ()
    assert not older(odd, "525")
    line = f"  Device {odd}: x, compute capability {odd}.0"
    assert len(read_load([line], BUILD_11312).cards) <= 1


def test_a_name_cannot_shift_the_columns() -> None:
    """A name with a comma is no row: nobody may shift the columns."""
    rows, _ = read_rows(LINE.replace("NVIDIA H200", "NVIDIA, H200, 9.9"))
    assert rows == ()
    sighting = read_cuda(smi_result(LINE), None)
    assert match_up((), sighting) == ()
