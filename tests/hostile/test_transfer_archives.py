"""Archives made to do harm, and archives that came broken: nothing is ever written."""

from __future__ import annotations

import contextlib
import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamawright.errors import DownloadError, ExitCode
from llamawright.transfer import UnpackLimits, unpack_archive
from transfer_kit import deb_of, files_below, noise, tar_bytes, tar_info, tar_of, zip_of

WHOLE: dict[str, bytes | str] = {f"d/{n}": noise(20_000, n) for n in range(8)}


def refused(tmp_path: Path, content: bytes, limits: UnpackLimits | None = None) -> DownloadError:
    """Check that nothing at all was written, beside the archive or elsewhere."""
    box = tmp_path / "box"
    (box / "in").mkdir(parents=True)
    archive = box / "in" / "archive"
    archive.write_bytes(content)
    with pytest.raises(DownloadError) as caught:
        unpack_archive(archive, box / "in" / "dest", limits=limits)
    assert caught.value.code is ExitCode.DOWNLOAD
    assert files_below(tmp_path) == {"box/in/archive": content}
    assert not (box / "in" / "dest").exists()
    return caught.value


def member(name: str, **fields: object) -> bytes:
    return tar_bytes([(tar_info("good"), b"x"), (tar_info(name, **fields), b"")])


@pytest.mark.parametrize(
    "content",
    [
        tar_of({"good": b"x", "../evil": b"x"}),
        tar_of({"good": b"x", "/tmp/evil": b"x"}),
        tar_of({"good": b"x", "a/../../evil": b"x"}),
        tar_of({"good": b"x", "C:\\evil": b"x"}),
        tar_of({"good": b"x", "..\\evil": b"x"}),
        zip_of({"good": b"x", "../evil": b"x"}),
        zip_of({"good": b"x", "/tmp/evil": b"x"}),
        zip_of({"good": b"x", "C:/evil": b"x"}),
        deb_of(tar_of({"./good": b"x", "./../evil": b"x"}, mode="w:xz")),
    ],
)
def test_traversal(tmp_path: Path, content: bytes) -> None:
    assert refused(tmp_path, content).kind == "unsafe-archive"


@pytest.mark.parametrize("pack", [tar_of, zip_of])
@pytest.mark.parametrize(
    "files",
    [
        {"l": "/etc/passwd", "good": b"x"},
        {"l": "../outside", "good": b"x"},
        {"a/l": "../../outside", "good": b"x"},
        {"l": "..", "l/evil": b"x"},
        {"l": "a", "l/evil": b"x", "a/b": b"x"},
        {"d/l": "..", "d/m": "l/../../evil"},
    ],
)
def test_links(tmp_path: Path, pack: Callable[..., bytes], files: dict[str, bytes | str]) -> None:
    assert refused(tmp_path, pack(files)).kind == "unsafe-archive"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"])
def test_devices_pipes_and_unknown_kinds(tmp_path: Path, kind: bytes) -> None:
    assert "device" in refused(tmp_path, member("odd", type=kind)).why


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "none", "good2"])
def test_hard_links_to_anything_but_an_earlier_file(tmp_path: Path, target: str) -> None:
    content = member("h", type=tarfile.LNKTYPE, linkname=target)
    assert "hard link" in refused(tmp_path, content).why


def test_a_zip_with_a_device(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        info = zipfile.ZipInfo("dev")
        info.external_attr = 0o020644 << 16
        zipped.writestr(info, b"")
    assert "device" in refused(tmp_path, buffer.getvalue()).why


def test_a_zip_whose_link_is_a_whole_file(tmp_path: Path) -> None:
    assert "too long" in refused(tmp_path, zip_of({"l": "x" * 5000})).why


@pytest.mark.parametrize(
    "files",
    [
        {"a": b"1", "./a": b"2"},
        {"README": b"1", "readme": b"2"},
        {"A/x": b"1", "a/y": b"2"},
    ],
)
def test_collisions(tmp_path: Path, files: dict[str, bytes | str]) -> None:
    assert "the same place" in refused(tmp_path, tar_of(files)).why


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_that_names_a_file_twice(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("a", b"good")
        zipped.writestr("a", b"evil")
    assert "the same place" in refused(tmp_path, buffer.getvalue()).why


def test_a_zip_whose_two_directories_differ(tmp_path: Path) -> None:
    content = zip_of({"good": b"x"})
    forged = content.replace(b"good", b"evil", 1)
    assert refused(tmp_path, forged).kind == "broken-archive"


def test_an_encrypted_zip(tmp_path: Path) -> None:
    content = bytearray(zip_of({"a": b"secret"}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refused(tmp_path, bytes(content)).why


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_a_bomb_by_size(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    error = refused(tmp_path, pack({"a": bytes(1 << 20)}), UnpackLimits(total_bytes=1000))
    assert "more than 1000 bytes" in error.why


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_a_bomb_by_ratio(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    error = refused(tmp_path, pack({"a": bytes(70 << 20)}))
    assert "times its size" in error.why


def test_a_bomb_that_is_no_tar_inside_is_not_expanded_for_ever(tmp_path: Path) -> None:
    """The header claims little, the stream behind it never ends."""
    header = tar_of({"a": b"x"}, mode="w:")[:1024]
    content = gzip.compress(header + bytes(1024) + bytes(60 << 20))
    limits = UnpackLimits(total_bytes=1000, members=10)
    assert "unpacks to more than 16860 bytes" in refused(tmp_path, content, limits).why


def test_a_bomb_in_an_extended_header(tmp_path: Path) -> None:
    info = tar_info("a", pax_headers={"comment": "x" * (1 << 20)})
    limits = UnpackLimits(total_bytes=1000, members=10)
    assert refused(tmp_path, tar_bytes([(info, b"x")]), limits).kind == "unsafe-archive"


def test_a_zip_that_lies_about_a_size(tmp_path: Path) -> None:
    content = bytearray(zip_of({"a": bytes(5000)}))
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", 10)
    assert refused(tmp_path, bytes(content)).kind == "broken-archive"


def test_too_many_members(tmp_path: Path) -> None:
    content = tar_of({str(n): b"" for n in range(20)})
    assert "more than 10 members" in refused(tmp_path, content, UnpackLimits(members=10)).why


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["abcdefgh"] * 200), "a\nb"])
def test_names_no_system_likes(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path, tar_of({name: b"x"})).kind == "unsafe-archive"


def test_names_that_are_no_text(tmp_path: Path) -> None:
    content = tar_bytes([(tar_info("a\udcff"), b"x")], mode="w:", form=tarfile.GNU_FORMAT)
    assert refused(tmp_path, content).kind == "unsafe-archive"


PACKED = {
    "tar": tar_of(WHOLE, mode="w:"),
    "tar.gz": tar_of(WHOLE),
    "tar.xz": tar_of(WHOLE, mode="w:xz"),
    "tar.bz2": tar_of(WHOLE, mode="w:bz2"),
    "tar.zst": zstandard.ZstdCompressor().compress(tar_of(WHOLE, mode="w:")),
    "zip": zip_of(WHOLE),
    "deb": deb_of(tar_of(WHOLE, mode="w:xz")),
}


@pytest.mark.parametrize("form", PACKED)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9])
def test_cut_short_anywhere(tmp_path: Path, form: str, share: float) -> None:
    content = PACKED[form]
    error = refused(tmp_path, content[: int(len(content) * share)])
    assert error.kind in {"broken-archive", "unsafe-archive"}
    assert error.why


@pytest.mark.parametrize("form", ["tar.gz", "tar.xz", "tar.bz2", "zip", "deb"])
def test_cut_short_by_some_bytes(tmp_path: Path, form: str) -> None:
    """The check sums come last: a reader that stops at the last member never sees them."""
    error = refused(tmp_path, PACKED[form][:-5])
    assert error.kind == "broken-archive"


def test_a_tar_that_ends_between_two_members(tmp_path: Path) -> None:
    whole = tar_of({"a": bytes(512), "b": b"x"}, mode="w:")
    error = refused(tmp_path, whole[: 512 + 512])
    assert error.kind == "broken-archive"


def test_a_tar_with_a_damaged_header_in_the_middle(tmp_path: Path) -> None:
    """tarfile alone takes this for the end and drops the rest in silence."""
    whole = bytearray(tar_of({"a": b"x", "b": b"y", "c": b"z"}, mode="w:"))
    whole[1024 + 150] ^= 0xFF
    error = refused(tmp_path, bytes(whole))
    assert error.kind == "broken-archive"
    assert "header" in error.why


@pytest.mark.parametrize("form", ["tar.gz", "tar.xz", "tar.bz2", "zip", "deb"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_flipped_bit_in_the_content(tmp_path: Path, form: str, share: float) -> None:
    content = bytearray(PACKED[form])
    content[int(len(content) * share)] ^= 0x10
    assert refused(tmp_path, bytes(content)).kind in {"broken-archive", "unsafe-archive"}


def test_broken_blocks_of_zstandard(tmp_path: Path) -> None:
    """Its check sum is optional, so only a broken block can be known."""
    content = bytearray(
        zstandard.ZstdCompressor().compress(tar_of({"a": bytes(50_000)}, mode="w:"))
    )
    content[8:12] = b"\xff\xff\xff\xff"
    assert refused(tmp_path, bytes(content)).kind == "broken-archive"


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"\x7fELF" + bytes(2000), noise(5000), b"\x1f\x8b" + noise(100), b"PK\x03\x04",
     b"PK\x05\x06" + bytes(3), b"!<arch>\n", b"!<arch>\n" + b"x" * 60, b"\x28\xb5\x2f\xfdxx"],
)  # fmt: skip
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    assert refused(tmp_path, content).kind in {"broken-archive", "unsafe-archive"}


@pytest.mark.parametrize("start", [b"", b"\n\n  "])
def test_a_web_page_saved_as_an_archive(tmp_path: Path, start: bytes) -> None:
    error = refused(tmp_path, start + b"<!DOCTYPE html><html><body>Sign in</body></html>")
    assert error.kind == "broken-archive"
    assert "web page" in error.why


def test_a_package_without_data(tmp_path: Path) -> None:
    assert "data.tar is missing" in refused(tmp_path, deb_of(b"", name="other.tar")).why


def test_a_package_that_lies_about_sizes(tmp_path: Path) -> None:
    content = deb_of(tar_of({"a": b"x"})).replace(b"4         `\n", b"99999999  `\n", 1)
    assert refused(tmp_path, content).kind in {"broken-archive", "unsafe-archive"}


@pytest.mark.parametrize("size", ["-512", "-99999999999", "1e9", "x"])
def test_sizes_that_lead_backwards(tmp_path: Path, size: str) -> None:
    info = tar_info("a", pax_headers={"size": size})
    content = tar_bytes([(info, b"x"), (tar_info("b"), b"y")])
    path = tmp_path / "a"
    path.write_bytes(content)
    try:
        unpack_archive(path, tmp_path / "dest")
    except DownloadError as error:
        assert error.kind in {"broken-archive", "unsafe-archive"}  # noqa: PT017 - both may be


@pytest.mark.parametrize("mtime", ["1e300", "-5", "nan", "inf", "99999999999999"])
def test_times_no_file_system_knows(tmp_path: Path, mtime: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(tar_bytes([(tar_info("a", pax_headers={"mtime": mtime}), b"x")]))
    unpack_archive(path, tmp_path / "dest")
    assert files_below(tmp_path / "dest") == {"a": b"x"}


def test_a_zip_from_the_month_zero(tmp_path: Path) -> None:
    content = bytearray(zip_of({"a": b"x"}))
    at = content.index(b"PK\x01\x02") + 12
    content[at : at + 4] = bytes(4)
    path = tmp_path / "a"
    path.write_bytes(bytes(content))
    unpack_archive(path, tmp_path / "dest")
    assert files_below(tmp_path / "dest") == {"a": b"x"}


def test_a_sparse_file(tmp_path: Path) -> None:
    info = tar_info("a", pax_headers={
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a",
        "GNU.sparse.realsize": str(1 << 40),
    })  # fmt: skip
    content = tar_bytes([(info, b"1\n0\n1\n".ljust(512, b"\0") + b"x")])
    assert refused(tmp_path, content).kind == "unsafe-archive"


SMALL: dict[str, bytes | str] = {"d/a": b"alpha", "d/l": "a", "e": b"", "f/g/h": b"x" * 700}
BASES = {
    "tar": tar_of(SMALL, mode="w:"),
    "tar.gz": tar_of(SMALL),
    "tar.zst": zstandard.ZstdCompressor().compress(tar_of(SMALL, mode="w:")),
    "zip": zip_of(SMALL),
    "stored": zip_of(SMALL, compression=zipfile.ZIP_STORED),
    "deb": deb_of(tar_of(SMALL, mode="w:xz")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", BASES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_damage_is_an_error_of_ours_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    content = bytearray(BASES[form])
    for _ in range(data.draw(st.integers(1, 6))):
        # Most of a small tar is padding: aim at the headers.
        at = data.draw(st.integers(0, min(len(content), 3000) - 1))
        content[at] = data.draw(st.integers(0, 255))
    box = tmp_path_factory.mktemp("fuzz")
    (box / "in").mkdir()
    (box / "in" / "a").write_bytes(bytes(content))
    with contextlib.suppress(DownloadError):
        unpack_archive(box / "in" / "a", box / "in" / "dest")
    assert {p.name for p in box.iterdir()} == {"in"}
    assert {p.name for p in (box / "in").iterdir()} <= {"a", "dest"}
    for path in (box / "in" / "dest").rglob("*"):
        assert path.resolve().is_relative_to(box / "in" / "dest")
