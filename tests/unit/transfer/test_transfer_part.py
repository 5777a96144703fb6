from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.transfer.part import Part
from transfer_kit import sha

URL = "https://user:secret@files.example/a"


@pytest.fixture
def part(tmp_path: Path) -> Part:
    return Part(tmp_path / "blobs" / "a.part")


def write(part: Part, content: bytes, validator: str = "") -> None:
    with part.begin(URL, validator) as sink:
        sink.write(content)


def test_an_absent_part_has_no_bytes(part: Part) -> None:
    assert part.size == 0
    assert part.validator(URL) == ""


def test_a_part_grows_by_resuming(part: Part) -> None:
    write(part, b"one")
    with part.resume() as sink:
        assert sink.tell() == 3
        sink.write(b"two")
    assert part.path.read_bytes() == b"onetwo"
    assert part.size == 6
    assert part.sha256() == sha(b"onetwo")


def test_beginning_starts_from_nothing(part: Part) -> None:
    write(part, b"long content", '"old"')
    write(part, b"x", '"new"')
    assert part.path.read_bytes() == b"x"
    assert part.validator(URL) == '"new"'


def test_the_validator_counts_for_its_own_address_only(part: Part) -> None:
    write(part, b"x", '"tag"')
    assert part.validator(URL) == '"tag"'
    assert part.validator("https://other.example/a") == ""


def test_the_address_is_not_written(part: Part) -> None:
    write(part, b"x", '"tag"')
    note = part.path.with_name("a.part.json").read_text()
    assert "secret" not in note
    assert "files.example" not in note


def test_a_broken_note_is_no_validator(part: Part) -> None:
    write(part, b"x", '"tag"')
    part.path.with_name("a.part.json").write_text("{")
    assert part.validator(URL) == ""


def test_dropping_keeps_nothing(part: Part) -> None:
    write(part, b"x")
    part.drop()
    part.drop()
    assert list(part.path.parent.iterdir()) == []


def test_settling_moves_the_bytes_and_leaves_nothing_beside(part: Part, tmp_path: Path) -> None:
    write(part, b"x")
    final = tmp_path / "other" / "final"
    part.settle(final)
    assert final.read_bytes() == b"x"
    assert list(part.path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><html>",
        b"<!doctype HTML>",
        b"<html lang=en>",
        b"\xef\xbb\xbf<!DOCTYPE html>",
        b"\r\n \t<HTML>",
    ],
)
def test_web_pages_are_recognised(part: Part, content: bytes) -> None:
    write(part, content)
    assert part.looks_like_html


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x1f\x8b", b"<?xml?>", b"html"])
def test_other_files_are_no_web_pages(part: Part, content: bytes) -> None:
    write(part, content)
    assert not part.looks_like_html
