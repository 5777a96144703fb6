"""Detection when it is stopped, and when there is no room for its short-lived files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from llamawright.detect import survey
from llamawright.errors import DiskError
from machine_kit import stand_up, write_program
from resolve_kit import request

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from pathlib import Path
from machine_kit import Machine
from resolve_kit import request
from llamawright.detect import survey
from llamawright.process import kill_all
root = Path(sys.argv[1])
machine = Machine(root=root, env={"PATH": f"{root}/bin"}, about={"limit_s": 60})
print("started", flush=True)
survey.survey(request(), machine.surroundings(), store_tools=root / "tools")
"""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a detection of three tools that never answer, in a process of its own."""
    for name in ("cmake", "ninja", "git"):
        write_program(tmp_path / "bin" / name, "#!/bin/sh\nexec /bin/sleep 300\n")
    env = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}/tests"}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
        start_new_session=True,
    )
    yield child
    child.kill()
    child.wait()


def test_a_stopped_detection_leaves_no_process(hanging: subprocess.Popen[str]) -> None:
    assert hanging.stdout is not None
    assert hanging.stdout.readline() == "started\n"
    parent = psutil.Process(hanging.pid)
    limit = time.monotonic() + 10
    while len(parent.children(recursive=True)) < 3 and time.monotonic() < limit:
        time.sleep(0.05)
    children = parent.children(recursive=True)
    assert len(children) >= 3
    start = time.monotonic()
    os.kill(hanging.pid, signal.SIGINT)
    assert hanging.wait(15) != 0
    assert time.monotonic() - start < 10
    _, alive = psutil.wait_procs(children, timeout=3)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_a_temporary_folder_without_room_is_told_as_the_disks_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = stand_up("compilers", "plain", tmp_path)

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(DiskError) as caught:
        survey.survey(request(), machine.surroundings(), store_tools=tmp_path / "tools")
    assert caught.value.kind == "disk-full"


def test_a_tool_that_vanishes_while_it_is_looked_at_is_refused(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    write_program(tmp_path / "usr/bin/glslc", '#!/bin/sh\n/bin/rm -f "$0"\necho shaderc v2025.2\n')
    seen = survey.survey(request(), machine.surroundings(), store_tools=tmp_path / "tools")
    assert not [f for f in seen.found if f.path.name == "glslc"]
    assert [r for r in seen.rejected if r.name == "glslc" and "does not exist" in r.reason]


def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    for name in ("debian12", "glslc-139", "glslc-believes-all"):
        machine = stand_up("vulkan", name, tmp_path / name)
        stand_up("compilers", "plain", tmp_path / name)
        survey.survey(request(), machine.surroundings(), store_tools=tmp_path / "tools")
    assert list(own.iterdir()) == []
