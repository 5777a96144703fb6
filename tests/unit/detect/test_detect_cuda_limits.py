"""Which host compilers a toolkit takes, in the shapes of several releases (case C12)."""

from __future__ import annotations

import tomllib

import pytest

from cuda_kit import host_config
from llamawright.detect.cuda_limits import host_limits
from llamawright.model.toolchain import Fact
from machine_kit import FAKES, Table, as_table, words

with (FAKES / "cuda-host-config.toml").open("rb") as stream:
    RELEASES: dict[str, Table] = {k: as_table(v) for k, v in tomllib.load(stream).items()}
KNOWN = [r for r, row in RELEASES.items() if "gcc_max" in row]


@pytest.mark.parametrize("release", KNOWN)
def test_the_limits_of_a_release_are_read_with_both_ends_included(release: str) -> None:
    row = RELEASES[release]
    least, most = words(row["msc"])
    assert host_limits(host_config(release)) == {
        Fact.GCC_MAX: str(row["gcc_max"]),
        Fact.CLANG_MAX: str(row["clang_max"]),
        Fact.MSC_MIN: least,
        Fact.MSC_MAX: most,
    }


def test_the_limit_of_the_plain_clang_counts_not_that_of_qnx() -> None:
    text = host_config("12.9")
    assert "(__clang_major__ >= 18)" in text
    assert host_limits(text)[Fact.CLANG_MAX] == "19"


@pytest.mark.parametrize("text", ["", "// nothing\n", host_config("nonsense"), "\0\ufffd"])
def test_an_unknown_shape_claims_nothing(text: str) -> None:
    assert host_limits(text) == {}


def test_comments_are_no_limits() -> None:
    text = "/*\n#if __GNUC__ > 9\n*/\n#if __GNUC__ > 14\n#endif /* __GNUC__ > 14 */\n"
    assert host_limits(text) == {Fact.GCC_MAX: "14"}


def test_an_older_shape_of_the_gcc_limit_is_read() -> None:
    text = "#if (__GNUC__ == 4 && __GNUC_MINOR__ > 9) || __GNUC__ > 6\n"
    assert host_limits(text) == {Fact.GCC_MAX: "6"}


def test_the_upper_end_of_msvc_may_be_written_either_way() -> None:
    text = "#if _MSC_VER < 1600 || _MSC_VER > 1900\n"
    assert host_limits(text) == {Fact.MSC_MIN: "1600", Fact.MSC_MAX: "1900"}


def test_lines_may_end_as_on_windows() -> None:
    text = host_config("13.0").replace("\n", "\r\n")
    assert host_limits(text)[Fact.GCC_MAX] == "15"
    assert host_limits(text)[Fact.MSC_MAX] == "1949"
