"""Broken, cut and lying device code: refused with the place, never a wrong list."""

from __future__ import annotations

import base64
import random
import struct
import tomllib
from pathlib import Path

import pytest

from fatbin_kit import (
    PTX_89,
    SM_61,
    SM_89,
    container,
    cubin,
    entry,
    module,
    ptx,
    unit,
    windows_cuda,
)
from llamawright.errors import ExitCode, PackageError
from llamawright.package.fatbin import read_codes
from llamawright.package.fatbin_format import MAGIC
from package_binaries import elf, macho

FAKES = Path(__file__).resolve().parents[1] / "fakes" / "fatbins.toml"
RECORDED = tomllib.loads(FAKES.read_text(encoding="utf-8"))
WHOLE = unit(SM_61, SM_89)


def refused(root: Path, content: bytes) -> PackageError:
    path = root / "libggml-cuda.so"
    path.write_bytes(content)
    with pytest.raises(PackageError) as caught:
        read_codes(path)
    error = caught.value
    assert error.code is ExitCode.PACKAGE
    assert error.kind == "bad-fatbin"
    assert path.name in error.what
    assert error.why
    assert "llamawright" in error.hint
    return error


def read(path: Path) -> tuple[str, list[int]]:
    """Return the error's class word or the capabilities."""
    try:
        return "", [code.number for code in read_codes(path)]
    except PackageError as error:
        return error.kind, []


class TestContainer:
    @pytest.mark.parametrize(
        ("made", "why"),
        [
            (container(version=2), "unknown version 2"),
            (container(header=8), "header of only 8 bytes"),
            (container(entry(SM_61), size=1 << 40), "is cut after"),
            (container(entry(SM_61), size=1 << 63), "is cut after"),
            (WHOLE[:10], "is cut within its header"),
            (WHOLE[:-8], "is cut after"),
            (container(entry(SM_61)[:40]), "is cut within the entry"),
            (container(entry(SM_61), b"\0" * 8), "is cut within the entry"),
            (b"rubbish!" + WHOLE, "something else than a container"),
            (WHOLE + b"rubbish!" + WHOLE, "something else than a container"),
            (WHOLE + b"\0" * 8 + b"x", "something else than a container"),
            (WHOLE[4:], "something else than a container"),
        ],
    )
    def test_containers(self, tmp_path: Path, made: bytes, why: str) -> None:
        assert why in refused(tmp_path, module(made)).why

    def test_the_second_of_two_is_named_by_its_place(self, tmp_path: Path) -> None:
        good = refused(tmp_path, module(WHOLE, container(version=9)))
        assert "0x" in good.why

    def test_windows_too(self, tmp_path: Path) -> None:
        assert "unknown version" in refused(tmp_path, windows_cuda(container(version=3))).why


class TestEntry:
    @pytest.mark.parametrize(
        ("made", "why"),
        [
            (entry(SM_61, version=0x102), "unknown version 0x102"),
            (entry(SM_61, header=32), "header of only 32 bytes"),
            (entry(SM_61, header=1 << 31), "ends behind the container"),
            (entry(SM_61, padded=1 << 62), "ends behind the container"),
            (entry(SM_61, padded=0), "of 0 bytes in a place for 0"),
            (entry(SM_61, packing="zstd", packed=1 << 31), "in a place for"),
            (entry(SM_61, packing="zstd", packed=0), "of 0 bytes"),
            (entry(SM_61, number=0), "compute capability 0, which cannot be"),
            (entry(SM_61, number=0xFFFFFFFF), "which cannot be"),
            (entry(SM_61, flags=0x30_0011), "for one capability and for a family alike"),
            (entry(SM_61, flags=0xA011), "two kinds of compression"),
        ],
    )
    def test_headers(self, tmp_path: Path, made: bytes, why: str) -> None:
        assert why in refused(tmp_path, module(container(made))).why


class TestLies:
    @pytest.mark.parametrize("packing", ["plain", "lz4", "zstd"])
    def test_a_cubin_for_another_card(self, tmp_path: Path, packing: str) -> None:
        made = container(entry(SM_61, content=cubin(89), packing=packing))
        why = refused(tmp_path, module(made)).why
        assert "calls itself sm_61" in why
        assert "is for 89" in why

    @pytest.mark.parametrize("packing", ["plain", "lz4", "zstd"])
    def test_ptx_for_another_card(self, tmp_path: Path, packing: str) -> None:
        made = container(entry(PTX_89, content=ptx("sm_52"), packing=packing))
        assert "calls itself compute_89" in refused(tmp_path, module(made)).why

    @pytest.mark.parametrize(
        "content", [b"no cubin at all, but long enough to be one" * 4, b"\x7fELF"]
    )
    @pytest.mark.parametrize("packing", ["plain", "lz4", "zstd"])
    def test_what_is_no_cubin(self, tmp_path: Path, content: bytes, packing: str) -> None:
        made = container(entry(SM_61, content=content, packing=packing))
        assert "is none" in refused(tmp_path, module(made)).why

    @pytest.mark.parametrize("flag", [0x2000, 0x8000])
    def test_what_is_not_compressed_as_said(self, tmp_path: Path, flag: int) -> None:
        plain = cubin(61)
        made = entry(SM_61, flags=0x11 | flag, packed=len(plain), unpacked=4096)
        assert refused(tmp_path, module(container(made))).why

    def test_a_cubin_cut_within_its_table(self, tmp_path: Path) -> None:
        """Only looked into where a container lacks something that others have."""
        made = container(entry(SM_61, content=cubin(61)[:-64]))
        assert "is cut short" in refused(tmp_path, module(made, WHOLE)).why

    def test_ptx_without_a_target_is_believed(self, tmp_path: Path) -> None:
        path = tmp_path / "m.so"
        path.write_bytes(module(container(entry(PTX_89, content=b".version 8.4\n"))))
        assert read_codes(path) == (PTX_89,)


class TestFile:
    @pytest.mark.parametrize("content", [b"", b"MZ", b"#!/bin/sh\n", macho(), b"\x7fELF"])
    def test_no_binary(self, tmp_path: Path, content: bytes) -> None:
        refused(tmp_path, content)

    def test_no_table_of_sections(self, tmp_path: Path) -> None:
        """Without one nothing is known: that is not the same as no device code."""
        assert "table of sections" in refused(tmp_path, elf()).why

    @pytest.mark.parametrize("left", [0.3, 0.6, 0.9, 0.99])
    def test_a_cut_file(self, tmp_path: Path, left: float) -> None:
        whole = module(*[WHOLE] * 20)
        refused(tmp_path, whole[: int(len(whole) * left)])

    def test_a_section_that_ends_behind_the_file(self, tmp_path: Path) -> None:
        content = bytearray(module(WHOLE))
        (table,) = struct.unpack_from("<Q", content, 40)
        struct.pack_into("<Q", content, table + 64 + 32, 1 << 40)
        assert refused(tmp_path, bytes(content)).why


class TestFuzz:
    @pytest.mark.parametrize("name", sorted(RECORDED))
    def test_any_changed_byte_gives_the_codes_or_an_error(self, tmp_path: Path, name: str) -> None:
        """Never another exception, and never a code that is in no header."""
        good = base64.b64decode(RECORDED[name]["content"])
        chance = random.Random(61)
        path = tmp_path / "m.so"
        for _ in range(150):
            data = bytearray(good)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(module(bytes(data)))
            kind, numbers = read(path)
            assert kind in {"", "bad-fatbin"}
            assert all(50 <= number < 200 for number in numbers)

    @pytest.mark.parametrize("name", sorted(RECORDED))
    def test_every_cut_is_an_error(self, tmp_path: Path, name: str) -> None:
        good = base64.b64decode(RECORDED[name]["content"])
        for length in range(1, len(good), 97):
            path = tmp_path / "m.so"
            path.write_bytes(module(good[:length]))
            # A cut between two containers leaves whole ones.
            between = good[length : length + 4] == MAGIC
            assert read(path)[0] == ("" if between else "bad-fatbin")
