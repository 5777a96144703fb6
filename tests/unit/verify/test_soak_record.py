"""The record of rounds: what is on the disk goes on, what was torn never was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.verify.soak_record import Past, Record, soak_key
from soak_kit import DEVICE, event, soak_round


@pytest.fixture
def record(tmp_path: Path) -> Record:
    made = Record(tmp_path / "soaks" / "key.jsonl")
    made.begin(Past())
    return made


def test_no_file_is_no_past(tmp_path: Path) -> None:
    assert Record(tmp_path / "absent.jsonl").read() == Past()


def test_what_was_kept_is_read_again(record: Record) -> None:
    rounds = (soak_round(1), soak_round(2, tps=None, memory_after=None, exit=None))
    record.add_round(rounds[0])
    record.add_event(event())
    record.add_round(rounds[1])
    assert record.read() == Past(rounds=rounds, events=(event(),))


def test_an_end_is_seen(record: Record) -> None:
    record.add_round(soak_round(1))
    record.end("")
    assert record.read().ended


def test_every_line_is_flushed_to_the_disk(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)
    record.add_round(soak_round(1))
    record.add_event(event())
    record.end("x")
    assert len(flushed) == 3


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_torn_line_counts_as_never_written(record: Record, cut: int) -> None:
    for number in (1, 2):
        record.add_round(soak_round(number))
    data = record.path.read_bytes()
    record.path.write_bytes(data[:-cut])
    assert record.read().rounds == (soak_round(1),)


def test_going_on_after_a_torn_line_loses_no_later_one(record: Record) -> None:
    for number in (1, 2):
        record.add_round(soak_round(number))
    record.path.write_bytes(record.path.read_bytes()[:-30])
    record.begin(record.read())
    record.add_round(soak_round(2, session=2))
    assert record.read().rounds == (soak_round(1), soak_round(2, session=2))
    assert [json.loads(x) for x in record.path.read_text().splitlines()]


def test_beginning_leaves_nothing_else_in_the_folder(record: Record) -> None:
    record.begin(Past(rounds=(soak_round(1),), events=(event(),)))
    assert [p.name for p in record.path.parent.iterdir()] == ["key.jsonl"]
    assert record.read() == Past(rounds=(soak_round(1),), events=(event(),))


@pytest.mark.parametrize(
    "change",
    [
        {"artifact": "b" * 64},
        {"model": "c" * 64},
        {"device": replace(DEVICE, pci="0000:42:00.0")},
        {"device": replace(DEVICE, driver="fake 2.0")},
        {"device": replace(DEVICE, name="Other")},
        {"work": {"tokens": 5}},
    ],
)
def test_another_artifact_model_device_driver_or_work_is_another_soak(
    change: dict[str, object],
) -> None:
    base = {"artifact": "a" * 64, "model": "m" * 64, "device": DEVICE, "work": {"tokens": 4}}
    assert soak_key(**base) == soak_key(**base)  # type: ignore[arg-type]
    assert soak_key(**base) != soak_key(**{**base, **change})  # type: ignore[arg-type]


def test_memory_of_a_device_does_not_change_the_key() -> None:
    base = {"artifact": "a", "model": "m", "work": {}}
    less = replace(DEVICE, memory=5)
    assert soak_key(device=DEVICE, **base) == soak_key(device=less, **base)  # type: ignore[arg-type]
