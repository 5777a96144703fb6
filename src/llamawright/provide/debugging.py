"""Tools that look into a failure: how a program is led to them, and the proof that they work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.process import Result, ask, base_environment

PROBE_S = 30.0
SUM = ("print 6*7", "$1 = 42")
LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


def debugger_of(root: Path) -> tuple[Path, dict[str, str]]:
    """Return the debugger below ``root``, and the variables that it needs itself.

    They are the debugger's own: what it debugs must get an environment without them.
    """
    folders = (p for part in ("usr/lib", "lib") for p in sorted(root.glob(f"{part}/*-linux-*")))
    path = ":".join(str(p) for p in folders if p.is_dir())
    return root / "usr" / "bin" / "gdb", {"LD_LIBRARY_PATH": path}


def layers_of(root: Path) -> tuple[str, Path]:
    """Return the name of the validation layer below ``root`` and the folder that describes it."""
    found = sorted(root.glob("usr/share/vulkan/explicit_layer.d/*.json"))
    if len(found) != 1:
        raise _broken("validation layers", f"it holds {len(found)} layers, not one")
    data = json.loads(found[0].read_text(encoding="utf-8"))
    return str(data["layer"]["name"]), found[0].parent


def prove_debugger(root: Path) -> str:
    """Let the debugger add two numbers, and return the program's path."""
    program, env = debugger_of(root)
    ask_for, answer = SUM
    argv = (str(program), "--batch", "--nx", "-ex", ask_for)
    result = ask(argv, seconds=PROBE_S, env=base_environment(env))
    if not result.ok or answer not in result.stdout:
        raise _broken("debugger", f"asked to {ask_for}, it {_did(result)}")
    return str(program)


def prove_layers(root: Path) -> str:
    """Load the layer's library in a child, and return the layer's name."""
    name, folder = layers_of(root)
    described = json.loads(next(iter(folder.glob("*.json"))).read_text(encoding="utf-8"))
    library = (folder / described["layer"]["library_path"]).resolve()
    result = ask((sys.executable, "-I", "-c", LOAD, str(library)), seconds=PROBE_S)
    if not result.ok:
        raise _broken("validation layers", f"loading {library.name}, the system {_did(result)}")
    return name


def _did(result: Result) -> str:
    last = result.tail[-1] if result.tail else "nothing"
    return f"ended {result.ending} with status {result.returncode} and said: {last}"


def _broken(what: str, why: str) -> ToolMissingError:
    return ToolMissingError(
        f"the provided {what} does not work here",
        why=why,
        hint="it is made on Debian 12: on other systems install the system's own "
        "(gdb, vulkan-validationlayers)",
        kind="tool-unusable",
    )
