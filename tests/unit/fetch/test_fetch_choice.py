from __future__ import annotations

from pathlib import Path

import pytest
from fetch_fakes import COMMIT, archive_origin, index_origin, pin

from llamawright.errors import ExitCode, UsageError
from llamawright.fetch.choice import choose, kind_of
from llamawright.model.recipe import GitOrigin, PathOrigin

INDEX = index_origin(b"x")
ARCHIVE = archive_origin("https://example.com/a.tar.gz")
GIT = GitOrigin(url="https://example.com/llama.cpp", commit=COMMIT)
TREE = "t" * 64
PIN = pin(TREE, INDEX, ARCHIVE, GIT)
OTHER_COMMIT = "1" * 40


def usage(source: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        choose(PIN, source)
    assert caught.value.code is ExitCode.USAGE
    return caught.value


def test_auto_is_every_origin_in_the_recipe_s_order() -> None:
    choice = choose(PIN, "auto")
    assert choice.origins == (INDEX, ARCHIVE, GIT)
    assert choice.tree == TREE


@pytest.mark.parametrize(
    ("source", "origin"), [("index", INDEX), ("archive", ARCHIVE), ("git", GIT)]
)
def test_a_kind_is_that_one_alone_and_stays_pinned(source: str, origin: object) -> None:
    choice = choose(PIN, source)
    assert choice.origins == (origin,)
    assert choice.tree == TREE


def test_a_kind_may_have_several_origins() -> None:
    second = archive_origin("https://mirror.example/a.tar.gz")
    assert choose(pin(TREE, ARCHIVE, INDEX, second), "archive").origins == (ARCHIVE, second)


def test_a_folder_of_the_user_is_not_pinned(tmp_path: Path) -> None:
    choice = choose(PIN, f"path:{tmp_path}")
    assert choice.origins == (PathOrigin(path=str(tmp_path)),)
    assert choice.tree is None


def test_a_relative_folder_is_taken_from_where_the_user_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llama").mkdir()
    monkeypatch.chdir(tmp_path)
    assert choose(PIN, "path:llama").origins == (PathOrigin(path=str(tmp_path / "llama")),)


def test_the_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert choose(PIN, "path:~").origins == (PathOrigin(path=str(tmp_path)),)


@pytest.mark.parametrize("text", ["path:", "path:/does/not/exist"])
def test_a_folder_that_is_not_there_is_a_usage_error(text: str) -> None:
    error = usage(text)
    assert "folder" in error.what
    assert "path:/" in error.hint


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    usage(f"path:{tmp_path / 'f'}")


def test_a_commit_of_the_user_is_not_pinned() -> None:
    choice = choose(PIN, f"git+https://fork.example/x@{OTHER_COMMIT}")
    assert choice.origins == (GitOrigin(url="https://fork.example/x", commit=OTHER_COMMIT),)
    assert choice.tree is None


def test_the_pinned_commit_stays_pinned_wherever_it_comes_from() -> None:
    assert choose(PIN, f"git+https://mirror.example/x@{COMMIT}").tree == TREE


def test_an_address_with_a_user_name_keeps_it() -> None:
    (origin,) = choose(PIN, f"git+ssh://git@host.example/x@{OTHER_COMMIT}").origins
    assert origin == GitOrigin(url="ssh://git@host.example/x", commit=OTHER_COMMIT)


@pytest.mark.parametrize(
    "text",
    [
        "git+https://x.example/y",
        "git+https://x.example/y@main",
        "git+https://x.example/y@b11312",
        "git+https://x.example/y@0c1e570",
        f"git+https://x.example/y@{COMMIT.upper()}",
        f"git+https://x.example/y@{COMMIT}0",
        f"git+@{COMMIT}",
        "git+",
    ],
)
def test_only_a_full_commit_is_taken(text: str) -> None:
    error = usage(text)
    assert "full commit" in error.what
    assert "rev-parse" in error.hint


@pytest.mark.parametrize(
    ("text", "meant"), [("indx", "index"), ("archiv", "archive"), ("atuo", "auto"), ("gti", "git")]
)
def test_a_slip_is_guessed(text: str, meant: str) -> None:
    assert f"did you mean {meant}?" in usage(text).hint


@pytest.mark.parametrize("text", ["", "pypi", "https://example.com/x.tar.gz", "/folder", "path"])
def test_anything_else_lists_what_there_is(text: str) -> None:
    error = usage(text)
    assert "index, archive, git" in error.why
    assert "path:/folder" in error.hint


def test_a_recipe_without_origins_has_no_auto() -> None:
    with pytest.raises(UsageError) as caught:
        choose(pin(TREE), "auto")
    assert "none" in caught.value.why


def test_every_origin_has_its_word() -> None:
    origins = (INDEX, ARCHIVE, GIT, PathOrigin(path="/x"))
    assert [kind_of(o) for o in origins] == ["index", "archive", "git", "path"]
