"""Strict reading: one meaning of every byte, or none."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.attest import strict

TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_what_is_read(value: object) -> None:
    assert strict.load(strict.compact(value)) == value  # type: ignore[arg-type]


@given(VALUES)
def test_there_is_one_form_only(value: object) -> None:
    once = strict.compact(value)  # type: ignore[arg-type]
    assert strict.compact(strict.load(once)) == once
    assert b"\n" not in once


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a":1,"a":1}', "'a' is there twice"),
        ('{"x":{"a":1,"b":2,"a":3}}', "'a' is there twice"),
        ('{"a":1,"\\u0061":2}', "'a' is there twice"),
        ('{"a":NaN}', "NaN is no number"),
        ("[Infinity]", "Infinity is no number"),
        ("[-Infinity]", "no number"),
        ("[1e999]", "too large a number"),
        ("[-1e999]", "too large a number"),
        ("{", "Expecting"),
        ("", "Expecting value"),
        ("{}{}", "Extra data"),
        ("{'a':1}", "Expecting"),
        ('"\\ud800"', "surrogates not allowed"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "9" * 10_000 + "]", "digits"),
    ],
)
def test_json_that_two_readers_could_take_differently_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        strict.load(text.encode())
    assert why in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b'"\xc3"', b"\xef\xbb\xbf{}", b"\x00"])
def test_bytes_that_are_no_utf8_text_of_json_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        strict.load(data)


def test_numbers_that_no_json_has_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        strict.compact(float("nan"))


@given(st.binary(max_size=80))
def test_base64_is_read_in_its_one_spelling(data: bytes) -> None:
    assert strict.base64_bytes(base64.b64encode(data).decode(), "it") == data


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("QUI", "no base64"),  # truncated
        ("QUI=x", "no base64"),
        ("QU I=", "no base64"),
        ("QUI=\n", "no base64"),
        ("QUJ=", "stray bits"),  # the same bytes as QUI=
        ("QR==", "stray bits"),
        ("QUI-", "no base64"),
        ("Ä===", "no base64"),
        (7, "is no text"),
        (None, "is no text"),
        ([], "is no text"),
    ],
)
def test_other_base64_is_refused(written: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        strict.base64_bytes(written, "it")  # type: ignore[arg-type]


@given(st.binary(min_size=1, max_size=40), st.data())
def test_base64_cut_anywhere_is_refused_or_shorter(data: bytes, draw: st.DataObject) -> None:
    whole = base64.b64encode(data).decode()
    cut = whole[: draw.draw(st.integers(0, len(whole) - 1))]
    try:
        assert len(strict.base64_bytes(cut, "it")) < len(data)
    except ValueError as error:
        assert "base64" in str(error)  # noqa: PT017 - both ends are right


def test_fields_are_exactly_those() -> None:
    assert strict.fields({"a": 1}, "it", "a") == {"a": 1}
    assert strict.fields({"a": 1, "b": 2}, "it", "a", optional=("b",)) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="it has no a"):
        strict.fields({}, "it", "a")
    with pytest.raises(ValueError, match="it has an unknown 'c'"):
        strict.fields({"a": 1, "c": 1}, "it", "a")
    with pytest.raises(ValueError, match="it is no object"):
        strict.fields([], "it", "a")


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.truncate(strict.SIZE_LIMIT + 1)
    with pytest.raises(ValueError, match="larger than 32 MiB"):
        strict.read_limited(huge)
    small = tmp_path / "small"
    small.write_text(json.dumps({}))
    assert strict.read_limited(small) == b"{}"
