"""A C++ compiler for nvcc's host code, where the machine's own is too new for the toolkit.

gcc finds its headers and parts by its own place, and the machine's C headers, C library,
assembler and linker where they always are. Only the compiler proper has libraries of its
own: it is led to them alone, so that the machine's assembler and linker keep theirs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.model.toolchain import ProvidedSet
from llamawright.process import Result, ask
from llamawright.provide.debian import PROGRAM_PARTS, unpack_parts

PARTS = (*PROGRAM_PARTS, "usr/include")
PROPER = "cc1plus"
WRAPPER = """\
#!/bin/sh
# The compiler proper with its own libraries; found from here, so the store can be moved.
here=${{0%/*}}
LD_LIBRARY_PATH="$here/{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export LD_LIBRARY_PATH
exec "$here/{program}" "$@"
"""
# As strong as what a found compiler has to do: threads, exceptions, std::filesystem.
PROGRAM = r"""
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
int main(int, char **argv) {
    std::size_t length = 0;
    std::thread([&] { length = std::filesystem::path(argv[0]).filename().string().size(); }).join();
    try {
        if (length > 0) throw std::runtime_error(std::to_string(std::sqrt(36.0)));
    } catch (const std::exception &error) {
        std::printf("gcc %d.%d.%d %c\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__,
                    error.what()[0]);
        return 0;
    }
    return 1;
}
"""
COMPILE_S, RUN_S = 120.0, 20.0


def unpack_compiler(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack gcc for C++ and lead its compiler proper to the libraries beside it."""
    unpack_parts(provided, blobs, root, PARTS)
    found = sorted(root.glob(f"usr/lib/gcc/*/*/{PROPER}"))
    if len(found) != 1:
        raise _broken(f"its packages hold {len(found)} files {PROPER}, not one")
    proper = found[0]
    kept = proper.with_name(f"{PROPER}.bin")
    proper.rename(kept)
    triple = proper.parents[1].name
    text = WRAPPER.format(libraries=f"../../../{triple}", program=kept.name)
    proper.write_text(text, encoding="ascii", newline="\n")
    proper.chmod(0o755)


def prove_host_compiler(root: Path) -> str:
    """Compile, link and run a C++17 program, and return the compiler's path."""
    compilers = sorted((root / "usr" / "bin").glob("g++-*"))
    if not compilers:
        raise _broken("there is no g++ in it")
    compiler = compilers[0]
    with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
        source, program = Path(folder, "proof.cpp"), Path(folder, "proof")
        source.write_text(PROGRAM, encoding="ascii")
        argv = (str(compiler), "-std=c++17", str(source), "-o", str(program), "-pthread")
        made = ask(argv, seconds=COMPILE_S)
        if not made.ok:
            raise _broken(f"compiling a program, it {_did(made)}")
        ran = ask((str(program),), seconds=RUN_S)
    if not ran.ok or not ran.stdout.startswith("gcc ") or not ran.stdout.endswith(" 6\n"):
        raise _broken(f"what it compiled {_did(ran)}")
    return str(compiler)


def _did(result: Result) -> str:
    last = result.tail[-1] if result.tail else "nothing"
    return f"ended {result.ending} with status {result.returncode} and said: {last}"


def _broken(why: str) -> ToolMissingError:
    return ToolMissingError(
        "the provided compiler for nvcc's host code does not work here",
        why=why,
        hint="it needs the machine's own C headers, assembler and linker (Debian, Ubuntu: "
        "apt install g++); or name a compiler that the toolkit takes: --compiler FILE",
        kind="tool-unusable",
    )
