"""Archives: the same content gives the same bytes, and every unpacker reads them."""

from __future__ import annotations

import os
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from llamawright.digest import sha256_file
from llamawright.model.platform import Platform
from llamawright.package.archive import Packed, archive_suffix, write_archive
from llamawright.transfer import unpack_archive
from package_kit import DATE, LINUX, MACOS, WINDOWS


def members(folder: Path, *, links: bool = True) -> list[Packed]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program").write_bytes(b"run me" * 1000)
    (folder / "text").write_bytes(b"read me")
    found = [
        Packed(path="licenses/LICENSE", source=folder / "text"),
        Packed(path="bin/program", source=folder / "program", executable=True),
        Packed(path="manifest.json", content=b"{}\n"),
        Packed(path="bin/empty", content=b""),
    ]
    if links:
        found.append(Packed(path="bin/alias", link="program"))
    return found


def write(dest: Path, content: list[Packed], platform: Platform = LINUX, date: int = DATE) -> Path:
    dest.parent.mkdir(parents=True, exist_ok=True)
    write_archive(dest, "top", content, platform=platform, date=date, progress=lambda _: None)
    return dest


def tar_of(path: Path) -> tarfile.TarFile:
    with path.open("rb") as stream:
        plain = zstandard.ZstdDecompressor().stream_reader(stream).read()
    beside = path.with_suffix(".tar")
    beside.write_bytes(plain)
    return tarfile.open(beside)


class TestSuffix:
    @pytest.mark.parametrize(
        ("platform", "suffix"), [(LINUX, ".tar.zst"), (MACOS, ".tar.zst"), (WINDOWS, ".zip")]
    )
    def test_by_system(self, platform: Platform, suffix: str) -> None:
        assert archive_suffix(platform) == suffix


class TestTar:
    def test_names_modes_owners_and_dates(self, tmp_path: Path) -> None:
        with tar_of(write(tmp_path / "a.tar.zst", members(tmp_path / "in"))) as tar:
            infos = tar.getmembers()
        assert [(i.name, oct(i.mode), i.linkname) for i in infos] == [
            ("top", "0o755", ""),
            ("top/bin", "0o755", ""),
            ("top/licenses", "0o755", ""),
            ("top/bin/alias", "0o777", "program"),
            ("top/bin/empty", "0o644", ""),
            ("top/bin/program", "0o755", ""),
            ("top/licenses/LICENSE", "0o644", ""),
            ("top/manifest.json", "0o644", ""),
        ]
        assert {(i.uid, i.gid, i.uname, i.gname, i.mtime) for i in infos} == {(0, 0, "", "", DATE)}

    def test_no_extended_headers(self, tmp_path: Path) -> None:
        with tar_of(write(tmp_path / "a.tar.zst", members(tmp_path / "in"))) as tar:
            assert not tar.pax_headers
            assert all(not i.pax_headers for i in tar.getmembers())

    def test_the_stream_carries_a_checksum(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.tar.zst", members(tmp_path / "in"))
        assert zstandard.get_frame_parameters(path.read_bytes()[:18]).has_checksum

    def test_any_unpacker_may_open_it(self, tmp_path: Path) -> None:
        """Decoders refuse windows above 128 MiB unless told otherwise."""
        path = write(tmp_path / "a.tar.zst", members(tmp_path / "in"))
        assert zstandard.get_frame_parameters(path.read_bytes()[:18]).window_size <= 1 << 27


class TestZip:
    def test_names_modes_and_dates(self, tmp_path: Path) -> None:
        content = members(tmp_path / "in", links=False)
        with zipfile.ZipFile(write(tmp_path / "a.zip", content, WINDOWS)) as zipped:
            infos = zipped.infolist()
            assert zipped.testzip() is None
        assert [i.filename for i in infos] == [
            "top/bin/empty", "top/bin/program", "top/licenses/LICENSE", "top/manifest.json",
        ]  # fmt: skip
        assert {i.date_time for i in infos} == {(2023, 11, 14, 22, 13, 20)}
        assert {i.filename: i.external_attr >> 16 & 0o777 for i in infos}[
            "top/bin/program"
        ] == 0o755
        assert {i.compress_type for i in infos} == {zipfile.ZIP_DEFLATED}
        assert not any(i.extra for i in infos)

    def test_links_survive(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.zip", members(tmp_path / "in"), WINDOWS)
        unpack_archive(path, tmp_path / "out")
        assert (tmp_path / "out" / "top" / "bin" / "alias").readlink() == Path("program")


@pytest.mark.parametrize("platform", [LINUX, WINDOWS])
class TestBoth:
    def name(self, platform: Platform) -> str:
        return f"a{archive_suffix(platform)}"

    def test_the_same_content_gives_the_same_bytes(
        self, tmp_path: Path, platform: Platform, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = write(tmp_path / "1" / self.name(platform), members(tmp_path / "in"), platform)
        again = members(tmp_path / "elsewhere")
        random.Random(3).shuffle(again)
        for member in again:
            if member.source:
                member.source.chmod(0o600)
                os.utime(member.source, (1, 1))
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        two = write(tmp_path / "2" / self.name(platform), again, platform)
        assert sha256_file(one) == sha256_file(two)

    def test_the_date_counts(self, tmp_path: Path, platform: Platform) -> None:
        content = members(tmp_path / "in")
        one = write(tmp_path / "1" / self.name(platform), content, platform)
        two = write(tmp_path / "2" / self.name(platform), content, platform, DATE + 86_400)
        assert sha256_file(one) != sha256_file(two)

    def test_strict_unpacking_gives_the_same_files(
        self, tmp_path: Path, platform: Platform
    ) -> None:
        path = write(tmp_path / self.name(platform), members(tmp_path / "in"), platform)
        unpack_archive(path, tmp_path / "out", strip=1)
        out = tmp_path / "out"
        assert (out / "bin" / "program").read_bytes() == b"run me" * 1000
        assert (out / "bin" / "alias").read_bytes() == b"run me" * 1000
        assert os.access(out / "bin" / "program", os.X_OK)
        assert not os.access(out / "bin" / "empty", os.X_OK)
        assert (out / "manifest.json").read_bytes() == b"{}\n"

    def test_progress_comes_to_the_whole_size(self, tmp_path: Path, platform: Platform) -> None:
        seen: list[int] = []
        content = members(tmp_path / "in")
        write_archive(
            tmp_path / self.name(platform), "top", content, platform=platform, date=DATE,
            progress=seen.append,
        )  # fmt: skip
        assert seen == sorted(seen)
        assert seen[-1] == sum(m.size for m in content) == 6000 + 7 + 3


def test_repeated_variants_are_squeezed_once(tmp_path: Path) -> None:
    """The CPU variants are much alike and far apart: that is what long distances are for."""
    noise = random.Random(7).randbytes(3 << 20)
    content = []
    for number in range(4):
        path = tmp_path / f"variant-{number}"
        path.write_bytes(noise + bytes([number]))
        content.append(Packed(path=f"bin/{path.name}", source=path))
    path = write(tmp_path / "a.tar.zst", content)
    assert path.stat().st_size < 1.2 * len(noise)
