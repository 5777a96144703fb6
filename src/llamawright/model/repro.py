"""What a comparison of two packed files found: same, same after strip, or which differences."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Cause(StrEnum):
    """Why a member of two archives differs."""

    ONLY_IN_A = "only in A"
    ONLY_IN_B = "only in B"
    ORDER = "member order"
    MTIME = "mtime"
    MODE = "mode"
    OWNER = "owner"
    KIND = "kind"
    LINK = "link target"
    COMPRESSION = "compression or container"
    BUILD_ID = "build id"
    SYMBOLS = "stripped sections"
    SECTION = "section"
    PATH = "embedded path"
    TIMESTAMP = "timestamp"
    DIGEST = "digest of a differing file"
    CONTENT = "content"


# What is gone when both files are stripped: symbols, debug information, the link's own hash.
STRIPPED = frozenset({Cause.BUILD_ID, Cause.SYMBOLS, Cause.DIGEST})


class Sameness(StrEnum):
    """How equal two files are."""

    IDENTICAL = "identical"
    STRIPPED = "identical after strip"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """One difference: the member (empty for the file itself), its cause, what was seen."""

    path: str
    cause: Cause
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two files, compared byte for byte. ``members`` counts those of the first one."""

    a: Path
    b: Path
    sha256_a: str
    sha256_b: str
    members: int
    differences: tuple[Differing, ...]

    @property
    def sameness(self) -> Sameness:
        """Return how equal the files are; what only follows from stripped parts counts less."""
        if self.sha256_a == self.sha256_b:
            return Sameness.IDENTICAL
        causes = {d.cause for d in self.differences}
        real = causes - STRIPPED - {Cause.COMPRESSION}
        # A digest in a text is harmless only as the consequence of a stripped difference.
        if not real and causes & {Cause.BUILD_ID, Cause.SYMBOLS}:
            return Sameness.STRIPPED
        return Sameness.DIFFERENT
