"""The kernel's log: three ways to read it, and what is said when none works."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from llamawright.verify.soak_kernel import (
    Dmesg,
    Journal,
    Kmsg,
    kmsg_text,
    open_kernel_log,
)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, but for the shell's own programs."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def fed(tmp_path: Path) -> tuple[Kmsg, int]:
    """Return a log that is fed through a pipe, each write a record as the kernel gives them."""
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    return Kmsg(reader), os.open(pipe, os.O_WRONLY)


def test_kmsg_gives_what_came_since_the_last_look(tmp_path: Path) -> None:
    log, feed = fed(tmp_path)
    assert log.new() == ()
    os.write(feed, b"3,900,5825386122,-;NVRM: Xid (PCI:0000:01:00): 79\n")
    assert log.new() == ("NVRM: Xid (PCI:0000:01:00): 79",)
    assert log.new() == ()
    os.close(feed)
    assert log.new() == ()
    log.close()


def test_kmsg_goes_on_after_records_that_were_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes | OSError] = [
        b"6,1,1,-;first\n", OSError(errno.EPIPE, "overwritten"), b"6,9,1,-;second\n",
        BlockingIOError(),
    ]  # fmt: skip

    def read(_handle: int, _size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr("llamawright.verify.soak_kernel.os.read", read)
    assert Kmsg(99).new() == ("first", "second")


def test_kmsg_that_breaks_is_said_to_be_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_handle: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("llamawright.verify.soak_kernel.os.read", read)
    log = Kmsg(99)
    assert log.new() == ()
    assert not log.readable
    assert log.told == "/dev/kmsg stopped: Input/output error"


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ("6,339,5140900,-;NET: Registered\n", "NET: Registered"),
        (
            "3,1,1,-;GPU reset begin!\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n",
            "0000:03:00.0 GPU reset begin!",
        ),
        (
            "3,1,1,-;amdgpu 0000:03:00.0: GPU reset\n DEVICE=+pci:0000:03:00.0\n",
            "amdgpu 0000:03:00.0: GPU reset",
        ),
        ("3,1,1,-;a; b; c\n", "a; b; c"),
        ("no head at all", "no head at all"),
        ("", ""),
    ],
)
def test_a_record_becomes_words_with_its_place(record: str, text: str) -> None:
    assert kmsg_text(record) == text


def test_without_any_log_every_reason_is_told(tmp_path: Path, programs: Path) -> None:
    log = open_kernel_log(tmp_path / "absent")
    assert not log.readable
    assert log.told == (
        f"{tmp_path / 'absent'}: No such file or directory; journalctl: not installed; "
        "dmesg: not installed"
    )
    assert log.new() == ()
    log.close()


def test_a_forbidden_device_leads_to_the_journal(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, real = tmp_path / "kmsg", os.open

    def forbidden(path: str | Path, flags: int, *more: int, **named: int) -> int:
        if path == device:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *more, **named)

    program(programs, "journalctl", 'echo "old line"; echo "-- cursor: s=1"')
    monkeypatch.setattr("llamawright.verify.soak_kernel.os.open", forbidden)
    log = open_kernel_log(device)
    assert (log.told, log.readable) == ("journalctl -k", True)
    assert isinstance(log, Journal)


def test_the_journal_is_read_from_its_cursor_on(tmp_path: Path, programs: Path) -> None:
    said = tmp_path / "said"
    program(
        programs,
        "journalctl",
        f'echo "$@" >> {said}\necho "amdgpu 0000:03:00.0: GPU reset begin!"\n'
        'echo "-- cursor: s=2;i=7"',
    )
    log = Journal(str(programs / "journalctl"), "s=1")
    assert log.new() == ("amdgpu 0000:03:00.0: GPU reset begin!",)
    log.new()
    first, second = said.read_text().splitlines()
    assert "--after-cursor=s=1" in first
    assert "--after-cursor=s=2;i=7" in second
    assert "-k" in first.split()


@pytest.mark.parametrize("body", ['echo "-- cursor: s=1"', "exit 1", "true", "echo line"])
def test_a_journal_that_shows_nothing_is_not_taken_for_a_quiet_one(
    tmp_path: Path, programs: Path, body: str
) -> None:
    program(programs, "journalctl", body)
    program(programs, "dmesg", "echo 'dmesg: read kernel buffer failed' >&2; exit 1")
    log = open_kernel_log(tmp_path / "absent")
    assert not log.readable
    assert "journalctl -k: shows nothing to this user" in log.told
    assert "kernel.dmesg_restrict" in log.told


def test_a_journal_that_stops_answering_is_told(programs: Path) -> None:
    program(programs, "journalctl", "exit 1")
    log = Journal(str(programs / "journalctl"), "s=1")
    assert log.new() == ()
    assert (log.readable, log.told) == (False, "journalctl -k stopped answering")


def test_dmesg_gives_only_younger_lines(tmp_path: Path, programs: Path) -> None:
    text = tmp_path / "ring"
    text.write_text("[    1.000001] boot\n[    9.500000] quiet\n")
    program(programs, "dmesg", f'while read -r x; do echo "$x"; done < {text}')
    log = open_kernel_log(tmp_path / "absent")
    assert log.told == "dmesg"
    assert log.new() == ()
    with text.open("a") as stream:
        stream.write("[    9.500000] twin\n[   10.250000] NVRM: Xid (PCI:0000:01:00): 31\n")
    assert log.new() == ("[    9.500000] twin", "[   10.250000] NVRM: Xid (PCI:0000:01:00): 31")
    assert log.new() == ()
    log.close()


def test_dmesg_that_stops_answering_is_told(programs: Path) -> None:
    program(programs, "dmesg", "exit 1")
    log = Dmesg(str(programs / "dmesg"))
    assert log.new() == ()
    assert (log.readable, log.told) == (False, "dmesg stopped answering")


def test_a_program_that_vanished_is_no_crash() -> None:
    assert Dmesg("/nowhere/dmesg").new() == ()
    assert Journal("/nowhere/journalctl", "s=1").new() == ()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="this user may not read it")
def test_the_real_log_of_this_machine_can_be_followed() -> None:
    log = open_kernel_log()
    try:
        assert isinstance(log.new(), tuple)
        assert log.readable
    finally:
        log.close()
