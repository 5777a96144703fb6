"""Names for addresses that no debugger was there to name, from the modules' own tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.model.investigation import Frame, Halt, Thread

MOST_BYTES = 512 << 20
UNKNOWN = frozenset({"", "??"})


@dataclass(frozen=True, slots=True)
class Symbols:
    """Exported functions of one module: begins in ascending order, sizes and names with them."""

    begins: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    build_id: str = ""

    def at(self, offset: int) -> str:
        """Return the function that holds an offset, empty when none does."""
        index = bisect_right(self.begins, offset) - 1
        if index < 0 or offset >= self.begins[index] + self.sizes[index]:
            return ""
        return self.names[index]


@dataclass(slots=True)
class SymbolTables:
    """Reads each module once."""

    known: dict[str, Symbols] = field(default_factory=dict)

    def of(self, module: str) -> Symbols:
        """Return a module's functions; one that cannot be read has none."""
        if module not in self.known:
            self.known[module] = read_symbols(Path(module))
        return self.known[module]

    def named(self, halt: Halt) -> Halt:
        """Return a halt whose frames have names where their modules have them."""
        return replace(halt, threads=tuple(self._thread(t) for t in halt.threads))

    def _thread(self, thread: Thread) -> Thread:
        return replace(thread, frames=tuple(self._frame(f) for f in thread.frames))

    def _frame(self, frame: Frame) -> Frame:
        if frame.function not in UNKNOWN or not frame.module or frame.offset is None:
            return frame
        return replace(frame, function=self.of(frame.module).at(frame.offset) or "??")


def read_symbols(path: Path) -> Symbols:
    """Read the functions that a Linux library exports, and its build id."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return Symbols()
        import lief  # noqa: PLC0415 - large, and only needed for a crash

        binary = lief.ELF.parse(str(path))
    except (OSError, ValueError):
        return Symbols()
    if binary is None:
        return Symbols()
    rows = sorted(
        (int(s.value), int(s.size), str(s.demangled_name or s.name))
        for s in binary.dynamic_symbols
        if s.value and s.size and s.is_function
    )
    return Symbols(
        begins=tuple(r[0] for r in rows),
        sizes=tuple(r[1] for r in rows),
        names=tuple(r[2] for r in rows),
        build_id=_build_id(binary.notes),
    )


def _build_id(notes: Iterable[object]) -> str:
    for note in notes:
        kind = str(getattr(note, "type", ""))
        if "BUILD_ID" in kind:
            return bytes(getattr(note, "description", b"")).hex()
    return ""


def build_ids(tables: SymbolTables, halt: Halt | None) -> Mapping[str, str]:
    """Return the build ids of the modules in the thread that stopped: whose bytes they are."""
    if halt is None or not halt.threads:
        return {}
    modules = dict.fromkeys(f.module for f in halt.threads[0].frames if f.module)
    return {m: found for m in modules if (found := tables.of(m).build_id)}
