"""A disk that is full: on a real small file system where it can be mounted, and faked."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamawright.errors import DiskError, ExitCode
from llamawright.store import Store
from llamawright.transfer import DownloadRequest, download, unpack_archive
from transfer_kit import Listener, Reply, Slept, files_below, noise, sha, site, tar_of

SIZE = 4 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    place, mount = tmp_path / "small", shutil.which("mount")
    place.mkdir()
    command = [mount or "", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here; the faked tests remain")
    yield place
    subprocess.run([shutil.which("umount") or "umount", str(place)], check=True)


def fill(dest: Path) -> None:
    dest.mkdir()
    (dest / "small").write_bytes(b"x")
    (dest / "large").write_bytes(noise(SIZE))


def test_a_full_disk_while_making_leaves_nothing_behind(small_disk: Path) -> None:
    store = Store(small_disk)
    with pytest.raises(DiskError) as caught:
        store.materialise("shelf", "key", make=fill, reporter=Listener(), label="too large")
    assert caught.value.kind == "disk-full"
    assert caught.value.code is ExitCode.DISK
    assert not store.is_stamped("shelf", "key")
    assert files_below(small_disk / "shelf") == {}
    entry = store.materialise(
        "shelf", "key", make=Path.mkdir, reporter=Listener(), label="small enough"
    )
    assert entry.fresh


def test_a_download_that_cannot_fit_is_refused_before_the_first_byte(small_disk: Path) -> None:
    body = noise(SIZE)
    with site() as web:
        web.routes["/f"] = Reply(body=body)
        request = DownloadRequest(urls=(web.url("/f"),), size=SIZE, sha256=sha(body), label="f.tar")
        with pytest.raises(DiskError) as caught:
            download(
                request, Store(small_disk), offline=False, reporter=Listener(), clock=Slept().clock
            )
        assert web.seen == []
    assert "f.tar" in caught.value.what
    assert "it needs 4 MiB more" in caught.value.why


def test_a_disk_that_fills_during_a_download_is_no_network_error(small_disk: Path) -> None:
    body = noise(SIZE)
    slept = Slept()
    with site() as web:
        web.routes["/f"] = Reply(body=body, length=False)
        request = DownloadRequest(
            urls=(web.url("/f"),), size=2 * SIZE, sha256=None, label="f", exact_size=False
        )
        with pytest.raises(DiskError) as caught:
            download(
                request, Store(small_disk), offline=False, reporter=Listener(), clock=slept.clock
            )
    assert caught.value.kind == "disk-full"
    assert slept.pauses == []


def test_a_disk_that_fills_while_unpacking_is_told(small_disk: Path, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    archive.write_bytes(tar_of({"a": b"x", "b": noise(SIZE)}))
    with pytest.raises(DiskError):
        unpack_archive(archive, small_disk / "dest")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_disk_errors_in_a_make_are_told(tmp_path: Path, number: int) -> None:
    def make(dest: Path) -> None:
        dest.mkdir()
        raise OSError(number, os.strerror(number), str(dest / "x"))

    store = Store(tmp_path)
    with pytest.raises(DiskError):
        store.materialise("shelf", "key", make=make, reporter=Listener(), label="x")
    assert list((tmp_path / "shelf").iterdir()) == []


def test_a_full_disk_at_the_stamp_leaves_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llamawright.store import content

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = Store(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(content, "write_json", full)
        with pytest.raises(DiskError):
            store.materialise("shelf", "key", make=Path.mkdir, reporter=Listener(), label="x")
    assert not store.is_stamped("shelf", "key")
    assert store.materialise("shelf", "key", make=Path.mkdir, reporter=Listener(), label="x").fresh


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DiskError) as caught:
        Store(tmp_path / "store").logs("run")
    tmp_path.chmod(0o700)
    assert caught.value.kind == "not-writable"
