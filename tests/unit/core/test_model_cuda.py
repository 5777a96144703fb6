"""CUDA's words: what names device code, and which card runs which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.model.cuda import GpuCode, best_code, dotted, older, parse_code


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("sm_61", GpuCode(61)),
        ("61", GpuCode(61)),
        ("6.1", GpuCode(61)),
        (" SM_61 ", GpuCode(61)),
        ("61-real", GpuCode(61)),
        ("61-virtual", GpuCode(61, ptx=True)),
        ("compute_61", GpuCode(61, ptx=True)),
        ("12.0", GpuCode(120)),
        ("120a", GpuCode(120, "a")),
        ("sm_90a", GpuCode(90, "a")),
        ("103f", GpuCode(103, "f")),
        ("120f-virtual", GpuCode(120, "f", ptx=True)),
    ],
)
def test_the_field_s_spellings_are_understood(word: str, code: GpuCode) -> None:
    assert parse_code(word) == code


@pytest.mark.parametrize(
    "word",
    [
        "", "compute_", "compute_No CUDA devices found.", "[N/A]", "13.0.1", "native", "8.99",
        "sm_8.9", "compute_61-real", "sm_61-virtual", "89-", "89b", "0", "5", "49", "200", "1300",
        "61;89", "-61", "\uff16\uff11", "No devices were found", "sm61", "61 real",
    ],
)  # fmt: skip
def test_garbage_is_no_code(word: str) -> None:
    assert parse_code(word) is None


@given(st.integers(50, 199), st.sampled_from(["", "a", "f"]), st.booleans())
def test_both_spellings_lead_back(number: int, suffix: str, ptx: bool) -> None:
    code = GpuCode(number, suffix, ptx)
    assert parse_code(code.name) == code
    assert parse_code(code.cmake) == code


@given(st.text(max_size=30))
def test_any_text_is_a_code_or_none(text: str) -> None:
    code = parse_code(text)
    assert code is None or 50 <= code.number < 200


@pytest.mark.parametrize(
    ("word", "card", "runs"),
    [
        ("61", 61, True),
        ("61", 62, True),
        ("61", 60, False),
        ("61", 70, False),
        ("61", 90, False),
        ("86", 89, True),
        ("89", 86, False),
        ("90", 100, False),
        ("90a", 90, True),
        ("90a", 91, False),
        ("120a", 120, True),
        ("120a", 121, False),
        ("120f", 121, True),
        ("120f", 130, False),
        ("61-virtual", 61, True),
        ("61-virtual", 90, True),
        ("61-virtual", 120, True),
        ("61-virtual", 52, False),
        ("90a-virtual", 100, False),
        ("100f-virtual", 103, True),
        ("100f-virtual", 120, False),
    ],
)
def test_which_card_runs_it(word: str, card: int, runs: bool) -> None:
    code = parse_code(word)
    assert code is not None
    assert code.runs_on(card) is runs


def test_machine_code_goes_before_ptx_and_newer_before_older() -> None:
    codes = (GpuCode(61), GpuCode(80), GpuCode(86), GpuCode(89, ptx=True), GpuCode(61, ptx=True))
    assert best_code(codes, 89) == GpuCode(86)
    assert best_code(codes, 90) == GpuCode(89, ptx=True)
    assert best_code(codes, 75) == GpuCode(61, ptx=True)
    assert best_code(codes, 52) is None
    assert best_code((), 90) is None


def test_names_and_numbers_of_a_reader() -> None:
    assert GpuCode(61).name == "sm_61"
    assert GpuCode(89, ptx=True).name == "compute_89"
    assert GpuCode(120, "a").cmake == "120a-real"
    assert GpuCode(61).capability == "6.1"
    assert (dotted(61), dotted(120)) == ("6.1", "12.0")


@pytest.mark.parametrize(
    ("version", "than", "lower"),
    [
        ("535.129.03", "580.65.06", True),
        ("580.65.06", "580.65.06", False),
        ("580.159.04", "580.65.06", False),
        ("570.26", "570.133.07", True),
        ("", "580.65.06", False),
        ("580.65.06", "", False),
        ("of unknown version", "580.65.06", False),
        ("9" * 5000, "580.65.06", False),
    ],
)
def test_a_driver_is_older_only_when_both_versions_are_known(
    version: str, than: str, *, lower: bool
) -> None:
    assert older(version, than) is lower
