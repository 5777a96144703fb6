"""What went into an artifact, read from its manifest: tools, toolkits, patches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llamawright.model.artifact import Manifest

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
# How the key of a build tells of a set of provided tools (glslc and headers, nvcc):
# its name, its version, then the digest over the set's files.
_SET = re.compile(r"(?P<name>\S+) (?P<version>\S+)(?: set (?P<digest>[0-9a-f]{64}))?", re.ASCII)
_SETS = {"vulkan": "vulkan headers and glslc", "cuda toolkit": "cuda toolkit (nvcc)"}
_HOST_COMPILER = "cuda host compiler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """One thing that went in; ``digest`` is a sha256, empty when it was not recorded.

    ``where`` is how it was found, never a folder of the building machine.
    """

    role: str
    name: str
    version: str
    digest: str
    where: str = ""
    note: str = ""

    @property
    def is_patch(self) -> bool:
        """Whether it changed the source."""
        return self.role == "patch"


def materials(manifest: Manifest) -> tuple[Material, ...]:
    """Return every recorded material but the source itself, in the manifest's order."""
    return (*_patches(manifest), *_tools(manifest), *_sets(manifest))


def is_sha256(text: str) -> bool:
    """Whether a text is a whole sha256 in lower-case hex."""
    return _SHA256.fullmatch(text) is not None


def _patches(manifest: Manifest) -> Iterator[Material]:
    for patch in manifest.patches:
        yield Material(
            role="patch", name=patch.name, version="", digest=patch.sha256,
            note=f"{patch.type}: {patch.reason}",
        )  # fmt: skip


def _tools(manifest: Manifest) -> Iterator[Material]:
    for tool in manifest.tools:
        yield Material(
            role=tool.role, name=tool.name, version=tool.version, digest=tool.sha256,
            where=tool.where,
        )  # fmt: skip


def _sets(manifest: Manifest) -> Iterator[Material]:
    """Return the tool sets; a file's path in the text stays where it was."""
    for part in manifest.inputs:
        if part.name in _SETS and (found := _SET.match(part.value)):
            yield Material(
                role=_SETS[part.name], name=found["name"], version=found["version"],
                digest=found["digest"] or "",
            )  # fmt: skip
        elif part.name == _HOST_COMPILER:
            words = part.value.split()
            digests = [w for w in words if is_sha256(w)]
            yield Material(
                role=part.name, name=words[0] if words else "",
                version=words[1] if len(words) > 1 else "",
                digest=digests[-1] if digests else "",
            )  # fmt: skip
