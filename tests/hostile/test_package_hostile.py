"""Files that are no artifact, or no longer: told apart, and nothing of them stays."""

from __future__ import annotations

import io
import json
import random
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import zstandard

from llamawright.errors import ExitCode, PackageError
from llamawright.model.platform import Platform
from llamawright.package import pack, read_artifact
from package_kit import (
    LINUX,
    WINDOWS,
    Bench,
    linux_host,
    linux_module,
    plan,
    windows_host,
    windows_module,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[Platform, Path]:
    """Return one good artifact of each format."""
    found: dict[Platform, Path] = {}
    for platform, host, module in (
        (LINUX, linux_host(), linux_module()),
        (WINDOWS, windows_host(), windows_module()),
    ):
        root = tmp_path_factory.mktemp("made") / platform.tag
        bench = Bench(root, plan(platform), host, module)
        patched, built, own = bench.trees()
        packed = pack(bench.plan, patched, built, own, store=bench.store, reporter=bench.told)
        found[platform] = packed.path
    return found


def refused(path: Path) -> PackageError:
    """Return the error; the folder must hold nothing but the file afterwards."""
    before = sorted(p.name for p in path.parent.iterdir())
    with pytest.raises(PackageError) as caught:
        read_artifact(path)
    assert sorted(p.name for p in path.parent.iterdir()) == before
    error = caught.value
    assert error.code is ExitCode.PACKAGE
    assert path.name in error.what
    assert error.why
    assert error.hint
    return error


def squeeze(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(plain)


def tar(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for info, content in members:
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


class TestCutShort:
    @pytest.mark.parametrize("platform", [LINUX, WINDOWS])
    @pytest.mark.parametrize("missing", [1, 2, 3, 4, 5, 21, 22, 100, 1000])
    def test_at_the_end(
        self, good: dict[Platform, Path], tmp_path: Path, platform: Platform, missing: int
    ) -> None:
        whole = good[platform].read_bytes()
        path = tmp_path / good[platform].name
        path.write_bytes(whole[:-missing])
        assert refused(path).kind == "truncated"

    @pytest.mark.parametrize("platform", [LINUX, WINDOWS])
    @pytest.mark.parametrize("part", [0.1, 0.5, 0.6, 0.9])
    def test_anywhere(
        self, good: dict[Platform, Path], tmp_path: Path, platform: Platform, part: float
    ) -> None:
        whole = good[platform].read_bytes()
        path = tmp_path / good[platform].name
        path.write_bytes(whole[: int(len(whole) * part)])
        error = refused(path)
        assert error.kind == "truncated"
        assert "fetch it again" in error.hint

    @pytest.mark.parametrize("platform", [LINUX, WINDOWS])
    def test_to_a_few_bytes(
        self, good: dict[Platform, Path], tmp_path: Path, platform: Platform
    ) -> None:
        path = tmp_path / good[platform].name
        for size in range(4, 12):
            path.write_bytes(good[platform].read_bytes()[:size])
            assert refused(path).kind == "truncated"


def flipped(path: Path, folder: Path, seed: int) -> Iterator[tuple[int, Path]]:
    """Yield copies with one bit changed, at the start and at 90 places by chance."""
    whole = path.read_bytes()
    copy = folder / path.name
    dice = random.Random(seed)
    for at in sorted({0, 1, 3, 4, 5, 9, *dice.sample(range(len(whole)), 90)}):
        content = bytearray(whole)
        content[at] ^= 1 << dice.randrange(8)
        copy.write_bytes(content)
        yield at, copy


@pytest.mark.parametrize("platform", [LINUX, WINDOWS])
class TestOneByteFlipped:
    def test_never_another_content_and_never_another_error(
        self, good: dict[Platform, Path], tmp_path: Path, platform: Platform
    ) -> None:
        """Some bits hold nothing (a zip's dates, the padding of a stream): then all is well."""
        kinds: set[str] = set()
        for at, copy in flipped(good[platform], tmp_path, 11):
            try:
                seen = read_artifact(copy)
            except PackageError as error:
                kinds.add(error.kind)
            else:
                assert seen.manifest == read_artifact(good[platform]).manifest
                # The stream's checksum covers a whole tar; its header has a few idle bits.
                assert platform is WINDOWS or at < 6
        assert kinds & {"damaged", "hash-mismatch"}
        assert kinds <= {
            "damaged", "truncated", "hash-mismatch", "unsafe-archive", "not-an-archive",
            "no-manifest", "bad-manifest", "archive-bomb", "renamed",
        }  # fmt: skip

    def test_with_its_sum_beside_it_every_bit_counts(
        self, good: dict[Platform, Path], tmp_path: Path, platform: Platform
    ) -> None:
        name = f"{good[platform].name}.sha256"
        (tmp_path / name).write_bytes(good[platform].with_name(name).read_bytes())
        for _, copy in flipped(good[platform], tmp_path, 12):
            assert refused(copy).kind in {
                "damaged", "truncated", "sidecar-mismatch", "not-an-archive", "archive-bomb",
            }  # fmt: skip


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "empty"),
            (b"<!DOCTYPE html><html>Sign in</html>", "a web page"),
            (b"\n <HTML><body>404</body>", "a web page"),
            (b"just some text, thank you", "no known format"),
            (bytes(4096), "no known format"),
            (b"\x7fELF" + bytes(100), "no known format"),
        ],
    )
    @pytest.mark.parametrize("suffix", [".tar.zst", ".zip"])
    def test_no_archive(self, tmp_path: Path, content: bytes, words: str, suffix: str) -> None:
        path = tmp_path / f"tiny-012345678-vulkan-linux_x86_64{suffix}"
        path.write_bytes(content)
        error = refused(path)
        assert error.kind == "not-an-archive"
        assert words in error.why

    def test_an_archive_of_something_else(self, tmp_path: Path) -> None:
        path = tmp_path / "photos.tar.zst"
        path.write_bytes(squeeze(tar([(info("photos/a.jpg"), b"jpg"), (info("photos/b"), b"b")])))
        error = refused(path)
        assert error.kind == "no-manifest"
        assert "llamawright build" in error.hint

    def test_an_archive_without_a_top_folder(self, tmp_path: Path) -> None:
        path = tmp_path / "loose.tar.zst"
        path.write_bytes(squeeze(tar([(info("a/x"), b"1"), (info("b/y"), b"2")])))
        assert refused(path).kind == "unsafe-archive"

    def test_a_wheel(self, tmp_path: Path) -> None:
        path = tmp_path / "pkg-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("pkg/__init__.py", "")
            wheel.writestr("pkg-1.0.dist-info/METADATA", "Name: pkg")
        assert refused(path).kind in {"unsafe-archive", "no-manifest"}

    def test_something_appended(self, good: dict[Platform, Path], tmp_path: Path) -> None:
        path = tmp_path / good[LINUX].name
        for tail in (b"\0", b"trailing text", good[LINUX].read_bytes()):
            path.write_bytes(good[LINUX].read_bytes() + tail)
            assert refused(path).kind == "damaged"

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(PackageError) as caught:
            read_artifact(tmp_path)
        assert caught.value.kind == "absent"


class TestAttacks:
    def test_a_zstd_bomb(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.tar.zst"
        compressor = zstandard.ZstdCompressor()
        with path.open("wb") as stream, compressor.stream_writer(stream) as squeezed:
            for _ in range(200):
                squeezed.write(bytes(1 << 20))
        error = refused(path)
        assert error.kind == "archive-bomb"

    def test_a_zip_bomb(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("top/zeros", bytes(80 << 20))
        assert refused(path).kind == "archive-bomb"

    @pytest.mark.parametrize(
        "member",
        [
            info("top/../../outside"),
            info("/etc/cron.d/x"),
            info("top/bin/l", tarfile.SYMTYPE, "../../../etc/passwd"),
            info("top/bin/l", tarfile.SYMTYPE, "/etc/passwd"),
            info("top/dev", tarfile.CHRTYPE),
        ],
        ids=lambda m: f"{m.name}-{m.linkname}",
    )
    def test_members_that_lead_out(self, tmp_path: Path, member: tarfile.TarInfo) -> None:
        path = tmp_path / "tiny.tar.zst"
        path.write_bytes(squeeze(tar([(info("top/manifest.json"), b"{}"), (member, b"x")])))
        error = refused(path)
        assert error.kind == "unsafe-archive"
        assert not (tmp_path.parent / "outside").exists()

    def test_a_manifest_that_names_files_outside(
        self, good: dict[Platform, Path], tmp_path: Path
    ) -> None:
        def change(manifest: dict[str, object]) -> None:
            files = manifest["files"]
            assert isinstance(files, list)
            files.append({**files[0], "path": "../../../../etc/hostname"})

        path = remade(good[LINUX], tmp_path, change)
        assert refused(path).kind == "bad-manifest"

    def test_a_module_added_by_hand(self, good: dict[Platform, Path], tmp_path: Path) -> None:
        path = remade(
            good[LINUX], tmp_path, lambda _: None, extra=("bin/libggml-cuda.so", b"planted")
        )
        error = refused(path)
        assert error.kind == "hash-mismatch"
        assert "libggml-cuda.so" in error.why

    def test_a_module_taken_out_by_hand(self, good: dict[Platform, Path], tmp_path: Path) -> None:
        path = remade(good[LINUX], tmp_path, lambda _: None, without="bin/libggml-vulkan.so")
        error = refused(path)
        assert error.kind == "hash-mismatch"
        assert error.why == "bin/libggml-vulkan.so: missing"

    def test_a_link_rewritten_by_a_careless_packer(
        self, good: dict[Platform, Path], tmp_path: Path
    ) -> None:
        """A name transform that also hits link targets (cases P5)."""
        path = remade(good[LINUX], tmp_path, lambda _: None, links=lambda t: f"b9165{t[3:]}")
        error = refused(path)
        assert error.kind == "hash-mismatch"
        assert "must lead to libtiny.so.0, but leads to b9165tiny.so.0" in error.why


def remade(
    path: Path,
    folder: Path,
    change: object,
    *,
    extra: tuple[str, bytes] | None = None,
    without: str = "",
    links: object = None,
) -> Path:
    """Return a copy of an artifact that someone repacked with changes."""
    with path.open("rb") as stream:
        plain = zstandard.ZstdDecompressor().stream_reader(stream).read()
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        for member in archive.getmembers():
            source = archive.extractfile(member) if member.isreg() else None
            content = source.read() if source else b""
            if member.name.endswith("manifest.json"):
                manifest = json.loads(content)
                assert callable(change)
                change(manifest)
                content = json.dumps(manifest).encode()
            if member.issym() and callable(links):
                member.linkname = links(member.linkname)
            if not (without and member.name.endswith(without)):
                members.append((member, content))
        top = archive.getmembers()[0].name
    if extra:
        members.append((info(f"{top}/{extra[0]}"), extra[1]))
    copy = folder / path.name
    copy.write_bytes(squeeze(tar(members)))
    return copy
