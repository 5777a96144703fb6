"""Write a GGUF file, version 3: only what our own small models need.

The format is small and frozen, and its public writer would bring numpy and three more
packages into every installation; so this is our own, read back by the public reader in tests.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32


class Element(IntEnum):
    """What a tensor's numbers are, by ggml's own type numbers."""

    F32 = 0
    F16 = 1

    @property
    def size(self) -> int:
        """Return the bytes of one number."""
        return 4 if self is Element.F32 else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor: ``shape`` with the length of a row first, as ggml counts; little-endian data."""

    name: str
    shape: tuple[int, ...]
    element: Element
    data: bytes

    def __post_init__(self) -> None:
        wanted = math.prod(self.shape) * self.element.size
        if len(self.data) != wanted:
            raise ValueError(f"{self.name}: {len(self.data)} bytes, {wanted} by its shape")


# bool before int: Python counts it as one.
Value = bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[str]

# GGUF's numbers for the types of values.
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def gguf_bytes(values: Sequence[tuple[str, Value]], tensors: Sequence[Tensor]) -> bytes:
    """Return a whole file: the same values and tensors always give the same bytes."""
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(values))]
    head += [_text(key) + _value(value) for key, value in values]
    offset = 0
    for tensor in tensors:
        dims = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        head.append(_text(tensor.name) + dims + struct.pack("<IQ", tensor.element, offset))
        offset += len(_padded(tensor.data))
    return _padded(b"".join(head)) + b"".join(_padded(t.data) for t in tensors)


def _value(value: Value) -> bytes:
    if isinstance(value, str | bool | int | float):
        kind, data = _scalar(value)
        return struct.pack("<I", kind) + data
    items = [_scalar(item, signed=True) for item in value]
    return struct.pack("<IIQ", ARRAY, items[0][0], len(items)) + b"".join(d for _, d in items)


def _scalar(value: bool | float | str, *, signed: bool = False) -> tuple[int, bytes]:  # noqa: FBT001 - a value
    match value:
        case str():
            return STRING, _text(value)
        case bool():
            return BOOL, struct.pack("<?", value)
        case int():
            return (INT32 if signed else UINT32), struct.pack("<i" if signed else "<I", value)
        case float():
            return FLOAT32, struct.pack("<f", value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)
