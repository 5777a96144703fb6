"""A real sshd on loopback: sent, run, brought back; killed on either side; cut. By name.

It is started here, from ``sshd`` on PATH or the one that ``LLAMAWRIGHT_TEST_SSHD`` names.
``LLAMAWRIGHT_TEST_ARTIFACT`` is a packed file for this machine, for the proof as a whole;
``LLAMAWRIGHT_TEST_SSH`` another host that lets this user in without a question.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sshd_kit
from llamawright.errors import LlamawrightError
from llamawright.model.remote import Host
from llamawright.remote import send_and_run
from reporter_kit import Told
from sshd_kit import Sshd, errand, serving, within

pytestmark = pytest.mark.slow
ADDRESS = os.environ.get("LLAMAWRIGHT_TEST_SSH", "ssh://real")
ARTIFACT = os.environ.get("LLAMAWRIGHT_TEST_ARTIFACT", "")
TESTS = Path(__file__).parents[1]
HOST = Host(name="real")


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    root = tmp_path / "sshd"
    root.mkdir(mode=0o700)
    with serving(root, monkeypatch) as server:
        yield server


@pytest.fixture
def here(sshd: Sshd, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """This side in a process of its own, while the other side's tool runs."""
    assert sshd.pid
    path = f"{TESTS}:{Path(*TESTS.parts[:-1], 'src')}"
    (tmp_path / "run").mkdir()
    with subprocess.Popen(
        [sys.executable, sshd_kit.__file__, str(tmp_path / "run")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
    ) as side:  # fmt: skip
        assert side.stdout is not None
        try:
            assert any("proving" in line for line in side.stdout)
            assert len(sshd.running()) >= 2
            yield side
        finally:
            side.kill()


def rest(side: subprocess.Popen[str]) -> str:
    """Return what this side still says until it ends."""
    said, _ = side.communicate(timeout=90)
    return said


def go(tmp_path: Path, **env: str) -> tuple[int, list[str], list[str]]:
    found = tmp_path / "found"
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir()
    told = Told()
    ended = send_and_run(errand(tmp_path / "run", **env), HOST, found, told)
    return ended.code, [p.name for p in ended.files], told.lines


def test_it_goes_there_comes_back_and_is_not_sent_twice(sshd: Sshd, tmp_path: Path) -> None:
    code, files, lines = go(tmp_path)
    assert (code, files) == (0, ["result.json", "x.verdict.json"])
    assert any(line.startswith("real: proving") for line in lines)
    assert not any("nothing is sent" in line for line in lines)
    result = json.loads((tmp_path / "found" / "result.json").read_text())
    assert result["argv"][-1].startswith(str(sshd.far / "runs"))
    assert list((sshd.far / "runs").iterdir()) == []
    assert any("nothing is sent" in line for line in go(tmp_path)[2])
    assert go(tmp_path, ENDS="10")[0] == 10
    assert sshd.empty()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_ended_here_nothing_stays_there(
    sshd: Sshd, here: subprocess.Popen[str], number: signal.Signals
) -> None:
    here.send_signal(number)
    here.wait(timeout=30)
    assert sshd.empty()
    assert within(lambda: not sshd.sessions(), 20)


def test_the_tool_killed_there_is_told_here(sshd: Sshd, here: subprocess.Popen[str]) -> None:
    (tool,) = (p for p in sshd.running() if "bootstrap.py" in " ".join(p.cmdline()))
    tool.kill()
    assert "ended 137 ['result.json']" in rest(here)
    assert sshd.empty()


def test_the_far_side_itself_killed_takes_the_tool_along(
    sshd: Sshd, here: subprocess.Popen[str]
) -> None:
    (tool,) = (p for p in sshd.running() if "bootstrap.py" in " ".join(p.cmdline()))
    parent = tool.parent()
    assert parent is not None
    parent.kill()
    said = rest(
        here
    )  # A shell in between tells the signal by its status; without one ssh has none.
    assert "connection-lost" in said or "ended 137" in said
    assert sshd.empty()


def test_a_line_that_is_cut_is_told_and_leaves_nothing(
    sshd: Sshd, here: subprocess.Popen[str]
) -> None:
    for session in sshd.sessions():
        session.kill()
    assert "error connection-lost" in rest(here)
    assert here.returncode == 12
    assert sshd.empty()


@pytest.mark.parametrize("kind", ["host-key-unknown", "host-key-changed", "ssh-permission"])
def test_what_sshd_refuses_has_a_sentence(sshd: Sshd, tmp_path: Path, kind: str) -> None:
    known, allowed = sshd.root / "known", sshd.root / "user.pub"
    if kind == "ssh-permission":
        allowed.write_text("")
    elif kind == "host-key-unknown":
        known.write_text("")
    else:
        known.write_text(f"{known.read_text().split()[0]} {allowed.read_text()}")
    with pytest.raises(LlamawrightError) as caught:
        go(tmp_path)
    assert caught.value.kind == kind
    assert caught.value.hint


def test_a_full_disk_and_a_missing_python_have_theirs(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sshd.pid
    with monkeypatch.context() as patch:
        patch.setattr("llamawright.remote.plan.ROOM_BYTES", 1 << 60)
        with pytest.raises(LlamawrightError) as caught:
            go(tmp_path)
    assert caught.value.kind == "far-disk-full"
    monkeypatch.setattr(
        "llamawright.remote.connection.far_command", lambda *_words: "exec no-such-python3"
    )
    with pytest.raises(LlamawrightError) as caught:
        go(tmp_path)
    assert caught.value.kind == "far-no-python"


def test_the_verdict_comes_back_and_the_second_run_sends_nothing(
    sshd: Sshd, tmp_path: Path
) -> None:
    if not ARTIFACT:
        pytest.skip("LLAMAWRIGHT_TEST_ARTIFACT names no packed file")
    assert sshd.pid
    artifact = Path(shutil.copy(ARTIFACT, tmp_path))
    # The tool takes every LLAMAWRIGHT_ variable for a setting.
    own = {k: v for k, v in os.environ.items() if not k.startswith("LLAMAWRIGHT_TEST_")}
    for attempt in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-m", "llamawright", "verify", artifact, "--on", ADDRESS, "--json"],
            capture_output=True, text=True, timeout=900, check=False,
            env={**own, "PYTHONPATH": "src"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        result = json.loads(done.stdout)
        assert result["verdict"]["state"] in ("verified", "verified-software")
        assert all(Path(page).parent == artifact.parent for page in result["reports"])
        assert attempt == "first" or "nothing is sent" in done.stderr
