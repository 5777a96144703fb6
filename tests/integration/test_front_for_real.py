"""The front door with the real uv, pip and index: an environment from nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bootstrap
import pytest

pytestmark = pytest.mark.slow


def door(store: Path, path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "LLAMAWRIGHT_STORE": str(store), "PATH": path}
    return subprocess.run(
        [sys.executable, str(bootstrap.CHECKOUT / "bootstrap.py"), *arguments],
        check=False,
        cwd=store.parent,
        env=env,
        text=True,
        capture_output=True,
        timeout=600,
    )


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_an_environment_from_nothing_and_then_without_anything(tmp_path: Path, tool: str) -> None:
    uv = shutil.which("uv")
    if tool == "uv" and uv is None:
        pytest.skip("no uv on this machine")
    path = os.pathsep.join([str(Path(uv).parent)] if tool == "uv" and uv else [])
    store = tmp_path / "a store"
    first = door(store, f"{path}{os.pathsep}/usr/bin{os.pathsep}/bin", "llamawright", "--version")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("llamawright ")
    assert "done in" in first.stderr
    second = door(store, "/nowhere", "llamawright", "--version")
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "making" not in second.stderr
