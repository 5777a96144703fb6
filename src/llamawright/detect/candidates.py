"""Where programs may stand: named by the user, beside llamawright, on PATH."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.platform import System

Sighting = Found | Rejected
OWN = "tool environment"
ON_PATH = "PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that may be the wanted tool, and how it was come by."""

    role: Role
    name: str
    path: Path
    where: str

    def rejected(self, fault: Fault, reason: str, cure: str = "") -> Rejected:
        """Return this candidate as refused."""
        return Rejected(
            role=self.role,
            name=self.name,
            path=self.path,
            where=self.where,
            reason=reason,
            cure=cure,
            fault=fault,
        )


def absent(role: Role, name: str, around: Surroundings) -> Rejected:
    """Return that no candidate of a role exists at all."""
    folders = len(around.folders)
    return Rejected(
        role=role,
        name=name,
        path=None,
        where=ON_PATH,
        reason=f"none was found in the {folders} folders of PATH",
        cure=around.cure(role),
        fault=Fault.ABSENT,
    )


def programs(role: Role, name: str, named: str, around: Surroundings) -> tuple[Candidate, ...]:
    """Return the candidates of one program: the user's alone, or our own and those on PATH."""
    if named != "auto":
        return (Candidate(role=role, name=name, path=Path(named), where=f"--{name}"),)
    own = [(f / around.platform.program(name), OWN) for f in around.tool_folders]
    # The scripts folder may hold a Python program that only starts the real one.
    own = [place for place in own if place[0].exists()][:1]
    on_path = ((p, ON_PATH) for p in on_folders(around, re.escape(name)))
    return tuple(
        Candidate(role=role, name=name, path=p, where=w)
        for p, w in distinct((*own, *on_path))
        if os.path.lexists(p)
    )


def on_folders(around: Surroundings, stem: str) -> Iterator[Path]:
    """Yield the files on PATH whose whole name, without ``.exe``, matches the pattern."""
    suffix = r"\.exe" if around.platform.system is System.WINDOWS else ""
    pattern = re.compile(f"(?:{stem}){suffix}")
    for folder in around.folders:
        with contextlib.suppress(OSError):
            names = sorted(n for n in os.listdir(folder) if pattern.fullmatch(n))  # noqa: PTH208
            yield from (folder / n for n in names)


def distinct(places: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    """Yield each file once, whatever links lead to it; the first way to it counts."""
    seen: set[Path] = set()
    for path, where in places:
        real = path.resolve()
        if real not in seen:
            seen.add(real)
            yield path, where
