"""Visual C++ on Windows, by vswhere's own answer and never by a year (case W3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from llamawright.detect.probe import Problem, succeed
from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Fault, Rejected, Role
from llamawright.model.platform import Platform, System

VSWHERE = "Microsoft Visual Studio/Installer/vswhere.exe"
QUESTION = ("-products", "*", "-format", "json", "-utf8")
CLANG = "winget install LLVM.LLVM, then --compiler clang"


def survey(around: Surroundings) -> tuple[Rejected, ...]:
    """Return what vswhere lists; nothing on other systems or without the Installer."""
    if around.platform.system is not System.WINDOWS:
        return ()
    base = next((v for k, v in around.env.items() if k.upper() == "PROGRAMFILES(X86)"), "")
    program = Path(base) / VSWHERE
    if not base or not program.is_file():
        return ()
    told = succeed((str(program), *QUESTION), around, seconds=around.short_s)
    if isinstance(told, Problem):
        return (_rejected(program, told.fault, told.reason),)
    return tuple(judge(told.stdout, around.platform))


def judge(text: str, platform: Platform) -> Iterator[Rejected]:
    """Yield the Visual Studio instances of vswhere's JSON, each with why it is not used.

    llama.cpp itself refuses MSVC on ARM (case W5). On x86_64 the compiler would need the
    environment of its own command prompt, which llamawright does not set up yet.
    """
    try:
        rows = json.loads(text or "[]")
        found = [(str(r["displayName"]), Path(r["installationPath"])) for r in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield _rejected(Path(VSWHERE), Fault.FAILED, f"its answer cannot be read: {error!r}")
        return
    for name, path in found:
        if platform.machine == "arm64":
            reason = f"{name}: llama.cpp does not support MSVC on ARM"
        else:
            reason = (
                f"{name}: its compiler runs in its own command prompt only, which is not done yet"
            )
        yield _rejected(path, Fault.UNSUPPORTED, reason)


def _rejected(path: Path, fault: Fault, reason: str) -> Rejected:
    return Rejected(
        role=Role.CXX,
        name="msvc",
        path=path,
        where="vswhere",
        reason=reason,
        cure=CLANG,
        fault=fault,
    )
