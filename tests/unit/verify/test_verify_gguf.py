"""The head of a model file: what a device must hold, and whether the file is whole."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamawright.errors import UsageError
from llamawright.verify.gguf_header import read_header
from verify_kit import gguf


def test_layers_and_bytes_are_read(tmp_path: Path) -> None:
    header = read_header(gguf(tmp_path / "m.gguf", layers=7, weights=1000, embeddings=96))
    assert header.architecture == "llama"
    assert header.layers == 7
    assert header.weights == 4 * 1096
    assert header.embeddings == 4 * 96
    assert header.on_device == 4000


def test_another_alignment_moves_the_data(tmp_path: Path) -> None:
    extra = {"general.alignment": 64}
    path = gguf(tmp_path / "m.gguf", extra=extra)
    path.write_bytes(path.read_bytes() + b"\0" * 64)
    assert read_header(path).layers == 30


@pytest.mark.parametrize("cut", [1, 4, 1000, 4 * (1 << 18)])
def test_a_file_cut_short_says_how_much_is_missing(tmp_path: Path, cut: int) -> None:
    with pytest.raises(UsageError) as caught:
        read_header(gguf(tmp_path / "m.gguf", cut=cut))
    assert caught.value.kind == "truncated-model"
    assert f"{cut} bytes" in caught.value.why
    assert "--model" in caught.value.hint


def test_a_tensor_type_of_the_future_is_counted_by_the_file(tmp_path: Path) -> None:
    header = read_header(gguf(tmp_path / "m.gguf", kind=99, weights=1000, embeddings=96))
    assert header.weights == 4 * 1096


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "not-gguf"),
        (b"<!doctype html>", "not-gguf"),
        (b"GGUF", "broken-model"),
        (b"GGUF" + struct.pack("<I", 99), "unknown-gguf"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "broken-model"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 21), "broken-model"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 50), "broken-model"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "truncated-model"),
    ],
)
def test_what_is_no_model_is_refused_by_kind(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_header(path)
    assert caught.value.kind == kind


def test_an_absent_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_header(tmp_path / "nothing.gguf")
    assert caught.value.kind == "unreadable-model"


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(4, 300), value=st.integers(0, 255))
def test_a_flipped_byte_in_the_head_never_crashes_the_reader(
    tmp_path: Path, at: int, value: int
) -> None:
    path = tmp_path / "m.gguf"
    data = bytearray(gguf(path, weights=64, embeddings=32).read_bytes())
    data[min(at, len(data) - 1)] = value
    path.write_bytes(data)
    try:
        header = read_header(path)
    except UsageError:
        return
    assert header.weights >= 0
