"""End what a killed parent left running. A program of its own, standard library only.

The parent writes ``+PID`` for each long child it starts (the leader of a process group of its
own) and ``-PID`` when that has ended. When the pipe closes with groups still noted, the parent
was killed: they are ended at once, so that no compiler writes into a folder that the next run
has already taken over.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def left_over(lines: Iterable[str]) -> set[int]:
    """Return the process groups that were noted and not taken back when the lines end."""
    groups: set[int] = set()
    for line in lines:
        number = line[1:].strip()
        if number.isdecimal():
            (groups.add if line[0] == "+" else groups.discard)(int(number))
    return groups


def main() -> int:
    """Wait for the parent's end, whatever is sent to its whole terminal meanwhile."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    for group in left_over(sys.stdin):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
