"""Frozen types from plain JSON data, strictly: unknown or missing fields are errors."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from llamawright.digest import plain

T = TypeVar("T")


def decode(kind: type[T], data: object, *, what: str) -> T:
    """Return ``data`` as ``kind``; ``what`` names the source in the ``ValueError``."""
    return decode_text(kind, json.dumps(data, ensure_ascii=False), what=what)


def decode_text(kind: type[T], text: str, *, what: str) -> T:
    """Return JSON ``text`` as ``kind``: no unknown field, no missing one, no conversion."""
    try:
        return TypeAdapter(kind).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(p) for p in first["loc"])
        raise ValueError(f"{what}: {place or 'value'}: {first['msg']}") from error


def encode(value: object) -> str:
    """Return a frozen type as readable, sorted, deterministic JSON text."""
    return json.dumps(plain(value), sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def schema(kind: type[object]) -> dict[str, object]:
    """Return the JSON schema of a frozen type."""
    return TypeAdapter(kind).json_schema()
