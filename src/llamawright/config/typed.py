"""Plain TOML data to frozen dataclasses, strictly: no unknown key, no wrong type."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar, cast

from llamawright.config.document import Place, suggestion

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
SEEN = {
    "dict": "a table", "list": "a list", "str": "text", "bool": "true or false",
    "int": "a whole number", "float": "a number", "datetime": "a date",
}  # fmt: skip
REQUIRED = dataclasses.MISSING


def read_table(kind: type[T], data: object, place: Place) -> T:
    """Return a table as the dataclass ``kind``; every field without default is required.

    Raises ``UsageError`` with file, line and the nearest known key.
    """
    table = as_table(data, place)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    refuse_unknown(table, fields, place)
    for name, field in fields.items():
        optional = field.default is not REQUIRED or field.default_factory is not REQUIRED
        if name not in table and not optional:
            raise place.refuse(
                f"{place.name} lacks '{name}'",
                why=f"these keys are needed or known here: {', '.join(fields)}",
                hint=f"add {name} = …",
                kind="missing-key",
            )
    hints = typing.get_type_hints(kind)
    values = {n: read_value(hints[n], v, place.at(n)) for n, v in table.items()}
    return kind(**values)


def as_table(data: object, place: Place) -> dict[str, object]:
    """Return ``data`` when it is a table."""
    if not isinstance(data, dict):
        raise _wrong(place, "a table", data)
    return cast("dict[str, object]", data)


def refuse_unknown(table: Mapping[str, object], known: typing.Iterable[str], place: Place) -> None:
    """Raise for the first key that is not known here, with the nearest one that is."""
    names = sorted(known)
    for key in table:
        if key not in names:
            raise place.at(key).refuse(
                f"unknown key '{key}' in {place.name}",
                why=f"the keys known here are: {', '.join(names)}",
                hint=suggestion(key, names),
                kind="unknown-key",
            )


def read_value(hint: object, data: object, place: Place) -> object:
    """Return ``data`` as the annotation ``hint``: scalar, enum, tuple, mapping, dataclass."""
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Union | types.UnionType:
            inner = next(a for a in arguments if a is not type(None))
            return read_value(inner, data, place)
        case kind if kind is tuple:
            if not isinstance(data, list):
                raise _wrong(place, "a list", data)
            return tuple(read_value(arguments[0], v, place.at(i)) for i, v in enumerate(data))
        case kind if kind is dict:
            table = as_table(data, place)
            return {k: read_value(arguments[1], v, place.at(k)) for k, v in table.items()}
        case None if hint is object:
            return data
        case None if isinstance(hint, type):
            return _single(hint, data, place)
        case _:
            raise TypeError(f"{hint} has no form in a settings file")


def _single(kind: type, data: object, place: Place) -> object:
    if dataclasses.is_dataclass(kind):
        return read_table(kind, data, place)
    if issubclass(kind, StrEnum):
        return _enum(kind, data, place)
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is not kind or (kind is float and not math.isfinite(cast("float", data))):
        raise _wrong(place, NAMES.get(kind, kind.__name__), data)
    return data


def _enum(kind: type[StrEnum], data: object, place: Place) -> StrEnum:
    words = [str(m) for m in kind]
    if isinstance(data, str) and data in words:
        return kind(data)
    raise place.refuse(
        f"{place.name} cannot be {data!r}",
        why=f"it is one of: {', '.join(words)}",
        hint=suggestion(str(data), words),
        kind="bad-value",
    )


def _wrong(place: Place, wanted: str, data: object) -> Exception:
    seen = SEEN.get(type(data).__name__, type(data).__name__)
    return place.refuse(
        f"{place.name} must be {wanted}",
        why=f"it is {seen}: {str(data)[:60]}",
        hint=f"write {place.name.rpartition('.')[2]} as {wanted}",
        kind="bad-value",
    )
