"""Visual Studio by vswhere's own answer (cases W3, W5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright.detect import msvc
from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Fault
from llamawright.model.platform import Platform, System
from machine_kit import NO_TOOLCHAINS, write_program

X64 = Platform(System.WINDOWS, "x86_64")
ARM = Platform(System.WINDOWS, "arm64")
VS_18 = [
    {
        "displayName": "Visual Studio Build Tools 2026",
        "installationPath": "C:\\BuildTools",
        "installationVersion": "18.1.11312.151",
    }
]


def test_an_instance_is_listed_by_its_name_whatever_its_year() -> None:
    (seen,) = msvc.judge(json.dumps(VS_18), X64)
    assert "Visual Studio Build Tools 2026" in seen.reason
    assert seen.fault is Fault.UNSUPPORTED
    assert "--compiler clang" in seen.cure


def test_msvc_on_arm_is_refused_and_clang_offered() -> None:
    (seen,) = msvc.judge(json.dumps(VS_18), ARM)
    assert "does not support MSVC on ARM" in seen.reason
    assert "clang" in seen.cure


@pytest.mark.parametrize("text", ["", "[]"])
def test_no_instance_is_no_candidate(text: str) -> None:
    assert list(msvc.judge(text, X64)) == []


@pytest.mark.parametrize("text", ["{", "{}x", '[{"displayName": 1}]', "[7]", "7"])
def test_a_damaged_answer_is_told(text: str) -> None:
    (seen,) = msvc.judge(text, X64)
    assert seen.fault is Fault.FAILED
    assert "cannot be read" in seen.reason


def around(platform: Platform, base: Path | None) -> Surroundings:
    env = {"ProgramFiles(x86)": str(base)} if base else {}
    return Surroundings(platform=platform, toolchains=NO_TOOLCHAINS, env=env)


def test_other_systems_are_not_asked(tmp_path: Path) -> None:
    assert msvc.survey(around(Platform(System.LINUX, "x86_64"), tmp_path)) == ()
    assert msvc.survey(around(X64, None)) == ()
    assert msvc.survey(around(X64, tmp_path)) == ()


def test_vswhere_is_run_and_believed(tmp_path: Path) -> None:
    path = tmp_path / msvc.VSWHERE
    write_program(path, f"#!/bin/sh\nprintf '%s' '{json.dumps(VS_18).replace(chr(92), '/')}'\n")
    (seen,) = msvc.survey(around(ARM, tmp_path))
    assert "MSVC on ARM" in seen.reason
    write_program(path, "#!/bin/sh\nexit 87\n")
    (failed,) = msvc.survey(around(ARM, tmp_path))
    assert failed.reason.startswith("exit status 87")
