from __future__ import annotations

import os
from pathlib import Path

import pytest
from fetch_fakes import BUILT, INCLUDE, all_files, expected_digest, write

from llamawright.errors import DownloadError
from llamawright.fetch.tree import (
    check_links,
    copy_included,
    digest_included,
    included_files,
    missing_parts,
)
from transfer_kit import files_below


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", all_files())


def test_only_included_files_count(tree: Path) -> None:
    assert included_files(tree, INCLUDE) == tuple(sorted(BUILT))


def test_the_digest_is_that_of_the_included_files(tree: Path, tmp_path: Path) -> None:
    assert digest_included(tree, INCLUDE) == expected_digest(tmp_path)
    (tree / "README.md").write_text("changed")
    assert digest_included(tree, INCLUDE) == expected_digest(tmp_path)
    (tree / "src" / "llama.cpp").write_text("changed")
    assert digest_included(tree, INCLUDE) != expected_digest(tmp_path)


def test_a_new_file_in_an_included_folder_counts(tree: Path, tmp_path: Path) -> None:
    (tree / "src" / "new.cpp").write_text("")
    assert digest_included(tree, INCLUDE) != expected_digest(tmp_path)


def test_overlapping_entries_count_once(tree: Path) -> None:
    assert included_files(tree, ("src", "src/llama.cpp", "src")) == ("src/llama.cpp",)


@pytest.mark.parametrize(
    "junk",
    [".git/HEAD", "src/.git/config", "src/__pycache__/x.pyc", "src/y.pyc", "src/.DS_Store"],
)
def test_what_tools_leave_behind_does_not_count(tree: Path, tmp_path: Path, junk: str) -> None:
    write(tree, {junk: b"junk"})
    assert digest_included(tree, INCLUDE) == expected_digest(tmp_path)


def test_a_git_file_of_a_submodule_does_not_count(tree: Path, tmp_path: Path) -> None:
    (tree / "src" / ".git").write_text("gitdir: ../.git/modules/src")
    assert digest_included(tree, INCLUDE) == expected_digest(tmp_path)


def test_what_is_missing_is_named(tree: Path) -> None:
    (tree / "LICENSE").unlink()
    assert missing_parts(tree, INCLUDE) == ("LICENSE",)
    assert included_files(tree, ("nothing",)) == ()


def test_a_copy_holds_only_what_is_included(tree: Path, tmp_path: Path) -> None:
    copy_included(tree, tmp_path / "copy", INCLUDE)
    assert files_below(tmp_path / "copy") == BUILT


def test_a_copy_keeps_times_and_run_bits(tree: Path, tmp_path: Path) -> None:
    script = tree / "src" / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    os.utime(script, (1_000_000_000, 1_000_000_000))
    copy_included(tree, tmp_path / "copy", INCLUDE)
    copied = (tmp_path / "copy" / "src" / "run.sh").stat()
    assert copied.st_mtime == 1_000_000_000
    assert copied.st_mode & 0o100


def test_copying_writes_nothing_into_the_source(tree: Path, tmp_path: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (tree, *tree.rglob("*"))}
    for path in sorted(tree.rglob("*"), reverse=True):
        path.chmod(0o500 if path.is_dir() else 0o400)
    copy_included(tree, tmp_path / "copy", INCLUDE)
    assert {p: p.stat().st_mtime_ns for p in (tree, *tree.rglob("*"))} == before
    for path in (tree, *tree.rglob("*")):
        path.chmod(0o700)


def test_links_inside_are_copied_as_links(tree: Path, tmp_path: Path) -> None:
    (tree / "src" / "link.h").symlink_to("../ggml/src/ggml.c")
    (tree / "ggml" / "folder").symlink_to("src")
    copy_included(tree, tmp_path / "copy", INCLUDE)
    assert (tmp_path / "copy/src/link.h").readlink() == Path("../ggml/src/ggml.c")
    assert (tmp_path / "copy/ggml/folder").readlink() == Path("src")
    assert digest_included(tmp_path / "copy", INCLUDE) == digest_included(tree, INCLUDE)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../../../x"])
def test_links_that_lead_out_are_refused(tree: Path, tmp_path: Path, target: str) -> None:
    (tree / "src" / "link").symlink_to(target)
    with pytest.raises(DownloadError) as caught:
        copy_included(tree, tmp_path / "copy", INCLUDE)
    assert caught.value.kind == "unsafe-source"
    assert "src/link" in caught.value.why
    assert not (tmp_path / "copy").exists()


def test_a_pipe_is_no_source(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "src" / "pipe")
    with pytest.raises(DownloadError, match="cannot be used") as caught:
        copy_included(tree, tmp_path / "copy", INCLUDE)
    assert "src/pipe is no file" in caught.value.why


def test_plain_trees_pass(tree: Path) -> None:
    check_links(tree, included_files(tree, INCLUDE))
