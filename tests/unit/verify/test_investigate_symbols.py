"""Names for addresses, from the modules' own tables."""

from __future__ import annotations

import sys
from pathlib import Path

import lief
import pytest

from investigate_kit import frame, halt, thread
from llamawright.verify.investigate_symbols import Symbols, SymbolTables, build_ids, read_symbols

TABLE = Symbols(begins=(10, 20, 40), sizes=(5, 20, 1), names=("a", "b", "c"), build_id="1f")


@pytest.mark.parametrize(
    ("offset", "name"),
    [(0, ""), (9, ""), (10, "a"), (14, "a"), (15, ""), (20, "b"), (39, "b"), (40, "c"), (41, "")],
)
def test_an_address_belongs_to_the_function_around_it(offset: int, name: str) -> None:
    assert TABLE.at(offset) == name


def test_a_module_without_functions_names_nothing() -> None:
    assert Symbols().at(7) == ""


def test_only_nameless_calls_get_a_name() -> None:
    tables = SymbolTables(known={"/m": TABLE})
    named = tables.named(
        halt(thread("t", [frame(0, "??", "/m", offset=21), frame(1, "main", "/m", offset=21),
                          frame(2, "??", "/m", offset=99), frame(3, "??", "", offset=21)]))
    )  # fmt: skip
    assert [f.function for f in named.threads[0].frames] == ["b", "main", "??", "??"]


def test_build_ids_are_those_of_the_thread_that_stopped() -> None:
    tables = SymbolTables(known={"/m": TABLE, "/other": TABLE, "/none": Symbols()})
    stopped = thread("t", [frame(0, "f", "/m"), frame(1, "g", "/none"), frame(2, "h", "/m")])
    other = thread("u", [frame(0, "f", "/other")])
    assert build_ids(tables, halt(stopped, other)) == {"/m": "1f"}
    assert build_ids(tables, None) == {}
    assert build_ids(tables, halt()) == {}


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF" + b"\0" * 200, b"MZ" * 99, b"x"])
def test_what_is_no_library_has_no_names(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(content)
    assert read_symbols(path) == Symbols()


def test_what_is_not_there_or_a_folder_has_no_names(tmp_path: Path) -> None:
    assert read_symbols(tmp_path / "gone") == Symbols()
    assert read_symbols(tmp_path) == Symbols()


def test_each_module_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(path: Path) -> Symbols:
        read.append(str(path))
        return TABLE

    monkeypatch.setattr("llamawright.verify.investigate_symbols.read_symbols", reading)
    tables = SymbolTables()
    tables.named(halt(thread("t", [frame(n, "??", "/m", offset=11) for n in range(9)])))
    assert read == ["/m"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads a library of this system")
def test_a_real_library_has_names_at_their_places() -> None:
    (path,) = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith("/libc.so.6")
    } or {""}
    if not path:
        pytest.skip("this system has another C library")
    table = read_symbols(Path(path))
    binary = lief.ELF.parse(path)
    assert binary is not None
    found = next(s for s in binary.dynamic_symbols if s.name == "getpid")
    assert table.at(int(found.value)).startswith(("getpid", "__getpid"))
    assert len(table.build_id) == 40
