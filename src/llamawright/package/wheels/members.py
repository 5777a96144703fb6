"""Which files of an artifact go into its wheel, and under which names. Pure.

A wheel has no links: an installer would make copies of them, and one library under two
names is loaded twice (cases P4). So each library goes in once, under the name that others
import it by, and every import is looked up again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from llamawright.model.artifact import BinaryFacts, FileEntry, Manifest
from llamawright.package.cuda_names import is_driver_library
from llamawright.package.findings import Finding, refuse
from llamawright.package.layout import BIN, LICENSES

# The loaders of device APIs and the libraries of display drivers: each machine has its own.
DRIVER_LOADERS = ("libvulkan.", "libGL.", "libGLX", "libEGL", "libOpenCL.", "vulkan-1.dll")


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Paths in the artifact: the files below ``bin``, the programs among them, the licences."""

    binaries: tuple[str, ...]
    programs: tuple[str, ...]
    licenses: tuple[str, ...]


def wheel_members(manifest: Manifest, outside: Iterable[str]) -> Members:
    """Return the members of a wheel; ``outside`` are libraries that other wheels bring.

    Raises ``PackageError`` with every file that may not be in a wheel.
    """
    files = [entry for entry in manifest.files if not entry.link]
    binaries = tuple(e.path for e in files if _folder(e.path) == BIN)
    names = {PurePosixPath(path).name for path in binaries}
    findings = (
        *_doubles(files),
        *_drivers(names),
        *_unresolved(manifest, {*names, *outside, *manifest.system_libraries}),
    )
    refuse(f"the wheel of {manifest.name}", findings)
    return Members(
        binaries=binaries,
        programs=tuple(f"{BIN}/{name}" for name in manifest.programs if name in names),
        licenses=tuple(e.path for e in files if e.path.startswith(f"{LICENSES}/")),
    )


def is_driver(name: str) -> bool:
    """Whether a file belongs to a driver or a device API's loader: never part of a wheel."""
    return is_driver_library(name) or name.startswith(DRIVER_LOADERS)


def _folder(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()


def _doubles(files: Iterable[FileEntry]) -> Iterator[Finding]:
    groups: dict[str, list[str]] = defaultdict(list)
    for entry in files:
        if _folder(entry.path) == BIN:
            groups[entry.sha256].append(entry.path)
    for paths in groups.values():
        if len(paths) > 1:
            yield Finding(
                kind="identical-files",
                path=paths[0],
                what=f"it is the same file as {', '.join(paths[1:])}",
                cure="pack the artifact again: each library once, links for its other names",
            )


def _drivers(names: Iterable[str]) -> Iterator[Finding]:
    for name in sorted(filter(is_driver, names)):
        yield Finding(
            kind="driver-library",
            path=f"{BIN}/{name}",
            what="it belongs to a driver, and each machine has its own",
            cure="take it out of the artifact: the system brings it",
        )


def _unresolved(manifest: Manifest, known: set[str]) -> Iterator[Finding]:
    """Report imports that only a link of the artifact had satisfied."""
    for binary in manifest.binaries:
        for name in _own_imports(binary):
            if name not in known:
                yield Finding(
                    kind="unresolved-import",
                    path=binary.path,
                    what=f"it needs {name}, which no file of the wheel is called",
                    cure="give the library that name as its SONAME, and build again",
                )


def _own_imports(binary: BinaryFacts) -> Iterator[str]:
    """Yield imports without Apple's placeholders; Windows' names are compared as written."""
    for name in binary.imports:
        yield PurePosixPath(name).name if name.startswith("@") else name
