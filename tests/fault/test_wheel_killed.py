"""SIGKILL while a wheel is made: the folder has the old wheel or none, and a rerun the same."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import DiskError
from llamawright.model.artifact import Artifact
from llamawright.package import pack
from llamawright.package.wheels import build as build_module
from llamawright.package.wheels import build_wheel
from package_kit import Bench
from transfer_kit import python, was_killed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the artifacts are Linux's")
KILLED = """
    import os, signal, sys
    from pathlib import Path
    from llamawright.package import read_artifact
    from llamawright.package.wheels import build
    from llamawright.store import Store
    from reporter_kit import Told

    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(build, sys.argv[4], die)
    artifact = read_artifact(Path(sys.argv[1]))
    build.build_wheel(
        artifact, Path(sys.argv[2]), store=Store(Path(sys.argv[3])), reporter=Told()
    )
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    bench = Bench(tmp_path_factory.mktemp("made"))
    patched, host, module = bench.trees()
    return pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)


@pytest.fixture(scope="module")
def calm(artifact: Artifact, tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("calm")
    bench = Bench(root / "b")
    return build_wheel(artifact, root, store=bench.store, reporter=bench.told).sha256


@pytest.mark.parametrize("where", ["rewrite", "require_claim"])
def test_killed_anywhere_the_rerun_gives_the_same(
    artifact: Artifact, calm: str, tmp_path: Path, where: str
) -> None:
    dist, bench = tmp_path / "dist", Bench(tmp_path / "b")
    done = python(KILLED, artifact.path, dist, bench.store.root, where)
    assert was_killed(done), done.stderr
    assert not list(dist.glob("*.whl"))
    again = build_wheel(artifact, dist, store=bench.store, reporter=bench.told)
    assert again.sha256 == calm == sha256_file(again.path)
    assert {p.suffix for p in dist.iterdir()} == {".whl", ".sha256"}


def test_a_full_disk_leaves_the_old_wheel(
    artifact: Artifact, calm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path / "b")
    first = build_wheel(artifact, tmp_path / "dist", store=bench.store, reporter=bench.told)

    def full(*_words: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build_module, "rewrite", full)
    with pytest.raises(DiskError):
        build_wheel(artifact, tmp_path / "dist", store=bench.store, reporter=bench.told)
    assert sha256_file(first.path) == calm
    assert not list((bench.store.root / "work").glob("wheel-*"))
