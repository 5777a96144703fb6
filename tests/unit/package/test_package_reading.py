"""What is read from a binary: the same facts whatever the format, nothing from half a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from llamawright.model.artifact import BinaryFacts
from llamawright.package.reading import Reading, machine_name, read_binary
from llamawright.process import ask
from package_binaries import AVX_FUNCTION, PLAIN_FUNCTION, elf, macho, pe, universal


def read(folder: Path, content: bytes, *, private: tuple[str, ...] = ()) -> Reading | None:
    path = folder / "file"
    path.write_bytes(content)
    return read_binary(path, name="bin/file", private=private)


def facts(folder: Path, content: bytes) -> BinaryFacts:
    reading = read(folder, content)
    assert reading is not None
    return reading.facts


class TestElf:
    def test_names_are_read(self, tmp_path: Path) -> None:
        seen = facts(tmp_path, elf(needed=("liba.so.1", "libc.so.6"), soname="libx.so.3"))
        assert seen == BinaryFacts(
            path="bin/file",
            format="elf",
            machine="x86_64",
            imports=("liba.so.1", "libc.so.6"),
            runpath=(),
            glibc="",
            glibcxx="",
            soname="libx.so.3",
        )

    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("$ORIGIN", ("$ORIGIN",)),
            ("$ORIGIN:", ("$ORIGIN", "")),
            (":/opt/lib", ("", "/opt/lib")),
            ("$ORIGIN:/a:/b", ("$ORIGIN", "/a", "/b")),
            ("", ()),
        ],
    )
    def test_run_path_keeps_its_empty_parts(
        self, tmp_path: Path, text: str, parts: tuple[str, ...]
    ) -> None:
        assert facts(tmp_path, elf(runpath=text)).runpath == parts
        assert facts(tmp_path, elf(rpath=text)).runpath == parts

    def test_highest_versions_count_by_number(self, tmp_path: Path) -> None:
        versions = {
            "libc.so.6": ("GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.4", "GLIBC_PRIVATE"),
            "libm.so.6": ("GLIBC_2.29",),
            "libstdc++.so.6": ("GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3.9", "CXXABI_1.3.13"),
            "libgcc_s.so.1": ("GCC_3.0",),
        }
        seen = facts(tmp_path, elf(versions=versions))
        assert (seen.glibc, seen.glibcxx, seen.cxxabi) == ("2.34", "3.4.30", "1.3.13")

    def test_packed_relocations_mean_glibc_2_36(self, tmp_path: Path) -> None:
        versions = {"libc.so.6": ("GLIBC_2.2.5", "GLIBC_ABI_DT_RELR")}
        assert facts(tmp_path, elf(versions=versions)).glibc == "2.36"

    @pytest.mark.parametrize(("stack", "executable"), [("rw", False), ("rwx", True), ("", True)])
    def test_stack(self, tmp_path: Path, stack: str, executable: bool) -> None:
        reading = read(tmp_path, elf(stack=stack))
        assert reading is not None
        assert reading.executable_stack is executable

    def test_text_relocations_by_tag_and_by_flag(self, tmp_path: Path) -> None:
        seen = [
            read(tmp_path, elf()),
            read(tmp_path, elf(textrel=True)),
            read(tmp_path, elf(flags_textrel=True)),
        ]
        assert [r.text_relocations for r in seen if r] == [False, True, True]

    def test_wide_vectors_are_counted_in_code_of_x86_only(self, tmp_path: Path) -> None:
        seen = [
            read(tmp_path, elf(code=AVX_FUNCTION * 12)),
            read(tmp_path, elf(code=PLAIN_FUNCTION * 12)),
            read(tmp_path, elf(code=AVX_FUNCTION * 12, machine="aarch64")),
        ]
        assert [r.wide_vectors for r in seen if r] == [12, 0, 0]

    @pytest.mark.parametrize("missing", [1, 16, 100, 300])
    def test_a_cut_file_gives_nothing(self, tmp_path: Path, missing: int) -> None:
        assert read(tmp_path, elf()[:-missing]) is None

    @pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
    def test_a_real_library(self, tmp_path: Path) -> None:
        gcc = str(shutil.which("gcc"))
        (tmp_path / "a.c").write_text(
            "#include <math.h>\ndouble f(double x) { return pow(x, x); }\n"
        )
        line = (gcc, "-O1", "-shared", "-fPIC", "a.c", "-o", "liba.so", "-lm",
                "-Wl,-soname,liba.so.4", "-Wl,-rpath,$ORIGIN:/nowhere")  # fmt: skip
        assert ask(line, cwd=tmp_path).ok
        reading = read_binary(tmp_path / "liba.so", name="bin/liba.so")
        assert reading is not None
        assert reading.facts.soname == "liba.so.4"
        assert "libm.so.6" in reading.facts.imports
        assert reading.facts.runpath == ("$ORIGIN", "/nowhere")
        assert reading.facts.glibc.startswith("2.")
        assert not reading.executable_stack
        assert reading.wide_vectors == 0

    @pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
    def test_real_avx_code_is_seen(self, tmp_path: Path) -> None:
        gcc = str(shutil.which("gcc"))
        body = (
            "void f%d(float *a, float *b) { for (int i = 0; i < 4096; i++) a[i] += b[i] * %d; }\n"
        )
        (tmp_path / "a.c").write_text("".join(body % (n, n) for n in range(20)))
        counts: list[int] = []
        for flag in ("-mavx2", "-mno-avx"):
            line = (gcc, "-O3", flag, "-shared", "-fPIC", "a.c", "-o", "liba.so")
            done = ask(line, cwd=tmp_path)
            if not done.ok:
                pytest.skip("this compiler has no AVX")
            reading = read_binary(tmp_path / "liba.so", name="bin/liba.so")
            assert reading is not None
            counts.append(reading.wide_vectors)
        assert counts[0] >= 20
        assert counts[1] == 0


class TestPe:
    def test_facts(self, tmp_path: Path) -> None:
        seen = facts(tmp_path, pe(imports=("KERNEL32.dll", "tiny.dll"), linker=(14, 29)))
        assert (seen.format, seen.machine) == ("pe", "x86_64")
        assert seen.imports == ("KERNEL32.dll", "tiny.dll")
        assert seen.toolset == "14.29"
        assert seen.runpath == ()

    def test_arm(self, tmp_path: Path) -> None:
        assert facts(tmp_path, pe(machine="aarch64")).machine == "aarch64"

    def test_wide_vectors(self, tmp_path: Path) -> None:
        reading = read(tmp_path, pe(code=AVX_FUNCTION * 30))
        assert reading is not None
        assert reading.wide_vectors == 30

    @pytest.mark.parametrize("missing", [1, 512, 2000])
    def test_a_cut_file_gives_nothing(self, tmp_path: Path, missing: int) -> None:
        assert read(tmp_path, pe()[:-missing]) is None


class TestMacho:
    def test_facts(self, tmp_path: Path) -> None:
        content = macho(
            imports=("@rpath/libggml.0.dylib", "/usr/lib/libSystem.B.dylib"),
            identity="@rpath/libx.0.dylib",
            rpaths=("@loader_path", "/opt/homebrew/lib"),
            min_os=(12, 4),
        )
        seen = facts(tmp_path, content)
        assert (seen.format, seen.machine, seen.min_os) == ("macho", "aarch64", "12.4")
        assert seen.imports == ("@rpath/libggml.0.dylib", "/usr/lib/libSystem.B.dylib")
        assert seen.runpath == ("@loader_path", "/opt/homebrew/lib")
        assert seen.soname == "libx.0.dylib"

    @pytest.mark.parametrize("signed", [True, False])
    def test_signature(self, tmp_path: Path, signed: bool) -> None:
        reading = read(tmp_path, macho(signed=signed))
        assert reading is not None
        assert reading.signed is signed

    def test_all_slices_of_a_universal_file_count(self, tmp_path: Path) -> None:
        content = universal(
            macho(min_os=(11, 0)),
            macho(machine="x86_64", min_os=(10, 15), imports=("/opt/other.dylib",), signed=False),
        )
        reading = read(tmp_path, content)
        assert reading is not None
        assert reading.facts.machine == "aarch64+x86_64"
        assert reading.facts.imports == ("/usr/lib/libSystem.B.dylib", "/opt/other.dylib")
        assert reading.facts.min_os == "11.0"
        assert not reading.signed

    @pytest.mark.parametrize("missing", [1, 17, 100])
    def test_a_cut_file_gives_nothing(self, tmp_path: Path, missing: int) -> None:
        assert read(tmp_path, macho()[:-missing]) is None

    def test_a_universal_file_without_its_second_half_gives_nothing(self, tmp_path: Path) -> None:
        content = universal(macho(), macho(machine="x86_64"))
        assert read(tmp_path, content[: len(content) // 2]) is None


class TestAnything:
    @pytest.mark.parametrize(
        "content",
        [b"", b"#!/bin/sh\necho hello\n", b"MZ", b"\x7fELF", b"\xcf\xfa\xed\xfe", bytes(64)],
    )
    def test_no_binary_gives_nothing(self, tmp_path: Path, content: bytes) -> None:
        assert read(tmp_path, content) is None

    @pytest.mark.parametrize("made", [elf, pe, macho])
    def test_names_of_private_folders_are_found(self, tmp_path: Path, made: object) -> None:
        assert callable(made)
        content = made(payload=b"\0/home/me/store/work/src/ggml.c\0")
        reading = read(tmp_path, content, private=("/home/me/store", "/home/you"))
        assert reading is not None
        assert reading.leaks == ("/home/me/store",)

    @pytest.mark.parametrize(
        ("said", "name"),
        [("AMD64", "x86_64"), ("X86_64", "x86_64"), ("ARM64", "aarch64"), ("AARCH64", "aarch64"),
         ("arm64", "aarch64"), ("RISCV", "riscv")],
    )  # fmt: skip
    def test_machines_have_one_name(self, said: str, name: str) -> None:
        assert machine_name(said) == name
