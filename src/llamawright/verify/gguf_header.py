"""The head of a GGUF file: enough to know what a device must hold, and that it is whole.

Format: github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little endian.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from llamawright.errors import UsageError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_ENTRIES = 1 << 20
MAX_TEXT = 64 << 20
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
TEXT, ARRAY = 8, 9
EMBEDDINGS = "token_embd.weight"
# Elements and bytes of one block of each tensor type (ggml.h, ggml-common.h of 0c1e57098).
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110),
    22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8),
    29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What a model file says of itself.

    ``weights`` are all tensors' bytes, ``embeddings`` those of the token embeddings, which
    stay on the host. ``layers`` is the block count, 0 when it does not say.
    """

    architecture: str
    layers: int
    weights: int
    embeddings: int

    @property
    def on_device(self) -> int:
        """Return the bytes that a device must hold when every layer is offloaded."""
        return self.weights - self.embeddings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    """One tensor's place; ``size`` is 0 for a type that is not in ``BLOCKS``."""

    name: str
    offset: int
    size: int


class _Reader:
    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def bytes(self, count: int) -> bytes:
        data = self.stream.read(count) if count <= MAX_TEXT else b""
        if len(data) != count:
            raise EOFError
        return data

    def scalar(self, kind: int) -> int | float | bool:
        form = struct.Struct("<" + SCALARS[kind])
        value: int | float | bool = form.unpack(self.bytes(form.size))[0]
        return value

    def count(self) -> int:
        value = int(self.scalar(10))
        if value > MAX_TEXT:
            raise EOFError
        return value

    def text(self) -> str:
        return self.bytes(self.count()).decode(errors="replace")

    def value(self, kind: int) -> object:
        if kind == TEXT:
            return self.text()
        if kind != ARRAY:
            return self.scalar(kind)
        inner, count = int(self.scalar(4)), self.count()
        if inner in SCALARS:
            self.bytes(count * struct.calcsize("<" + SCALARS[inner]))
        else:
            for _ in range(count):
                self.value(inner)
        return None


def read_header(path: Path) -> GgufHeader:
    """Read a model's head; ``UsageError`` when it is no GGUF file or was cut short."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            if stream.read(4) != MAGIC:
                raise _refuse(path, "not-gguf", "it does not begin with GGUF")
            return _read(_Reader(stream), path, size)
    except OSError as error:
        raise _refuse(path, "unreadable-model", error.strerror or str(error)) from error
    except (EOFError, struct.error, KeyError, ValueError) as error:
        raise _refuse(path, "broken-model", "its head ends early or makes no sense") from error


def _read(reader: _Reader, path: Path, size: int) -> GgufHeader:
    version = int(reader.scalar(4))
    if version not in VERSIONS:
        raise _refuse(path, "unknown-gguf", f"its GGUF version is {version}, not 2 or 3")
    tensors, entries = reader.count(), reader.count()
    if tensors > MAX_ENTRIES or entries > MAX_ENTRIES:
        raise EOFError
    facts: dict[str, object] = {}
    for _ in range(entries):
        key = reader.text()
        facts[key] = reader.value(int(reader.scalar(4)))
    tensors_there = tuple(_tensor(reader) for _ in range(tensors))
    alignment = _whole(facts.get("general.alignment")) or DEFAULT_ALIGNMENT
    start = -(-reader.stream.tell() // alignment) * alignment
    return _header(path, facts, tensors_there, size - start)


def _tensor(reader: _Reader) -> _Tensor:
    name = reader.text()
    shape = [int(reader.scalar(10)) for _ in range(int(reader.scalar(4)))]
    block, size = BLOCKS.get(int(reader.scalar(4)), (1, 0))
    offset = int(reader.scalar(10))
    return _Tensor(name=name, offset=offset, size=math.prod(shape) // block * size)


def _header(
    path: Path, facts: dict[str, object], tensors: tuple[_Tensor, ...], data: int
) -> GgufHeader:
    end = max((t.offset + max(t.size, 1) for t in tensors), default=1)
    if end > data:
        raise _refuse(path, "truncated-model", f"{end - data} bytes of its tensors are missing")
    architecture = str(facts.get("general.architecture", ""))
    known = all(t.size for t in tensors)
    return GgufHeader(
        architecture=architecture,
        layers=_whole(facts.get(f"{architecture}.block_count")),
        weights=sum(t.size for t in tensors) if known else data,
        embeddings=sum(t.size for t in tensors if t.name == EMBEDDINGS),
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _refuse(path: Path, kind: str, why: str) -> UsageError:
    return UsageError(
        f"{path.name} cannot be used as a model",
        why=why,
        hint="name a whole GGUF file with --model, or leave it out for the pinned model",
        kind=kind,
    )
