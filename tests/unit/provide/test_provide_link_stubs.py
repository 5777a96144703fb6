"""Stand-ins for libraries: each symbol in its newest version below a ceiling, no later one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from llamawright.errors import ToolMissingError
from llamawright.provide.link_stubs import (
    Exported,
    Kind,
    exported,
    parse_ceiling,
    stub_source,
    write_stub,
)

CEILING = parse_ceiling("GLIBC_2.28 GLIBCXX_3.4.24")
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(
    GCC is None or sys.platform != "linux", reason="it takes gcc to link"
)
LIBRARY = """
void old_impl(void) {} void changed_1(void) {} void changed_2(void) {} void late_impl(void) {}
int number_impl = 7;
__asm__(".symver old_impl,old@@GLIBC_2.2.5");
__asm__(".symver changed_1,changed@GLIBC_2.2.5");
__asm__(".symver changed_2,changed@@GLIBC_2.29");
__asm__(".symver late_impl,late@@GLIBC_2.30");
__asm__(".symver number_impl,number@@GLIBC_2.2.5");
"""
VERSIONS = """
GLIBC_2.2.5 { local: *_impl; changed_1; changed_2; };
GLIBC_2.29 {} GLIBC_2.2.5;
GLIBC_2.30 {} GLIBC_2.29;
"""


def symbol(name: str, version: str, **more: object) -> Exported:
    return Exported(name=name, version=version, **more)  # type: ignore[arg-type]


class TestCeiling:
    def test_it_is_read_by_prefix(self) -> None:
        assert CEILING == {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24)}

    def test_the_newest_version_below_it_is_taken(self) -> None:
        versions = ("GLIBC_2.2.5", "GLIBC_2.14", "GLIBC_2.29")
        source = stub_source([symbol("memcpy", v) for v in versions], CEILING)
        assert source.versions == "GLIBC_2.14 { memcpy; };\n"

    def test_versions_are_compared_as_numbers(self) -> None:
        source = stub_source([symbol("f", v) for v in ("GLIBC_2.9", "GLIBC_2.17")], CEILING)
        assert "GLIBC_2.17 { f; };" in source.versions

    def test_the_ceiling_itself_is_allowed(self) -> None:
        assert stub_source([symbol("f", "GLIBC_2.28")], CEILING).count == 1

    @pytest.mark.parametrize(
        "version",
        ["GLIBC_2.29", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "OTHER_1.0", "GLIBCXX_3.4.25", ""],
    )
    def test_what_came_later_or_is_private_is_left_out(self, version: str) -> None:
        assert stub_source([symbol("f", version)], CEILING).count == 0

    def test_each_prefix_has_a_ceiling_of_its_own(self) -> None:
        source = stub_source([symbol("a", "GLIBC_2.4"), symbol("b", "GLIBCXX_3.4.9")], CEILING)
        assert source.versions.splitlines() == ["GLIBCXX_3.4.9 { b; };", "GLIBC_2.4 { a; };"]


class TestAssembly:
    def test_functions_have_no_code_but_a_label(self) -> None:
        lines = stub_source([symbol("f", "GLIBC_2.4")], CEILING).assembly.splitlines()
        assert lines[:4] == [".text", ".globl f", ".type f,@function", "f:"]

    def test_a_weak_symbol_stays_weak(self) -> None:
        assert ".weak f" in stub_source([symbol("f", "GLIBC_2.4", weak=True)], CEILING).assembly

    def test_names_of_one_object_stay_names_of_one(self) -> None:
        """A program copies ``environ`` into itself, and means ``__environ`` too."""
        names = ("environ", "__environ")
        same = [symbol(n, "GLIBC_2.2.5", kind=Kind.OBJECT, size=8, address=4096) for n in names]
        text = stub_source(same, CEILING).assembly
        labels = [line for line in text.splitlines() if line.endswith(":")]
        assert labels == ["__environ:", "environ:"]
        assert text.count(".zero 8") == 1
        assert text.count(".balign") == 1

    def test_objects_have_their_sizes(self) -> None:
        table = symbol("table", "GLIBC_2.4", kind=Kind.OBJECT, size=160)
        text = stub_source([table], CEILING).assembly
        assert {".size table,160", ".zero 160", ".type table,@object"} <= set(text.splitlines())

    def test_an_object_of_no_size_takes_room_all_the_same(self) -> None:
        empty = symbol("empty", "GLIBC_2.4", kind=Kind.OBJECT)
        assert ".zero 1" in stub_source([empty], CEILING).assembly

    def test_thread_local_objects_are_in_a_section_of_their_own(self) -> None:
        own = symbol("own", "GLIBC_2.4", kind=Kind.TLS, size=4)
        assert '.section .tbss,"awT",@nobits' in stub_source([own], CEILING).assembly

    def test_no_stack_is_made_executable(self) -> None:
        assert ".note.GNU-stack" in stub_source([], CEILING).assembly


@needs_gcc
class TestForReal:
    @pytest.fixture
    def library(self, tmp_path: Path) -> Path:
        (tmp_path / "x.c").write_text(LIBRARY)
        (tmp_path / "x.map").write_text(VERSIONS)
        place = tmp_path / "libx.so.1"
        subprocess.run(
            [str(GCC), "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libx.so.1",
             f"-Wl,--version-script={tmp_path / 'x.map'}", "-o", str(place),
             str(tmp_path / "x.c")], check=True,
        )  # fmt: skip
        return place

    def link(self, library: Path, code: str) -> subprocess.CompletedProcess[str]:
        source = library.with_name("main.c")
        source.write_text(code)
        return subprocess.run(
            [str(GCC), str(source), str(library), "-nostdlib", "-Wl,-e,main", "-fPIE", "-pie",
             "-o", str(library.with_name("main"))], capture_output=True, text=True, check=False,
        )  # fmt: skip

    def test_a_library_is_read_with_name_and_versions(self, library: Path) -> None:
        soname, symbols = exported(library)
        assert soname == "libx.so.1"
        seen = {(s.name, s.version) for s in symbols}
        assert {
            ("changed", "GLIBC_2.2.5"),
            ("changed", "GLIBC_2.29"),
            ("late", "GLIBC_2.30"),
        } <= seen
        assert {s.kind for s in symbols if s.name == "number"} == {Kind.OBJECT}

    def test_a_program_links_with_the_old_version(self, library: Path) -> None:
        assert write_stub(library, Path(str(GCC)), CEILING) >= 3
        assert self.link(library, "void changed(void); int main(void) { changed(); return 0; }")
        told = subprocess.run(
            ["objdump", "-T", str(library.with_name("main"))], text=True, capture_output=True,
            check=True,
        ).stdout  # fmt: skip
        assert "(GLIBC_2.2.5) changed" in told
        assert "2.29" not in told

    def test_what_only_a_newer_system_has_does_not_link(self, library: Path) -> None:
        write_stub(library, Path(str(GCC)), CEILING)
        ended = self.link(library, "void late(void); int main(void) { late(); return 0; }")
        assert ended.returncode != 0
        assert "undefined reference to `late'" in ended.stderr

    def test_nothing_is_left_beside_it_and_its_bytes_are_always_the_same(
        self, library: Path
    ) -> None:
        before = {p.name for p in library.parent.iterdir()}
        copy = library.with_name("again") / library.name
        copy.parent.mkdir()
        shutil.copyfile(library, copy)
        for place in (library, copy):
            write_stub(place, Path(str(GCC)), CEILING)
        assert {p.name for p in library.parent.iterdir()} == before | {"again"}
        assert library.read_bytes() == copy.read_bytes()

    def test_a_file_that_is_no_library_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "libc.so.6").write_text("no library")
        with pytest.raises(ToolMissingError, match="no stand-in") as caught:
            write_stub(tmp_path / "libc.so.6", Path(str(GCC)), CEILING)
        assert caught.value.kind == "no-link-stub"
