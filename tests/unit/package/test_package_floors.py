"""The oldest system an artifact runs on, compared by number."""

from __future__ import annotations

import pytest

from llamawright.model.floors import Floors, highest, numbers, shortfalls


@pytest.mark.parametrize(
    ("versions", "top"),
    [(["2.9", "2.34", "2.4"], "2.34"), ([], ""), (["3.4.9", "3.4.30"], "3.4.30"), (["14"], "14"),
     (["1.3", "1.3.1"], "1.3.1"), (["10.15", "11.0", "9.9"], "11.0")],
)  # fmt: skip
def test_highest(versions: list[str], top: str) -> None:
    assert highest(versions) == top


def test_parts_that_are_no_numbers_count_as_zero() -> None:
    assert numbers("2.x.1") == (2, 0, 1)


def test_an_old_visual_cpp_runtime_falls_short() -> None:
    """The first mutex lock crashes in an older msvcp140.dll (cases W8)."""
    found = shortfalls(needed=Floors(toolset="14.44"), present=Floors(toolset="14.29"))
    assert [f.told for f in found] == [
        "the Visual C++ runtime 14.44 or newer is needed, 14.29 is there"
    ]
    assert "redistributable" in found[0].cure


def test_an_old_glibc_falls_short_of_what_was_measured() -> None:
    """A library that needs 2.32 may not be offered for 2.17 (cases P1)."""
    found = shortfalls(
        needed=Floors(glibc="2.32", glibcxx="3.4.30", cxxabi="1.3.13"),
        present=Floors(glibc="2.17", glibcxx="3.4.19", cxxabi="1.3.13"),
    )
    assert [(f.name, f.needed, f.present) for f in found] == [
        ("glibc", "2.32", "2.17"),
        ("libstdc++ with GLIBCXX", "3.4.30", "3.4.19"),
    ]
    assert all("older" in f.cure for f in found)


def test_an_old_macos_falls_short() -> None:
    found = shortfalls(needed=Floors(min_os="14.0"), present=Floors(min_os="13.6"))
    assert "MACOSX_DEPLOYMENT_TARGET" in found[0].cure


@pytest.mark.parametrize(
    ("needed", "present"),
    [
        (Floors(glibc="2.34"), Floors(glibc="2.34")),
        (Floors(glibc="2.9"), Floors(glibc="2.34")),
        (Floors(glibc="2.34"), Floors()),
        (Floors(), Floors(glibc="2.17", toolset="14.0")),
    ],
)
def test_enough_or_unknown_is_no_shortfall(needed: Floors, present: Floors) -> None:
    assert shortfalls(needed=needed, present=present) == ()
