"""The one question that asks a shader compiler for every extension at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.detect import glslc
from llamawright.detect.candidates import Candidate
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.process import Command, Ending, Result
from machine_kit import stand_up

A, B = "GL_KHR_cooperative_matrix", "GL_EXT_bfloat16"


def answer(output: str, returncode: int) -> Result:
    return Result(
        command=Command(argv=("/glslc",), cwd=Path("/")),
        returncode=returncode,
        ending=Ending.EXITED,
        seconds=0.0,
        output=output,
        stdout="",
        tail=(),
        log=None,
    )


def refused(*names: str) -> str:
    lines = [f"all.comp:2: error: '#extension' : extension not supported: {n}" for n in names]
    return "\n".join([*lines, f"{len(names)} error{'s' * (len(names) > 1)} generated."])


def test_no_error_means_every_extension() -> None:
    assert glslc.supported((A, B), answer("", 0)) == (A, B)


def test_the_refused_ones_are_taken_off() -> None:
    assert glslc.supported((A, B), answer(refused(B), 1)) == (A,)
    assert glslc.supported((A, B), answer(refused(A, B), 1)) == ()


@pytest.mark.parametrize(
    ("output", "returncode"),
    [
        ("glslc: error: cannot open input file", 1),
        (f"{refused(B)}\n", 0),
        ("", 1),
        (refused(B).replace("1 error", "3 errors"), 1),
        (
            f"all.comp:1: error: '#version' : bad\n{refused(B)}".replace("1 error g", "2 errors g"),
            1,
        ),
    ],
)
def test_an_answer_that_does_not_add_up_is_none(output: str, returncode: int) -> None:
    assert glslc.supported((A, B), answer(output, returncode)) is None


def test_the_shader_requires_every_extension_once() -> None:
    text = glslc.extension_shader((A, B))
    assert text.splitlines() == [
        "#version 460",
        f"#extension {A} : require",
        f"#extension {B} : require",
        "void main() {}",
    ]


def test_without_capabilities_the_proof_still_counts(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    path = tmp_path / "usr/bin/glslc"
    seen = glslc.prove(
        Candidate(role=Role.GLSLC, name="glslc", path=path, where="here"),
        (),
        machine.surroundings(),
    )
    assert isinstance(seen, Found)
    assert seen.version == "2023.2"


def test_a_crash_in_the_middle_of_the_proof_is_seen(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "glslc-crashes-on-shaders", tmp_path)
    path = tmp_path / "usr/bin/glslc"
    seen = glslc.prove(
        Candidate(role=Role.GLSLC, name="glslc", path=path, where="here"),
        (),
        machine.surroundings(),
    )
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.CRASHED
