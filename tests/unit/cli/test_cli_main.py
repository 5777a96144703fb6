from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cli_kit
from cli_kit import Line, StubPipeline, line, stub
from llamawright import errors
from llamawright.cli import NOTE_VARIABLE
from llamawright.errors import ExitCode, LlamawrightError
from llamawright.stamp import run_stamp

__all__ = ["line", "stub"]

CLASSES = [c for c in LlamawrightError.__subclasses__() if c.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: str(c.__name__))
def test_each_class_of_failure_ends_with_its_own_code_and_last_line(
    kind: type[LlamawrightError], line: Line, stub: StubPipeline
) -> None:
    stub.fails = kind("it broke", why="of old age", hint="buy a new one", kind="worn-out")
    assert line("build", "vulkan") == kind.code
    assert line.last == cli_kit.last_line(kind.code, "worn-out")
    for text in ("error: it broke", "of old age", "hint: buy a new one"):
        assert text in line.err
    assert line.out == ""


def test_codes_of_the_classes_are_all_different() -> None:
    codes = [c.code for c in CLASSES]
    assert len(set(codes)) == len(codes)
    assert set(codes) == set(ExitCode) - {ExitCode.OK, ExitCode.BUG}


@pytest.mark.parametrize("verb", [("build", "cpu"), ("verify", "x.tar.zst")], ids=lambda v: v[0])
def test_with_json_a_failure_is_a_record_on_stdout(
    verb: tuple[str, str], line: Line, stub: StubPipeline
) -> None:
    stub.fails = errors.BuildError("no", why="w", hint="h", tail=("a", "b"), log="/l", kind="k")
    assert line(*verb, "--json") == 8
    assert json.loads(line.out) == {"error": stub.fails.as_record()}
    assert line.last == cli_kit.last_line(ExitCode.BUILD, "k")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_or_read_only_disk_is_told_as_one(
    number: int, line: Line, stub: StubPipeline
) -> None:
    stub.fails = OSError(number, os.strerror(number), "/some/file")
    assert line("build", "vulkan") == ExitCode.DISK
    assert "cannot write /some/file" in line.err
    assert os.strerror(number) in line.err
    assert "--store DIR" in line.err
    assert line.last == cli_kit.last_line(ExitCode.DISK, "disk-full")


@pytest.mark.parametrize("error", [PermissionError(13, "denied", "/x"), ZeroDivisionError("oh")])
def test_what_nobody_foresaw_is_told_as_a_bug_with_its_lines(
    error: Exception, line: Line, stub: StubPipeline
) -> None:
    stub.fails = error
    assert line("build", "vulkan", "--json") == ExitCode.BUG
    assert "Traceback" in line.err
    assert "please report it" in line.err
    record = json.loads(line.out)["error"]
    assert (record["code"], record["class"]) == (70, "bug")
    assert type(error).__name__ in record["what"]


def test_an_interrupt_ends_with_130_and_is_kept_as_the_result(
    line: Line, stub: StubPipeline
) -> None:
    stub.result_file.parent.mkdir()
    stub.result_file.write_text('{"code": 0}')
    stub.fails = KeyboardInterrupt()
    assert line("build", "vulkan") == ExitCode.INTERRUPTED
    assert line.last.startswith("llamawright: exit 130 (interrupted: ")
    assert json.loads(stub.result_file.read_text())["error"]["code"] == 130


def test_a_polite_kill_ends_as_an_interrupt_does(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_arguments: object, **_named: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("SIGTERM was not delivered")

    monkeypatch.setattr(stub, "build", killed)
    assert line("build", "vulkan") == ExitCode.INTERRUPTED
    assert line.last.startswith("llamawright: exit 130")


def test_the_last_line_is_left_for_a_caller(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = line.root / "note"
    monkeypatch.setenv(NOTE_VARIABLE, str(note))
    assert line("build", "vulkan", "--no-verify", "--force") == 0
    assert not note.exists()
    stub.fails = errors.DownloadError("no", kind="wrong-sha256")
    assert line("build", "vulkan", "--force") == 6
    assert note.read_text() == "llamawright: exit 6 (download: wrong-sha256)\n"


def test_a_note_that_cannot_be_written_does_not_change_the_code(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NOTE_VARIABLE, str(line.root / "absent" / "note"))
    stub.fails = errors.DiskError("full", kind="disk-full")
    assert line("build", "vulkan") == ExitCode.DISK
    assert line.last == cli_kit.last_line(ExitCode.DISK, "disk-full")


def test_an_unchanged_second_run_repeats_the_summary_and_does_nothing(
    line: Line, stub: StubPipeline
) -> None:
    assert line("build", "vulkan") == 0
    first = line.err
    assert line("build", "vulkan") == 0
    assert len(stub.calls) == 1
    assert "nothing changed" in line.err
    summary = [t for t in first.splitlines() if t.startswith(("artifact", "verdict", "report"))]
    assert len(summary) == 3
    assert set(summary) <= set(line.err.splitlines())


def test_a_repeated_run_gives_the_same_json(line: Line, stub: StubPipeline) -> None:
    line("build", "vulkan", "--json")
    first = json.loads(line.out)
    line("build", "vulkan", "--json")
    assert len(stub.calls) == 1
    assert json.loads(line.out) == first


def test_force_runs_again_and_its_result_counts_for_the_plain_line(
    line: Line, stub: StubPipeline
) -> None:
    line("build", "vulkan", "--force")
    line("build", "vulkan", "--force")
    assert len(stub.calls) == 2
    line("build", "vulkan")
    assert len(stub.calls) == 2


@pytest.mark.parametrize(
    "other",
    [["build", "cpu"], ["build", "vulkan", "--native"], ["build", "vulkan", "--require-hardware"]],
    ids=" ".join,
)
def test_another_line_is_another_run(other: list[str], line: Line, stub: StubPipeline) -> None:
    line("build", "vulkan")
    line(*other)
    assert len(stub.calls) == 2


def test_another_device_variable_is_another_run(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    line("build", "vulkan")
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", "1")
    line("build", "vulkan")
    assert len(stub.calls) == 2


def test_a_changed_file_or_a_lost_result_runs_again(line: Line, stub: StubPipeline) -> None:
    watched = line.root / "recipe.toml"
    watched.write_text("a")
    stub.watched = (watched,)
    line("build", "vulkan")
    watched.write_text("ab")
    line("build", "vulkan")
    stub.result_file.unlink()
    line("build", "vulkan")
    assert len(stub.calls) == 3


def test_a_run_that_failed_is_never_taken_as_done(line: Line, stub: StubPipeline) -> None:
    stub.fails = errors.BuildError("no")
    assert line("build", "vulkan") == 8
    assert line("build", "vulkan") == 8
    assert len(stub.calls) == 2


def test_a_stored_code_is_what_the_repeated_run_ends_with(line: Line, stub: StubPipeline) -> None:
    stamp = run_stamp(line.store, ["build", "vulkan"], Path.cwd())
    stamp.save({"code": 11, "summary": ["as before"]}, [])
    assert line("build", "vulkan") == 11
    assert "as before" in line.err
    assert stub.calls == []


def test_a_repeated_run_never_imports_the_heavy_rooms(line: Line) -> None:
    words = ["build", "vulkan", "--store", str(line.store)]
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from llamawright.stamp import run_stamp\n"
        f"words = {words!r}\n"
        f"stamp = run_stamp(Path({str(line.store)!r}), words, Path.cwd())\n"
        "stamp.save({'code': 0, 'summary': ['from the stamp']}, [])\n"
        "from llamawright.cli import main\n"
        "code = main(words)\n"
        "heavy = 'pydantic requests lief rich jinja2 llamawright.pipeline llamawright.build'\n"
        "print(code, [m for m in heavy.split() if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, timeout=60, cwd=line.root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "0 []\n"
    assert "from the stamp" in done.stderr
    assert "nothing changed" in done.stderr


def test_quiet_still_shows_summary_and_last_line(line: Line, stub: StubPipeline) -> None:
    assert line("build", "vulkan", "--quiet") == 0
    assert "verdict   VERIFIED" in line.err
    stub.fails = errors.PatchError("drift", kind="patch-drift")
    line("build", "vulkan", "--quiet", "--force")
    assert line.last == cli_kit.last_line(ExitCode.PATCH, "patch-drift")


def test_the_store_may_be_named_and_may_start_at_home(
    line: Line, stub: StubPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(line.root / "home"))
    line("build", "vulkan", "--store", "~/kept")
    assert list((line.root / "home" / "kept" / "runs").glob("*.json"))
    assert not line.store.exists()
