"""The stamped source: the same bytes anywhere, and only of the pinned tree."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest
import zstandard

from llamawright.digest import sha256_file, tree_digest
from llamawright.errors import PackageError
from llamawright.release import write_source
from llamawright.transfer import UnpackLimits, unpack_archive

DATE = 1_700_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "CMakeLists.txt").write_text("project(tiny)\n")
    (root / "src" / "a.cpp").write_text("int main() {}\n")
    (root / "src" / "deep" / ("n" * 120 + ".h")).write_text("long")
    (root / "src" / "ä.txt").write_text("umlaut")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/a.cpp")
    return root


def write(tree: Path, dest: Path, **changes: object) -> Path:
    patch = tree.parent / "0001-fix.patch"
    patch.write_text("--- a\n+++ b\n")
    digest = str(changes.get("digest") or tree_digest(tree))
    dest.parent.mkdir(parents=True, exist_ok=True)
    write_source(dest, tree, patches=[patch], stamp={"commit": "c" * 40}, digest=digest, date=DATE)
    return dest


def members(path: Path) -> list[tarfile.TarInfo]:
    with path.open("rb") as stream:
        plain = zstandard.ZstdDecompressor().stream_reader(stream)
        with tarfile.open(fileobj=plain, mode="r|") as tar:
            return list(tar)


def test_the_archive_holds_the_tree_the_patches_and_the_stamp(tree: Path, tmp_path: Path) -> None:
    path = write(tree, tmp_path / "out" / "tiny-source.tar.zst")
    out = tmp_path / "unpacked"
    unpack_archive(path, out, strip=1, limits=UnpackLimits())
    stamp = json.loads((out / "llamawright-source.json").read_text())
    assert stamp["commit"] == "c" * 40
    assert stamp["tree"] == tree_digest(tree)
    patch = "llamawright-patches/0001-fix.patch"
    assert stamp["patches"] == {patch: sha256_file(out / patch)}
    names = [n for n in sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*"))
             if not (tree / n).is_dir()]  # fmt: skip
    assert tree_digest(out, names) == tree_digest(tree)
    assert os.access(out / "run.sh", os.X_OK)


def test_everything_is_below_one_folder_of_the_archives_name(tree: Path, tmp_path: Path) -> None:
    found = members(write(tree, tmp_path / "tiny-source.tar.zst"))
    assert {m.name.split("/")[0] for m in found} == {"tiny-source"}


def test_owners_and_dates_are_nobodys(tree: Path, tmp_path: Path) -> None:
    for member in members(write(tree, tmp_path / "tiny-source.tar.zst")):
        assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
        assert member.mtime == DATE
        assert member.mode in {0o644, 0o755, 0o777}


def test_the_same_tree_gives_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    first = write(tree, tmp_path / "a" / "tiny-source.tar.zst").read_bytes()
    for path in tree.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (1, 1))
    # What a umask takes from the others does not count.
    (tree / "run.sh").chmod(0o700)
    (tree / "src" / "a.cpp").chmod(0o600)
    assert write(tree, tmp_path / "b" / "tiny-source.tar.zst").read_bytes() == first


def test_another_tree_is_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(PackageError) as caught:
        write(tree, tmp_path / "tiny-source.tar.zst", digest="0" * 64)
    assert caught.value.kind == "source-changed"
    assert tree_digest(tree) in caught.value.why
    assert not (tmp_path / "tiny-source.tar.zst").exists()
