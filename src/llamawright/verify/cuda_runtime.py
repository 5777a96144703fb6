"""CUDA's runtime libraries: the companion archive beside the artifact, or the system's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import DownloadError
from llamawright.model.artifact import Manifest
from llamawright.model.cuda import Companion
from llamawright.model.verdict import State
from llamawright.process import ask
from llamawright.transfer import unpack_archive
from llamawright.transfer.opened import LIMITS
from llamawright.verify.install import Install
from llamawright.verify.judge import Ruling, hint_of
from llamawright.verify.patterns_cuda import RUNTIME_LIBRARY, TOOLKIT_FOLDERS

# Loads each library by the name that a module imports, and prints those that cannot be.
LOAD = """
import ctypes, json, sys
missing = {}
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        missing[name] = str(error)
print(json.dumps(missing))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Where the libraries come from: a sentence, and the file names added to the install."""

    told: str
    added: frozenset[str] = frozenset()


def check_companion(companion: Companion | None, folder: Path) -> Ruling | None:
    """Refuse a companion archive in ``folder`` that is not the artifact's."""
    if companion is None or not companion.file:
        return None
    place = folder / companion.file
    if not place.is_file():
        return None
    size = place.stat().st_size
    actual = sha256_file(place)
    if actual == companion.sha256:
        return None
    return Ruling(
        state=State.FAILED,
        failure="companion-mismatch",
        why=f"{companion.file} has {size} bytes with the sha256 {actual}; the artifact was built "
        f"with {companion.size} bytes and {companion.sha256}",
        hint=hint_of("companion-mismatch"),
    )


def provide_runtime(
    companion: Companion | None,
    install: Install,
    manifest: Manifest,
    *,
    folder: Path,
    env: Mapping[str, str],
    seconds: float,
) -> Runtime | Ruling:
    """Unpack the companion over the install, or ask the system's loader for the libraries."""
    if companion is not None and companion.file and (folder / companion.file).is_file():
        return _unpacked(folder / companion.file, install)
    names = wanted_libraries(companion, install, manifest)
    missing = missing_libraries(names, env, seconds)
    if missing:
        return _missing(missing, companion, folder)
    if not names:
        found = installed_libraries(install, manifest)
        told = f"{', '.join(found)} installed beside the wheel" if found else "none is imported"
        return Runtime(told=told)
    beside = (
        f"; {companion.file} is not beside the artifact" if companion and companion.file else ""
    )
    return Runtime(told=f"the system's {', '.join(names)}{beside}")


def _unpacked(archive: Path, install: Install) -> Runtime | Ruling:
    try:
        added = unpack_archive(archive, install.root, strip=1, limits=LIMITS)
    except DownloadError as error:
        return Ruling(
            state=State.FAILED,
            failure="companion-mismatch",
            why=f"{archive.name} cannot be unpacked over the artifact: {error.why}",
            hint=hint_of("companion-mismatch"),
        )
    names = frozenset(Path(name).name for name in added if name.startswith("bin/"))
    return Runtime(told=f"those of the companion {archive.name}", added=names)


def wanted_libraries(
    companion: Companion | None, install: Install, manifest: Manifest
) -> tuple[str, ...]:
    """Return the names that the artifact's files import and do not bring themselves."""
    imports = {name for binary in manifest.binaries for name in binary.imports}
    told = imports or set(companion.libraries if companion else ())
    found = sorted(n for n in told if RUNTIME_LIBRARY.fullmatch(n))
    there = installed_libraries(install, manifest)
    return tuple(n for n in found if n not in there and not (install.bin / n).exists())


def installed_libraries(install: Install, manifest: Manifest) -> tuple[str, ...]:
    """Return the runtime libraries that a module's own run path leads to, outside ``bin``.

    So NVIDIA's distributions are found by an installed wheel; a loader that is asked by the
    bare name alone does not know of them.
    """
    found: set[str] = set()
    for binary in manifest.binaries:
        place = (install.root / binary.path).parent
        folders = [Path(part.replace("$ORIGIN", str(place))) for part in binary.runpath if part]
        names = (n for n in binary.imports if RUNTIME_LIBRARY.fullmatch(n))
        found |= {n for n in names if any((f / n).is_file() for f in folders if f != place)}
    return tuple(sorted(found))


def missing_libraries(
    names: Iterable[str], env: Mapping[str, str], seconds: float
) -> dict[str, str]:
    """Return the libraries that the system's loader does not find, with its words, by name."""
    wanted = tuple(names)
    if not wanted:
        return {}
    result = ask((sys.executable, "-I", "-c", LOAD, *wanted), seconds=seconds, env=env)
    try:
        found = json.loads(result.stdout)
    except ValueError:
        # A library that kills its loader is there; the runs will say the rest.
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def runtime_ruling(library: str, why: str, companion: Companion | None, folder: Path) -> Ruling:
    """Return the verdict of a library that nobody has: the machine lacks it."""
    return _missing({library: why}, companion, folder)


def _missing(missing: Mapping[str, str], companion: Companion | None, folder: Path) -> Ruling:
    names = ", ".join(sorted(missing))
    why = f"the module needs {names}, which the loader does not find"
    if companion is not None and companion.file:
        why += f", and {companion.file} is not in {folder}"
        hint = f"put {companion.file} beside the artifact"
    else:
        hint = "install the CUDA runtime and cuBLAS of the same major version"
    elsewhere = toolkit_folder(missing, TOOLKIT_FOLDERS)
    if elsewhere is not None:
        why += f"; {elsewhere} has it, and the loader does not look there"
        hint += (
            f"; or make that folder known: write it into /etc/ld.so.conf.d/cuda.conf and run "
            f"ldconfig, or set LD_LIBRARY_PATH={elsewhere}"
        )
    return Ruling(state=State.CANNOT_VERIFY, failure="runtime-missing", why=why, hint=hint)


def toolkit_folder(names: Iterable[str], patterns: Iterable[str]) -> Path | None:
    """Return a toolkit's folder that holds all of the libraries, if there is one."""
    wanted = list(names)
    for pattern in patterns:
        for folder in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            if all((folder / name).exists() for name in wanted):
                return folder
    return None
