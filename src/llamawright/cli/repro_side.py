"""One side of a double build: sets what only the process itself can set, then builds.

Started as ``python -m llamawright.cli.repro_side UMASK HOSTNAME VERB ...``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Sequence

KEPT = "-"
OCTAL = 8


def begin(arguments: Sequence[str]) -> list[str]:
    """Set the umask and the host's name, and return the command line that is left.

    The name is only set in a namespace of its own, which ``unshare --uts`` makes; where that
    is refused, the launcher passes ``-`` and the name stays.
    """
    umask, hostname, *rest = arguments
    os.umask(int(umask, OCTAL))
    if hostname != KEPT:
        # A side that keeps its name compares less, and is no failure: the report tells it.
        with contextlib.suppress(OSError, AttributeError):
            socket.sethostname(hostname)
    return rest


def main(arguments: Sequence[str]) -> int:
    """Run one command line of llamawright as this side."""
    rest = begin(arguments)
    from llamawright.cli import main as run  # noqa: PLC0415 - after the umask is set

    return run(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
