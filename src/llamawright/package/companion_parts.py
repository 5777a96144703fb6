"""Which files go into a companion archive: cudart, cuBLAS, cuBLASLt and their licence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.cuda import CudaPlan
from llamawright.model.platform import Platform, System
from llamawright.package.cuda_names import is_driver_library, is_runtime_library
from llamawright.package.layout import BIN, LICENSES
from llamawright.package.reading import machine_name, read_binary

_FORMATS = {System.LINUX: "elf", System.WINDOWS: "pe"}
_LICENCES = f"{LICENSES}/cuda"
_DOCTOR = (
    "`llamawright doctor` shows the toolkits that were found; name another with `--cuda-toolkit`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of the archive: ``path`` in it, ``size`` in bytes."""

    path: str
    source: Path
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Library:
    name: str
    source: Path
    imports: tuple[str, ...]


def companion_parts(cuda: CudaPlan, platform: Platform) -> tuple[Part, ...]:
    """Return the libraries of a plan, each once under the name others import it by.

    Raises ``PackageError``; ``pack_companion`` lists the kinds.
    """
    found: dict[str, _Library] = {}
    for path in cuda.libraries:
        library = _library(path, cuda, platform)
        known = found.setdefault(library.name, library)
        if known.source != library.source:
            raise _unusable(library.name, cuda, f"it is there twice: {known.source}, {path}")
    _require_complete(found, cuda, platform)
    libraries = [_part(f"{BIN}/{name}", found[name].source) for name in sorted(found)]
    return (*libraries, _licence(cuda))


def _library(path: Path, cuda: CudaPlan, platform: Platform) -> _Library:
    """Follow links to the file itself and read its own name from it."""
    refuse_driver(path.name)
    if not path.is_file():
        raise _unusable(path.name, cuda, f"{path} is not there")
    source = path.resolve()
    if "stubs" in source.parts:
        raise PackageError(
            f"{path.name} of CUDA {cuda.toolkit} is only a stub to link against",
            why=f"{source} has no code in it",
            hint=_DOCTOR,
            kind="stub-library",
        )
    reading = read_binary(source, name=path.name)
    if reading is None:
        raise _unusable(path.name, cuda, f"{source} is no shared library, or a damaged one")
    facts = reading.facts
    wanted = machine_name(platform.machine)
    if facts.format != _FORMATS.get(platform.system) or facts.machine != wanted:
        why = f"{source} is a {facts.format} file for {facts.machine}, not for {platform.tag}"
        raise _unusable(path.name, cuda, why)
    # A DLL is loaded by its file name, whatever it calls itself.
    name = source.name if platform.system is System.WINDOWS else facts.soname or source.name
    refuse_driver(name)
    if not is_runtime_library(name):
        raise _unusable(name, cuda, "only cudart, cuBLAS and cuBLASLt may be given away here")
    return _Library(name=name, source=source, imports=facts.imports)


def refuse_driver(name: str) -> None:
    """Raise ``PackageError`` for a library of the driver."""
    if is_driver_library(name):
        raise PackageError(
            f"{name} may not go into any archive",
            why="it belongs to NVIDIA's driver: each machine has its own, and another's fails",
            hint="take it out of the toolkit's libraries; the system's driver brings it",
            kind="driver-library",
        )


def _require_complete(found: dict[str, _Library], cuda: CudaPlan, platform: Platform) -> None:
    folded = platform.system is System.WINDOWS
    names = {_folded(n, folded=folded) for n in found}
    for library in found.values():
        for name in _runtime(library.imports):
            if _folded(name, folded=folded) not in names:
                raise PackageError(
                    f"the companion archive of CUDA {cuda.toolkit} would not be whole",
                    why=f"{library.name} needs {name}, and the plan does not bring it",
                    hint=_DOCTOR,
                    kind="companion-incomplete",
                )


def _runtime(imports: Iterable[str]) -> list[str]:
    return [name for name in imports if is_runtime_library(name)]


def _folded(name: str, *, folded: bool) -> str:
    return name.lower() if folded else name


def _licence(cuda: CudaPlan) -> Part:
    if cuda.license is None or not cuda.license.is_file():
        raise PackageError(
            f"the runtime libraries of CUDA {cuda.toolkit} cannot be given away",
            why="their licence text must go along, and "
            + ("no one knows where it is" if cuda.license is None else f"{cuda.license} is gone"),
            hint="use a provided toolkit (`--cuda-toolkit provided`), or set `bundled = false` in "
            "the recipe: then the system must have the libraries",
            kind="companion-licence",
        )
    return _part(f"{_LICENCES}/{cuda.license.name}", cuda.license)


def _part(path: str, source: Path) -> Part:
    return Part(path=path, source=source, size=source.stat().st_size, sha256=sha256_file(source))


def _unusable(name: str, cuda: CudaPlan, why: str) -> PackageError:
    return PackageError(
        f"{name} of CUDA {cuda.toolkit} cannot go into the companion archive",
        why=why,
        hint=_DOCTOR,
        kind="companion-library",
    )
