"""The verb repro: two sides that differ in everything they may, and what comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from cli_kit import Line, last_line, line
from llamawright.cli import repro, repro_side
from llamawright.cli.arguments import make_parser
from llamawright.cli.repro_sides import (
    Side,
    build_arguments,
    environment,
    launcher,
    may_rename_host,
    two_sides,
)
from llamawright.errors import ExitCode, PackageError
from llamawright.model.repro import Sameness
from llamawright.package.repro import compare_files
from repro_kit import library, packed

__all__ = ["line"]

NAME = "tiny-cpu.tar"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

# Stands for llamawright: writes an archive that holds what {CONTENT} says, and tells its path.
BUILDER = """
import io, json, os, sys, tarfile
from pathlib import Path
dist = Path(sys.argv[sys.argv.index("--dist") + 1])
dist.mkdir(parents=True, exist_ok=True)
print("\\u2713 compile host (3.0 s)\\nsome other word", file=sys.stderr)
if "build" in sys.argv:
    path = dist / "tiny.tar.zst"
    data = {CONTENT}
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("tiny/x")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    print(json.dumps({"artifact": {"path": str(path)}}))
else:
    (dist / "tiny.whl.txt").write_text(sys.argv[sys.argv.index("wheel") + 1])
"""


def sides(tmp_path: Path) -> tuple[Side, Side]:
    return two_sides(tmp_path, jobs=2, cache="auto", namespaces=True)


def flags(*arguments: str) -> Namespace:
    return make_parser().parse_args(["repro", *arguments])


def test_everything_that_may_differ_differs(tmp_path: Path) -> None:
    first, second = sides(tmp_path)
    for name in ("root", "user", "hostname", "umask", "locale", "zone", "cache", "jobs"):
        assert getattr(first, name) != getattr(second, name), name
    assert len(str(first.root)) != len(str(second.root))
    assert not second.root.is_relative_to(first.root)


def test_without_namespaces_both_keep_the_hosts_name(tmp_path: Path) -> None:
    both = two_sides(tmp_path, jobs=2, cache="auto", namespaces=False)
    assert {s.hostname for s in both} == {"-"}
    assert "unshare" not in "".join(launcher(both[1]))


def test_a_sides_environment_is_its_own(tmp_path: Path) -> None:
    _first, second = sides(tmp_path)
    env = environment(
        second, {"PYTHONPATH": "/src", "CXXFLAGS": "-g", "PIP_INDEX_URL": "file:///i"}
    )
    assert env["HOME"] == str(second.home)
    assert env["USER"] == env["LOGNAME"] == "another"
    assert (env["TZ"], env["LC_ALL"]) == ("Pacific/Kiritimati", "de_DE.UTF-8")
    assert env["PYTHONPATH"] == "/src"
    assert env["PIP_INDEX_URL"] == "file:///i"
    assert "CXXFLAGS" not in env


def test_the_plan_flags_reach_both_sides(tmp_path: Path) -> None:
    first, second = sides(tmp_path)
    given = flags(
        "cuda", "--arch", "sm_61", "--arch", "sm_89", "--cuda-toolkit", "12.4", "--offline",
        "--floor", "manylinux_2_28", "--native",
    )  # fmt: skip
    argv = build_arguments(second, given)
    assert argv[:3] == ("build", "cuda", "--no-verify")
    assert argv[argv.index("--store") + 1] == str(second.store)
    assert argv[argv.index("--cache") + 1] == "auto"
    assert [argv[i + 1] for i, word in enumerate(argv) if word == "--arch"] == ["sm_61", "sm_89"]
    assert {"--offline", "--native"} <= set(argv)
    assert argv[argv.index("--floor") + 1] == "manylinux_2_28"
    assert make_parser().parse_args(argv).cuda_toolkit == "12.4"
    assert "off" in build_arguments(first, given)


def test_a_side_begins_with_its_umask_and_the_rest_is_the_command_line() -> None:
    before = os.umask(0o022)
    try:
        assert repro_side.begin(["077", "-", "plan", "cpu"]) == ["plan", "cpu"]
        assert os.umask(0o022) == 0o077
    finally:
        os.umask(before)


@on_linux
def test_a_side_has_a_host_name_of_its_own_where_that_is_allowed(tmp_path: Path) -> None:
    if not may_rename_host():
        pytest.skip("this user may have no namespaces")
    _first, second = sides(tmp_path)
    code = (
        "import sys, socket; from llamawright.cli import repro_side; "
        "repro_side.begin(['077', 'another-host']); print(socket.gethostname())"
    )
    prefix = launcher(second)[: launcher(second).index(sys.executable)]
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "another-host"
    assert os.uname().nodename != "another-host"


def test_files_of_two_sides_are_paired_by_name(tmp_path: Path) -> None:
    a = [tmp_path / "a" / n for n in ("y", "x")]
    b = [tmp_path / "b" / n for n in ("x", "y")]
    assert [(p.name, q.name) for p, q in repro.pairs(a, b)] == [("x", "x"), ("y", "y")]
    with pytest.raises(PackageError, match="same files") as lonely:
        list(repro.pairs(a, b[:1]))
    assert lonely.value.why == "only one of them made y"
    with pytest.raises(PackageError) as nothing:
        list(repro.pairs([], []))
    assert nothing.value.why == "neither made any"


def two_files(root: Path, a: bytes, b: bytes) -> tuple[Path, Path]:
    return (
        packed(root / "a" / NAME, {"top/lib.so": a}),
        packed(root / "b" / NAME, {"top/lib.so": b}),
    )


def test_two_equal_files_end_with_0(line: Line) -> None:
    assert line("repro", "--files", *two_files(line.root, library(), library())) == ExitCode.OK
    assert "IDENTICAL" in line.err
    assert "(1 members)" in line.err


def test_two_different_files_end_with_9_and_name_file_and_cause(line: Line) -> None:
    other = library(rodata=b"/home/me/x.c\0")
    pair = two_files(line.root, library(rodata=b"/root/other/x.c\0"), other)
    assert line("repro", "--json", "--files", *pair) == ExitCode.PACKAGE
    assert line.last == last_line(ExitCode.PACKAGE, "not-reproducible")
    assert "embedded path" in line.err
    start = line.out.index("{")
    record, _end = json.JSONDecoder().raw_decode(line.out[start:])
    (file,) = record["files"]
    assert file["sameness"] == "different"
    assert file["differences"][0]["path"] == "top/lib.so"
    assert file["differences"][0]["cause"] == "embedded path"


def test_after_strip_is_only_enough_when_it_is_asked_for(line: Line) -> None:
    pair = two_files(line.root, library(), library(symtab=b"another."))
    assert line("repro", "--files", *pair) == ExitCode.PACKAGE
    assert "--after-strip" in line.err
    assert line("repro", "--after-strip", "--files", *pair) == ExitCode.OK
    assert "IDENTICAL AFTER STRIP" in line.err
    found = compare_files(*pair)
    assert repro.passes(found, stripped=True)
    assert not repro.passes(found, stripped=False)
    assert not repro.passes(replace(found, differences=()), stripped=True)
    assert found.sameness is Sameness.STRIPPED


def test_nothing_to_compare_is_a_usage_error(line: Line) -> None:
    assert line("repro") == ExitCode.USAGE
    assert "llamawright repro cpu" in line.err
    assert line("repro", "cpu", "--jobs", "many") == ExitCode.USAGE


def stubbed(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """Let a small script stand for llamawright in both sides."""
    code = BUILDER.replace("{CONTENT}", content)

    def start(side: Side) -> tuple[str, ...]:
        setting = f"import os; os.umask(0o{side.umask})\n"
        return (sys.executable, "-c", setting + code)

    monkeypatch.setattr(repro, "launcher", start)


def test_a_double_build_runs_both_sides_and_leaves_nothing(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubbed(monkeypatch, "b'same'")
    blob = line.store / "blobs" / "ab" / "abc"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"download")
    assert line("repro", "cpu", "--cache", "ccache") == ExitCode.OK
    assert "IDENTICAL" in line.err
    assert "user another, host" in line.err
    assert "first: ✓ compile host" in line.err
    assert "second: ✓ compile host" in line.err
    assert "some other word" not in line.err
    assert not (line.store / "repro" / "cpu").exists()


def test_work_keeps_both_sides_with_their_logs_and_downloads(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubbed(monkeypatch, "b'same'")
    blob = line.store / "blobs" / "abc"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"download")
    assert line("repro", "cpu", "--work", "w") == ExitCode.OK
    for side in two_sides(line.root / "w", jobs=1, cache="auto", namespaces=False):
        assert (side.store / "blobs" / "abc").read_bytes() == b"download"
        assert (side.root / "build.log").is_file()
        wheel_of = (side.dist / "tiny.whl.txt").read_text(encoding="utf-8")
        assert wheel_of == str(side.dist / "tiny.tar.zst")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("os.environ['HOME'].encode()", "embedded path"),
        ("os.environ['USER'].encode()", "content"),
        ("str(os.umask(0)).encode()", "content"),
        ("os.environ['TZ'].encode()", "content"),
    ],
)
def test_what_leaks_from_a_side_is_found(
    line: Line, monkeypatch: pytest.MonkeyPatch, content: str, cause: str
) -> None:
    stubbed(monkeypatch, content)
    assert line("repro", "cpu", "--no-wheel") == ExitCode.PACKAGE
    assert "tiny/x" in line.err
    assert cause in line.err
    assert (line.store / "repro" / "cpu" / "first" / "dist" / "tiny.tar.zst").is_file()


def test_a_side_that_fails_tells_its_log_and_its_command(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubbed(monkeypatch, "sys.exit('no compiler')")
    assert line("repro", "cpu") == ExitCode.BUILD
    assert line.last == last_line(ExitCode.BUILD, "side-failed")
    assert "no compiler" in line.err
    assert "build.log" in line.err
