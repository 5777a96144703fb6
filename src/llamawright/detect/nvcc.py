"""What an nvcc says of itself: its build, what it compiles for, and the root it belongs to."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from llamawright.detect.binary import standing
from llamawright.detect.probe import Problem, run_tool, succeed, telling_line
from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Fault

# "Cuda compilation tools, release 12.4, V12.4.131"
_BUILD = re.compile(r"\brelease (\d{1,3}\.\d{1,3}), V(\d{1,3}\.\d{1,3}\.\d{1,6})\b")
_CODE = re.compile(r"^compute_(\d{2,3}[af]?)\s*$", re.MULTILINE)
_TOLD = re.compile(
    r"^#\$ (_HERE_|TOP|CICC_PATH|INCLUDES|SYSTEM_INCLUDES|LIBRARIES)=(.*)$", re.MULTILINE
)
_FOLDER = re.compile(r'(?:-I|-L|/LIBPATH:|(?<="))([^"\s][^"]*)"|(?:-I|-L)([^"\s]+)')
_INSIDE = re.compile(rb"(/[^\s\"']+/nvcc)\b")
DRY_RUN = ("-v", "--dryrun", "x.cu")
CACHES = ("ccache", "sccache", "buildcache")
SCRIPT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvcc:
    """An nvcc that ran. ``version`` such as ``12.4.131``; ``codes`` such as ``61``, ``90a``.

    ``path`` is the program itself, not a wrapper of it, and ``root`` its toolkit, with every
    link resolved. ``includes``, ``libraries`` and ``cicc`` are the folders it would use;
    they are empty where it did not tell, for it tells them only with a host compiler.
    """

    path: Path
    root: Path
    version: str
    codes: tuple[str, ...]
    includes: tuple[Path, ...] = ()
    libraries: tuple[Path, ...] = ()
    cicc: Path | None = None

    @property
    def release(self) -> str:
        """Return the toolkit's release, ``12.4``."""
        return ".".join(self.version.split(".")[:2])


def resolved(path: Path) -> Path:
    """Return a path without links; links in a circle stay, where ``Path.resolve`` would raise."""
    return Path(os.path.realpath(path))


def real_path(path: Path) -> Path:
    """Return the program behind a link: nvcc called by a link finds no ``nvcc.profile``."""
    real = resolved(path)
    return real if real.stem == path.stem else path


def ask_nvcc(path: Path, around: Surroundings) -> Nvcc | Problem:
    """Return what an nvcc, or a script around one, tells; or why it cannot be used."""
    wrong = standing(path, runs=True)
    if wrong:
        return Problem(wrong[0], f"{path}: {wrong[1]}")
    if resolved(path).stem in CACHES:
        reason = f"{path} is a link to {resolved(path).stem}; a compiler cache is chosen by --cache"
        return Problem(Fault.UNSUPPORTED, reason)
    program = real_path(path)
    version = _version(program, around)
    if isinstance(version, Problem):
        return Problem(version.fault, f"{path}: {version.reason}")
    codes = _codes(program, around)
    if isinstance(codes, Problem):
        return Problem(codes.fault, f"{path} {version}: {codes.reason}")
    return _placed(program, version, codes, around)


def inner_nvcc(path: Path) -> Path:
    """Return the nvcc behind a link or a wrapper script, as far as its text names it."""
    program = real_path(path)
    return _wrapped(program) or program


def own_root(path: Path) -> Path:
    """Return the root in which an nvcc stands; the file itself when it is in none.

    A script that only starts another nvcc has no root of its own, wherever it stands.
    """
    program = real_path(path)
    alone = _wrapped(program) or program.parent.name != "bin"
    return program if alone else program.parent.parent


def _version(program: Path, around: Surroundings) -> str | Problem:
    told = succeed((str(program), "--version"), around, seconds=around.short_s)
    if isinstance(told, Problem):
        return told
    build = _BUILD.search(told.stdout)
    if build is None:
        return Problem(Fault.FAILED, f"it does not call itself nvcc: {telling_line(told)}")
    return build[2]


def _codes(program: Path, around: Surroundings) -> tuple[str, ...] | Problem:
    told = succeed((str(program), "--list-gpu-arch"), around, seconds=around.short_s)
    if isinstance(told, Problem) and "nknown option" in told.reason:
        return Problem(Fault.TOO_OLD, "it does not know --list-gpu-arch, which CUDA 11 brought")
    if isinstance(told, Problem):
        return told
    codes = sorted(set(_CODE.findall(told.stdout)), key=lambda c: (int(c.rstrip("af")), c))
    if not codes:
        reason = f"--list-gpu-arch names no compute capability: {telling_line(told)}"
        return Problem(Fault.FAILED, reason)
    return tuple(codes)


def _placed(
    program: Path, version: str, codes: tuple[str, ...], around: Surroundings
) -> Nvcc | Problem:
    """Return the nvcc with the folders of its dry run, which compiles and writes nothing."""
    told = run_tool((str(program), *DRY_RUN), around, seconds=around.short_s)
    if isinstance(told, Problem):
        return Problem(told.fault, f"{program}: asked for a dry run, {told.reason}")
    said = dict(_TOLD.findall(told.output))
    here = _folder(said.get("_HERE_", ""))
    inner = here / around.platform.program("nvcc") if here else _wrapped(program)
    inner = resolved(inner) if inner and inner.is_file() else program
    # Debian's profile tells no TOP at all.
    top = _folder(said.get("TOP", ""))
    return Nvcc(
        path=inner,
        root=top if top and top.is_dir() else inner.parent.parent,
        version=version,
        codes=codes,
        includes=_folders(said.get("INCLUDES", ""), said.get("SYSTEM_INCLUDES", "")),
        libraries=_folders(said.get("LIBRARIES", "")),
        cicc=_folder(said.get("CICC_PATH", "")),
    )


def _wrapped(program: Path) -> Path | None:
    """Return the nvcc that a wrapper script names last; it ends by becoming that one."""
    try:
        with program.open("rb") as stream:
            text = stream.read(SCRIPT)
    except OSError:
        return None
    found = _INSIDE.findall(text) if text.startswith(b"#!") else []
    inner = Path(found[-1].decode(errors="replace")) if found else None
    return resolved(inner) if inner and inner.is_file() and inner != program else None


def _folder(text: str) -> Path | None:
    path = Path(text.strip())
    return resolved(path) if text.strip() and path.is_absolute() else None


def _folders(*texts: str) -> tuple[Path, ...]:
    named = (_folder(a or b) for text in texts for a, b in _FOLDER.findall(text))
    return tuple(dict.fromkeys(p for p in named if p is not None))
