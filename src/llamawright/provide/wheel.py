"""Toolchain parts that come as wheels of the Python index."""

from __future__ import annotations

from pathlib import Path

from llamawright.model.toolchain import ProvidedSet
from llamawright.transfer import unpack_archive

PREFIX = "cmeel.prefix"


def unpack_prefix(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack the install prefix that a wheel of the cmeel project carries."""
    for file, blob in zip(provided.files, blobs, strict=True):
        unpack_archive(blob, root, only=PREFIX, what=file.location)
