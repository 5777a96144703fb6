"""Link-time stand-ins for system libraries, holding only what an older system has too.

The linker takes the newest version of a symbol that a library offers, so that a program
linked with glibc 2.31 asks for ``exp@GLIBC_2.29`` although every glibc has an ``exp``. A
stand-in offers each symbol in the newest version up to a ceiling, and no symbol that came
later: what needs one fails to link instead of failing on the user's machine. No code is in
it; at run time the system's own library is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from llamawright.errors import ToolMissingError
from llamawright.model.floors import numbers
from llamawright.process import ask

if TYPE_CHECKING:
    import lief

# The widest alignment that compilers give an object, so that a copy of it fits anywhere.
ALIGNMENT = 32
ASSEMBLE_S = 60.0


class Kind(StrEnum):
    """What a symbol names."""

    FUNCTION = "function"
    OBJECT = "object"
    TLS = "tls_object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One version of one exported symbol; ``address`` tells which names mean one object."""

    name: str
    version: str
    kind: Kind = Kind.FUNCTION
    size: int = 0
    address: int = 0
    weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StubSource:
    """What the assembler and the linker make a stand-in of."""

    assembly: str
    versions: str
    count: int


def parse_ceiling(text: str) -> dict[str, tuple[int, ...]]:
    """Return the highest version by its prefix: ``GLIBC_2.28 GLIBCXX_3.4.24``."""
    pairs = (word.rpartition("_") for word in text.split())
    return {prefix: numbers(version) for prefix, _, version in pairs}


def stub_source(symbols: Iterable[Exported], ceiling: Mapping[str, tuple[int, ...]]) -> StubSource:
    """Return the source of a stand-in; pure. Private versions and later ones are left out."""
    best: dict[str, tuple[tuple[int, ...], Exported]] = {}
    for symbol in symbols:
        rank = _rank(symbol.version, ceiling)
        if rank and symbol.name and rank > best.get(symbol.name, ((), symbol))[0]:
            best[symbol.name] = (rank, symbol)
    kept = [symbol for _, (_, symbol) in sorted(best.items())]
    nodes: dict[str, list[str]] = defaultdict(list)
    for symbol in kept:
        nodes[symbol.version].append(symbol.name)
    lines = (f"{version} {{ {'; '.join(names)}; }};" for version, names in sorted(nodes.items()))
    return StubSource(assembly=_assembly(kept), versions="\n".join([*lines, ""]), count=len(kept))


def exported(path: Path) -> tuple[str, tuple[Exported, ...]]:
    """Return a library's SONAME and its versioned symbols."""
    import lief  # noqa: PLC0415 - takes 60 ms, and only a set that is unpacked needs it

    elf = lief.ELF.parse(path)
    entry = elf.get(lief.ELF.DynamicEntry.TAG.SONAME) if elf else None
    if elf is None or not isinstance(entry, lief.ELF.DynamicSharedObject):
        return "", ()
    found = (_exported(symbol) for symbol in elf.exported_symbols)
    return str(entry.name), tuple(symbol for symbol in found if symbol)


def write_stub(path: Path, compiler: Path, ceiling: Mapping[str, tuple[int, ...]]) -> int:
    """Put a stand-in in a library's place, and return how many symbols it offers.

    Raises ``ToolMissingError`` when the machine's assembler or linker refuses.
    """
    soname, symbols = exported(path)
    source = stub_source(symbols, ceiling)
    assembly, versions = path.with_name("stub.s"), path.with_name("stub.map")
    assembly.write_text(source.assembly, encoding="utf-8")
    versions.write_text(source.versions, encoding="utf-8")
    path.unlink()
    named = (f"-Wl,-soname,{soname}", f"-Wl,--version-script={versions}")
    plain = ("-shared", "-nostdlib", "-Wl,--no-as-needed", "-Wl,--build-id=none")
    argv = (str(compiler), *plain, *named, "-o", str(path), str(assembly))
    result = ask(argv, seconds=ASSEMBLE_S)
    assembly.unlink()
    versions.unlink()
    if not soname or not source.count or not result.ok:
        raise ToolMissingError(
            f"no stand-in could be made for {path.name}",
            why=result.output.strip()[-400:] or "it exports nothing under a version",
            hint="install gcc and binutils, then run the same command again",
            kind="no-link-stub",
        )
    return source.count


def _rank(version: str, ceiling: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return a version's numbers when it is not above the ceiling, else nothing."""
    prefix, _, text = version.rpartition("_")
    if prefix not in ceiling or not text[:1].isdecimal():
        return ()
    found = numbers(text)
    return found if found <= ceiling[prefix] else ()


def _assembly(symbols: Iterable[Exported]) -> str:
    functions = [".text"]
    objects: dict[tuple[Kind, int], list[Exported]] = defaultdict(list)
    for symbol in symbols:
        if symbol.kind is Kind.FUNCTION:
            functions += _label(symbol)
        else:
            objects[symbol.kind, symbol.address].append(symbol)
    # One `ret` behind all labels: the assembler wants a section with content.
    return "\n".join([*functions, "ret", *_data(objects), _NO_STACK, ""])


def _data(objects: Mapping[tuple[Kind, int], list[Exported]]) -> Iterable[str]:
    """Yield objects; names of one address stay names of one, as ``environ`` and ``__environ``."""
    for (kind, _), group in objects.items():
        yield '.section .tbss,"awT",@nobits' if kind is Kind.TLS else ".bss"
        yield f".balign {ALIGNMENT}"
        for symbol in group:
            yield f".size {symbol.name},{symbol.size}"
            yield from _label(symbol)
        yield f".zero {max(1, *(s.size for s in group))}"


def _label(symbol: Exported) -> tuple[str, ...]:
    binding = ".weak" if symbol.weak else ".globl"
    kind = f".type {symbol.name},@{symbol.kind}"
    return (f"{binding} {symbol.name}", kind, f"{symbol.name}:")


def _exported(symbol: lief.ELF.Symbol) -> Exported | None:
    import lief  # noqa: PLC0415 - see exported

    told = symbol.symbol_version
    if told is None or not told.has_auxiliary_version or told.symbol_version_auxiliary is None:
        return None
    types = lief.ELF.Symbol.TYPE
    kinds = {types.OBJECT: Kind.OBJECT, types.COMMON: Kind.OBJECT, types.TLS: Kind.TLS}
    return Exported(
        name=str(symbol.name),
        version=str(told.symbol_version_auxiliary.name),
        kind=kinds.get(symbol.type, Kind.FUNCTION),
        size=symbol.size,
        address=symbol.value,
        weak=symbol.binding == lief.ELF.Symbol.BINDING.WEAK,
    )


_NO_STACK = '.section .note.GNU-stack,"",@progbits'
