"""An old system to compile against: unpacked, lowered, and a compiler that uses it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from provide_fakes import deb, debian_set, write_blobs

from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Found, Role
from llamawright.model.toolchain import ProvidedSet
from llamawright.provide.sysroot import Sysroot, compilers_for, prove_sysroot, unpack_sysroot
from llamawright.provide.tools import prove
from llamawright.store import Store
from reporter_kit import Told
from resolve_kit import CLANG, GCC

TRIPLE = "x86_64-linux-gnu"
LIB, CXX = f"usr/lib/{TRIPLE}", f"usr/lib/gcc/{TRIPLE}/9"
FEATURES = "#define\t__GLIBC__\t2\n#define\t__GLIBC_MINOR__\t31\n#define __GLIBC_PREREQ(a, b) 1\n"
CEILING = "GLIBC_2.28 GLIBCXX_3.4.24 CXXABI_1.3.11 GCC_7.0.0"
PACKAGES: Mapping[str, bytes] = {
    "pool/main/g/glibc/libc6-dev_2.31_amd64.deb": deb(
        {
            "./usr/include/features.h": FEATURES,
            f"./usr/include/{TRIPLE}/bits/libc-header-start.h": "",
            f"./{LIB}/Scrt1.o": "start",
            f"./{LIB}/libc.so": f"GROUP ( /lib/{TRIPLE}/libc.so.6 )",
        },
        links={f"./{LIB}/libm.so": f"/lib/{TRIPLE}/libm.so.6"},
    ),
    "pool/main/g/glibc/libc6_2.31_amd64.deb": deb(
        {
            f"./lib/{TRIPLE}/libc-2.31.so": "libc",
            f"./lib/{TRIPLE}/libm.so.6": "libm",
            f"./lib/{TRIPLE}/ld-2.31.so": "loader",
            f"./lib/{TRIPLE}/libnss_dns.so.2": "not linked with",
            "./usr/share/doc/libc6/copyright": "LGPL",
        },
        links={
            f"./lib/{TRIPLE}/libc.so.6": "libc-2.31.so",
            f"./lib/{TRIPLE}/ld-linux-x86-64.so.2": "ld-2.31.so",
            "./lib64/ld-linux-x86-64.so.2": f"/lib/{TRIPLE}/ld-2.31.so",
        },
    ),
    "pool/main/g/gcc-10/libstdc++6_10_amd64.deb": deb(
        {f"./{LIB}/libstdc++.so.6.0.28": "libstdc++"},
        links={f"./{LIB}/libstdc++.so.6": "libstdc++.so.6.0.28"},
    ),
    "pool/main/g/gcc-9/libstdc++-9-dev_9.3_amd64.deb": deb(
        {
            "./usr/include/c++/9/string": "",
            f"./usr/include/{TRIPLE}/c++/9/bits/c++config.h": "",
            f"./{CXX}/libstdc++.a": "archive",
        },
        links={f"./{CXX}/libstdc++.so": f"../../../{TRIPLE}/libstdc++.so.6"},
    ),
}


def sysroot_set(packages: Mapping[str, bytes] = PACKAGES) -> ProvidedSet:
    made = debian_set(packages, name="old", role=Role.SYSROOT, layout="debian-sysroot")
    return replace(made, facts=(("ceiling", CEILING), ("floor", "manylinux_2_28")))


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let no library be linked anew, and keep the names of those that would be."""
    seen: list[str] = []

    def note(path: Path, _compiler: Path, ceiling: Mapping[str, tuple[int, ...]]) -> int:
        assert ceiling["GLIBC"] == (2, 28)
        seen.append(path.name)
        return 1

    monkeypatch.setattr("llamawright.provide.sysroot.write_stub", note)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    return seen


@pytest.fixture
def root(tmp_path: Path, stubbed: list[str]) -> Path:
    place = tmp_path / "store" / "tools" / ("d" * 64)
    place.parent.mkdir(parents=True)
    unpack_sysroot(sysroot_set(), write_blobs(tmp_path / "blobs", PACKAGES), place)
    return place


class TestUnpacking:
    def test_the_libraries_that_are_linked_with_become_stand_ins(
        self, root: Path, stubbed: list[str]
    ) -> None:
        """The real files, each once, whatever links lead to them; others stay as they are."""
        assert stubbed == ["libc-2.31.so", "libm.so.6", "libstdc++.so.6.0.28", "ld-2.31.so"]
        assert root.joinpath("lib", TRIPLE, "libnss_dns.so.2").read_text() == "not linked with"

    def test_headers_say_the_ceiling(self, root: Path) -> None:
        """Sources choose by it: posix_spawn_file_actions_addchdir_np came with 2.29."""
        text = (root / "usr/include/features.h").read_text()
        assert "#define\t__GLIBC_MINOR__\t28\n" in text
        assert "#define\t__GLIBC__\t2\n" in text

    def test_libstdcxx_is_the_old_one_first_and_an_archive_for_the_rest(self, root: Path) -> None:
        script = (root / CXX / "libstdc++.so").read_text()
        assert script == f"INPUT ( /{LIB}/libstdc++.so.6 /{CXX}/libstdc++_nonshared.a )\n"
        assert (root / CXX / "libstdc++_nonshared.a").read_text() == "archive"
        assert not (root / CXX / "libstdc++.a").exists()

    def test_links_of_the_packages_stay_inside(self, root: Path) -> None:
        for link in (root / LIB / "libm.so", root / "lib64" / "ld-linux-x86-64.so.2"):
            assert not link.readlink().is_absolute()
            assert root.resolve() in link.resolve().parents

    def test_the_licences_come_along(self, root: Path) -> None:
        assert (root / "usr/share/doc/libc6/copyright").read_text() == "LGPL"

    def test_it_proves_itself(self, root: Path) -> None:
        assert prove_sysroot(root) == "9"
        found = prove(sysroot_set(), root)
        assert [(f.role, f.facts) for f in found] == [(Role.SYSROOT, (("headers", "9"),))]

    @pytest.mark.parametrize("name", [f"{LIB}/Scrt1.o", f"{LIB}/libc.so"])
    def test_a_part_that_is_gone_is_named(self, root: Path, name: str) -> None:
        (root / name).unlink()
        with pytest.raises(ToolMissingError, match="no old system") as caught:
            prove_sysroot(root)
        assert name.rpartition("/")[2] in caught.value.why

    @pytest.mark.parametrize("left_out", ["libc6-dev", "libstdc++-9-dev"])
    def test_a_set_without_its_headers_is_refused(
        self, tmp_path: Path, stubbed: list[str], left_out: str
    ) -> None:
        packages = {n: d for n, d in PACKAGES.items() if f"/{left_out}_" not in n}
        blobs = write_blobs(tmp_path / "blobs", packages)
        with pytest.raises(ToolMissingError) as caught:
            unpack_sysroot(sysroot_set(packages), blobs, tmp_path / "root")
        assert caught.value.kind == "incomplete-set"

    def test_without_a_compiler_the_cure_is_told(
        self, tmp_path: Path, stubbed: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shutil.which", lambda _name: None)
        with pytest.raises(ToolMissingError, match="cannot be made here") as caught:
            unpack_sysroot(sysroot_set(), write_blobs(tmp_path / "b", PACKAGES), tmp_path / "r")
        assert (caught.value.kind, "apt install" in caught.value.hint) == ("no-compiler", True)


@pytest.mark.skipif(sys.platform == "win32", reason="the wrappers are shell scripts")
class TestCompilers:
    ECHO = '#!/bin/sh\nfor word in "$0" "$@"; do echo "$word"; done\n'

    @pytest.fixture
    def compiler(self, tmp_path: Path) -> Found:
        for name in ("g++", "gcc"):
            (tmp_path / name).write_text(self.ECHO)
            (tmp_path / name).chmod(0o755)
        facts = (("c_compiler", str(tmp_path / "gcc")),)
        return replace(GCC, path=tmp_path / "g++", facts=facts)

    def made(self, root: Path, compiler: Found) -> Path:
        store = Store(root.parent.parent)
        return compilers_for(root, compiler, store, key="k", reporter=Told())

    def words(self, program: Path, *arguments: str) -> list[str]:
        ended = subprocess.run([program, *arguments], text=True, capture_output=True, check=True)
        return ended.stdout.splitlines()

    def test_the_cxx_compiler_gets_old_headers_and_libraries(
        self, root: Path, compiler: Found
    ) -> None:
        words = self.words(self.made(root, compiler), "-c", "a b.cpp")
        assert words[0] == str(compiler.path)
        assert words[-2:] == ["-c", "a b.cpp"]
        assert {f"--sysroot={root}", f"-B{root / LIB}", "-nostdinc++"} <= set(words)
        isystem = [words[i + 1] for i, word in enumerate(words) if word == "-isystem"]
        include = root / "usr/include"
        assert isystem == [
            str(include / "c++/9"), str(include / TRIPLE / "c++/9"),
            str(include / "c++/9/backward"),
        ]  # fmt: skip
        assert [w for w in words if w.startswith("-L")] == [
            f"-L{root / CXX}", f"-L{root / LIB}", f"-L{root / 'lib' / TRIPLE}",
        ]  # fmt: skip

    def test_what_the_archive_brings_is_hidden(self, root: Path, compiler: Found) -> None:
        """Else a driver's own libstdc++ would call into ours."""
        words = self.words(self.made(root, compiler), "a.o")
        assert "-Wl,--exclude-libs,libstdc++_nonshared.a" in words

    def test_a_question_about_the_compiler_does_not_become_a_link(
        self, root: Path, compiler: Found
    ) -> None:
        words = self.words(self.made(root, compiler), "-v")
        assert words[-1] == "-v"
        assert not any(word.startswith("-Wl,") for word in words)

    def test_the_c_compiler_stands_beside_it_without_cxx_headers(
        self, root: Path, compiler: Found
    ) -> None:
        words = self.words(self.made(root, compiler).with_name("gcc"), "-c", "a.c")
        assert words[0] == compiler.fact("c_compiler")
        assert not {"-nostdinc++", "-isystem"} & set(words)
        assert f"--sysroot={root}" in words

    def test_their_bytes_do_not_tell_which_store_they_are_in(
        self, root: Path, compiler: Found
    ) -> None:
        text = self.made(root, compiler).read_text()
        assert str(root.parent.parent) not in text
        assert f"../../tools/{'d' * 64}" in text

    def test_they_are_made_once(self, root: Path, compiler: Found) -> None:
        first = self.made(root, compiler)
        inode = first.stat().st_ino
        assert self.made(root, compiler) == first
        assert first.stat().st_ino == inode

    def test_another_compiler_gets_others(self, root: Path, compiler: Found) -> None:
        other = replace(compiler, path=Path("/opt/gcc-13/bin/g++"))
        assert self.made(root, other) != self.made(root, compiler)

    def test_only_gcc_can_be_turned(self, root: Path) -> None:
        with pytest.raises(ToolMissingError, match="clang cannot build for an older") as caught:
            self.made(root, CLANG)
        assert (caught.value.kind, caught.value.hint) == ("floor-compiler", "--compiler gcc")


def test_the_parts_are_found_by_what_is_there(root: Path) -> None:
    place = Sysroot.of(root)
    assert (place.triple, place.gcc) == (TRIPLE, "9")
