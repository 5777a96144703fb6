"""A runtime wheel: what it is called, what it needs, where its programs lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llamawright.model.artifact import Manifest

# The distribution's name, as an index shows it, and the name of its one Python package.
WHEEL_PROJECT = "llamawright-llama-cpp"
WHEEL_PACKAGE = "llamawright_llama_cpp"
WHEEL_SUFFIX = ".whl"
# Where a wheel keeps its manifest below its ``.dist-info`` folder.
WHEEL_MANIFEST = "llamawright/manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelContents:
    """A wheel as it was read, every byte compared with its RECORD.

    ``dist_info`` is the folder of its metadata, ``version`` the distribution's, ``tags`` are
    those of its WHEEL file, ``requires`` the distributions it depends on, ``scripts`` its
    console scripts with what they call. ``manifest`` is that of the artifact inside, whose
    files are relative to the Python package.
    """

    dist_info: str
    version: str
    tags: tuple[str, ...]
    requires: tuple[str, ...]
    scripts: tuple[tuple[str, str], ...]
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformClaim:
    """What a wheel says it runs on, and what was measured from its files.

    ``claimed`` is the platform part of its tag. ``policy`` is the oldest platform tag whose
    rules auditwheel finds kept, ``glibc`` the highest version that a file asks for; both are
    empty where the platform has no such thing.
    """

    claimed: str
    policy: str = ""
    glibc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltWheel:
    """A finished wheel: ``size`` in bytes, ``sha256`` of the file.

    ``source_sha256`` is that of the archive whose programs it holds, empty where only the
    wheel is known.
    """

    path: Path
    size: int
    sha256: str
    source_sha256: str
    version: str
    claim: PlatformClaim
    contents: WheelContents
