"""noxfile.py: the table of contents, what each session runs, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import bootstrap
import nox as nox_library
import noxfile
import pytest

if TYPE_CHECKING:
    from front_kit import FakePython

pytest_plugins = ("front_kit",)

CONTENTS = [
    "build-vulkan", "build-cuda", "build-cpu", "verify", "wheel", "compare", "calibrate", "doctor",
    "plan", "explain", "patches", "release", "keygen", "attest", "check",
    "repro", "bump", "tests",
    "tests-slow", "lint", "types", "docs", "zoo", "bench", "lock",
]  # fmt: skip
CHILD = """
import signal, sys, time
def end(number, _frame):
    print("told", number, flush=True)
    time.sleep(0.7)
    print("ended in order", flush=True)
    raise SystemExit(3)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
time.sleep(30)
"""
CALLER = """
import os, sys, noxfile
noxfile.PATIENCE_S = {patience}
try:
    code = noxfile.call([sys.executable, "-c", {child!r}], cwd=".", env=dict(os.environ))
    print("code", code)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class AbortedError(Exception):
    """What nox raises inside a session that is given up."""


class StandIn:
    """As much of a nox session as the sessions use."""

    def __init__(self, *posargs: str, invoked_from: str = str(bootstrap.CHECKOUT)) -> None:
        self.posargs = list(posargs)
        self.invoked_from = invoked_from

    def error(self, text: str) -> NoReturn:
        raise AbortedError(text)


def run(name: str, *posargs: str, cwd: Path = bootstrap.CHECKOUT) -> None:
    """Run one session's function, without the quarter second that nox itself takes."""
    session = StandIn(*posargs, invoked_from=str(cwd))
    function = cast("Callable[[nox_library.Session], None]", getattr(noxfile, name))
    function(cast("nox_library.Session", session))


def nox(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    file = str(bootstrap.CHECKOUT / "noxfile.py")
    return subprocess.run(
        [sys.executable, "-m", "nox", "-f", file, "--no-color", *arguments],
        cwd=cwd or bootstrap.CHECKOUT,
        check=False,
        text=True,
        capture_output=True,
        timeout=60,
    )


def test_the_list_reads_like_a_table_of_contents() -> None:
    lines = re.findall(r"^[*-] (\S+) -> (.+)$", nox("-l").stdout, re.MULTILINE)
    assert [name for name, _ in lines] == CONTENTS
    assert all(len(text) <= 90 and text[0].isupper() for _, text in lines)


def test_bare_nox_starts_nothing() -> None:
    ended = nox()
    assert ended.returncode == 0
    assert "build-vulkan" in ended.stdout
    assert "Running" not in ended.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("build-vulkan", "build vulkan"),
        ("build-vulkan -- --jobs 4 --json", "build vulkan --jobs 4 --json"),
        ("build-cpu -- --offline", "build cpu --offline"),
        ("verify -- some.tar.zst --device Vulkan0", "verify some.tar.zst --device Vulkan0"),
        ("compare -- a b --rounds 7", "compare a b --rounds 7"),
        ("doctor -- --json", "doctor --json"),
        ("plan", "plan vulkan"),
        ("plan -- --vulkan system", "plan vulkan --vulkan system"),
        ("plan -- cpu --json", "plan cpu --json"),
        ("explain -- a b", "explain a b"),
        ("patches", "patch list"),
        ("patches -- check", "patch check"),
        ("patches -- --json", "patch --json list"),
        ("patches -- --recipe r.toml check", "patch --recipe r.toml check"),
    ],
)
def test_a_session_is_one_call_of_the_command_line(
    fake_python: FakePython, line: str, words: str
) -> None:
    name, *posargs = line.replace("-", "_", line.startswith("build")).replace("-- ", "").split()
    run(name, *posargs)
    assert fake_python.words == ["-P", "-m", "llamawright", *words.split()]
    assert fake_python.path == str(bootstrap.CHECKOUT / "src")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tests -- -k x", "-m pytest -n 2 -k x"),
        ("tests-slow", "-m pytest -m slow"),
        ("types", f"-m mypy {' '.join(noxfile.TYPED)}"),
        ("types -- src", "-m mypy src"),
        ("docs -- --check", "docs/generate.py --check"),
        ("bench -- --json f", "bench/bench.py --json f"),
        ("zoo -- --only cut", "tests/zoo_run.py --only cut"),
        ("lint", "-m ruff format --check"),
        ("lint -- --fix", "-m ruff format"),
    ],
)
def test_a_session_for_contributors(fake_python: FakePython, line: str, words: str) -> None:
    name, *posargs = line.replace("tests-slow", "tests_slow").replace("-- ", "").split()
    run(name, *posargs)
    assert fake_python.words == words.split()
    assert fake_python.folder == bootstrap.CHECKOUT


def test_paths_mean_what_they_mean_where_the_person_stands(
    fake_python: FakePython, tmp_path: Path
) -> None:
    folder = tmp_path / "else where"
    folder.mkdir()
    assert nox("-s", "verify", "--", "x.tar.zst", cwd=folder).returncode == 0
    assert fake_python.folder == folder
    assert fake_python.words[3:] == ["verify", "x.tar.zst"]


def test_arguments_reach_the_command_line_unharmed(fake_python: FakePython) -> None:
    odd = ["a b", "$HOME", "*", "'", '"', ";", "--json", "ü"]
    run("verify", *odd)
    assert fake_python.words[4:] == odd


class TestFailing:
    def test_the_command_lines_last_line_is_the_last_of_nox(self, fake_python: FakePython) -> None:
        fake_python.ends(10, last="llamawright: exit 10 (verification: wrong-numbers)")
        ended = nox("-s", "build-vulkan")
        assert ended.returncode == 1
        assert "exit 10 (verification: wrong-numbers)" in ended.stderr.splitlines()[-1]
        assert "Traceback" not in ended.stderr

    def test_without_a_note_the_code_is_still_told(self, fake_python: FakePython) -> None:
        fake_python.ends(11)
        with pytest.raises(AbortedError, match=r"^llamawright: exit 11$"):
            run("build_vulkan")

    def test_tests_that_fail_fail_the_session(self, fake_python: FakePython) -> None:
        fake_python.ends(1)
        with pytest.raises(AbortedError, match=r"-m pytest -n: exit 1"):
            run("tests")

    @pytest.mark.usefixtures("no_uv")
    def test_no_environment_and_offline_is_a_sentence(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(AbortedError, match=r"exit 6 \(download: environment-missing\)"):
            run("build_vulkan", "--offline")
        assert "--offline forbids fetching it" in capsys.readouterr().err

    @pytest.mark.usefixtures("fake_python")
    def test_no_file_is_left_of_the_note(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "temporary"
        folder.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        run("doctor")
        assert list(folder.iterdir()) == []

    def test_later_sessions_still_run(self, fake_python: FakePython) -> None:
        fake_python.ends(10)
        assert nox("-s", "doctor", "plan").returncode == 1
        assert fake_python.words == ["-P", "-m", "llamawright", "plan", "vulkan"]


class TestEndingInOrder:
    def start(self, patience: float = 10, child: str = CHILD) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", CALLER.format(patience=patience, child=child)],
            cwd=bootstrap.CHECKOUT,
            text=True,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def test_ctrl_c_waits_for_the_program_to_end(self) -> None:
        process = self.start()
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert out.splitlines() == ["told 2", "ended in order", "interrupted"]

    def test_a_signal_to_nox_alone_is_passed_on(self) -> None:
        process = self.start()
        process.terminate()
        out, _ = process.communicate(timeout=20)
        assert out.splitlines() == ["told 15", "ended in order", "interrupted"]

    def test_an_interrupt_of_nox_alone_is_passed_on_after_a_while(self) -> None:
        process = self.start(patience=1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert out.splitlines() == ["told 15", "ended in order", "interrupted"]

    def test_a_program_that_will_not_end_is_killed(self) -> None:
        deaf = CHILD.replace("signal.SIGTERM, end", "signal.SIGTERM, signal.SIG_IGN")
        deaf = deaf.replace("signal.SIGINT, end", "signal.SIGINT, signal.SIG_IGN")
        process = self.start(patience=0.2, child=deaf)
        start = time.monotonic()
        process.terminate()
        out, _ = process.communicate(timeout=20)
        assert out.splitlines() == ["interrupted"]
        assert time.monotonic() - start < 10

    def test_signal_handling_is_put_back(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        code = noxfile.call(["/bin/true"], cwd=".", env=dict(os.environ))
        assert code == 0
        assert signal.getsignal(signal.SIGTERM) is before
