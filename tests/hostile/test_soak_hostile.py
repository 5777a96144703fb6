"""Answers, logs and records that were made to mislead: nothing of them is believed or run."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.model.soak import Tie
from llamawright.model.verdict import State
from llamawright.verify.soak_events import MOST_TEXT, read_events
from llamawright.verify.soak_kernel import Kmsg, kmsg_text
from llamawright.verify.soak_record import Past, Record
from llamawright.verify.soak_report import render_soak, soak_lines, write_soak
from soak_kit import DEVICE, Course, event, series, soak_report, soak_round, soak_run

EVIL = "</pre><script>alert(1)</script>{{ 7*7 }}\x1b[31m\u202e"
ROUNDS = series(12)


def test_words_of_a_model_a_log_and_a_device_are_only_words_on_the_page() -> None:
    page = render_soak(
        soak_report(
            (soak_round(1, text=EVIL), *ROUNDS[1:]),
            state=State.FAILED,
            failure="device-reset",
            why=EVIL,
            hint=EVIL,
            artifact=f"{EVIL}.tar.zst",
            device=replace(DEVICE, name=EVIL, driver=EVIL),
            events=(event(text=EVIL),),
            kernel_log=EVIL,
            answer=EVIL,
            record=EVIL,
            host=((EVIL, EVIL),),
        )
    )
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "49" not in page.replace("49.", "").split("What was run")[1]


def test_a_page_goes_beside_the_artifact_whatever_that_is_called(tmp_path: Path) -> None:
    report = soak_report(ROUNDS, artifact="a b;$(touch x).tar.zst")
    data, page = write_soak(report, tmp_path)
    assert {p.parent for p in (data, page)} == {tmp_path}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"5",
        b'"round"',
        b"[1, 2]",
        b"{}x",
        b'{"round": 5}',
        b'{"round": {"number": 1}}',
        b'{"round": null}',
        b'{"event": {"kind": "xid"}}',
        b"\xff\xfe\x00",
        b"{" * 5000,
        b'{"round": {"number": "1"}}',
    ],
)
def test_a_line_that_is_no_round_ends_the_past_and_nothing_else(
    tmp_path: Path, line: bytes
) -> None:
    record = Record(tmp_path / "key.jsonl")
    record.begin(Past(rounds=(soak_round(1),)))
    with record.path.open("ab") as stream:
        stream.write(line + b"\n")
    record.add_round(soak_round(2))
    past = record.read()
    assert past.rounds[:1] == (soak_round(1),)
    assert not past.ended


def test_random_bytes_are_no_past_and_no_crash(tmp_path: Path) -> None:
    dice = random.Random(7)
    for _ in range(200):
        path = tmp_path / "key.jsonl"
        path.write_bytes(dice.randbytes(dice.randrange(400)))
        assert Record(path).read().rounds == ()


def test_a_round_that_was_changed_by_hand_is_not_taken(tmp_path: Path) -> None:
    record = Record(tmp_path / "key.jsonl")
    record.begin(Past(rounds=(soak_round(1),)))
    value = json.loads(record.path.read_text())
    value["round"]["verdict"] = "verified"
    record.path.write_text(json.dumps(value) + "\n")
    assert record.read().rounds == ()


def test_a_cut_at_every_byte_loses_at_most_the_last_round(tmp_path: Path) -> None:
    record = Record(tmp_path / "key.jsonl")
    record.begin(Past(rounds=(soak_round(1), soak_round(2))))
    data = record.path.read_bytes()
    first = data.index(b"\n") + 1
    for size in range(0, len(data), 7):
        record.path.write_bytes(data[:size])
        assert len(record.read().rounds) == (1 if size >= first else 0)


def test_a_model_that_writes_a_kernels_line_resets_nothing(tmp_path: Path) -> None:
    """Only the kernel's log is asked: text of a model is no evidence."""
    text = "NVRM: Xid (PCI:0000:41:00): 79"
    ruling, past = soak_run(tmp_path, Course(lambda _n: {"text": text})).go()
    assert ruling.state is State.VERIFIED
    assert past.events == ()


@pytest.mark.parametrize(
    "line",
    ["\x00" * 500, "NVRM: Xid (" * 10_000, "amdgpu " * 20_000 + "GPU reset",
     "i915 " + "xe " * 50_000, "NVRM: Xid (PCI:ffffffffffffffff:99:99): 79",
     "\udcff NVRM: Xid (PCI:0000:41:00"],
)  # fmt: skip
def test_long_and_odd_lines_are_read_in_time(line: str) -> None:
    began = time.process_time()
    events = read_events([line], pci="0000:41:00.0", at=0.0)
    assert time.process_time() - began < 1
    for found in events:
        assert len(found.text) <= MOST_TEXT
        assert found.tie in set(Tie)


def test_records_of_the_kernel_in_any_bytes_become_text(tmp_path: Path) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    log = Kmsg(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    feed = os.open(pipe, os.O_WRONLY)
    os.write(feed, b"\xff\xfe;\x00\x1b[2J\n DEVICE=+pci:\xff\n")
    assert all(isinstance(text, str) for text in log.new())
    os.close(feed)
    log.close()
    assert kmsg_text("\n\n DEVICE=+pci:") == ""


def test_lines_for_a_terminal_stay_one_line_each() -> None:
    bad = soak_report(
        (soak_round(1), soak_round(2, answer="b", text="x\ny\r\x1b[2J")),
        state=State.FAILED,
        failure="soak-answer-changed",
        why="round 2 answered 'x\\ny'",
    )
    assert all("\n" not in text for text in soak_lines(bad))


def test_the_words_of_a_changed_answer_are_escaped_for_a_terminal(tmp_path: Path) -> None:
    course = Course(lambda n: {"answer": "b", "text": "\x1b[2J\nrm"} if n == 2 else {})
    ruling, _ = soak_run(tmp_path, course).go()
    assert "\x1b" not in ruling.why
    assert "\n" not in ruling.why
