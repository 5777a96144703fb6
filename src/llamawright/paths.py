"""Where things live: the user's cache, the project's data files, the work trees."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

STORE_VARIABLE = "LLAMAWRIGHT_STORE"
LAST_WRITE_S = 0.3


def store_root() -> Path:
    """Return the store's folder: ``$LLAMAWRIGHT_STORE`` or the user's cache folder."""
    named = os.environ.get(STORE_VARIABLE)
    return Path(named).expanduser().absolute() if named else user_cache_path("llamawright")


def data_root() -> Path:
    """Return the folder that holds recipes, patches and toolchains: checkout or wheel."""
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent
    return checkout if (checkout / "recipes").is_dir() else package / "data"


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that readers see the old content or the new, and nothing is left.

    It is written under a name of this process beside its place and renamed. What must
    survive a power cut goes through the store instead, which also flushes it to the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def remove_tree(root: Path) -> None:
    """Remove a folder whatever its modes; a missing one is fine."""
    if root.is_symlink() or root.is_file():
        root.unlink()
    elif root.exists():
        try:
            shutil.rmtree(root, onerror=_unlock)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            # A program of a killed run may have written its last file there meanwhile.
            time.sleep(LAST_WRITE_S)
            shutil.rmtree(root, onerror=_unlock)


def _unlock(function: Callable[[str], object], path: str, _error: object) -> None:
    parent = Path(path).parent
    parent.chmod(parent.stat().st_mode | stat.S_IRWXU)
    Path(path).chmod(stat.S_IRWXU)
    function(path)
