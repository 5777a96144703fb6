"""Where things live: the user's cache, the project's data files, the work trees."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

STORE_VARIABLE = "LLAMAWRIGHT_STORE"


def store_root() -> Path:
    """Return the store's folder: ``$LLAMAWRIGHT_STORE`` or the user's cache folder."""
    named = os.environ.get(STORE_VARIABLE)
    return Path(named).expanduser().absolute() if named else user_cache_path("llamawright")


def data_root() -> Path:
    """Return the folder that holds recipes, patches and toolchains: checkout or wheel."""
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent
    return checkout if (checkout / "recipes").is_dir() else package / "data"


def remove_tree(root: Path) -> None:
    """Remove a folder whatever its modes; a missing one is fine."""
    if root.is_symlink() or root.is_file():
        root.unlink()
    elif root.exists():
        shutil.rmtree(root, onerror=_unlock)


def _unlock(function: Callable[[str], object], path: str, _error: object) -> None:
    parent = Path(path).parent
    parent.chmod(parent.stat().st_mode | stat.S_IRWXU)
    Path(path).chmod(stat.S_IRWXU)
    function(path)
