"""The verb wheel: what is made, what is printed, and a wheel that lies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import cli_kit
from cli_kit import Line, line
from llamawright.cli.wheel import record, wheel_lines
from llamawright.model.wheel import BuiltWheel, PlatformClaim, WheelContents
from llamawright.package import pack
from llamawright.package.wheels.canonical import rewrite
from package_kit import DATE, Bench

__all__ = ["line"]

NAME = "llamawright_llama_cpp-0.0.7+vulkan-py3-none-manylinux_2_38_x86_64.whl"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the artifacts are Linux's")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bench = Bench(tmp_path_factory.mktemp("made"))
    patched, host, module = bench.trees()
    return pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told).path


def built(**changes: object) -> BuiltWheel:
    contents = WheelContents(
        dist_info="d", version="0.0.7+cu124", tags=("py3-none-manylinux_2_28_x86_64",),
        requires=("nvidia-cublas-cu12~=12.4",), scripts=(("llama-cli", "m:f"),),
        manifest=cli_kit.manifest(),
    )  # fmt: skip
    told: dict[str, object] = {
        "path": Path("/x y/a.whl"), "size": 2048, "sha256": "a" * 64, "source_sha256": "b" * 64,
        "version": "0.0.7+cu124", "contents": contents,
        "claim": PlatformClaim(
            claimed="manylinux_2_28_x86_64", policy="manylinux_2_27_x86_64", glibc="2.27"
        ),
        **changes,
    }  # fmt: skip
    return BuiltWheel(**told)  # type: ignore[arg-type]


def test_the_summary_tells_tag_needs_and_the_next_commands() -> None:
    lines = list(wheel_lines(built()))
    assert lines[0] == "wheel     /x y/a.whl  (2.0 KiB)"
    assert "  tag     manylinux_2_28_x86_64; measured: glibc 2.27, manylinux_2_27_x86_64" in lines
    assert "  needs   nvidia-cublas-cu12~=12.4" in lines
    assert lines[-2:] == [
        "install   pip install --find-links '/x y' 'llamawright-llama-cpp==0.0.7+cu124'",
        "prove     llamawright verify '/x y/a.whl'",
    ]


def test_a_platform_without_glibc_has_nothing_measured() -> None:
    lines = list(wheel_lines(built(claim=PlatformClaim(claimed="win_amd64"))))
    assert "  tag     win_amd64" in lines


def test_the_record_names_archive_and_claim() -> None:
    told = record(built())
    assert (told["source_sha256"], told["project"]) == ("b" * 64, "llamawright-llama-cpp")
    assert told["claim"] == {
        "claimed": "manylinux_2_28_x86_64", "policy": "manylinux_2_27_x86_64", "glibc": "2.27",
    }  # fmt: skip
    json.dumps(told)


@on_linux
def test_an_archive_becomes_a_wheel_and_a_wheel_is_measured(line: Line, archive: Path) -> None:
    assert line("wheel", str(archive), "--dist", "out", "--json") == 0
    told = json.loads(line.out)
    assert Path(told["path"]).name == NAME
    assert (line.root / "out" / NAME).is_file()
    assert told["version"] == "0.0.7+vulkan"
    assert "manylinux_2_38_x86_64" in line.err
    assert line("wheel", f"out/{NAME}", "--json") == 0
    again = json.loads(line.out)
    assert (again["sha256"], again["source_sha256"]) == (told["sha256"], "")


@on_linux
def test_a_wheel_that_claims_too_much_ends_with_nine(line: Line, archive: Path) -> None:
    assert line("wheel", str(archive), "--dist", "out") == 0
    lower = line.root / NAME.replace("2_38", "2_17")
    rewrite(line.root / "out" / NAME, lower, platform_tag="manylinux_2_17_x86_64", date=DATE)
    assert line("wheel", str(lower)) == 9
    assert "needs glibc 2.38, and the tag manylinux_2_17_x86_64 promises an older one" in line.err
    assert line.err.rstrip().endswith("llamawright: exit 9 (package: platform-claim)")


def test_what_is_no_artifact_ends_with_nine(line: Line) -> None:
    assert line("wheel", "nothing.tar.zst") == 9
    assert "absent" in line.err
    (line.root / "x.whl").write_text("<html>")
    assert line("wheel", "x.whl") == 9
    assert "not-an-archive" in line.err
