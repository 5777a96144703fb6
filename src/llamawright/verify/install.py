"""The unpacked artifact and the reference beside it, in a folder of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import BackendRule
from llamawright.process import base_environment
from llamawright.transfer.opened import Harm

# What leads a loader to a driver: the user's own choice of it must reach the program.
DRIVER_VARIABLES = (
    "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT",
    "VK_LOADER_DRIVERS_DISABLE", "XDG_DATA_DIRS", "DRI_PRIME", "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """An unpacked artifact: ``bin`` holds programs, libraries and modules together."""

    root: Path
    platform: Platform

    @property
    def bin(self) -> Path:
        """Return the folder of the programs."""
        return self.root / "bin"

    def program(self, stem: str) -> Path:
        """Return a program of the artifact."""
        return self.bin / self.platform.program(stem)

    def modules(self, patterns: Iterable[str]) -> tuple[Path, ...]:
        """Return the backend modules whose stems fit one of the recipe's patterns."""
        wanted = [self.platform.module(p) for p in patterns]
        files = sorted(p for p in self.bin.iterdir() if p.is_file() and not p.is_symlink())
        return tuple(p for p in files if any(fnmatch(p.name, w) for w in wanted))


def missing_modules(
    install: Install, manifest: Manifest, rules: Sequence[BackendRule]
) -> tuple[str, ...]:
    """Return the module files that this backend needs and the artifact does not hold."""
    rule = rule_of(rules, manifest.backend)
    return tuple(install.platform.module(p) for p in rule.modules if not install.modules((p,)))


def lost_modules(error: PackageError, rules: Sequence[BackendRule], platform: Platform) -> str:
    """Return the modules that an archive's refusal calls missing, as one phrase."""
    patterns = [platform.module(p) for r in rules for p in r.modules]
    lost = []
    for line in error.why.splitlines():
        path, _, harm = line.rpartition(": ")
        name = path.rpartition("/")[2]
        if harm == Harm.MISSING.value and any(fnmatch(name, p) for p in patterns):
            lost.append(name)
    return ", ".join(lost)


def rule_of(rules: Sequence[BackendRule], backend: Backend) -> BackendRule:
    """Return the recipe's rule of a backend; a missing one is a recipe of another world."""
    found = next((r for r in rules if r.backend is backend), None)
    if found is None:
        raise PackageError(
            f"the recipe does not know the artifact's backend '{backend}'",
            why=f"it has rules for: {', '.join(str(r.backend) for r in rules) or 'none'}",
            hint="name the recipe that the artifact was built with: --recipe NAME",
            kind="unknown-backend",
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a device is compared with.

    ``same_modules``: the artifact has but one CPU backend, so the reference must take that
    one's plain paths.
    """

    install: Install
    told: str
    same_modules: bool = False


def reference_without_modules(
    install: Install,
    dest: Path,
    rules: Sequence[BackendRule],
    *,
    leave_out: frozenset[str] = frozenset(),
) -> Reference:
    """Copy the install without any device's module: what is left can only use the CPU.

    ``leave_out`` are libraries that only a module uses; they may be large.

    Switching the device off by a flag is not enough: the module would still start it.
    """
    device_rules = [r for r in rules if r.backend is not Backend.CPU]
    dropped = install.modules([p for r in device_rules for p in r.modules])
    names = {p.name for p in dropped}
    told = f"the same archive without {', '.join(sorted(names))}, on the CPU"
    return Reference(install=_copy(install, dest, leave_out=names | leave_out), told=told)


def reference_with_baseline(
    install: Install, dest: Path, rules: Sequence[BackendRule], baselines: Sequence[str]
) -> Reference:
    """Copy the install with its plainest CPU variant only."""
    variants = {p.name for p in install.modules(rule_of(rules, Backend.CPU).modules)}
    plain = next((p.name for b in baselines for p in install.modules((b,))), "")
    if plain and len(variants) > 1:
        told = f"the same archive with no CPU variant but {plain}"
        return Reference(install=_copy(install, dest, leave_out=variants - {plain}), told=told)
    told = f"{', '.join(sorted(variants))} without repacked weights and flash attention"
    return Reference(install=_copy(install, dest, leave_out=set()), told=told, same_modules=True)


def clean_environment(scratch: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of every run: allow-listed, with all folders below ``scratch``.

    A shader cache of the user's is evidence of nothing, so every proof compiles its own.
    Drivers may be installed below the user's data folder, so that one stays.
    """
    kept = {k: os.environ[k] for k in DRIVER_VARIABLES if k in os.environ}
    home = os.environ.get("HOME")
    data = os.environ.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else "")
    places = {
        "HOME": scratch / "home",
        "USERPROFILE": scratch / "home",
        "TMPDIR": scratch / "tmp",
        "TMP": scratch / "tmp",
        "TEMP": scratch / "tmp",
        "XDG_CACHE_HOME": scratch / "cache",
    }
    for place in set(places.values()):
        place.mkdir(parents=True, exist_ok=True)
    own = {k: str(v) for k, v in places.items()}
    return base_environment({**kept, **own, **({"XDG_DATA_HOME": data} if data else {}), **extra})


def driver_choice(more: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return the user's own variables that choose a driver, and those named."""
    names = dict.fromkeys((*DRIVER_VARIABLES, *more))
    return tuple((k, os.environ[k]) for k in names if k in os.environ)


def _copy(install: Install, dest: Path, *, leave_out: set[str]) -> Install:
    shutil.copytree(
        install.bin,
        dest / "bin",
        symlinks=True,
        ignore=lambda _folder, names: leave_out & set(names),
    )
    return Install(root=dest, platform=install.platform)
