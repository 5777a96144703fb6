"""Fake ninja and a compile job for it: failures without any compiler."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from llamawright.build.ninja import Compile
from llamawright.process import base_environment

# Each run of the fake counts itself in a file, so that a script can act by the try.
PRELUDE = """#!{python} -S
import os, pathlib, subprocess, sys, time
if "-t" in sys.argv:
    sys.exit(0)
here = pathlib.Path({folder!r})
jobs = sys.argv[sys.argv.index("-j") + 1]
with (here / "tries").open("a") as stream:
    stream.write(jobs + "\\n")
attempt = len((here / "tries").read_text().split())
"""


def fake_ninja(folder: Path, body: str) -> Path:
    """Write a program that behaves as ``body`` says; it sees ``attempt`` and ``jobs``."""
    program = folder / "ninja"
    program.write_text(PRELUDE.format(python=sys.executable, folder=str(folder)) + body)
    program.chmod(0o755)
    return program


def tries(folder: Path) -> list[str]:
    """Return the number of jobs of each run so far."""
    path = folder / "tries"
    return path.read_text().split() if path.exists() else []


def job(folder: Path, body: str, *, stall_s: float = 60.0, total_s: float = 60.0) -> Compile:
    """Return a compile by a fake ninja."""
    return Compile(
        ninja=fake_ninja(folder, body), build=folder, targets=("all",),
        env=base_environment({"PATH": os.environ["PATH"]}), log=folder / "compile.log",
        label="compiling the host", stall_s=stall_s, total_s=total_s,
    )  # fmt: skip
