"""Doctored archives: every kind of difference is found and called by its name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from llamawright.errors import ExitCode, PackageError
from llamawright.model.repro import Cause, Compared, Differing, Sameness
from llamawright.package.repro import compare_files
from repro_kit import library, packed
from transfer_kit import zip_of

FILES = {"top/bin/liba.so": library(), "top/licenses/L": b"text\n", "top/run": b"program"}


def compared(
    tmp_path: Path, a: dict[str, bytes], b: dict[str, bytes], **headers: dict[str, object]
) -> Compared:
    """Compare two tar archives; ``headers`` changes fields of ``top/run`` in the second one."""
    return compare_files(
        packed(tmp_path / "a" / "x.tar", a),
        packed(tmp_path / "b" / "x.tar", b, headers={"top/run": headers.get("run", {})}),
    )


def causes(found: Compared) -> list[tuple[str, Cause]]:
    return [(d.path, d.cause) for d in found.differences]


def test_equal_archives_are_identical_and_counted(tmp_path: Path) -> None:
    found = compared(tmp_path, FILES, FILES)
    assert found.sameness is Sameness.IDENTICAL
    assert found.members == 3
    assert found.differences == ()


@pytest.mark.parametrize(
    ("fields", "cause", "shown"),
    [
        ({"mode": 0o755}, Cause.MODE, "0644 | 0755"),
        ({"mtime": 1_700_000_001}, Cause.MTIME, "1700000000 | 1700000001"),
        ({"uid": 1000}, Cause.OWNER, "0:0 | 1000:0"),
        ({"uname": "first"}, Cause.OWNER, "0:0 | 0:0 first"),
    ],
)
def test_a_header_that_differs_is_named(
    tmp_path: Path, fields: dict[str, object], cause: Cause, shown: str
) -> None:
    found = compared(tmp_path, FILES, FILES, run=fields)
    assert causes(found) == [("top/run", cause)]
    assert found.differences[0].detail == shown
    assert found.sameness is Sameness.DIFFERENT


def test_another_order_of_the_same_members_is_named(tmp_path: Path) -> None:
    turned = dict(reversed(FILES.items()))
    found = compared(tmp_path, FILES, turned)
    assert causes(found) == [("", Cause.ORDER)]
    assert found.differences[0].detail.startswith("from member 1: top/bin/liba.so")


def test_members_that_one_side_lacks_are_named_and_are_no_other_order(tmp_path: Path) -> None:
    less = {k: v for k, v in FILES.items() if k != "top/licenses/L"}
    more = {**FILES, "top/stray": b"1"}
    found = compared(tmp_path, less, more)
    assert causes(found) == [("top/licenses/L", Cause.ONLY_IN_B), ("top/stray", Cause.ONLY_IN_B)]
    assert causes(compared(tmp_path, more, less)) == [
        ("top/licenses/L", Cause.ONLY_IN_A),
        ("top/stray", Cause.ONLY_IN_A),
    ]


def test_another_compression_of_the_same_members_is_no_difference_of_content(
    tmp_path: Path,
) -> None:
    plain = packed(tmp_path / "x.tar", FILES).read_bytes()
    paths = []
    for level in (1, 9):
        path = tmp_path / f"{level}" / "x.tar.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress(plain, level, mtime=0))
        paths.append(path)
    found = compare_files(*paths)
    assert causes(found) == [("", Cause.COMPRESSION)]
    assert found.sameness is Sameness.DIFFERENT


def test_the_build_id_and_symbols_are_gone_after_strip(tmp_path: Path) -> None:
    other = library(build_id=b"87654321", symtab=b"another.")
    found = compared(tmp_path, FILES, {**FILES, "top/bin/liba.so": other})
    assert causes(found) == [
        ("top/bin/liba.so", Cause.BUILD_ID),
        ("top/bin/liba.so", Cause.SYMBOLS),
    ]
    assert found.differences[1].detail == ".symtab"
    assert found.sameness is Sameness.STRIPPED


def test_a_digest_that_only_follows_is_harmless_and_alone_it_is_not(tmp_path: Path) -> None:
    sums = [f'{{"sha256": "{c * 64}", "size": {n}}}\n'.encode() for c, n in (("a", 1), ("b", 2))]
    ours = {**FILES, "top/manifest.json": sums[0]}
    alone = {**FILES, "top/manifest.json": sums[1]}
    assert causes(compared(tmp_path, ours, alone)) == [("top/manifest.json", Cause.DIGEST)]
    assert compared(tmp_path, ours, alone).sameness is Sameness.DIFFERENT
    both = {**alone, "top/bin/liba.so": library(symtab=b"another.")}
    assert compared(tmp_path, ours, both).sameness is Sameness.STRIPPED


def test_code_that_differs_is_not_excused_by_strip(tmp_path: Path) -> None:
    other = library(rodata=b"hullo\0", build_id=b"87654321")
    found = compared(tmp_path, FILES, {**FILES, "top/bin/liba.so": other})
    assert (
        found.differences[1].cause,
        found.differences[0].cause,
    ) == (Cause.SECTION, Cause.BUILD_ID)
    assert found.differences[1].detail == ".rodata; .rodata at byte 1: 656c6c6f00 | 756c6c6f00"
    assert found.sameness is Sameness.DIFFERENT


@pytest.mark.parametrize(
    ("ours", "theirs", "cause"),
    [
        (b"at /home/first/x.cpp\0", b"at /root/another/deep/x.cpp\0", Cause.PATH),
        (b"built 10:11:12\0", b"built 10:11:59\0", Cause.TIMESTAMP),
        (b"Dec  1 2026\0", b"Dec  2 2026\0", Cause.TIMESTAMP),
        (b"one\0", b"two\0", Cause.SECTION),
    ],
)
def test_what_a_binary_embeds_is_called_by_its_kind(
    tmp_path: Path, ours: bytes, theirs: bytes, cause: Cause
) -> None:
    sides = [{**FILES, "top/bin/liba.so": library(rodata=data)} for data in (ours, theirs)]
    found = compared(tmp_path, *sides)
    assert causes(found) == [("top/bin/liba.so", cause)]


@pytest.mark.parametrize(
    ("ours", "theirs", "cause"),
    [
        (b"a\nroot /home/x/y\n", b"a\nroot /srv/z/y\n", Cause.PATH),
        (b"made 2026-12-01 10:00\n", b"made 2026-12-02 11:00\n", Cause.TIMESTAMP),
        (b"jobs 2\n", b"jobs 3\n", Cause.CONTENT),
        (b"one\n", b"one\r\n", Cause.CONTENT),
        (b"\0\1", b"\0\2", Cause.CONTENT),
    ],
)
def test_texts_and_plain_bytes_have_causes_too(
    tmp_path: Path, ours: bytes, theirs: bytes, cause: Cause
) -> None:
    sides = [{**FILES, "top/licenses/L": data} for data in (ours, theirs)]
    assert causes(compared(tmp_path, *sides)) == [("top/licenses/L", cause)]


def test_wheels_are_compared_by_their_members(tmp_path: Path) -> None:
    paths = []
    for name, data in (("a", b"1"), ("b", b"2")):
        path = tmp_path / name / "x-1-py3-none-any.whl"
        path.parent.mkdir()
        path.write_bytes(zip_of({"x/__init__.py": b"same", "x/data": data}))
        paths.append(path)
    found = compare_files(*paths)
    assert found.differences == (
        Differing(path="x/data", cause=Cause.CONTENT, detail="line 1: 1 | 2"),
    )


def test_two_single_files_are_compared_without_an_archive(tmp_path: Path) -> None:
    a, b = tmp_path / "a.so", tmp_path / "b.so"
    a.write_bytes(library())
    b.write_bytes(library(symtab=b"another."))
    found = compare_files(a, b)
    assert (found.members, found.sameness) == (1, Sameness.STRIPPED)


def test_a_missing_file_and_one_that_is_no_archive_are_refused(tmp_path: Path) -> None:
    good = packed(tmp_path / "x.tar", FILES)
    with pytest.raises(PackageError, match="is not there") as absent:
        compare_files(good, tmp_path / "none.tar")
    assert absent.value.code is ExitCode.PACKAGE
    bad = tmp_path / "y.tar.zst"
    bad.write_bytes(b"no archive at all")
    with pytest.raises(PackageError, match="cannot be read as an archive"):
        compare_files(good, bad)


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    good = packed(tmp_path / "x.tar", FILES)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(gzip.compress(good.read_bytes())[:-40])
    with pytest.raises(PackageError):
        compare_files(good, cut)


def test_a_path_that_moves_all_other_strings_is_still_found(tmp_path: Path) -> None:
    words = [f"a message of some length {n}".encode() for n in range(20)]
    ours = [*words, b"./vendor/nlohmann/../nlohmann/json.hpp"]
    theirs = [b"./vendor/nlohmann/json.hpp", *reversed(words)]
    sides = [
        {**FILES, "top/bin/liba.so": library(rodata=b"\0".join(rows))} for rows in (ours, theirs)
    ]
    (found,) = compared(tmp_path, *sides).differences
    assert found.cause is Cause.PATH
    assert found.detail == (
        ".rodata: ./vendor/nlohmann/../nlohmann/json.hpp | ./vendor/nlohmann/json.hpp"
    )


def test_a_path_beside_another_new_string_is_not_blamed_alone(tmp_path: Path) -> None:
    ours, theirs = b"/home/me/x.c\0first thing", b"/srv/other/x.c\0second thing"
    sides = [{**FILES, "top/bin/liba.so": library(rodata=data)} for data in (b"\0" + ours, theirs)]
    causes_found = {d.cause for d in compared(tmp_path, *sides).differences}
    assert Cause.TIMESTAMP not in causes_found
    assert compared(tmp_path, *sides).sameness is Sameness.DIFFERENT
