"""Addresses, what is sent, what is refused: without a connection."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.errors import ExitCode, LlamawrightError, UsageError
from llamawright.model.remote import Host, Parcel
from llamawright.remote.address import parse_address
from llamawright.remote.plan import (
    PIECE,
    far_command,
    missing,
    pieces,
    read_answer,
    read_machine,
    refusal,
    require_fit,
)
from remote_kit import HOST, LINUX, machine


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("ssh://box", Host(name="box")),
        ("ssh://Gpu-Box", Host(name="Gpu-Box")),
        ("ssh://me@box:2222", Host(name="box", user="me", port=2222)),
        ("ssh://me@10.0.0.7/", Host(name="10.0.0.7", user="me")),
        ("ssh://[::1]:22", Host(name="::1", port=22)),
    ],
)
def test_an_address_names_a_host(text: str, host: Host) -> None:
    assert parse_address(text) == host


@pytest.mark.parametrize(
    "text",
    ["", "box", "http://box", "ssh://", "ssh://-oProxyCommand=x", "ssh://-o@box", "ssh://box:x",
     "ssh://box:99999", "ssh://me:secret@box", "ssh://box/a/path", "ssh://box?x=1", "ssh://b ox",
     "ssh://me@box;reboot", "ssh://`id`"],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_starts(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert caught.value.kind == "bad-address"
    assert "--on ssh://" in (caught.value.hint or "")


@given(st.text(max_size=40))
def test_no_text_becomes_an_option_of_ssh(text: str) -> None:
    try:
        host = parse_address(f"ssh://{text}")
    except UsageError:
        return
    assert not host.destination.startswith("-")
    assert not set(host.destination) & set(" ;|&$`'\"\n")


def of(size: int, digit: str = "a") -> Parcel:
    return Parcel(path=Path("/x"), name=f"{digit}.bin", size=size, sha256=digit * 64)


def test_what_lies_there_is_not_sent_and_the_same_bytes_once() -> None:
    there = machine(whole=frozenset({"a" * 64}))
    assert missing((of(1), of(2, "b"), of(2, "b")), there) == (of(2, "b"),)


def test_a_large_file_goes_in_pieces_and_those_that_came_are_left_out() -> None:
    large = of(2 * PIECE + 5)
    every = pieces((large,), machine())
    assert [p.size for p in every] == [PIECE, PIECE, 5]
    came = machine(pieces=((f"{'a' * 64}/0", PIECE), (f"{'a' * 64}/1", 17)))
    assert [p.number for p in pieces((large,), came)] == [1, 2]


def test_an_empty_file_is_one_empty_piece() -> None:
    assert [p.size for p in pieces((of(0),), machine())] == [0]


@given(st.integers(min_value=0, max_value=5 * PIECE))
def test_pieces_cover_a_file_without_a_gap(size: int) -> None:
    every = pieces((of(size),), machine())
    assert sum(p.size for p in every) == size
    assert [p.number for p in every] == list(range(len(every)))


@pytest.mark.parametrize(
    ("told", "kind", "code"),
    [
        ({"python": "3.9.2"}, "far-python-too-old", ExitCode.TOOL_MISSING),
        ({"machine": "aarch64"}, "far-other-platform", ExitCode.NO_DEVICE),
        ({"system": "macos", "machine": "arm64"}, "far-other-platform", ExitCode.NO_DEVICE),
        ({"free": 10 << 20}, "far-disk-full", ExitCode.DISK),
    ],
)
def test_a_machine_that_cannot_do_it_is_refused(
    told: dict[str, object], kind: str, code: ExitCode
) -> None:
    with pytest.raises(LlamawrightError) as caught:
        require_fit(machine(**told), LINUX, 100 << 20, HOST)
    assert (caught.value.kind, caught.value.code) == (kind, code)
    assert caught.value.hint


def test_a_machine_that_can_is_not() -> None:
    require_fit(machine(machine="AMD64"), LINUX, 1 << 30, HOST)


def test_an_order_survives_the_other_machines_shell() -> None:
    order = {"id": "x", "argv": ["a b", "it's", '"$HOME"', "`id`", "ünï"]}
    python, dash, _text, verb, said = shlex.split(far_command("run", order))
    assert (python, dash, verb) == ("python3", "-c", "run")
    assert json.loads(said) == order


def test_an_answer_is_found_among_what_a_login_script_prints() -> None:
    assert read_answer('Welcome\n\n@llamawright@{"bad": []}\nBye\n') == {"bad": []}
    assert read_answer("Welcome\n") is None
    assert read_answer("@llamawright@[1]") is None
    assert read_answer("@llamawright@{") is None
    assert read_answer("@llamawright@" + "[" * 100_000) is None


SAID = {"python": "3.12.3", "folder": "/home/me/.cache/llamawright/remote"}


@pytest.mark.parametrize("odd", [{}, {"free": "x", "whole": 3, "pieces": None, "system": []}])
def test_an_odd_answer_is_a_machine_without_anything(odd: dict[str, object]) -> None:
    far = read_machine({**SAID, **odd}, HOST)
    assert (far.free, far.whole, far.pieces, far.system) == (0, frozenset(), (), "")


def test_pieces_that_are_none_are_left_out() -> None:
    told = [["a/0", 5], ["a/1"], "a/2", ["a/3", "5"], [4, 4], None]
    assert read_machine({**SAID, "pieces": told}, HOST).pieces == (("a/0", 5),)


@pytest.mark.parametrize(("said", "python"), [("3.13.0+", "3.13.0"), ("3.14", "3.14")])
def test_a_python_of_its_own_kind_is_understood(said: str, python: str) -> None:
    assert read_machine({**SAID, "python": said}, HOST).python == python


@pytest.mark.parametrize(
    "lie",
    [
        # sftp takes a line that begins with ! for a command on this side.
        {"folder": "/x\n!touch${IFS}/tmp/owned\n#"}, {"folder": "/x\r!id"}, {"folder": "/x\x1b[2J"},
        {"folder": ""}, {"folder": "relative"}, {"folder": ["/x"]}, {"python": ""},
        {"python": "new"}, {"python": 3}, {"python": "9" * 5000},
    ],
)  # fmt: skip
def test_what_no_machine_says_of_itself_is_refused(lie: dict[str, object]) -> None:
    with pytest.raises(LlamawrightError) as caught:
        read_machine({**SAID, **lie}, HOST)
    assert caught.value.kind == "far-odd-answer"
    assert "\n!" not in (caught.value.why or "")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("Host key verification failed.", "host-key-unknown", "ssh me@far"),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
         "host-key-changed", "ssh-keygen -R far"),
        ("me@far: Permission denied (publickey).", "ssh-permission", "ssh-copy-id"),
        ("ssh: Could not resolve hostname far: Name or service not known", "host-unknown",
         "~/.ssh/config"),
        ("ssh: connect to host far port 22: Connection refused", "ssh-refused", ":2222"),
        ("ssh: connect to host far port 22: Connection timed out", "host-unreachable", "firewall"),
        ("ssh: connect to host far port 22: No route to host", "host-unreachable", "firewall"),
    ],
)  # fmt: skip
def test_what_ssh_says_becomes_a_sentence_with_a_cure(said: str, kind: str, words: str) -> None:
    error = refusal(HOST, said)
    assert error is not None
    assert error.kind == kind
    assert words in (error.hint or "")
    assert error.why == said.splitlines()[-1]


def test_other_words_are_no_refusal() -> None:
    assert refusal(HOST, "load_tensors: offloaded 31/31 layers") is None
