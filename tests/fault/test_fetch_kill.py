"""A fetch killed by SIGKILL at several moments, and the run after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.fetch import fetch_source
from llamawright.model.recipe import GitOrigin, IndexOrigin, SourcePin
from llamawright.store import Store
from transfer_kit import Listener, python, sha, was_killed

KIT = Path(__file__).resolve().parent.parent / "unit" / "fetch"

PREPARE = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    import fetch_fakes as fakes
    from transfer_kit import Listener
    from llamawright.fetch import fetch_source, origins, source, git
    from llamawright.store import Store, content

    folder, kind, moment = Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    tree = fakes.expected_digest(folder)
    if kind == "index":
        packed = fakes.sdist()
        (folder / "links").mkdir(exist_ok=True)
        (folder / "links" / fakes.SDIST).write_bytes(packed)
        origin = fakes.index_origin(packed)
    else:
        (origin,) = fakes.repository(folder / "repo", fakes.all_files())
        print(origin.commit, flush=True)

    def die(*_args, **_more):
        os.kill(os.getpid(), signal.SIGKILL)

    places = {
        "while unpacking": (origins, "check_links"),
        "while copying": (origins, "copy_included"),
        "before the digest": (source, "digest_included"),
        "before the stamp": (content, "write_json"),
    }
    setattr(*places[moment], die)
    fetch_source(
        fakes.pin(tree, origin), source="auto", store=Store(folder / "store"), offline=False,
        reporter=Listener(),
    )
"""


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("index", "while unpacking"),
        ("index", "before the digest"),
        ("index", "before the stamp"),
        ("git", "while copying"),
        ("git", "before the digest"),
    ],
)
def test_a_killed_fetch_leaves_nothing_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, moment: str
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    killed = python(PREPARE, KIT, tmp_path, kind, moment)
    assert was_killed(killed), killed.stderr

    monkeypatch.syspath_prepend(str(KIT))
    import fetch_fakes as fakes

    tree = fakes.expected_digest(tmp_path)
    store = Store(tmp_path / "store")
    assert not store.is_stamped("sources", tree)
    origin: IndexOrigin | GitOrigin
    if kind == "index":
        packed = (tmp_path / "links" / fakes.SDIST).read_bytes()
        origin = fakes.index_origin(packed)
        assert origin.sha256 == sha(packed)
    else:
        origin = GitOrigin(url=(tmp_path / "repo").as_uri(), commit=killed.stdout.strip())
    pinned: SourcePin = fakes.pin(tree, origin)
    found = fetch_source(pinned, source="auto", store=store, offline=False, reporter=Listener())
    assert found.digest == tree
    assert [p.name for p in (store.root / "sources").iterdir()] == [tree]
