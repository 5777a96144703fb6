"""Limits of versions and the hints of a system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamawright.model.fit import cure, misfit
from llamawright.model.inventory import Fault, Role
from llamawright.model.toolchain import Hint, KnownBad, Minimum
from resolve_kit import NO_TOOLCHAINS

LIMITS = replace(
    NO_TOOLCHAINS,
    minimums=(
        Minimum(role=Role.CXX, name="gcc", version="11", reason="r"),
        Minimum(role=Role.CMAKE, version="3.19", reason="r"),
    ),
    known_bad=(KnownBad(role=Role.CXX, name="gcc", versions=">=13.0,<13.2", reason="b", link="l"),),
)


@pytest.mark.parametrize(
    ("role", "name", "version", "fault"),
    [
        (Role.CXX, "gcc", "11.0.0", None),
        (Role.CXX, "gcc", "10.2.1", Fault.TOO_OLD),
        (Role.CXX, "gcc", "9", Fault.TOO_OLD),
        (Role.CXX, "clang", "9.0", None),
        (Role.CXX, "gcc", "13.1.0", Fault.KNOWN_BAD),
        (Role.CXX, "gcc", "13.2.0", None),
        (Role.CXX, "gcc", "12.2.0-14+deb12u1", None),
        (Role.CXX, "gcc", "", Fault.TOO_OLD),
        (Role.CMAKE, "cmake", "3.9.6", Fault.TOO_OLD),
        (Role.CMAKE, "cmake", "3.25.1", None),
        (Role.NINJA, "ninja", "", None),
        (Role.CMAKE, "cmake", "of no number", Fault.TOO_OLD),
    ],
)
def test_versions_are_judged_by_number(
    role: Role, name: str, version: str, fault: Fault | None
) -> None:
    told = misfit(role, name, version, LIMITS)
    assert (told[0] if told else None) is fault


def test_the_reason_names_both_versions_and_the_report() -> None:
    old = misfit(Role.CXX, "gcc", "10.2.1", LIMITS)
    bad = misfit(Role.CXX, "gcc", "13.1.0", LIMITS)
    assert old is not None
    assert old[1] == "gcc 10.2.1 is older than 11: r"
    assert bad is not None
    assert bad[1] == "gcc 13.1.0 must not be used: b (l)"


HINTS = replace(
    NO_TOOLCHAINS,
    hints=(
        Hint(role=Role.CXX, system="*", command="any"),
        Hint(role=Role.CXX, system="debian", command="apt"),
        Hint(role=Role.CXX, system="linuxmint", command="mint"),
        Hint(role=Role.GIT, system="debian", command="apt git"),
    ),
)


@pytest.mark.parametrize(
    ("role", "systems", "command"),
    [
        (Role.CXX, ("linuxmint", "ubuntu", "debian"), "mint"),
        (Role.CXX, ("raspbian", "debian"), "apt"),
        (Role.CXX, ("plan9",), "any"),
        (Role.CXX, (), "any"),
        (Role.GIT, ("plan9",), ""),
        (Role.NINJA, ("debian",), ""),
    ],
)
def test_the_nearest_systems_hint_counts(
    role: Role, systems: tuple[str, ...], command: str
) -> None:
    assert cure(role, systems, HINTS) == command
