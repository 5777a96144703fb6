"""The build folder of a key: gone on with when it is whole and the same, else made anew."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import digest_data
from llamawright.errors import DiskError
from llamawright.model.platform import Backend
from llamawright.paths import STORE_VARIABLE, remove_tree, write_whole

MARK = "configured.json"
MIB = 1 << 20
# Estimated from two build folders of gcc 12.2 (105 and 313 MB) with room to spare. A
# module's sources are its shaders as text.
NEEDED = {Backend.CPU: 300 * MIB}
NEEDED_MODULE = 700 * MIB
# The compiler's temporary files: the assembler text of the largest unit.
NEEDED_TEMP = 150 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFolder:
    """A mutable build folder with the key and command line it was configured for.

    Its mark is written when a configure passed every gate, and removed before anything that
    could leave it half configured: a killed run's folder either counts whole or not at all.
    """

    root: Path
    key: str

    @property
    def build(self) -> Path:
        """Return CMake's binary folder."""
        return self.root / "build"

    def source(self, tree: Path) -> Path:
        """Return a name for the source tree that its digest is no part of.

        Compiler caches hash the paths of what they compile: under a name of its own, a tree
        with one more patch would share no object with the one before. Where no link can be
        made (Windows without the right to), the tree's own name does.
        """
        link = self.root / "source"
        if link.is_symlink() and link.readlink() == tree:
            return link
        link.unlink(missing_ok=True)
        try:
            link.symlink_to(tree, target_is_directory=True)
        except OSError:
            return tree
        return link

    def log(self, name: str) -> Path:
        """Return the path of one step's log."""
        return self.root / f"{name}.log"

    def whole_for(self, arguments: tuple[str, ...]) -> bool:
        """Whether the folder was configured completely for this key and command line."""
        try:
            marked = json.loads((self.root / MARK).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        files = (self.build / "CMakeCache.txt", self.build / "build.ninja")
        same: bool = marked == self._mark(arguments)
        return same and all(f.is_file() and f.stat().st_size for f in files)

    def mark(self, arguments: tuple[str, ...]) -> None:
        """Note that the folder is configured; the caller has checked that it is."""
        write_whole(self.root / MARK, json.dumps(self._mark(arguments)))

    def wipe(self) -> None:
        """Remove everything that was configured or compiled; logs stay."""
        (self.root / MARK).unlink(missing_ok=True)
        remove_tree(self.build)

    def _mark(self, arguments: tuple[str, ...]) -> dict[str, str]:
        return {"key": self.key, "arguments": digest_data(arguments)}


def check_room(folder: Path, backend: Backend, *, resumed: bool) -> None:
    """Raise ``DiskError`` when the build cannot fit: in minutes rather than before the end.

    The store's volume holds build folder, cache and result; the compiler's temporary files
    may be on another one.
    """
    needed = NEEDED.get(backend, NEEDED_MODULE) // (4 if resumed else 1)
    for place, least in ((folder, needed), (Path(tempfile.gettempdir()), NEEDED_TEMP)):
        free = shutil.disk_usage(place).free
        if free < least:
            raise DiskError(
                f"there is not enough room in {place}",
                why=f"{free // MIB} MiB are free, the build needs {least // MIB} MiB",
                hint=f"free space with `llamawright gc`, or set {STORE_VARIABLE} (store) or "
                "TMPDIR (temporary files) to a larger volume",
                kind="disk-full",
            )
