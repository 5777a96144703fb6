"""A real sshd on loopback: sent, run, brought back. By name.

``LLAMAWRIGHT_TEST_SSH`` is the address of a host that lets this user in without a question (it may
be this machine), ``LLAMAWRIGHT_TEST_ARTIFACT`` a packed file for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ADDRESS = os.environ.get("LLAMAWRIGHT_TEST_SSH", "")
ARTIFACT = os.environ.get("LLAMAWRIGHT_TEST_ARTIFACT", "")
# The tool takes every LLAMAWRIGHT_ variable for a setting.
OWN = {k: v for k, v in os.environ.items() if not k.startswith("LLAMAWRIGHT_TEST_")}


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    if not (ADDRESS and ARTIFACT):
        pytest.skip("LLAMAWRIGHT_TEST_SSH and LLAMAWRIGHT_TEST_ARTIFACT name no host and no file")
    return Path(shutil.copy(ARTIFACT, tmp_path))


def test_the_verdict_comes_back_and_the_second_run_sends_nothing(artifact: Path) -> None:
    for attempt in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-m", "llamawright", "verify", artifact, "--on", ADDRESS, "--json"],
            capture_output=True, text=True, timeout=900, check=False,
            env={**OWN, "PYTHONPATH": "src"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        verdict = json.loads(done.stdout)["verdict"]
        assert verdict["state"] in ("verified", "verified-software")
        pages = {p.name for p in artifact.parent.iterdir()}
        assert any(name.endswith(".verdict.json") for name in pages)
        assert attempt == "first" or "nothing is sent" in done.stderr
