from __future__ import annotations

import bz2
import gzip
import io
import lzma
import threading
import time
import zlib
from collections.abc import Callable

import pytest
import zstandard

from llamawright.transfer.expand import expanded
from transfer_kit import noise, tar_of

PLAIN = noise(300_000) + bytes(3_000_000) + noise(10)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstandard": zstandard.ZstdCompressor().compress,
}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)


def stream(content: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(content))


def everything(content: bytes, step: int = 10_000) -> bytes:
    with expanded(stream(content)) as source:
        assert source is not None
        return b"".join(iter(lambda: source.read(step), b""))


@pytest.fixture(autouse=True)
def no_thread_stays() -> object:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.parametrize("form", COMPRESS)
@pytest.mark.parametrize("step", [-1, 1000, 1 << 20])
def test_every_format_gives_its_plain_bytes(form: str, step: int) -> None:
    assert everything(COMPRESS[form](PLAIN), step) == PLAIN


@pytest.mark.parametrize("form", COMPRESS)
def test_several_parts_behind_each_other_are_one_stream(form: str) -> None:
    packed = COMPRESS[form](b"one ") + COMPRESS[form](PLAIN)
    assert everything(packed) == b"one " + PLAIN


@pytest.mark.parametrize("zeros", [1, 512, 1 << 19])
def test_zeros_behind_gzip_are_padding(zeros: int) -> None:
    assert everything(gzip.compress(b"x") + bytes(zeros)) == b"x"
    assert everything(gzip.compress(b"x") + bytes(zeros) + gzip.compress(b"y")) == b"xy"


def test_junk_behind_gzip_is_an_error() -> None:
    with pytest.raises(zlib.error):
        everything(gzip.compress(b"x") + b"junk")


@pytest.mark.parametrize("form", ["gzip", "xz", "bzip2"])
@pytest.mark.parametrize("left", [0.2, 0.9, -1])
def test_a_stream_that_is_cut_is_an_error(form: str, left: float) -> None:
    packed = COMPRESS[form](PLAIN)
    cut = packed[:-1] if left < 0 else packed[: int(len(packed) * left)]
    with pytest.raises(BROKEN):
        everything(cut)


def test_a_wrong_check_sum_is_an_error_after_the_last_byte() -> None:
    packed = bytearray(gzip.compress(b"content"))
    packed[-8] ^= 1
    with pytest.raises(zlib.error):
        everything(bytes(packed))


def test_an_error_stays_an_error() -> None:
    with expanded(stream(gzip.compress(PLAIN)[:100])) as source:
        assert source is not None
        for _ in range(3):
            with pytest.raises(EOFError):
                b"".join(iter(lambda: source.read(1 << 20), b""))


def test_the_end_stays_the_end() -> None:
    with expanded(stream(gzip.compress(b"x"))) as source:
        assert source is not None
        assert [source.read(10) for _ in range(4)] == [b"x", b"", b"", b""]


def test_a_plain_tar_is_read_as_it_is() -> None:
    content = tar_of({"a": b"x"}, mode="w:")
    assert everything(content) == content


@pytest.mark.parametrize("content", [b"", b"x", b"PK\x03\x04", bytes(600), noise(600)])
def test_anything_else_is_unknown(content: bytes) -> None:
    with expanded(stream(content)) as source:
        assert source is None


def test_a_reader_that_stops_early_leaves_no_thread() -> None:
    packed = gzip.compress(bytes(64 << 20), compresslevel=1)
    with expanded(stream(packed)) as source:
        assert source is not None
        assert len(source.read(10)) == 10


def test_it_does_not_run_far_ahead() -> None:
    """A bomb must not fill the memory while its first bytes are looked at."""

    class Counting(io.BytesIO):
        taken = 0

        def readinto(self, buffer: object, /) -> int:
            count = super().readinto(buffer)  # type: ignore[arg-type]
            self.taken += count
            return count

    raw = Counting(gzip.compress(noise(24 << 20), compresslevel=1))
    with expanded(io.BufferedReader(raw)) as source:
        assert source is not None
        source.read(1)
        time.sleep(0.3)
        assert raw.taken < 12 << 20


def test_an_error_of_the_reader_passes_and_leaves_no_thread() -> None:
    with pytest.raises(ZeroDivisionError), expanded(stream(gzip.compress(PLAIN))):
        raise ZeroDivisionError
