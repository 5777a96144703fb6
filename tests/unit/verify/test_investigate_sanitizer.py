"""compute-sanitizer: found, told what to do, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.verify import investigate_sanitizer as sanitizer
from llamawright.verify.investigate_sanitizer import argv, find, read_messages, summary

REPORT = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at bad(float *, int)+0x90 in bad.cu:5
=========     by thread (0,0,0) in block (1,0,0)
=========     Access at 0x7f5b5fa00400 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x7b23] in bad
=========
========= Invalid __global__ write of size 4 bytes
=========     at bad(float *, int)+0x90 in bad.cu:5
=========     by thread (1,0,0) in block (1,0,0)
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 3 errors
"""


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def test_each_report_is_told_once_with_its_kernel() -> None:
    found = read_messages(REPORT)
    assert [(m.id, m.count) for m in found] == [
        ("Invalid __global__ write of size 4 bytes", 2),
        ('Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"', 1),
    ]
    assert found[0].text.endswith("at bad(float *, int)")


def test_the_tools_own_last_words_are_told() -> None:
    assert summary(REPORT) == "ERROR SUMMARY: 3 errors"
    assert summary("========= ERROR SUMMARY: 0 errors") == "ERROR SUMMARY: 0 errors"


def test_a_tool_that_cannot_work_says_so() -> None:
    said = "========= Error: Device not supported. Please refer to the documentation"
    assert summary(said).startswith("Device not supported")


@pytest.mark.parametrize("text", ["", "hello", "=========", "\0", "==== x", "Invalid read"])
def test_what_is_no_report_is_none(text: str) -> None:
    assert read_messages(text) == ()
    assert summary(text) == ""


def test_a_report_that_was_cut_off_is_one() -> None:
    (found,) = read_messages("========= Misaligned address\n====")
    assert found.id == "Misaligned address"


def test_a_report_without_a_kernel_takes_no_other_ones() -> None:
    text = "========= Misaligned address\n========= Invalid x\n=========     at k()+0x1\n"
    assert [m.text for m in read_messages(text)] == ["Misaligned address", "Invalid x at k()"]


def test_the_toolkits_own_place_is_searched(tmp_path: Path) -> None:
    own = program(tmp_path / "local" / "cuda-13.0" / "bin" / "compute-sanitizer")
    assert find({"PATH": ""}, base=tmp_path / "local") == own


def test_the_newest_toolkit_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "cuda-12.4" / "bin" / "compute-sanitizer")
    newer = program(tmp_path / "cuda-13.0" / "compute-sanitizer" / "compute-sanitizer")
    assert find({"PATH": ""}, base=tmp_path) == newer


def test_a_named_toolkit_goes_before_the_usual_ones(tmp_path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "compute-sanitizer")
    mine = program(tmp_path / "mine" / "bin" / "compute-sanitizer")
    assert find({"PATH": "", "CUDA_HOME": str(tmp_path / "mine")}, base=tmp_path) == mine


def test_the_path_goes_first(tmp_path: Path) -> None:
    mine = program(tmp_path / "bin" / "compute-sanitizer")
    mine.chmod(0o755)
    program(tmp_path / "cuda" / "bin" / "compute-sanitizer")
    assert find({"PATH": str(mine.parent)}, base=tmp_path) == mine


def test_where_there_is_none_there_is_none(tmp_path: Path) -> None:
    assert find({"PATH": str(tmp_path), "CUDA_PATH": str(tmp_path / "gone")}, base=tmp_path) is None


def test_every_access_is_checked_and_the_report_goes_to_a_file() -> None:
    line = argv(Path("/cuda/compute-sanitizer"), Path("/w/log"), ("/a/llama", "-n", "1"))
    assert line[:3] == ("/cuda/compute-sanitizer", "--tool", "memcheck")
    assert line[line.index("--log-file") + 1] == "/w/log"
    assert line[-3:] == ("/a/llama", "-n", "1")


def test_a_flood_of_text_is_bounded() -> None:
    (found,) = read_messages("========= Invalid " + "x" * 9999)
    assert len(found.text) == sanitizer.MOST_TEXT
