"""Hostile archives and binaries: the comparer finds a cause or refuses; it never breaks off."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamawright.errors import PackageError
from llamawright.model.repro import Cause, Compared, Sameness
from llamawright.package.repro import compare_files
from llamawright.package.repro_content import first_difference, text_difference
from llamawright.package.repro_members import read_headers
from repro_kit import library, packed
from transfer_kit import tar_bytes, tar_info

FILES = {"top/lib.so": library(), "top/text": b"one\ntwo\n", "top/data": bytes(range(256)) * 8}
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def tried(a: Path, b: Path) -> Compared | None:
    """Return the comparison, or nothing when a file was refused as no archive."""
    try:
        return compare_files(a, b)
    except PackageError as error:
        refused = error
    assert refused.kind == "not-an-archive"
    assert refused.hint
    return None


@QUICK
@given(at=st.integers(0, 20_000), value=st.integers(0, 255))
def test_any_byte_that_is_changed_is_found(tmp_path: Path, at: int, value: int) -> None:
    good = packed(tmp_path / "a" / "x.tar", FILES)
    content = bytearray(good.read_bytes())
    at %= len(content)
    same = content[at] == value
    content[at] = value
    bad = tmp_path / "b" / "x.tar"
    bad.parent.mkdir(exist_ok=True)
    bad.write_bytes(content)
    found = tried(good, bad)
    if found is None:
        return
    assert (found.sameness is Sameness.IDENTICAL) == same
    assert bool(found.differences) != same
    if not same:
        assert found.sameness is not Sameness.IDENTICAL


@QUICK
@given(cut=st.integers(0, 20_000))
def test_an_archive_that_is_cut_anywhere_is_never_the_same(tmp_path: Path, cut: int) -> None:
    good = packed(tmp_path / "a" / "x.tar.gz", FILES, mode="w:gz")
    content = good.read_bytes()
    bad = tmp_path / "b" / "x.tar.gz"
    bad.parent.mkdir(exist_ok=True)
    bad.write_bytes(content[: cut % len(content)])
    found = tried(good, bad)
    assert found is None or found.sameness is Sameness.DIFFERENT


@QUICK
@given(at=st.integers(0, 5_000), size=st.integers(0, 5_000))
def test_a_binary_with_a_hole_is_classified(tmp_path: Path, at: int, size: int) -> None:
    whole = library()
    a, b = tmp_path / "a.so", tmp_path / "b.so"
    a.write_bytes(whole)
    at %= len(whole)
    b.write_bytes(whole[:at] + whole[at + size :])
    found = compare_files(a, b)
    assert bool(found.differences) == (a.read_bytes() != b.read_bytes())


@QUICK
@given(a=st.binary(max_size=300), b=st.binary(max_size=300))
def test_two_files_of_any_bytes_are_the_same_or_have_a_cause(
    tmp_path: Path, a: bytes, b: bytes
) -> None:
    one, two = tmp_path / "a", tmp_path / "b"
    one.write_bytes(a)
    two.write_bytes(b)
    found = compare_files(one, two)
    assert (found.sameness is Sameness.IDENTICAL) == (a == b)
    assert len(found.differences) == (a != b)


@QUICK
@given(a=st.binary(max_size=400), b=st.binary(max_size=400))
def test_the_first_difference_is_the_first(a: bytes, b: bytes) -> None:
    at = first_difference(a, b)
    assert a[:at] == b[:at]
    assert a == b or a[at : at + 1] != b[at : at + 1]


@QUICK
@given(a=st.text(max_size=200), b=st.text(max_size=200))
def test_any_two_texts_have_a_cause_and_a_line(a: str, b: str) -> None:
    found = text_difference("x", a, b)
    assert found.detail.startswith("line ")
    assert found.cause in {Cause.CONTENT, Cause.DIGEST, Cause.TIMESTAMP, Cause.PATH}


def test_names_that_lead_out_are_compared_and_never_written(tmp_path: Path) -> None:
    sides = []
    for label in ("a", "b"):
        path = tmp_path / label / "x.tar"
        path.parent.mkdir()
        members = [(tar_info(n), label.encode()) for n in ("../../out", "/abs/out", "a/../b")]
        path.write_bytes(tar_bytes(members, mode="w"))
        sides.append(path)
    found = compare_files(*sides)
    assert [d.path for d in found.differences] == ["../../out", "/abs/out", "a/../b"]
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["a/x.tar", "b/x.tar"]


def test_a_name_that_comes_twice_is_seen_in_the_order(tmp_path: Path) -> None:
    once = packed(tmp_path / "a" / "x.tar", {"x": b"1"})
    twice = tmp_path / "b" / "x.tar"
    twice.parent.mkdir()
    twice.write_bytes(tar_bytes([(tar_info("x"), b"1"), (tar_info("x"), b"1")], mode="w"))
    found = compare_files(once, twice)
    assert found.sameness is Sameness.DIFFERENT
    assert [d.cause for d in found.differences] == [Cause.ORDER]


def test_links_pipes_and_devices_are_headers_only(tmp_path: Path) -> None:
    sides = []
    for label, kind, link in (("a", tarfile.SYMTYPE, "x"), ("b", tarfile.SYMTYPE, "/etc/passwd")):
        path = tmp_path / label / "x.tar"
        path.parent.mkdir()
        members = [
            (tar_info("link", type=kind, linkname=link), b""),
            (tar_info("pipe", type=tarfile.FIFOTYPE), b""),
            (tar_info("disk", type=tarfile.BLKTYPE), b""),
        ]
        path.write_bytes(tar_bytes(members, mode="w"))
        sides.append(path)
    found = compare_files(*sides)
    assert [(d.path, d.cause, d.detail) for d in found.differences] == [
        ("link", Cause.LINK, "x | /etc/passwd")
    ]


def test_a_file_that_became_a_link_is_another_kind(tmp_path: Path) -> None:
    plain = packed(tmp_path / "a" / "x.tar", {"x": b""})
    linked = tmp_path / "b" / "x.tar"
    linked.parent.mkdir()
    linked.write_bytes(tar_bytes([(tar_info("x", type=tarfile.SYMTYPE, linkname="y"), b"")]))
    causes = [d.cause for d in compare_files(plain, linked).differences]
    assert Cause.KIND in causes
    assert Cause.LINK in causes


def test_an_encrypted_or_damaged_zip_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("x", b"content" * 100)
    content = bytearray(buffer.getvalue())
    content[40] ^= 0xFF
    bad, good = tmp_path / "bad.zip", tmp_path / "good.zip"
    good.write_bytes(buffer.getvalue())
    bad.write_bytes(content)
    with pytest.raises(PackageError, match="cannot be read"):
        compare_files(good, bad)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 1024, b"PK\3\4", b"\x28\xb5\x2f\xfd", b"\x1f\x8b"]
)
def test_what_only_begins_like_an_archive_is_refused_or_empty(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.tar.zst"
    path.write_bytes(content)
    with pytest.raises(PackageError):
        read_headers(path)
