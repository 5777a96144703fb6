"""Whether a tool is one the recipes can be built with, and how a system installs another."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from llamawright.model.inventory import Fault, Role
from llamawright.model.toolchain import KnownBad, Toolchains

# Python refuses to read numbers of thousands of digits; no version has such a part.
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9})*")


def misfit(role: Role, name: str, version: str, toolchains: Toolchains) -> tuple[Fault, str] | None:
    """Return why this version must not be used, or ``None``.

    Text around the number (``12.2.0-14+deb12u1``) does not count; a version without any
    number fits nothing that has a limit.
    """
    number = _VERSION.search(version)
    for minimum in toolchains.minimums:
        if minimum.role is not role or minimum.name not in ("", name):
            continue
        if number is None or Version(number[0]) < Version(minimum.version):
            what = f"{name} {version or 'of no known version'} is older than {minimum.version}"
            return Fault.TOO_OLD, f"{what}: {minimum.reason}"
    bad = next((b for b in known_bad(role, name, version, toolchains) if not b.codes), None)
    if bad is not None:
        return Fault.KNOWN_BAD, f"{name} {version} must not be used: {bad.reason} ({bad.link})"
    return None


def known_bad(role: Role, name: str, version: str, toolchains: Toolchains) -> tuple[KnownBad, ...]:
    """Return what is known against this version, also what holds for some codes only."""
    number = _VERSION.search(version)
    if number is None:
        return ()
    return tuple(
        bad
        for bad in toolchains.known_bad
        if bad.role is role
        and bad.name in ("", name)
        and SpecifierSet(bad.versions).contains(Version(number[0]), prereleases=True)
    )


def cure(role: Role, systems: Iterable[str], toolchains: Toolchains) -> str:
    """Return the command that installs a tool of ``role`` on this system, or nothing.

    ``systems`` are os-release ids, the own one first; a hint for ``*`` fits them all.
    """
    known = {h.system: h.command for h in toolchains.hints if h.role is role}
    return next((known[s] for s in (*systems, "*") if s in known), "")
