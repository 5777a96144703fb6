"""cmake, ninja, git and the caches: their own first, and broken ones told apart."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from llamawright.detect import build_tools
from llamawright.detect.candidates import Sighting, programs
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.toolchain import Hint, Minimum
from machine_kit import NO_TOOLCHAINS, Machine, stand_up

TOOLCHAINS = dataclasses.replace(
    NO_TOOLCHAINS,
    minimums=(Minimum(role=Role.CMAKE, version="3.19", reason="ggml asks for it"),),
    hints=(
        Hint(role=Role.CMAKE, system="*", command="pip install cmake"),
        Hint(role=Role.GIT, system="debian", command="sudo apt-get install git"),
    ),
)
ROLES = {
    "cmake": Role.CMAKE,
    "ninja": Role.NINJA,
    "git": Role.GIT,
    "ccache": Role.CACHE,
    "sccache": Role.CACHE,
}


def look(machine: Machine, name: str, named: str = "auto") -> list[Sighting]:
    around = machine.surroundings(TOOLCHAINS)
    return [build_tools.prove(c, around) for c in programs(ROLES[name], name, named, around)]


def refusal(machine: Machine, name: str) -> Rejected:
    (seen,) = look(machine, name)
    assert isinstance(seen, Rejected)
    return seen


@pytest.mark.parametrize(
    ("name", "version"), [("cmake", "3.25.1"), ("ninja", "1.11.1"), ("git", "2.39.5")]
)
def test_the_systems_tools_are_found_on_path(tmp_path: Path, name: str, version: str) -> None:
    (seen,) = look(stand_up("build-tools", "debian12", tmp_path), name)
    assert isinstance(seen, Found)
    assert (seen.version, seen.where) == (version, "PATH")
    assert len(seen.sha256) == 64


def test_our_own_tools_come_before_the_systems(tmp_path: Path) -> None:
    machine = stand_up("build-tools", "own", tmp_path)
    for name, version in (("cmake", "4.1.0"), ("ninja", "1.13.0.git.kitware.jobserver-pipe-1")):
        first, second = look(machine, name)
        assert isinstance(first, Found)
        assert (first.where, first.version) == ("tool environment", version)
        assert second.where == "PATH"
    assert look(machine, "ccache")[0].where == "tool environment"


def test_a_named_tool_is_the_only_candidate(tmp_path: Path) -> None:
    machine = stand_up("build-tools", "own", tmp_path)
    (seen,) = look(machine, "cmake", str(tmp_path / "usr/bin/cmake"))
    assert isinstance(seen, Found)
    assert (seen.where, seen.version) == ("--cmake", "3.25.1")


def test_a_named_tool_that_is_not_there_is_refused(tmp_path: Path) -> None:
    machine = stand_up("build-tools", "debian12", tmp_path)
    (seen,) = look(machine, "ninja", "/gone/ninja")
    assert isinstance(seen, Rejected)
    assert (seen.fault, seen.where) == (Fault.ABSENT, "--ninja")


def test_a_tool_that_hangs_is_given_up(tmp_path: Path) -> None:
    start = time.monotonic()
    seen = refusal(stand_up("build-tools", "broken", tmp_path), "cmake")
    assert (seen.fault, seen.reason) == (Fault.HUNG, "it gave no answer within 0.6 s")
    assert seen.cure == "pip install cmake"
    assert time.monotonic() - start < 8


def test_a_tool_without_the_run_bit_is_told(tmp_path: Path) -> None:
    seen = refusal(stand_up("build-tools", "broken", tmp_path), "ninja")
    assert (seen.fault, seen.reason) == (Fault.NOT_EXECUTABLE, "it is not executable")


def test_a_cache_that_fails_is_refused_with_its_own_words(tmp_path: Path) -> None:
    seen = refusal(stand_up("build-tools", "broken", tmp_path), "sccache")
    assert seen.fault is Fault.FAILED
    assert seen.reason == "exit status 1: sccache: error: could not start the server"
    assert seen.cure == "--cache off"


def test_a_program_of_another_kind_is_refused(tmp_path: Path) -> None:
    seen = refusal(stand_up("build-tools", "broken", tmp_path), "ccache")
    assert seen.reason == "it does not call itself ccache: not what you think"


def test_a_dangling_link_is_told(tmp_path: Path) -> None:
    seen = refusal(stand_up("build-tools", "broken", tmp_path), "git")
    assert (seen.fault, seen.cure) == (Fault.DANGLING, "sudo apt-get install git")


def test_a_script_whose_interpreter_is_gone_is_told(tmp_path: Path) -> None:
    (seen,) = look(stand_up("build-tools", "broken-venv", tmp_path), "cmake")
    assert isinstance(seen, Rejected)
    assert seen.reason == "its interpreter /gone/bin/python3 does not exist"


def test_a_program_for_another_machine_is_told(tmp_path: Path) -> None:
    seen = refusal(stand_up("build-tools", "foreign", tmp_path), "cmake")
    assert seen.fault is Fault.WRONG_MACHINE
    assert seen.reason == "it is made for aarch64, this machine is x86_64"


def test_endless_output_is_cut(tmp_path: Path) -> None:
    seen = refusal(stand_up("build-tools", "endless", tmp_path), "cmake")
    assert seen.reason == "it prints without end"


def test_an_old_version_is_refused_with_the_limits_reason(tmp_path: Path) -> None:
    machine = stand_up("build-tools", "debian12", tmp_path)
    (tmp_path / "usr/bin/cmake").write_text("#!/bin/sh\necho 'cmake version 3.18.4'\n")
    seen = refusal(machine, "cmake")
    assert seen.fault is Fault.TOO_OLD
    assert seen.reason == "cmake 3.18.4 is older than 3.19: ggml asks for it"


def test_relative_and_empty_words_of_path_are_no_folders(tmp_path: Path) -> None:
    machine = stand_up("build-tools", "debian12", tmp_path)
    around = machine.surroundings(PATH=f":.:bin:{tmp_path}/usr/bin:{tmp_path}/usr/bin")
    assert around.folders == (tmp_path / "usr/bin",)


def test_probes_run_in_the_allow_listed_environment(tmp_path: Path) -> None:
    machine = stand_up("build-tools", "debian12", tmp_path)
    env = machine.surroundings(CXXFLAGS="-O0", CMAKE_GENERATOR="Unix Makefiles").probe_env
    assert "CXXFLAGS" not in env
    assert "CMAKE_GENERATOR" not in env
    assert env["LC_ALL"] == "C.UTF-8"
    assert env["PATH"] == f"{tmp_path}/usr/bin"
