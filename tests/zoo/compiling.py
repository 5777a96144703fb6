"""Small C sources of ours, compiled by the machine's compiler with the sabotage as macros."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.process import ask

SOURCES = Path(__file__).resolve().parent / "c"
HEADERS = ("ggml-impl.h", "ggml-backend-impl.h")
SHARED = ("-shared", "-fPIC", "-fvisibility=default")
COMPILE_S = 120.0
PREFIX = "ZOO_"


class CannotCompileError(Exception):
    """A stub could not be made: its mutant is not tried, and that is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The machine's C compiler, and where ggml's headers of the pinned source lie."""

    program: str
    headers: Path | None

    def shared(
        self, source: str, dest: Path, macros: Sequence[str], more: Sequence[str] = ()
    ) -> None:
        """Make a shared library of one source."""
        self._run(source, dest, macros, (*SHARED, *more))

    def executable(self, source: str, dest: Path, macros: Sequence[str]) -> None:
        """Make a program of one source."""
        self._run(source, dest, macros, ())

    def _run(self, source: str, dest: Path, macros: Sequence[str], more: Sequence[str]) -> None:
        if not self.program:
            raise CannotCompileError("there is no C compiler here")
        if source == "proxy.c" and self.headers is None:
            raise CannotCompileError("ggml's headers are not here: name them with --headers DIR")
        roots = (self.headers, self.headers.parent / "include") if self.headers else ()
        folders = [f"-I{root}" for root in roots]
        defined = [f"-D{PREFIX}{macro}" for macro in macros]
        dest.unlink(missing_ok=True)
        words = ("-std=gnu11", "-O1", "-w", *folders, *defined, str(SOURCES / source))
        result = ask((self.program, *words, *more, "-ldl", "-o", str(dest)), seconds=COMPILE_S)
        if not result.ok:
            raise CannotCompileError(" ".join(result.tail[-3:]))


def find_compiler(headers: Path | None, store: Path) -> Compiler:
    """Return the machine's compiler, with the headers named or the newest of the store."""
    program = next((p for p in map(shutil.which, ("cc", "gcc", "clang")) if p), "")
    return Compiler(program=program, headers=headers or find_headers(store))


def find_headers(store: Path) -> Path | None:
    """Return ``ggml/src`` of a source tree in the store, ``None`` when there is none."""
    places = [*store.glob("patched/*/ggml/src"), *store.glob("sources/*/ggml/src")]
    whole = [p for p in places if all((p / name).is_file() for name in HEADERS)]
    return max(whole, key=lambda p: p.stat().st_mtime, default=None)
