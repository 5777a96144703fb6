from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from llamawright.errors import DiskError, ExitCode
from llamawright.store import disk_guard


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-quota"), (errno.EROFS, "read-only")],
)
def test_disk_errors_are_told_as_what_they_are(tmp_path: Path, number: int, kind: str) -> None:
    with pytest.raises(DiskError) as caught, disk_guard(tmp_path):
        raise OSError(number, os.strerror(number))
    error = caught.value
    assert error.kind == kind
    assert error.code is ExitCode.DISK
    assert str(tmp_path) in error.what
    assert "MiB free" in error.why
    assert "llamawright gc" in error.hint
    assert "LLAMAWRIGHT_STORE" in error.hint


def test_a_folder_that_may_not_be_written_is_a_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError) as caught, disk_guard(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "a" / "b"))
    assert caught.value.kind == "not-writable"


def test_a_folder_above_that_may_not_be_written_counts_too(tmp_path: Path) -> None:
    with pytest.raises(DiskError), disk_guard(tmp_path / "a" / "b"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied", "/elsewhere/file"),
        PermissionError(errno.EPERM, "Operation not permitted"),
        FileNotFoundError(errno.ENOENT, "No such file", "/x"),
        OSError(errno.EIO, "Input/output error"),
        OSError("no number"),
    ],
)
def test_other_errors_pass_unchanged(tmp_path: Path, error: OSError) -> None:
    with pytest.raises(OSError, match=r".") as caught, disk_guard(tmp_path):
        raise error
    assert caught.value is error


def test_the_free_space_of_a_folder_to_come_is_that_of_its_volume(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="cannot write") as caught, disk_guard(tmp_path / "a" / "b"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "MiB free" in caught.value.why


def test_the_original_error_is_kept_as_the_cause(tmp_path: Path) -> None:
    original = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(DiskError) as caught, disk_guard(tmp_path):
        raise original
    assert caught.value.__cause__ is original
