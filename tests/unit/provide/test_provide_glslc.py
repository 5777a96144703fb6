"""A shader compiler must accept a good and refuse a bad shader (case V8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from provide_fakes import GLSLC

from llamawright.errors import ExitCode, ToolMissingError
from llamawright.provide.glslc import prove_glslc


def script(folder: Path, text: str, *, mode: int = 0o755) -> Path:
    path = folder / "glslc"
    path.write_text(text, encoding="ascii")
    path.chmod(mode)
    return path


def unfit(path: Path) -> ToolMissingError:
    with pytest.raises(ToolMissingError) as caught:
        prove_glslc(path)
    assert caught.value.code is ExitCode.TOOL_MISSING
    return caught.value


def test_a_working_one(tmp_path: Path) -> None:
    assert prove_glslc(script(tmp_path, GLSLC)) == "2025.2"


def test_a_version_that_cannot_be_read(tmp_path: Path) -> None:
    assert prove_glslc(script(tmp_path, GLSLC.replace("shaderc v2025.2", "hello"))) == "unknown"


def test_one_that_crashes(tmp_path: Path) -> None:
    error = unfit(script(tmp_path, "#!/bin/sh\nkill -SEGV $$\n"))
    assert error.kind == "glslc-unusable"
    assert "--version ended with status -11" in error.why


def test_one_that_exits_139(tmp_path: Path) -> None:
    assert "139" in unfit(script(tmp_path, "#!/bin/sh\nexit 139\n")).why


def test_one_that_crashes_only_when_it_compiles(tmp_path: Path) -> None:
    text = '#!/bin/sh\n[ "$1" = --version ] && exit 0\nkill -SEGV $$\n'
    assert "good shader" in unfit(script(tmp_path, text)).why


def test_one_that_refuses_everything(tmp_path: Path) -> None:
    text = '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "error: no" >&2\nexit 1\n'
    error = unfit(script(tmp_path, text))
    assert "good shader" in error.why
    assert error.tail == ("error: no",)


def test_one_that_accepts_everything(tmp_path: Path) -> None:
    error = unfit(script(tmp_path, GLSLC.replace("no shader", "never in a shader")))
    assert "accepts a bad shader" in error.why


def test_one_that_says_yes_and_writes_nothing(tmp_path: Path) -> None:
    assert "good shader" in unfit(script(tmp_path, "#!/bin/sh\nexit 0\n")).why


def test_one_that_writes_something_else(tmp_path: Path) -> None:
    text = GLSLC.replace("'\\003\\002\\043\\007'", "hello")
    assert text != GLSLC
    assert "good shader" in unfit(script(tmp_path, text)).why


def test_one_that_is_not_executable(tmp_path: Path) -> None:
    assert unfit(script(tmp_path, GLSLC, mode=0o644)).kind == "cannot-start"


def test_one_that_is_absent(tmp_path: Path) -> None:
    assert unfit(tmp_path / "glslc").kind == "cannot-start"
