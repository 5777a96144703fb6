"""Debian packages unpacked into one prefix, without dpkg and without root."""

from __future__ import annotations

import json
import os
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.model.toolchain import ProvidedSet
from llamawright.transfer import UnpackLimits, unpack_archive

PARTS = ("usr/include", "usr/lib", "usr/lib64", "usr/bin", "usr/share/cmake", "lib")
LAYER_PARTS = ("usr/lib", "usr/share/vulkan/explicit_layer.d")
PROGRAM_PARTS = ("usr/bin", "usr/lib", "lib")
DRIVER_PARTS = ("usr/lib", "lib", "usr/share/vulkan/icd.d")
SOFTWARE_ICD = "lvp_icd."
LIMITS = UnpackLimits(case_collisions=True, rebase_links=True)
WRAPPER = """\
#!/bin/sh
# Through the prefix's own loader and C library: the machine's may be too old for it.
here=${{0%/*}}/..
exec "$here/{loader}" --library-path "$here/{folder}" "$here/usr/bin/{program}" "$@"
"""


def unpack_prefix(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack a build side and put a wrapper of its glslc into ``bin``.

    The wrapper finds the prefix by its own place, so the store can be moved as a whole.
    """
    unpack_parts(provided, blobs, root, PARTS)
    loaders = sorted(root.glob("usr/lib/*/ld-linux-*.so.*"))
    if not loaders:
        raise _lacks(provided, "a program loader (libc6)")
    if not (root / "usr/bin/glslc").is_file():
        raise _lacks(provided, "usr/bin/glslc")
    loader = loaders[0].relative_to(root)
    wrapper = root / "bin" / "glslc"
    wrapper.parent.mkdir()
    text = WRAPPER.format(
        loader=loader.as_posix(), folder=loader.parent.as_posix(), program="glslc"
    )
    wrapper.write_text(text, encoding="ascii", newline="\n")
    wrapper.chmod(0o755)


def unpack_driver(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack the software driver alone: the packages' other drivers are removed.

    A hardware driver beside it would be probed too, on machines it was not made for.
    """
    unpack_parts(provided, blobs, root, DRIVER_PARTS)
    kept = 0
    for icd in sorted(root.glob("usr/share/vulkan/icd.d/*.json")):
        name = Path(_library(icd)).name
        library = next(iter(sorted(root.glob(f"usr/lib/*/{name}"))), None)
        if icd.name.startswith(SOFTWARE_ICD) and library is not None:
            _point(icd, library)
            kept += 1
            continue
        icd.unlink()
        if library is not None:
            library.unlink()
    if kept != 1:
        raise _lacks(provided, "the software driver's ICD file")


def unpack_layers(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack validation layers; each file that describes one names its library by its place."""
    unpack_parts(provided, blobs, root, LAYER_PARTS)
    described = sorted(root.glob("usr/share/vulkan/explicit_layer.d/*.json"))
    if not described:
        raise _lacks(provided, "a layer's description")
    for path in described:
        data = json.loads(path.read_text(encoding="utf-8"))
        name = Path(str(data["layer"]["library_path"])).name
        library = next(iter(sorted(root.glob(f"usr/lib/*/{name}"))), None)
        if library is None:
            raise _lacks(provided, name)
        relative = Path(os.path.relpath(library, path.parent)).as_posix()
        data["layer"]["library_path"] = relative
        path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def unpack_program(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack programs with the libraries that are theirs alone; nothing is rewritten."""
    unpack_parts(provided, blobs, root, PROGRAM_PARTS)


def unpack_parts(
    provided: ProvidedSet, blobs: tuple[Path, ...], root: Path, parts: tuple[str, ...]
) -> None:
    """Unpack the named folders of all packages of a set, and their licences."""
    for file, blob in zip(provided.files, blobs, strict=True):
        copyright_file = f"usr/share/doc/{file.package}/copyright"
        what = f"{file.package} {file.version}"
        unpack_archive(blob, root, include=(*parts, copyright_file), limits=LIMITS, what=what)


def _library(icd: Path) -> str:
    data = json.loads(icd.read_text(encoding="utf-8"))
    return str(data["ICD"]["library_path"])


def _point(icd: Path, library: Path) -> None:
    """Let the ICD file name its library relative to itself, as the loader allows."""
    data = json.loads(icd.read_text(encoding="utf-8"))
    data["ICD"]["library_path"] = Path(os.path.relpath(library, icd.parent)).as_posix()
    icd.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _lacks(provided: ProvidedSet, what: str) -> ToolMissingError:
    return ToolMissingError(
        f"the set {provided.name} lacks {what}",
        why="its packages unpacked without an error, but it is not in them",
        hint="its pins in toolchains/ do not belong together: renew all of them from one index",
        kind="incomplete-set",
    )
