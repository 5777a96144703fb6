"""Digests of files, trees and plain data: the one meaning of "the same"."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import TypeAlias

CHUNK = 1 << 20
Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"


def sha256_file(path: Path) -> str:
    """Return the sha256 of a file's bytes as 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_bytes(data: bytes) -> str:
    """Return the sha256 of ``data`` as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest_data(value: object) -> str:
    """Return the sha256 over the canonical JSON of plain data or frozen dataclasses."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256_bytes(text.encode())


def plain(value: object) -> Plain:
    """Turn frozen dataclasses, enums, paths, tuples and mappings into plain JSON data.

    Raises ``TypeError`` for anything else: a key must never hold a value whose text
    depends on the process (an object's address, say).
    """
    result: Plain
    match value:
        case Enum():
            result = plain(value.value)
        case None | bool() | int() | float() | str():
            result = value
        case PurePath():
            result = value.as_posix()
        case Mapping():
            result = {str(k): plain(v) for k, v in value.items()}
        case list() | tuple():
            result = [plain(v) for v in value]
        case set() | frozenset():
            result = sorted((plain(v) for v in value), key=repr)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            result = {f.name: plain(getattr(value, f.name)) for f in fields}
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical form")
    return result


def tree_digest(root: Path, names: Iterable[str] | None = None) -> str:
    """Return the digest of a file tree: sorted POSIX path, kind and content.

    Times, owners and mode bits do not count, so the same files give the same digest from
    a tar, a zip or a git checkout, on any system. ``names`` limits it to those files.
    """
    total = hashlib.sha256()
    files = sorted(names) if names is not None else list_files(root)
    for name in files:
        path = root / name
        if path.is_symlink():
            entry = f"link {name}\0{path.readlink()}\n"
        else:
            entry = f"file {name}\0{sha256_file(path)}\n"
        total.update(entry.encode())
    return total.hexdigest()


def list_files(root: Path) -> list[str]:
    """Return every file and link below ``root`` as sorted POSIX paths relative to it."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        base = Path(folder)
        linked = [d for d in folders if (base / d).is_symlink()]
        found += [(base / f).relative_to(root).as_posix() for f in (*files, *linked)]
    return sorted(found)
