"""Processes that a program leaves behind: found by a mark in their environment, and ended.

A program that forks twice and begins a session of its own is in no group and has no parent
that leads to it. What it was started with, it inherits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from uuid import uuid4

import psutil

MARK = "LLAMAWRIGHT_RUN"
# One that forks faster than it is looked for is given up after so many looks.
MOST_LOOKS = 5
PATIENCE_S = 1.0


@contextlib.contextmanager
def no_strays() -> Iterator[dict[str, str]]:
    """Give the variable that marks a run, and end whatever still carries it afterwards."""
    token = uuid4().hex
    try:
        yield {MARK: token}
    finally:
        end_marked(token)


def end_marked(token: str) -> int:
    """End every process that was started with this mark; returns how many there were."""
    ended = 0
    for _ in range(MOST_LOOKS):
        found = [p for p in psutil.process_iter() if p.pid != os.getpid() and _carries(p, token)]
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if not found:
            break
        ended += len(found)
        psutil.wait_procs(found, timeout=PATIENCE_S)
    return ended


def _carries(process: psutil.Process, token: str) -> bool:
    """Whether a process has the mark: one of another user's cannot be read and is not ours."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get(MARK) == token and process.status() != psutil.STATUS_ZOMBIE
    return False
