from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fetch_fakes import (
    BUILT,
    INCLUDE,
    OTHER,
    SDIST,
    all_files,
    archive_origin,
    expected_digest,
    github,
    index_origin,
    pin,
    repository,
    run_git,
    sdist,
    write,
)

from llamawright.errors import DownloadError, ToolMissingError, UsageError
from llamawright.fetch import digest_of, fetch_source
from llamawright.model.plan import SourceTree
from llamawright.model.recipe import GitOrigin, PathOrigin, SourcePin
from llamawright.store import Store
from transfer_kit import Listener, Reply, Site, files_below, site


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip is configured to look into, and nothing else."""
    folder = tmp_path / "links"
    folder.mkdir()
    conf = tmp_path / "pip.conf"
    conf.write_text(f"[global]\nno-index = true\nfind-links = {folder}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(conf))
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> str:
    return expected_digest(tmp_path)


def get(
    pinned: SourcePin,
    store: Store,
    *,
    source: str = "auto",
    offline: bool = False,
    listener: Listener | None = None,
) -> SourceTree:
    return fetch_source(
        pinned, source=source, store=store, offline=offline, reporter=listener or Listener()
    )


def index_pin(tree: str, shelf: Path, content: bytes | None = None) -> SourcePin:
    packed = content or sdist()
    (shelf / SDIST).write_bytes(packed)
    return pin(tree, index_origin(packed))


def test_the_source_distribution_gives_the_pinned_tree(
    store: Store, shelf: Path, tree: str
) -> None:
    found = get(index_pin(tree, shelf), store)
    assert found.digest == tree
    assert found.root == store.shelf("sources", tree)
    assert found.origin == f"index:{SDIST}"
    assert files_below(found.root) == BUILT


def test_the_archive_gives_the_same_tree(web: Site, store: Store, tree: str) -> None:
    web.routes["/llama.tar.gz"] = Reply(body=github(), length=False)
    origin = archive_origin(web.url("/llama.tar.gz"))
    found = get(pin(tree, origin), store)
    assert (found.digest, found.origin) == (tree, origin.label)
    assert files_below(found.root) == BUILT


def test_git_gives_the_same_tree(store: Store, tmp_path: Path, tree: str) -> None:
    (origin,) = repository(tmp_path / "repo", all_files())
    found = get(pin(tree, origin, commit=origin.commit), store)
    assert (found.digest, found.origin) == (tree, origin.label)
    assert files_below(found.root) == BUILT


def test_a_folder_of_the_recipe_gives_the_same_tree(
    store: Store, tmp_path: Path, tree: str
) -> None:
    folder = write(tmp_path / "local", all_files())
    found = get(pin(tree, PathOrigin(path=str(folder))), store, source="path")
    assert found.digest == tree
    assert files_below(found.root) == BUILT


def test_the_second_time_nothing_is_read(store: Store, shelf: Path, tree: str) -> None:
    pinned = index_pin(tree, shelf)
    first = get(pinned, store)
    (shelf / SDIST).unlink()
    store.blob(pinned.origins[0].sha256).unlink()  # type: ignore[union-attr, arg-type]
    assert get(pinned, store, offline=True) == first


def test_any_origin_finds_what_another_one_brought(
    web: Site, store: Store, shelf: Path, tree: str
) -> None:
    index = index_pin(tree, shelf)
    both = pin(tree, *index.origins, archive_origin(web.url("/x.tar.gz")))
    get(both, store, source="index")
    assert get(both, store, source="archive").root == store.shelf("sources", tree)
    assert web.seen == []


def test_a_fall_back_is_said_aloud(web: Site, store: Store, shelf: Path, tree: str) -> None:
    web.routes["/llama.tar.gz"] = Reply(body=github())
    archive = archive_origin(web.url("/llama.tar.gz"))
    pinned = pin(tree, index_origin(sdist()), archive)
    listener = Listener()
    found = get(pinned, store, listener=listener)
    assert found.origin == archive.label
    (warning,) = listener.warnings
    assert SDIST in warning
    assert "absent" in warning
    assert f"falling back to {archive.label}" in warning


def test_a_chosen_origin_does_not_fall_back(
    web: Site, store: Store, shelf: Path, tree: str
) -> None:
    web.routes["/llama.tar.gz"] = Reply(body=github())
    pinned = pin(tree, index_origin(sdist()), archive_origin(web.url("/llama.tar.gz")))
    with pytest.raises(DownloadError) as caught:
        get(pinned, store, source="index")
    assert caught.value.kind == "absent"
    assert web.seen == []


def test_other_files_than_the_pinned_ones_are_refused(store: Store, shelf: Path, tree: str) -> None:
    changed = {**all_files(), "src/llama.cpp": b"int evil;\n"}
    with pytest.raises(DownloadError) as caught:
        get(index_pin(tree, shelf, sdist(changed)), store)
    error = caught.value
    assert error.kind == "wrong-tree"
    assert f"expected tree {tree}" in error.why
    assert files_below(store.root / "sources") == {}


def test_a_missing_part_of_the_tree_is_named(store: Store, shelf: Path, tree: str) -> None:
    lacking = {n: c for n, c in all_files().items() if n != "LICENSE"}
    with pytest.raises(DownloadError) as caught:
        get(index_pin(tree, shelf, sdist(lacking)), store)
    assert "it lacks LICENSE" in caught.value.why


def test_a_wrong_tree_falls_back_to_a_right_one(
    web: Site, store: Store, shelf: Path, tree: str
) -> None:
    changed = sdist({**all_files(), "src/llama.cpp": b"int evil;\n"})
    (shelf / SDIST).write_bytes(changed)
    web.routes["/a.tar.gz"] = Reply(body=github())
    listener = Listener()
    pinned = pin(tree, index_origin(changed), archive_origin(web.url("/a.tar.gz")))
    assert get(pinned, store, listener=listener).digest == tree
    assert "wrong-tree" in listener.warnings[0]


def test_when_no_origin_works_all_are_listed(
    web: Site, store: Store, shelf: Path, tree: str
) -> None:
    web.routes["/bad.tar.gz"] = Reply(body=github({**all_files(), "LICENSE": b"other"}))
    pinned = pin(
        tree,
        index_origin(sdist()),
        archive_origin(web.url("/bad.tar.gz")),
        archive_origin(web.url("/gone.tar.gz")),
    )
    with pytest.raises(DownloadError) as caught:
        get(pinned, store)
    error = caught.value
    assert error.kind == "no-source"
    assert "any of its 3 sources" in error.what
    assert error.why.count("expected tree") == 1
    assert "HTTP 404" in error.why
    assert SDIST in error.why


def test_offline_tells_for_every_origin_what_is_missing(
    web: Site, store: Store, shelf: Path, tree: str
) -> None:
    content = sdist()
    git = GitOrigin(url="https://example.com/x", commit="1" * 40)
    pinned = pin(tree, index_origin(content), archive_origin(web.url("/a.tar.gz")), git)
    listener = Listener()
    with pytest.raises(DownloadError) as caught:
        get(pinned, store, offline=True, listener=listener)
    error = caught.value
    assert error.kind == "offline"
    assert f"{len(content)} bytes" in error.why
    assert index_origin(content).sha256 in error.why
    assert "at most 1048576 bytes" in error.why
    assert "commit " + "1" * 40 in error.why
    assert "without --offline" in error.hint
    assert listener.warnings == []
    assert web.seen == []


def test_offline_uses_a_stored_archive(store: Store, shelf: Path, tree: str) -> None:
    pinned = index_pin(tree, shelf)
    get(pinned, store)
    store.forget("sources", tree)
    assert get(pinned, store, offline=True).digest == tree


def test_a_hostile_archive_is_not_unpacked(web: Site, store: Store, tree: str) -> None:
    hostile = github({**all_files(), "../../../evil": b"x"})
    web.routes["/a.tar.gz"] = Reply(body=hostile)
    with pytest.raises(DownloadError) as caught:
        get(pin(tree, archive_origin(web.url("/a.tar.gz"))), store)
    assert caught.value.kind == "unsafe-archive"
    assert not list(store.root.parent.glob("**/evil"))


def test_a_folder_of_the_user_is_digested_and_copied(
    store: Store, tmp_path: Path, tree: str
) -> None:
    folder = write(tmp_path / "mine", all_files())
    listener = Listener()
    found = get(pin(tree), store, source=f"path:{folder}", listener=listener)
    assert found.digest == tree
    assert found.origin == f"path:{folder}"
    assert found.root != folder
    assert listener.warnings == []


def test_a_changed_folder_gives_another_tree_and_says_so(
    store: Store, tmp_path: Path, tree: str
) -> None:
    folder = write(tmp_path / "mine", all_files())
    first = get(pin(tree), store, source=f"path:{folder}")
    (folder / "src" / "llama.cpp").write_bytes(b"my change\n")
    listener = Listener()
    second = get(pin(tree), store, source=f"path:{folder}", listener=listener)
    assert second.digest != first.digest
    assert (second.root / "src/llama.cpp").read_bytes() == b"my change\n"
    assert (first.root / "src/llama.cpp").read_bytes() == BUILT["src/llama.cpp"]
    assert "not the recipe's pinned tree" in listener.warnings[0]


def test_a_folder_that_is_something_else_is_refused(store: Store, tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", {"README": b"x"})
    with pytest.raises(DownloadError) as caught:
        get(pin("t" * 64), store, source=f"path:{folder}")
    assert caught.value.kind == "wrong-tree"
    assert "CMakeLists.txt" in caught.value.why


def test_a_folder_without_some_parts_is_warned_about(store: Store, tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", {"CMakeLists.txt": b"x", "src/a": b""})
    listener = Listener()
    get(pin("t" * 64), store, source=f"path:{folder}", listener=listener)
    assert "lacks LICENSE, ggml, tools/cli" in listener.warnings[0]


def test_a_folder_of_the_recipe_that_is_gone_is_told(store: Store, tmp_path: Path) -> None:
    pinned = pin("t" * 64, PathOrigin(path=str(tmp_path / "gone")))
    with pytest.raises(UsageError, match="is not there"):
        get(pinned, store)


def test_a_commit_of_the_user_is_fetched_once(store: Store, tmp_path: Path, tree: str) -> None:
    changed = {"src/llama.cpp": b"fork\n"}
    _old, fork = repository(tmp_path / "repo", all_files(), changed)
    source = f"git+{fork.url}@{fork.commit}"
    listener = Listener()
    found = get(pin(tree), store, source=source, listener=listener)
    assert found.digest != tree
    assert found.origin == fork.label
    assert (found.root / "src/llama.cpp").read_bytes() == b"fork\n"
    assert any("not the recipe's pinned tree" in w for w in listener.warnings)
    again = get(pin(tree), store, source=source, offline=True)
    assert again == found
    assert not (store.root / "commits" / "x").exists()
    assert files_below(store.root / "commits") == {}


def test_a_commit_that_is_not_stored_needs_the_network(store: Store, tmp_path: Path) -> None:
    (origin,) = repository(tmp_path / "repo", all_files())
    with pytest.raises(DownloadError) as caught:
        get(pin("t" * 64), store, source=f"git+{origin.url}@{origin.commit}", offline=True)
    assert caught.value.kind == "offline"


def test_the_pinned_commit_from_elsewhere_must_be_the_pinned_tree(
    store: Store, tmp_path: Path
) -> None:
    (origin,) = repository(tmp_path / "repo", all_files())
    pinned = pin("t" * 64, commit=origin.commit)
    with pytest.raises(DownloadError) as caught:
        get(pinned, store, source=f"git+{origin.url}@{origin.commit}")
    assert caught.value.kind == "wrong-tree"


def test_an_old_commit_of_a_long_history_is_found(store: Store, tmp_path: Path, tree: str) -> None:
    first, _second, _third = repository(
        tmp_path / "repo", all_files(), {"LICENSE": b"2"}, {"LICENSE": b"3"}
    )
    assert get(pin(tree, first, commit=first.commit), store).digest == tree


def test_a_project_below_a_folder_of_the_repository(
    store: Store, tmp_path: Path, tree: str
) -> None:
    nested = {f"vendor/llama.cpp/{n}": c for n, c in all_files().items()}
    (origin,) = repository(tmp_path / "repo", nested)
    inner = GitOrigin(url=origin.url, commit=origin.commit, subdir="vendor/llama.cpp")
    assert get(pin(tree, inner), store).digest == tree


def test_a_commit_that_the_repository_lacks_is_told(store: Store, tmp_path: Path) -> None:
    (origin,) = repository(tmp_path / "repo", all_files())
    wrong = GitOrigin(url=origin.url, commit="1" * 40)
    with pytest.raises(DownloadError) as caught:
        get(pin("t" * 64, wrong), store)
    assert caught.value.kind in {"absent", "refused"}
    assert "1" * 40 in caught.value.what
    assert files_below(store.root / "sources") == {}


def test_a_repository_that_is_not_there_is_told(store: Store, tmp_path: Path) -> None:
    gone = GitOrigin(url=(tmp_path / "none").as_uri(), commit="1" * 40)
    with pytest.raises(DownloadError) as caught:
        get(pin("t" * 64, gone), store)
    assert caught.value.kind == "absent"
    assert list((store.root / "sources").iterdir()) == []


@pytest.mark.parametrize("url", ["--upload-pack=touch evil", "ext::sh -c touch% evil"])
def test_addresses_that_git_would_run_are_refused(
    store: Store, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DownloadError) as caught:
        get(pin("t" * 64, GitOrigin(url=url, commit="1" * 40)), store)
    assert caught.value.kind == "refused"
    assert not list(tmp_path.glob("**/evil"))


def test_the_user_s_git_settings_and_repository_do_not_count(
    tmp_path: Path, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store inside another repository, line ends converted by the user's own settings."""
    outer = tmp_path / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[core]\n\tautocrlf = true\n\thooksPath = /nonexistent\n[init]\n\tdefaultBranch = odd\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(outer / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(outer))
    (origin,) = repository(tmp_path / "repo", all_files())
    found = get(pin(tree, origin), Store(outer / "store"))
    assert found.digest == tree
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    assert run_git(outer, "status", "--short", "--untracked-files=no") == ""
    assert "fatal" in _log(outer)


def _log(folder: Path) -> str:
    """The outer repository has got no commit."""
    import subprocess

    done = subprocess.run(["git", "log"], cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr


def test_links_of_a_repository_that_lead_out_are_refused(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    write(root, all_files())
    (root / "src" / "link").symlink_to("/etc/passwd")
    run_git(root, "init", "-q")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "x")
    origin = GitOrigin(url=root.as_uri(), commit=run_git(root, "rev-parse", "HEAD"))
    with pytest.raises(DownloadError) as caught:
        get(pin("t" * 64, origin), store)
    assert caught.value.kind == "unsafe-source"


def test_without_git_the_other_sources_are_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    origin = GitOrigin(url="https://example.com/x", commit="1" * 40)
    with pytest.raises(ToolMissingError) as caught:
        get(pin("t" * 64, origin), store)
    assert caught.value.kind == "git-missing"
    assert "--source" in caught.value.hint


def test_without_git_another_origin_still_works(
    web: Site, store: Store, tmp_path: Path, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    web.routes["/a.tar.gz"] = Reply(body=github())
    git = GitOrigin(url="https://example.com/x", commit="1" * 40)
    listener = Listener()
    pinned = pin(tree, git, archive_origin(web.url("/a.tar.gz")))
    assert get(pinned, store, listener=listener).digest == tree
    assert "git-missing" in listener.warnings[0]


def test_a_maintainer_can_measure_every_kind_of_origin(
    web: Site, store: Store, shelf: Path, tmp_path: Path, tree: str
) -> None:
    index = index_pin(tree, shelf).origins[0]
    web.routes["/a.tar.gz"] = Reply(body=github())
    (git,) = repository(tmp_path / "repo", all_files())
    folder = PathOrigin(path=str(write(tmp_path / "mine", all_files())))
    for origin in (index, archive_origin(web.url("/a.tar.gz")), git, folder):
        facts = digest_of(origin, include=INCLUDE, store=store, reporter=Listener())
        assert facts.digest == tree
        assert facts.origin == origin.label
        assert facts.files == len(BUILT)
        assert facts.size == sum(map(len, BUILT.values()))
        assert facts.missing == ()


def test_measuring_tells_what_an_origin_lacks(store: Store, tmp_path: Path) -> None:
    folder = PathOrigin(path=str(write(tmp_path / "mine", OTHER)))
    facts = digest_of(folder, include=("README.md", "src"), store=store, reporter=Listener())
    assert facts.missing == ("src",)
    assert facts.files == 1


def test_a_wheel_has_no_folder_around_it(store: Store, shelf: Path, tree: str) -> None:
    from dataclasses import replace

    from transfer_kit import zip_of

    content = zip_of({f"vendor/llama.cpp/{n}": c for n, c in all_files().items()})
    name = "llama-1-py3-none-any.whl"
    (shelf / name).write_bytes(content)
    origin = replace(index_origin(content), filename=name)
    assert get(pin(tree, origin), store).digest == tree
