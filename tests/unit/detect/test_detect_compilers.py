"""C and C++ compilers: which are looked at, and what is said about those that do not work."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from llamawright.detect import compilers
from llamawright.detect.candidates import Candidate, Sighting
from llamawright.detect.surroundings import own_surroundings
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.platform import Platform, System
from llamawright.model.toolchain import Hint, KnownBad, Minimum
from machine_kit import NO_TOOLCHAINS, Machine, stand_up, write_program

GCC_11 = Minimum(role=Role.CXX, name="gcc", version="11", reason="-mavxvnni")
CLANG_12 = Minimum(role=Role.CXX, name="clang", version="12", reason="-mavxvnni")
APT = Hint(role=Role.CXX, system="debian", command="sudo apt-get install g++")
TOOLCHAINS = dataclasses.replace(NO_TOOLCHAINS, minimums=(GCC_11, CLANG_12), hints=(APT,))


def look(machine: Machine, wanted: str = "auto", **env: str) -> list[Sighting]:
    around = machine.surroundings(TOOLCHAINS, **env)
    items = compilers.candidates(wanted, around)
    return [i if isinstance(i, Rejected) else compilers.prove(i, around) for i in items]


def only(sightings: list[Sighting]) -> Sighting:
    assert len(sightings) == 1
    return sightings[0]


def refusal(root: Path, name: str, wanted: str = "auto", **env: str) -> Rejected:
    seen = only(look(stand_up("compilers", name, root), wanted, **env))
    assert isinstance(seen, Rejected)
    return seen


def test_a_good_compiler_tells_all_that_decides_its_output(tmp_path: Path) -> None:
    seen = only(look(stand_up("compilers", "plain", tmp_path)))
    assert isinstance(seen, Found)
    assert (seen.name, seen.version, seen.where) == ("gcc", "12.2.0", "PATH")
    assert seen.path == tmp_path / "usr/bin/g++"
    assert seen.fact("c_compiler") == str(tmp_path / "usr/bin/gcc")
    assert seen.fact("libc") == "glibc 2.36"
    assert seen.fact("libstdcxx") == "libstdc++ 20220819"
    assert seen.fact("linker") == "GNU ld (fake) 2.40"
    assert seen.fact("assembler") == "GNU assembler (fake) 2.40"
    assert seen.fact("revision") == "gcc (Debian 12.2.0-14) 12.2.0"
    assert seen.fact("target") == "x86_64-linux-gnu"
    assert len(seen.sha256) == len(seen.fact("c_sha256")) == 64


def test_plain_names_come_first_then_newer_versions_and_links_count_once(tmp_path: Path) -> None:
    machine = stand_up("compilers", "several", tmp_path)
    seen = look(machine, PATH=f"{tmp_path}/bin:{tmp_path}/usr/bin")
    assert [s.path and s.path.name for s in seen] == [
        "g++", "clang++", "g++-13", "g++-11", "clang++-9",
    ]  # fmt: skip
    assert seen[0].path == tmp_path / "bin/g++"
    old = seen[-1]
    assert isinstance(old, Rejected)
    assert old.fault is Fault.TOO_OLD
    assert old.reason == "clang 9.0.1 is older than 12: -mavxvnni"


def test_versioned_names_bring_their_own_c_compiler(tmp_path: Path) -> None:
    machine = stand_up("compilers", "several", tmp_path)
    found = {s.path.name: s.fact("c_compiler") for s in look(machine) if isinstance(s, Found)}
    assert found["g++-13"] == str(tmp_path / "usr/bin/gcc-13")
    assert found["clang++"] == str(tmp_path / "usr/bin/clang")


def test_the_plain_word_counts_only_where_nothing_else_is(tmp_path: Path) -> None:
    seen = only(look(stand_up("compilers", "only-c-plus-plus", tmp_path)))
    assert isinstance(seen, Found)
    assert seen.name == "clang"
    assert seen.fact("c_compiler") == str(tmp_path / "usr/bin/cc")


def test_without_any_there_is_no_candidate(tmp_path: Path) -> None:
    assert look(stand_up("compilers", "none", tmp_path)) == []


@pytest.mark.parametrize(
    ("machine", "fault", "said"),
    [
        ("without-c-compiler", Fault.INCOMPLETE, "usr/bin/gcc cannot be used: it does not exist"),
        ("without-headers", Fault.FAILED, "c++17 program: exit status 1: proof.cpp:2:10: fatal"),
        ("without-threads", Fault.FAILED, "c11 program: exit status 1: /usr/bin/ld: cannot find"),
        ("for-another-machine", Fault.WRONG_MACHINE, "makes programs for aarch64, not for x86_64"),
        ("thirty-two-bits", Fault.WRONG_MACHINE, "not for x86_64"),
        ("program-fails", Fault.FAILED, "what it builds does not run: exit status 3"),
        ("crashes", Fault.CRASHED, "it crashed with SIGSEGV (exit status 139)"),
    ],
)
def test_a_bad_compiler_is_refused_with_the_reason(
    tmp_path: Path, machine: str, fault: Fault, said: str
) -> None:
    seen = refusal(tmp_path, machine)
    assert seen.fault is fault
    assert said in seen.reason
    assert seen.cure == "sudo apt-get install g++"


def test_a_temporary_folder_that_runs_nothing_is_no_fault_of_the_compiler(tmp_path: Path) -> None:
    seen = refusal(tmp_path, "noexec")
    assert "programs cannot be run in" in seen.reason
    assert "noexec" in seen.reason
    assert seen.cure == "set TMPDIR to a folder whose programs may be run"


def test_a_link_to_a_compiler_cache_is_no_compiler(tmp_path: Path) -> None:
    masked, real = look(stand_up("compilers", "masquerade", tmp_path))
    assert isinstance(masked, Rejected)
    assert masked.fault is Fault.UNSUPPORTED
    assert "a link to ccache" in masked.reason
    assert isinstance(real, Found)
    assert real.path == tmp_path / "usr/bin/g++"


def test_condas_linker_is_refused(tmp_path: Path) -> None:
    seen = refusal(tmp_path, "conda")
    assert seen.fault is Fault.LEAK
    assert "conda/compiler_compat/ld" in seen.reason
    assert "conda deactivate" in seen.cure


def test_a_linker_elsewhere_in_conda_is_a_leak_too(tmp_path: Path) -> None:
    machine = stand_up("compilers", "plain", tmp_path)
    write_program(tmp_path / "conda/bin/ld", "#!/bin/sh\necho 'GNU ld (conda) 2.40'\n")
    path = f"{tmp_path}/conda/bin:{tmp_path}/usr/bin"
    seen = only(look(machine, PATH=path, CONDA_PREFIX=str(tmp_path / "conda")))
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.LEAK


def test_condas_own_compiler_with_its_own_linker_is_in_order(tmp_path: Path) -> None:
    machine = stand_up("compilers", "conda-own", tmp_path)
    named = str(tmp_path / "conda/bin/x86_64-conda-linux-gnu-g++")
    seen = only(look(machine, CXX=named))
    assert isinstance(seen, Found)
    assert seen.where == "CXX"
    assert seen.fact("c_compiler").endswith("conda/bin/x86_64-conda-linux-gnu-gcc")


@pytest.mark.parametrize(
    ("text", "fault", "cure"),
    [
        ("g++ -pthread -B /opt/conda/compiler_compat", Fault.LEAK, "unset CXX"),
        ("ccache g++", Fault.UNSUPPORTED, "let CXX name the compiler alone"),
        ("g++ 'unbalanced", Fault.UNSUPPORTED, "let CXX name the compiler alone"),
    ],
)
def test_a_command_line_in_the_environment_is_no_compiler(
    tmp_path: Path, text: str, fault: Fault, cure: str
) -> None:
    refused, other = look(stand_up("compilers", "plain", tmp_path), CXX=text)
    assert isinstance(refused, Rejected)
    assert (refused.fault, refused.where) == (fault, "CXX")
    assert cure in refused.cure
    assert isinstance(other, Found)


def test_the_environments_compiler_comes_first(tmp_path: Path) -> None:
    first = look(stand_up("compilers", "several", tmp_path), CXX="g++-11")[0]
    assert isinstance(first, Found)
    assert (first.path, first.where) == (tmp_path / "usr/bin/g++-11", "CXX")
    assert first.fact("c_compiler") == str(tmp_path / "usr/bin/gcc-11")


def test_both_variables_name_the_pair(tmp_path: Path) -> None:
    machine = stand_up("compilers", "several", tmp_path)
    first = look(machine, CXX="g++-13", CC=str(tmp_path / "usr/bin/gcc-11"))[0]
    assert isinstance(first, Found)
    assert first.fact("c_compiler") == str(tmp_path / "usr/bin/gcc-11")


def test_the_c_compilers_variable_alone_names_the_pair(tmp_path: Path) -> None:
    first = look(stand_up("compilers", "several", tmp_path), CC="gcc-13")[0]
    assert isinstance(first, Found)
    assert (first.path.name, first.where) == ("g++-13", "CC")
    assert first.fact("c_compiler") == str(tmp_path / "usr/bin/gcc-13")


def test_an_environments_compiler_that_is_not_there_is_told(tmp_path: Path) -> None:
    first = look(stand_up("compilers", "plain", tmp_path), CXX="/gone/g++")[0]
    assert isinstance(first, Rejected)
    assert (first.where, first.fault, first.reason) == ("CXX", Fault.ABSENT, "it does not exist")


def test_a_named_compiler_is_the_only_candidate(tmp_path: Path) -> None:
    wanted = tmp_path / "usr/bin/g++-13"
    seen = only(look(stand_up("compilers", "several", tmp_path), str(wanted), CXX="g++-11"))
    assert isinstance(seen, Found)
    assert (seen.path, seen.where) == (wanted, "--compiler")
    assert seen.fact("c_compiler") == str(tmp_path / "usr/bin/gcc-13")


def test_a_named_dangling_link_says_where_it_leads(tmp_path: Path) -> None:
    link = tmp_path / "g++-99"
    link.symlink_to("/gone/g++-99")
    seen = refusal(tmp_path, "none", str(link))
    assert seen.fault is Fault.DANGLING
    assert seen.reason == "it is a link to /gone/g++-99, which does not exist"


def test_a_known_bad_version_is_refused_with_its_report(tmp_path: Path) -> None:
    bad = KnownBad(
        role=Role.CXX, name="gcc", versions="==12.2.*", reason="wrong code", link="upstream#1"
    )
    machine = stand_up("compilers", "plain", tmp_path)
    around = machine.surroundings(dataclasses.replace(NO_TOOLCHAINS, known_bad=(bad,)))
    candidate = compilers.candidates("auto", around)[0]
    assert isinstance(candidate, Candidate)
    seen = compilers.prove(candidate, around)
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.KNOWN_BAD
    assert "wrong code (upstream#1)" in seen.reason


@pytest.mark.skipif(not shutil.which("g++"), reason="needs a real g++")
@pytest.mark.skipif(sys.platform != "linux", reason="asks for Linux facts")
def test_the_real_compiler_proves_itself(tmp_path: Path) -> None:
    real = shutil.which("g++")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    around = own_surroundings(Platform(System.LINUX, "x86_64"), NO_TOOLCHAINS, env)
    seen = compilers.prove(
        Candidate(role=Role.CXX, name="gcc", path=Path(str(real)), where="PATH"), around
    )
    if isinstance(seen, Rejected):  # another architecture, or a clang by that name
        assert seen.fault is Fault.WRONG_MACHINE
        return
    assert seen.version[0].isdigit()
    assert seen.fact("libstdcxx")
    assert "ld" in seen.fact("linker").lower()
