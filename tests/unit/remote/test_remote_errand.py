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

import psutil
import pytest

from llamawright.errors import ExitCode, LlamawrightError, UsageError
from llamawright.model.remote import FarMachine, Host, Parcel
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
        keep=("x.verdict.json",),
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
    assert set(files) == {"result.json", "x.verdict.json"}
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
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def held(far: Far, errand: Errand, **env: str) -> tuple[subprocess.Popen[bytes], set[int]]:
    """Return the other side while a tool runs that takes long, and all that it started."""
    order = {
        "id": "held", "tool": errand.tool.sha256, "links": [], "argv": ["verify"],
        "env": {"LINGER": "60", **env},
    }  # fmt: skip
    own = {**os.environ, "HOME": str(far.home), "XDG_CACHE_HOME": str(far.home / "cache")}
    side = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {far_command('run', order)}"], env=own, stdout=subprocess.PIPE
    )
    assert side.stdout is not None
    assert b"proving" in side.stdout.readline()
    return side, {p.pid for p in psutil.Process(side.pid).children(recursive=True)}


def gone(pids: set[int], *, within_s: float = 20.0) -> bool:
    """Whether none of them runs, now or soon."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not any(_alive(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_when_this_side_goes_the_other_side_leaves_nothing(
    far: Far, errand: Errand, tmp_path: Path, number: signal.Signals
) -> None:
    """sshd sends SIGHUP when the line is gone; what is killed without a word has a guard."""
    go(errand, tmp_path)
    side, started = held(far, errand, STARTS="60")
    assert len(started) == 3
    side.send_signal(number)
    side.wait(timeout=20)
    assert side.stdout is not None
    side.stdout.close()
    assert gone(started)


def test_the_tools_end_over_there_is_told_by_its_status(
    far: Far, errand: Errand, tmp_path: Path
) -> None:
    go(errand, tmp_path)
    side, started = held(far, errand)
    (tool,) = (p for p in started if "bootstrap.py" in " ".join(psutil.Process(p).cmdline()))
    os.kill(tool, signal.SIGKILL)
    assert side.wait(timeout=20) == 128 + signal.SIGKILL
    assert side.stdout is not None
    side.stdout.close()
    assert gone(started)


def test_old_runs_that_were_killed_are_removed(far: Far, errand: Errand, tmp_path: Path) -> None:
    go(errand, tmp_path)
    for name, age in (("old", 2e5), ("new", 0.0)):
        (far.root / "runs" / name).mkdir()
        os.utime(far.root / "runs" / name, (time.time() - age,) * 2)
    go(errand, tmp_path)
    assert [p.name for p in (far.root / "runs").iterdir()] == ["new"]


def test_what_nobody_used_for_long_is_removed_and_sent_again(
    far: Far, errand: Errand, tmp_path: Path
) -> None:
    go(errand, tmp_path)
    model = far.root / "files" / errand.parcels[1].sha256
    forgotten = far.root / "files" / ("f" * 64)
    forgotten.write_bytes(b"of another artifact")
    for path in (model, forgotten):
        os.utime(path, (time.time() - 61 * 86_400,) * 2)
    before = far.puts()
    go(errand, tmp_path)
    assert not forgotten.exists()
    assert far.puts() == before + 1
    assert time.time() - model.stat().st_mtime < 60


def test_a_machine_without_an_index_is_sent_the_tools_packages(
    far: Far, errand: Errand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = parcel(tmp_path / "a-1-py3-none-any.whl", b"wheel")
    asked: list[str] = []

    def fetch(lock: Path, machine: FarMachine, _host: Host, _folder: Path) -> tuple[Parcel, ...]:
        asked.extend((lock.name, machine.folder))
        return (replace(wheel, name=f"packages/{wheel.name}"),)

    monkeypatch.setattr("llamawright.remote.errand.fetch_packages", fetch)
    told = Told()
    lacking = replace(errand, env={"LACKS": "1"}, lock=tmp_path / "tool.lock")
    code, files = go(lacking, tmp_path, told)
    assert code == 0
    assert json.loads(files["result.json"])["packages"] == [wheel.name]
    assert asked == ["tool.lock", str(far.root)]
    assert far.puts() == 4
    assert any("reaches no index" in line for line in told.lines)


def test_without_a_lock_nothing_is_fetched(far: Far, errand: Errand, tmp_path: Path) -> None:
    code, files = go(replace(errand, env={"LACKS": "1"}), tmp_path)
    assert code == 6
    assert files == {"result.json": ""}
    assert far.puts() == 3


def test_what_is_said_there_moves_no_cursor_here(far: Far, errand: Errand, tmp_path: Path) -> None:
    told = Told()
    says = "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07 \x07text\x9b2J\tend\n"
    go(replace(errand, env={"SAYS": says}), tmp_path, told)
    (line,) = [line for line in told.lines if "red" in line]
    assert line.startswith("far: red text2J")
    assert line.isprintable()


def test_a_lost_line_is_not_mistaken_for_words_of_the_proof(
    far: Far, errand: Errand, tmp_path: Path
) -> None:
    """A proof may say that something timed out: only ssh's own words tell of the line."""
    says = "a request timed out\nPermission denied\n"
    with pytest.raises(LlamawrightError) as caught:
        go(replace(errand, env={"SAYS": says, "ENDS": "255"}), tmp_path)
    assert caught.value.kind == "connection-lost"


@pytest.mark.parametrize("path", ["/x\n!id", "/x\r", "/\x00", "/\x1b[2J", "/\u2028x"])
def test_no_path_ends_a_line_of_sftps(far: Far, path: str) -> None:
    with pytest.raises(LlamawrightError) as caught:
        connecting.Connection.to(HOST).get(path, Path("/x"))
    assert caught.value.kind == "odd-path"
    assert not (far.home / "calls").exists()


def test_the_far_side_needs_the_standard_library_alone() -> None:
    source = Path(connecting.__file__).with_name("far_side.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(source), "tidy", '{"id": "none"}'],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert "@llamawright@{}" in done.stdout
