"""The patch stage dies or runs twice: the next run gives the same tree, whole."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llamawright.digest import tree_digest
from llamawright.errors import DiskError
from patching_kit import World

FIVE = ("src/a.cpp", "line 5\n", "line five\n")
ROOT = Path(__file__).resolve().parents[2]
CHILD = """
import shutil, sys, time
from pathlib import Path
from patching_kit import World
world = World.__new__(World)
root = Path(sys.argv[1])
world.reopen(root)
if sys.argv[2] == "hang":
    real = shutil.copytree
    def hang(*args, **kwargs):
        real(*args, **kwargs)
        print("copied", flush=True)
        time.sleep(60)
    shutil.copytree = hang
print(world.apply().digest, flush=True)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def child(root: Path, how: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), how],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_run_killed_amid_the_copy_leaves_nothing_to_trust(world: World, tmp_path: Path) -> None:
    world.change("one", FIVE)
    victim = child(tmp_path, "hang")
    assert victim.stdout is not None
    assert victim.stdout.readline() == "copied\n"
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(10)
    victim.stdout.close()
    left = list((world.store.root / "patched").iterdir())
    assert [p.name.startswith(".making-") for p in left] == [True]
    tree = world.apply()
    assert tree.digest == tree_digest(tree.root)
    assert "line five\n" in (tree.root / "src/a.cpp").read_text()
    assert list((world.store.root / "patched").iterdir()) == [tree.root]


def test_two_runs_at_once_make_one_tree(world: World, tmp_path: Path) -> None:
    world.change("one", FIVE)
    both = [child(tmp_path, "go"), child(tmp_path, "go")]
    digests = {p.communicate(timeout=30)[0] for p in both}
    assert [p.returncode for p in both] == [0, 0]
    assert digests == {f"{world.apply().digest}\n"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_disk_is_told_and_leaves_no_tree(
    world: World, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    world.change("one", FIVE)
    series, before = world.series, tree_digest(world.source)

    def full(_path: Path, _data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(DiskError):
            world.apply()
    assert not list((world.store.root / "patched").iterdir())
    assert tree_digest(world.source) == before
    assert world.series == series
    assert world.apply().applied == ("0001-one",)


def test_an_interrupted_run_cleans_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.change("one", FIVE)

    def interrupt(_path: Path, _data: bytes) -> int:
        raise KeyboardInterrupt

    started = time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", interrupt)
        with pytest.raises(KeyboardInterrupt):
            world.apply()
    assert not list((world.store.root / "patched").iterdir())
    assert time.monotonic() - started < 10
