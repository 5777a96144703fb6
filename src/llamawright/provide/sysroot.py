"""An old system to compile against: headers and link-time libraries, and compilers for it.

The machine's own gcc compiles, so that every CPU variant gets its newest instructions. What
is old is the C library and libstdc++: a program linked here starts on every system that is
as old, with that system's own libraries.

What a newer C++ standard library has and the old one lacks (``std::filesystem``) is linked
statically and hidden. In gcc 8 and before that class had another layout, which is why the
headers are gcc 9's.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import digest_data
from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Found
from llamawright.model.ports import Reporter
from llamawright.model.toolchain import Fact, ProvidedSet
from llamawright.provide.debian import LIMITS
from llamawright.provide.link_stubs import parse_ceiling, write_stub
from llamawright.store import Store
from llamawright.transfer import unpack_archive

PARTS = ("usr/include", "usr/lib", "lib", "lib64")
COMPILERS = "compilers"
LIBRARIES = (
    "libc.so.6", "libm.so.6", "libmvec.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1",
    "libgcc_s.so.1", "libstdc++.so.6",
)  # fmt: skip
LOADERS = "ld-linux*.so.*"
REST = "libstdc++_nonshared.a"
_MINOR = re.compile(r"^(#define\s+__GLIBC_MINOR__\s+)(\d+)$", re.MULTILINE)
# `-v` alone must not become a link, which an option for the linker would make of it.
WRAPPER = """\
#!/bin/sh
# {program}, compiling for an old system: found from here, so that every store has these bytes.
root=$(cd "${{0%/*}}/{root}" && pwd) || exit 1
hide=-Wl,--exclude-libs,{rest}
[ "$*" = -v ] && hide=
exec "{program}" {options} $hide "$@"
"""
# What the wrappers call the old system's folder.
ROOT = Path("$root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysroot:
    """Where the parts of an unpacked old system lie."""

    root: Path
    triple: str
    gcc: str

    @classmethod
    def of(cls, root: Path) -> Sysroot:
        """Find the parts; ``ToolMissingError`` names the one that is missing."""
        headers = next(
            iter(sorted(root.glob("usr/include/*-linux-gnu/bits/libc-header-start.h"))), None
        )
        gcc = next(iter(sorted(root.glob("usr/include/c++/*"))), None)
        if headers is None or gcc is None:
            raise _incomplete(root, "the headers of libc6-dev and libstdc++")
        return cls(root=root, triple=headers.parent.parent.name, gcc=gcc.name)

    @property
    def libraries(self) -> Path:
        return self.root / "usr/lib" / self.triple

    @property
    def own(self) -> Path:
        """Return gcc's own folder of libraries."""
        return self.root / "usr/lib/gcc" / self.triple / self.gcc

    def options(self, *, cxx: bool) -> tuple[str, ...]:
        """Return what turns a compiler of this machine into one for the old system.

        The start files and libraries of the machine's own gcc would be found first, so each
        folder is named. ``-idirafter``: not every gcc knows Debian's folders.
        """
        include = self.root / "usr/include"
        headers = (include / "c++" / self.gcc, include / self.triple / "c++" / self.gcc)
        own = (*headers, headers[0] / "backward")
        searched = (self.own, self.libraries, self.root / "lib" / self.triple)
        return (
            f"--sysroot={self.root}",
            f"-B{self.libraries}",
            *(("-nostdinc++", *(w for h in own for w in ("-isystem", str(h)))) if cxx else ()),
            "-idirafter",
            str(include / self.triple),
            *(f"-L{folder}" for folder in searched),
        )


def unpack_sysroot(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack an old system and make it older still: down to the set's ceiling."""
    for file, blob in zip(provided.files, blobs, strict=True):
        copyright_file = f"usr/share/doc/{file.package}/copyright"
        what = f"{file.package} {file.version}"
        unpack_archive(blob, root, include=(*PARTS, copyright_file), limits=LIMITS, what=what)
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise ToolMissingError(
            f"{provided.name} cannot be made here",
            why="its link-time libraries are assembled by gcc, and there is none on PATH",
            hint="install gcc (Debian: apt install g++), then run the same command again",
            kind="no-compiler",
        )
    ceiling = parse_ceiling(provided.fact(Fact.CEILING))
    place = Sysroot.of(root)
    for library in _stubbed(place):
        write_stub(library, Path(compiler), ceiling)
    _lower_headers(root, ceiling["GLIBC"])
    _split_cxx(place)


def prove_sysroot(root: Path) -> str:
    """Return the compiler's release whose headers the sysroot has, or raise."""
    place = Sysroot.of(root)
    for needed in (place.libraries / "Scrt1.o", place.libraries / "libc.so", place.own / REST):
        if not needed.is_file():
            raise _incomplete(root, needed.name)
    return place.gcc


def compilers_for(
    root: Path, compiler: Found, store: Store, *, key: str, reporter: Reporter
) -> Path:
    """Return a g++ for the old system in ``root``, made of this machine's ``compiler``.

    ``key`` is the sysroot's digest. The C compiler stands beside it. Only gcc can be turned
    that way.
    """
    if compiler.name != "gcc":
        raise ToolMissingError(
            f"{compiler.name} cannot build for an older system",
            why=f"{compiler.path} was chosen; only gcc is made to use other system libraries",
            hint="--compiler gcc",
            kind="floor-compiler",
        )
    programs = {"g++": str(compiler.path), "gcc": compiler.fact("c_compiler")}
    place = replace(Sysroot.of(root), root=ROOT)
    own = digest_data([key, programs, place.options(cxx=True), WRAPPER])
    way = Path(os.path.relpath(root, store.shelf(COMPILERS, own))).as_posix()

    def make(dest: Path) -> None:
        dest.mkdir(parents=True)
        for name, program in programs.items():
            options = " ".join(f'"{o}"' for o in place.options(cxx=name == "g++"))
            text = WRAPPER.format(program=program, root=way, options=options, rest=REST)
            (dest / name).write_text(text, encoding="utf-8", newline="\n")
            (dest / name).chmod(0o755)

    entry = store.materialise(COMPILERS, own, make=make, reporter=reporter, label="compilers")
    return entry.root / "g++"


def _stubbed(place: Sysroot) -> Iterator[Path]:
    """Yield the real files of the libraries that programs are linked with."""
    folders = (place.root / "lib" / place.triple, place.libraries)
    found: dict[Path, None] = {}
    for name in (*LIBRARIES, LOADERS):
        for folder in folders:
            found |= dict.fromkeys(p.resolve() for p in sorted(folder.glob(name)) if p.exists())
    yield from found


def _lower_headers(root: Path, glibc: tuple[int, ...]) -> None:
    """Let the headers say the ceiling's version: sources choose by it what they call."""
    header = root / "usr/include/features.h"
    text = header.read_text(encoding="utf-8")
    lowered, count = _MINOR.subn(rf"\g<1>{glibc[1]}", text)
    if count != 1:
        raise _incomplete(root, "the version in features.h")
    header.write_text(lowered, encoding="utf-8", newline="\n")


def _split_cxx(place: Sysroot) -> None:
    """Link libstdc++ as the old system has it, and from the archive only what that lacks."""
    rest = place.own / REST
    place.own.joinpath("libstdc++.a").rename(rest)
    script = place.own / "libstdc++.so"
    script.unlink(missing_ok=True)
    shared = f"/usr/lib/{place.triple}/libstdc++.so.6"
    inside = rest.relative_to(place.root).as_posix()
    script.write_text(f"INPUT ( {shared} /{inside} )\n", encoding="ascii", newline="\n")


def _incomplete(root: Path, what: str) -> ToolMissingError:
    return ToolMissingError(
        f"{root} is no old system to compile against",
        why=f"it lacks {what}",
        hint="llamawright gc --keep-days 0 removes provided tools; the next run unpacks them again",
        kind="incomplete-set",
    )
