"""What a run finds prepared: the system's page cache and the driver's cache.

Emptying the whole page cache is root's alone (``/proc/sys/vm/drop_caches``). Anybody may tell
Linux that a file's pages are not needed any more; they go unless some process maps them or
they were never written to the disk. So it is looked at how much of the file is still there.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from llamawright.paths import remove_tree

PROBES = 64
# Where drivers keep compiled shaders and kernels, all of it below the side's own folder.
CACHES = ("XDG_CACHE_HOME", "HOME", "CUDA_CACHE_PATH")


def give_back(path: Path) -> float | None:
    """Ask the system to forget a file's pages; return the share still in memory, if known."""
    if not hasattr(os, "posix_fadvise"):
        return None
    with path.open("rb") as stream:
        handle = stream.fileno()
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        share = resident(handle, path.stat().st_size)
        # To look at a page may fetch its neighbours again.
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    return share


def resident(handle: int, size: int) -> float | None:
    """Return the share of a file that can be read without waiting for the disk.

    ``RWF_NOWAIT`` (Linux 4.14) fails where it would have to wait. ``None``: cannot be told.
    """
    flag = getattr(os, "RWF_NOWAIT", 0)
    if not flag or not size:
        return None
    there = 0
    for number in range(PROBES):
        try:
            there += os.preadv(handle, [bytearray(1)], size * number // PROBES, flag) > 0
        except OSError as error:
            if error.errno != errno.EAGAIN:
                return None
    return there / PROBES


def fresh_caches(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return a side's environment with empty driver caches in ``folder``, which is emptied.

    What the driver has kept for the side's other runs stays: they would have to compile anew.
    """
    remove_tree(folder)
    places = {name: folder / name.lower() for name in CACHES if name in env}
    for place in places.values():
        place.mkdir(parents=True)
    return {**env, **{name: str(place) for name, place in places.items()}}
