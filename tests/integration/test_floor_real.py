"""The old system for real: provided, compiled against, and its promise measured. By name.

9 MB; ``LLAMAWRIGHT_TEST_STORE`` names a store that has them already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.config import load_toolchains
from llamawright.model.floors import highest, numbers
from llamawright.model.inventory import Role
from llamawright.model.toolchain import ProvidedSet
from llamawright.package.reading import read_binary
from llamawright.paths import data_root
from llamawright.provide import compilers_for, provide_set
from llamawright.store import Store
from reporter_kit import Told
from resolve_kit import GCC

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the old system is a Linux"),
]
# What C++17 has and the old libstdc++ lacks, threads, and an exception that leaves a library.
LIBRARY = """
#include <filesystem>
#include <future>
#include <regex>
#include <stdexcept>
#include <string>
std::string told(const std::string &word) {
    if (word == "wrong") throw std::invalid_argument("thrown in the library");
    auto later = std::async(std::launch::async, [] { return 7; });
    bool plain = std::regex_match(std::string("aaa"), std::regex("a+"));
    auto name = std::filesystem::path(word).filename().string();
    return name + std::to_string(later.get()) + (plain ? "!" : "?");
}
"""
# Loaded at run time, as ggml's backends are.
MODULE = """
#include <stdexcept>
struct base { virtual ~base() {} virtual int run() = 0; };
struct own : base { int run() override { throw std::out_of_range("thrown in the module"); } };
extern "C" base *make() { return new own; }
"""
PROGRAM = """
#include <cmath>
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>
#include <string>
std::string told(const std::string &word);
struct base { virtual ~base() {} virtual int run() = 0; };
int main(int count, char **words) {
    std::puts(told("/a/b").c_str());
    try { told("wrong"); } catch (const std::exception &e) { std::puts(e.what()); }
    auto place = std::filesystem::path(words[0]).parent_path() / "libmodule.so";
    void *module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) { std::puts(dlerror()); return 1; }
    base *made = reinterpret_cast<base *(*)()>(dlsym(module, "make"))();
    try { made->run(); } catch (const std::out_of_range &e) { std::puts(e.what()); }
    std::printf("%.3f %.3f\\n", std::exp(count * 1.0), std::pow(count + 1.0, 0.5));
}
"""
EXPECTED = ["b7!", "thrown in the library", "thrown in the module", "2.718 1.414"]


@pytest.fixture(scope="module")
def floor() -> ProvidedSet:
    known = load_toolchains(data_root() / "toolchains")
    return next(s for s in known.sets if s.role is Role.SYSROOT)


@pytest.fixture(scope="module")
def compiler(floor: ProvidedSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("LLAMAWRIGHT_TEST_STORE", "")
    store = Store(Path(named) if named else tmp_path_factory.mktemp("store"))
    root = provide_set(
        floor,
        store=store,
        toolchains=load_toolchains(data_root() / "toolchains"),
        offline=bool(named),
        reporter=Told(),
    )
    own = {name: shutil.which(name) for name in ("g++", "gcc")}
    if None in own.values():
        pytest.skip("it takes gcc to compile")
    facts = (("c_compiler", str(own["gcc"])),)
    found = replace(GCC, path=Path(str(own["g++"])), facts=facts)
    return compilers_for(root, found, store, key=floor.digest, reporter=Told())


def build(compiler: Path, folder: Path) -> list[Path]:
    """Compile library, module and program, and return what was made."""
    for name, text in (("told", LIBRARY), ("module", MODULE), ("main", PROGRAM)):
        (folder / f"{name}.cpp").write_text(text)
    shared = ("-O2", "-std=c++17", "-pthread")
    for words in (
        ("-shared", "-fPIC", "told.cpp", "-o", "libtold.so"),
        ("-shared", "-fPIC", "module.cpp", "-o", "libmodule.so"),
        ("main.cpp", "-o", "main", "-L.", "-ltold", "-ldl", "-Wl,-rpath,$ORIGIN"),
    ):
        subprocess.run([compiler, *shared, *words], cwd=folder, check=True)
    return [folder / name for name in ("libtold.so", "libmodule.so", "main")]


def test_programs_keep_the_ceiling_and_run_here(
    compiler: Path, floor: ProvidedSet, tmp_path: Path
) -> None:
    made = build(compiler, tmp_path)
    facts = [r.facts for p in made if (r := read_binary(p, name=p.name))]
    assert len(facts) == len(made)
    ceiling = dict(word.rsplit("_", 1) for word in floor.fact("ceiling").split())
    measured = {
        "GLIBC": highest(f.glibc for f in facts if f.glibc),
        "GLIBCXX": highest(f.glibcxx for f in facts if f.glibcxx),
        "CXXABI": highest(f.cxxabi for f in facts if f.cxxabi),
    }
    assert all(numbers(v) <= numbers(ceiling[k]) for k, v in measured.items()), measured
    ran = subprocess.run([tmp_path / "main"], text=True, capture_output=True, check=True)
    assert ran.stdout.splitlines() == EXPECTED


def test_what_the_archive_brought_is_not_offered_to_others(compiler: Path, tmp_path: Path) -> None:
    """A driver with a libstdc++ of its own must never call into ours."""
    library = build(compiler, tmp_path)[0]
    told = subprocess.run(
        ["nm", "-D", "--defined-only", "-C", str(library)], text=True, capture_output=True,
        check=True,
    ).stdout  # fmt: skip
    assert "std::filesystem::__cxx11::path::_M_split_cmpts" not in told
    assert "told(" in told


def test_a_function_of_a_newer_glibc_does_not_link(compiler: Path, tmp_path: Path) -> None:
    source = tmp_path / "new.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <unistd.h>\nint gettid(void);\n"
        "int main(void) { return gettid() == 0; }\n"
    )
    gcc = compiler.with_name("gcc")
    ended = subprocess.run(
        [gcc, str(source), "-o", str(tmp_path / "new")], text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    assert "gettid" in ended.stderr


def test_sources_are_told_the_old_version(compiler: Path, tmp_path: Path) -> None:
    source = tmp_path / "version.c"
    source.write_text("#include <features.h>\nVERSION __GLIBC__ __GLIBC_MINOR__\n")
    told = subprocess.run(
        [compiler.with_name("gcc"), "-E", str(source)], text=True, capture_output=True, check=True
    ).stdout
    assert told.split()[-2:] == ["2", "28"]
