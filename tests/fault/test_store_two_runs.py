"""Several processes that want the same entry at the same time."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

from llamawright.store import Store
from transfer_kit import PROJECT, Listener

CHILD = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from transfer_kit import Listener
    from llamawright.store import Store

    root = Path(sys.argv[1])
    listener = Listener()

    def make(dest):
        with (root / "made").open("a") as log:
            log.write("x")
        dest.mkdir()
        time.sleep(0.6)
        (dest / "file").write_text("whole")

    while not (root / "go").exists():
        time.sleep(0.005)
    entry = Store(root / "store").materialise(
        "shelf", "key", make=make, reporter=listener, label="the slow entry"
    )
    print(entry.fresh, (entry.root / "file").read_text(), *listener.infos, sep="|")
""")


def test_processes_that_want_the_same_make_it_once(tmp_path: Path) -> None:
    path = f"{PROJECT / 'src'}:{PROJECT / 'tests'}"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)],
            env={"PYTHONPATH": path, "PATH": ""},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    time.sleep(0.3)
    (tmp_path / "go").touch()
    told = [run.communicate(timeout=30)[0].strip().split("|") for run in runs]
    assert (tmp_path / "made").read_text() == "x"
    assert sorted(t[0] for t in told) == ["False", "False", "True"]
    assert {t[1] for t in told} == {"whole"}


def test_who_waits_for_another_process_reads_its_name(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from llamawright.store import Store
        with Store(Path(sys.argv[1])).lock("shelf-key", reporter=None, what="build of vulkan"):
            print("held", flush=True)
            time.sleep(0.7)
    """)
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"PYTHONPATH": str(PROJECT / "src"), "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    listener = Listener()
    Store(tmp_path).materialise(
        "shelf", "key", make=Path.mkdir, reporter=listener, label="x", wait_s=20
    )
    other.wait(10)
    other.stdout.close()
    assert len(listener.infos) == 1
    assert f"process {other.pid} on" in listener.infos[0]
    assert "build of vulkan" in listener.infos[0]
