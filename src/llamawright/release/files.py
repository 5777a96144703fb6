"""Files that stand at two places of one volume without taking the room twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link_or_copy(source: Path, dest: Path) -> None:
    """Give a file a second name, or a copy where the volume has no links."""
    try:
        os.link(source, dest)
    except OSError:
        shutil.copyfile(source, dest)
