"""SIGKILL while an artifact is packed: the next run finds nothing of it and makes the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.package import pack, packed_before
from llamawright.transfer.opened import open_artifact
from package_kit import Bench
from transfer_kit import python, was_killed

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from llamawright.package import packing
    from package_kit import Bench

    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    where = sys.argv[2]
    real = getattr(packing, where)
    if sys.argv[3] == "after":
        def die_after(*args, **kwargs):
            real(*args, **kwargs)
            die()
        setattr(packing, where, die_after)
    else:
        setattr(packing, where, die)
    bench = Bench(Path(sys.argv[1]))
    patched, host, module = bench.trees()
    packing.pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
"""


@pytest.mark.parametrize(
    ("where", "when"),
    [("write_archive", "before"), ("write_archive", "after"), ("open_artifact", "before"),
     ("open_artifact", "after"), ("_stored", "before")],
)  # fmt: skip
def test_killed_anywhere_the_rerun_gives_the_same(tmp_path: Path, where: str, when: str) -> None:
    expected = Bench(tmp_path / "calm")
    patched, host, module = expected.trees()
    calm = pack(expected.plan, patched, host, module, store=expected.store, reporter=expected.told)
    done = python(KILLED, tmp_path / "killed", where, when)
    assert was_killed(done), done.stderr
    bench = Bench(tmp_path / "again")
    patched, host, module = bench.trees()
    store = Bench(tmp_path / "killed").store
    known = packed_before(bench.plan, store)
    assert (known is not None) == (where == "_stored")
    artifact = pack(bench.plan, patched, host, module, store=store, reporter=bench.told)
    assert artifact.sha256 == calm.sha256
    assert open_artifact(artifact.path, tmp_path / "out") == calm.manifest
    shelf = store.root / "artifacts"
    assert [p.name for p in shelf.iterdir()] == [artifact.path.parent.name]
    assert len(list(artifact.path.parent.iterdir())) == 3
