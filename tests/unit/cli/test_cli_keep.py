from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from cli_kit import Line, line
from llamawright.errors import ToolMissingError
from llamawright.pipeline import Pipeline
from llamawright.store import Store
from package_kit import plan
from reporter_kit import Told

__all__ = ["line"]

DAY_S = 86_400


def entry(store: Store, key: str, *, days: float, size: int = 3000) -> Path:
    """Put an entry into the store that was last used some days ago."""

    def make(dest: Path) -> None:
        dest.mkdir()
        (dest / "file").write_bytes(bytes(size))

    root = store.materialise("tools", key, make=make, reporter=Told(), label=key).root
    then = time.time() - days * DAY_S
    os.utime(store.root / "stamps" / "tools" / f"{key}.json", (then, then))
    return root


@pytest.fixture
def store(line: Line) -> Store:
    return Store(line.store)


def test_what_was_not_used_for_a_month_goes_and_is_counted(line: Line, store: Store) -> None:
    old, new = entry(store, "old", days=31), entry(store, "new", days=1)
    assert line("gc") == 0
    assert (old.exists(), new.exists()) == (False, True)
    assert "removed 1 entries, 2.9 KiB" in line.err
    assert line.out == ""


def test_days_may_be_named(line: Line, store: Store) -> None:
    kept = entry(store, "kept", days=3)
    assert line("gc", "--keep-days", "4") == 0
    assert kept.exists()
    assert line("gc", "--keep-days", "2.5") == 0
    assert not kept.exists()


def test_a_dry_run_says_the_same_and_removes_nothing(line: Line, store: Store) -> None:
    old = entry(store, "old", days=31)
    assert line("gc", "--dry-run", "--json") == 0
    told = json.loads(line.out)
    assert "would remove 1 entries, 2.9 KiB" in line.err
    assert old.exists()
    assert line("gc", "--json") == 0
    done = json.loads(line.out)
    assert not old.exists()
    assert (told["dry_run"], done["dry_run"]) == (True, False)
    assert told["removed"] == done["removed"]
    assert [(Path(r["path"]), r["size"]) for r in done["removed"]] == [(old, 3000)]


def test_what_a_run_holds_is_spared_and_named(line: Line, store: Store) -> None:
    old = entry(store, "old", days=31)
    with store.lock("tools-old", reporter=None):
        assert line("gc", "--json") == 0
        assert json.loads(line.out)["busy"] == ["tools-old"]
    assert "spared, a run holds it: tools-old" in line.err
    assert "removed 0 entries" in line.err
    assert old.exists()


def test_a_store_that_was_never_used_is_clean(line: Line) -> None:
    assert line("gc") == 0
    assert "removed 0 entries, 0 B" in line.err


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_fetch_says_what_can_be_built_offline_and_where_it_lies(
    form: tuple[str, ...], line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan()
    paths = {"source": line.root / "s", "model": line.root / "m"}
    monkeypatch.setattr(Pipeline, "plan", lambda _self: made)
    monkeypatch.setattr(Pipeline, "fetch_all", lambda _self, given: paths if given is made else {})
    assert line("fetch", "vulkan", *form) == 0
    assert f"{made.name} can now be built and verified with --offline" in line.err
    assert (json.loads(line.out) if form else line.out) == (
        {k: str(v) for k, v in paths.items()} if form else ""
    )


def test_fetch_without_the_tools_fails_as_a_build_would(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_self: Pipeline) -> None:
        raise ToolMissingError("no compiler", kind="no-compiler")

    monkeypatch.setattr(Pipeline, "plan", missing)
    assert line("fetch", "vulkan") == 4
    assert line.last == "llamawright: exit 4 (tool-missing: no-compiler)"
