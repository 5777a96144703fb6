"""Which instruments can be had here: the machine's own, then provided ones."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import LlamawrightError
from llamawright.process import ask
from llamawright.verify import investigate_layers
from llamawright.verify.investigate_layers import Layers

VERSION = re.compile(r"(\d+(?:\.\d+)+)")
ASK_S = 20.0
MACHINE, PROVIDED = "machine", "provided"
INSTALL_GDB = "install the package gdb"
INSTALL_LAYERS = "install the package vulkan-validationlayers (elsewhere vulkan-validation-layers)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Debugger:
    """A debugger that answers; ``env`` is what it needs for itself."""

    program: Path
    env: tuple[tuple[str, str], ...]
    version: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """No instrument, with the reason and the package that would help."""

    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What can be provided without root; each raises when it cannot be had."""

    debugger: Callable[[], tuple[Path, Mapping[str, str]]] | None = None
    layers: Callable[[], Path] | None = None


def find_debugger(offers: Offers) -> Debugger | Absent:
    """Return the machine's gdb, or the provided one, or why there is none."""
    own = shutil.which("gdb")
    if own:
        found = _answering(Path(own), {}, MACHINE)
        if found is not None:
            return found
    if offers.debugger is None:
        return Absent(told=f"gdb is not installed and not provided for this system: {INSTALL_GDB}")
    try:
        program, env = offers.debugger()
    except LlamawrightError as error:
        return Absent(told=f"gdb is not installed, and {_reason(error)}: {INSTALL_GDB}")
    found = _answering(program, env, PROVIDED)
    return found or Absent(told=f"the provided gdb does not start here: {INSTALL_GDB}")


def find_layers(offers: Offers, env: Mapping[str, str] | None = None) -> Layers | Absent:
    """Return the machine's validation layer, or the provided one, or why there is none."""
    own = investigate_layers.of_machine(os.environ if env is None else env)
    if own is not None:
        return own
    if offers.layers is None:
        told = "not installed and not provided for this system"
        return Absent(told=f"{told}: {INSTALL_LAYERS}")
    try:
        folder = offers.layers()
    except LlamawrightError as error:
        return Absent(told=f"not installed, and {_reason(error)}: {INSTALL_LAYERS}")
    described = (investigate_layers.described(p, where=PROVIDED) for p in folder.glob("*.json"))
    found = next((d for d in described if d is not None), None)
    return found or Absent(told=f"the provided layers hold none of that name: {INSTALL_LAYERS}")


def _answering(program: Path, env: Mapping[str, str], where: str) -> Debugger | None:
    """Return a debugger that says its version: a broken one is as good as none."""
    own = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", **env}
    try:
        result = ask((str(program), "--nx", "--version"), seconds=ASK_S, env=own)
    except LlamawrightError:
        return None
    version = VERSION.search(result.stdout)
    if not result.ok or version is None or "GNU gdb" not in result.stdout:
        return None
    return Debugger(program=program, env=tuple(env.items()), version=version[1], where=where)


def _reason(error: LlamawrightError) -> str:
    why = error.why.splitlines()[0] if error.why else ""
    return f"cannot be provided ({error.what}{f': {why}' if why else ''})"
