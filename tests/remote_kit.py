"""Stand-ins for OpenSSH: "the other machine" is a folder, its shell is this machine's."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llamawright import process_guard
from llamawright.model.platform import Platform, System
from llamawright.model.remote import FarMachine, Host, Parcel

HOST = Host(name="far", user="me", port=2222)
LINUX = Platform(System.LINUX, "x86_64")

# What was asked is noted; FAR_SSH or FAR_SFTP hold what is said instead, and the status.
SSH = """#!{python}
import os, pathlib, subprocess, sys
home = pathlib.Path({home!r})
with (home / "calls").open("a") as calls:
    calls.write("ssh " + " ".join(sys.argv[1:-1]) + "\\n")
trouble = home / "ssh-says"
if trouble.exists():
    status, _, text = trouble.read_text().partition(" ")
    sys.stderr.write(text + "\\n")
    sys.exit(int(status))
env = dict(os.environ, HOME=str(home), XDG_CACHE_HOME=str(home / "cache"), PATH={path!r})
sys.stdout.write("Welcome to far\\n")
sys.stdout.flush()
sys.exit(subprocess.run(["/bin/sh", "-c", sys.argv[-1]], env=env, cwd=home).returncode)
"""
SFTP = """#!{python}
import pathlib, shlex, shutil, sys
home = pathlib.Path({home!r})
trouble = home / "sftp-says"
if trouble.exists():
    status, _, text = trouble.read_text().partition(" ")
    sys.stderr.write(text + "\\n")
    sys.exit(int(status))
batch = pathlib.Path(sys.argv[sys.argv.index("-b") + 1])
for line in batch.read_text().splitlines():
    verb, *words = shlex.split(line)
    with (home / "calls").open("a") as calls:
        calls.write("sftp " + verb + " " + pathlib.Path(words[0]).name + "\\n")
    if verb == "put":
        shutil.copyfile(words[0], words[1])
    elif verb == "rename":
        pathlib.Path(words[0]).rename(words[1])
    elif pathlib.Path(words[0]).is_file():
        shutil.copyfile(words[0], words[1])
    else:
        sys.stderr.write("File not found\\n")
        sys.exit(1)
"""
# A tool that tells, leaves a verdict, and ends as it is told to. LACKS: without a folder of
# packages its environment cannot be made. STARTS: it runs something that it does not end itself.
BOOTSTRAP = """
import json, os, subprocess, sys, time
if os.environ.get("STARTS"):
    subprocess.Popen(["sleep", os.environ["STARTS"]], stderr=subprocess.DEVNULL)
links = os.environ.get("PIP_FIND_LINKS", "")
here = os.path.dirname(os.path.abspath(__file__))
packages = sorted(os.listdir(os.path.join(here, links))) if links else []
if os.environ.get("LACKS") and not packages:
    sys.stderr.write("llamawright: exit 6 (download: environment)\\n")
    sys.exit(6)
sys.stderr.write("proving " + " ".join(sys.argv[1:]) + "\\n")
sys.stderr.write(os.environ.get("SAYS", ""))
sys.stderr.flush()
time.sleep(float(os.environ.get("LINGER", "0")))
open("x.verdict.json", "w").write("{}")
open("other.verdict.json", "w").write("{}")
seen = sorted(os.listdir("."))
print(json.dumps({"code": 0, "argv": sys.argv[1:], "seen": seen, "packages": packages}))
sys.exit(int(os.environ.get("ENDS", "0")))
"""


@dataclass
class Far:
    """The folder that plays the other machine."""

    home: Path
    programs: Path
    patch: pytest.MonkeyPatch
    sent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home.mkdir()
        self.programs.mkdir()
        here = self.programs / "python3"
        here.symlink_to(sys.executable)
        path = f"{self.programs}:/usr/bin:/bin"
        for name, text in (("ssh", SSH), ("sftp", SFTP)):
            script = self.programs / name
            script.write_text(text.format(python=sys.executable, home=str(self.home), path=path))
            script.chmod(0o755)
        self.patch.setenv("PATH", path)

    @property
    def root(self) -> Path:
        return self.home / "cache" / "llamawright" / "remote"

    @property
    def calls(self) -> list[str]:
        return (self.home / "calls").read_text().splitlines()

    def puts(self) -> int:
        return sum(line.startswith("sftp put") for line in self.calls)

    def trouble(self, program: str, status: int, text: str) -> None:
        (self.home / f"{program}-says").write_text(f"{status} {text}")


def parcel(path: Path, data: bytes) -> Parcel:
    """Write a file and return it as something to send."""
    from llamawright.remote.tool import parcel_of

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return parcel_of(path)


def checkout(root: Path) -> Path:
    """Return a checkout whose bootstrap is the stand-in for the tool."""
    (root / "src" / "llamawright" / "__pycache__").mkdir(parents=True)
    (root / "src" / "llamawright" / "__init__.py").write_text("")
    (root / "src" / "llamawright" / "__pycache__" / "x.pyc").write_text("")
    (root / "bootstrap.py").write_text(BOOTSTRAP)
    shutil.copy(process_guard.__file__, root / "src" / "llamawright")
    return root


def machine(**told: object) -> FarMachine:
    """Return a machine that can do it, changed as told."""
    base: dict[str, object] = {
        "python": "3.12.3", "system": "linux", "machine": "x86_64", "folder": "/c",
        "free": 50 << 30, "whole": frozenset(), "pieces": (), "libc": "glibc 2.36",
    }  # fmt: skip
    return FarMachine(**{**base, **told})  # type: ignore[arg-type]
