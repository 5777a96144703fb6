"""The whole errand with stand-ins for ssh and sftp, and the other side's real program."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import ExitCode, LlamawrightError, UsageError
from llamawright.remote import Errand, pack_tool, send_and_run
from llamawright.remote import connection as connecting
from llamawright.remote.plan import far_command
from remote_kit import HOST, LINUX, Far, checkout, parcel
from reporter_kit import Told


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    return Far(home=tmp_path / "far home", programs=tmp_path / "programs", patch=monkeypatch)


@pytest.fixture
def errand(tmp_path: Path) -> Errand:
    folder = tmp_path / "packed"
    folder.mkdir()
    return Errand(
        tool=pack_tool(checkout(tmp_path / "checkout"), folder),
        parcels=(parcel(tmp_path / "in" / "x.tar.zst", b"artifact" * 999),
                 parcel(tmp_path / "in" / "m.gguf", b"model")),
        argv=("verify", "@ROOM@/x.tar.zst", "--model", "@ROOM@/m.gguf"),
        env={},
        keep=("*.verdict.json", "*.report.html"),
        platform=LINUX,
    )  # fmt: skip


def go(errand: Errand, tmp_path: Path, told: Told | None = None) -> tuple[int, dict[str, str]]:
    found = tmp_path / f"found-{time.monotonic_ns()}"
    found.mkdir()
    ended = send_and_run(errand, HOST, found, told or Told())
    return ended.code, {p.name: p.read_text() for p in ended.files}


def test_it_sends_runs_and_brings_back(far: Far, errand: Errand, tmp_path: Path) -> None:
    told = Told()
    code, files = go(errand, tmp_path, told)
    assert code == 0
    assert set(files) == {"result.json", "x.verdict.json", "x.report.html"}
    result = json.loads(files["result.json"])
    verb, path, *_ = result["argv"][1:]
    assert verb == "verify"
    assert Path(path).parent.parent == far.root / "runs"
    assert {"x.tar.zst", "m.gguf"} <= set(result["seen"])
    assert any("far: proving llamawright verify" in line for line in told.lines)
    assert list((far.root / "runs").iterdir()) == []
    assert any("me@far" in c and "-p 2222" in c and "BatchMode=yes" in c for c in far.calls)


def test_the_second_errand_sends_nothing(far: Far, errand: Errand, tmp_path: Path) -> None:
    go(errand, tmp_path)
    before, told = far.puts(), Told()
    go(errand, tmp_path, told)
    assert before == 3
    assert far.puts() == before
    assert any("nothing is sent" in line for line in told.lines)


def test_only_what_changed_is_sent(far: Far, errand: Errand, tmp_path: Path) -> None:
    go(errand, tmp_path)
    other = parcel(tmp_path / "in" / "x.tar.zst", b"another")
    go(replace(errand, parcels=(other, errand.parcels[1])), tmp_path)
    assert far.puts() == 4


def test_what_came_before_the_line_broke_is_not_sent_again(
    far: Far, errand: Errand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamawright.remote.plan.PIECE", 1000)
    monkeypatch.setattr("llamawright.remote.errand.PIECE", 1000)
    put = connecting.Connection.put
    count = iter(range(100))

    def breaks(self: connecting.Connection, source: Path, target: str) -> None:
        if next(count) == 4:
            far.trouble("sftp", 255, "Connection closed")
        put(self, source, target)

    monkeypatch.setattr(connecting.Connection, "put", breaks)
    with pytest.raises(LlamawrightError) as caught:
        go(errand, tmp_path)
    assert (caught.value.kind, caught.value.code) == ("connection-lost", ExitCode.LOCKED)
    assert "not sent again" in (caught.value.hint or "")
    (far.home / "sftp-says").unlink()
    sent = far.puts()
    assert go(errand, tmp_path)[0] == 0
    whole = sum(max(1, -(-p.size // 1000)) for p in (errand.tool, *errand.parcels))
    assert sent == 4
    assert far.puts() == whole


def test_bytes_that_changed_on_the_way_are_noticed(
    far: Far, errand: Errand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = connecting.Connection.put

    def flips(self: connecting.Connection, source: Path, target: str) -> None:
        source.write_bytes(source.read_bytes()[::-1])
        put(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(connecting.Connection, "put", flips)
        with pytest.raises(LlamawrightError) as caught:
            go(errand, tmp_path)
    assert caught.value.kind == "sent-damaged"
    assert "x.tar.zst" in caught.value.what
    assert not list((far.root / "files").iterdir())
    assert go(errand, tmp_path)[0] == 0


def test_the_exit_code_is_the_other_sides(far: Far, errand: Errand, tmp_path: Path) -> None:
    assert go(replace(errand, env={"ENDS": "10"}), tmp_path)[0] == 10


@pytest.mark.parametrize(
    ("program", "status", "said", "kind"),
    [
        ("ssh", 255, "Host key verification failed.", "host-key-unknown"),
        ("ssh", 255, "me@far: Permission denied (publickey).", "ssh-permission"),
        ("ssh", 255, "Connection reset by peer", "connection-lost"),
        ("ssh", 127, "sh: 1: python3: not found", "far-no-python"),
        ("ssh", 1, "ModuleNotFoundError: No module named 'hashlib'", "far-side-failed"),
        ("sftp", 1, 'write remote "x": Failure: No space left on device', "far-disk-full"),
        ("sftp", 255, "Connection closed", "connection-lost"),
    ],
)
def test_each_trouble_has_its_sentence(  # noqa: PLR0917
    far: Far, errand: Errand, tmp_path: Path, program: str, status: int, said: str, kind: str
) -> None:
    far.trouble(program, status, said)
    with pytest.raises(LlamawrightError) as caught:
        go(errand, tmp_path)
    assert caught.value.kind == kind
    assert caught.value.hint


def test_without_openssh_the_package_is_named(
    errand: Errand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LlamawrightError) as caught:
        go(errand, tmp_path)
    assert caught.value.kind == "no-ssh"
    assert "openssh-client" in (caught.value.hint or "")


def test_the_same_tool_has_the_same_bytes(tmp_path: Path) -> None:
    root = checkout(tmp_path / "checkout")
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    first = pack_tool(root, one)
    for path in root.rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert pack_tool(root, two).sha256 == first.sha256
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()


def test_an_installed_package_has_no_bootstrap_to_send(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        pack_tool(tmp_path, tmp_path)
    assert caught.value.kind == "no-checkout"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_when_this_side_goes_the_other_side_leaves_nothing(
    far: Far, errand: Errand, tmp_path: Path, number: signal.Signals
) -> None:
    """sshd sends SIGHUP when the line is gone."""
    go(errand, tmp_path)
    order = {
        "id": "held", "tool": errand.tool.sha256, "links": [], "argv": ["verify"],
        "env": {"LINGER": "60"},
    }  # fmt: skip
    env = {**os.environ, "HOME": str(far.home), "XDG_CACHE_HOME": str(far.home / "cache")}
    side = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {far_command('run', order)}"], env=env, stdout=subprocess.PIPE
    )
    assert side.stdout is not None
    assert b"proving" in side.stdout.readline()
    (child,) = [
        int(p.name)
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and f"PPid:\t{side.pid}\n" in _status(p)
    ]
    side.send_signal(number)
    side.wait(timeout=20)
    side.stdout.close()
    assert not _alive(child)


def _status(folder: Path) -> str:
    try:
        return (folder / "status").read_text()
    except OSError:
        return ""


def test_old_runs_that_were_killed_are_removed(far: Far, errand: Errand, tmp_path: Path) -> None:
    go(errand, tmp_path)
    for name, age in (("old", 2e5), ("new", 0.0)):
        (far.root / "runs" / name).mkdir()
        os.utime(far.root / "runs" / name, (time.time() - age,) * 2)
    go(errand, tmp_path)
    assert [p.name for p in (far.root / "runs").iterdir()] == ["new"]


def test_the_far_side_needs_the_standard_library_alone() -> None:
    source = Path(connecting.__file__).with_name("far_side.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(source), "tidy", '{"id": "none"}'],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert "@llamawright@{}" in done.stdout
