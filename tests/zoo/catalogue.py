"""Reads ``mutants.toml``: data in, mutants out, and no key that nobody knows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from zoo.model import Mutant, Named

HERE = Path(__file__).resolve().parent
CATALOGUE = HERE / "mutants.toml"
BASES = ("cpu", "vulkan", "cuda", "device")
KNOWN = {"name", "tells", "on", "do", "expect", "own", "flags", "model", "short"}


def read_catalogue(path: Path = CATALOGUE) -> tuple[Mutant, ...]:
    """Return all mutants in the file's order; raises ``ValueError`` for a wrong entry."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    groups = cast("Mapping[str, list[Mapping[str, object]]]", data)
    found = tuple(_mutant(group, row) for group, rows in groups.items() for row in rows)
    names = [mutant.name for mutant in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two mutants have one name: {', '.join(twice)}")
    return found


def _mutant(group: str, row: Mapping[str, object]) -> Mutant:
    strange = sorted(set(row) - KNOWN)
    if strange:
        raise ValueError(f"{row.get('name')}: unknown key {strange[0]}")
    if row["on"] not in BASES:
        raise ValueError(f"{row['name']}: 'on' is none of {', '.join(BASES)}")
    own = cast("Mapping[str, list[object]]", row.get("own", {}))
    return Mutant(
        name=str(row["name"]),
        group=group,
        tells=str(row["tells"]),
        on=str(row["on"]),
        changes=tuple(tuple(map(str, do)) for do in cast("list[list[object]]", row["do"])),
        expect=_named(cast("list[object]", row["expect"])),
        own={backend: _named(words) for backend, words in own.items()},
        flags=tuple(map(str, cast("list[object]", row.get("flags", [])))),
        model=str(row.get("model", "")),
        short=bool(row.get("short", False)),
    )


def _named(words: list[object]) -> Named:
    state, failure, code = words
    return Named(state=str(state), failure=str(failure), exit=int(str(code)))
