"""CMake options as a recipe writes them: ``NAME = { value = false, reason = "…" }``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llamawright.config.document import Place
from llamawright.config.option_names import check_option_name
from llamawright.config.typed import read_table
from llamawright.model.recipe import Option

TYPES = ("BOOL", "STRING", "PATH", "FILEPATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    value: object
    reason: str = ""
    type: str = ""
    guard: bool = False


def read_options(table: Mapping[str, object], place: Place) -> tuple[Option, ...]:
    """Return the options in the file's order; names CMake would ignore are refused."""
    for name in table:
        check_option_name(name, place.at(name))
    return tuple(_option(n, d, place.at(n)) for n, d in table.items())


def _option(name: str, data: object, place: Place) -> Option:
    entry = read_table(_Entry, data, place) if isinstance(data, dict) else _Entry(value=data)
    text = _text(entry.value, place)
    kind = entry.type or ("BOOL" if text in ("ON", "OFF") else "STRING")
    if kind not in TYPES:
        raise place.at("type").refuse(
            f"{name} cannot have the type {kind!r}",
            why=f"CMake's cache types are: {', '.join(TYPES)}",
            kind="bad-value",
        )
    return Option(name=name, value=text, type=kind, reason=entry.reason, guard=entry.guard)


def _text(value: object, place: Place) -> str:
    match value:
        case bool():
            return "ON" if value else "OFF"
        case int():
            return str(value)
        case str() if not set(value) & set("\n\r\0"):
            return value
        case _:
            raise place.refuse(
                f"{place.steps[-1]} needs true, false, a whole number or one line of text",
                why=f"it is {value!r}",
                kind="bad-value",
            )
