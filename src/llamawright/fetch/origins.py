"""Each kind of origin turned into the same thing: the included files in a fresh folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from llamawright.errors import DownloadError, UsageError
from llamawright.fetch.git import check_out
from llamawright.fetch.tree import check_links, copy_included, included_files
from llamawright.model.ports import Reporter
from llamawright.model.recipe import ArchiveOrigin, GitOrigin, IndexOrigin, Origin, PathOrigin
from llamawright.paths import remove_tree
from llamawright.store import Store, scratch_beside
from llamawright.transfer import (
    DownloadRequest,
    UnpackLimits,
    download,
    download_index_file,
    unpack_archive,
)

# The source distribution of 2026 unpacks to 219 MB in 3,884 files.
LIMITS = UnpackLimits(total_bytes=2 << 30, members=50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placer:
    """Puts the included files of any origin into a folder that does not exist yet."""

    include: Sequence[str]
    store: Store
    offline: bool
    reporter: Reporter

    def place(self, origin: Origin, dest: Path) -> None:
        """Fetch an origin and place it; raises what its kind can fail with."""
        match origin:
            case IndexOrigin():
                blob = download_index_file(
                    origin, self.store, offline=self.offline, reporter=self.reporter
                )
                # A source distribution has one folder around everything, a wheel has none.
                wheel = origin.filename.endswith(".whl")
                self._unpack(blob, dest, origin.subdir, origin.filename, strip=0 if wheel else 1)
            case ArchiveOrigin():
                self._unpack(self._archive(origin), dest, origin.subdir, origin.url, strip=1)
            case GitOrigin():
                self._git(origin, dest)
            case PathOrigin():
                self._folder(Path(origin.path), dest)
            case _:
                assert_never(origin)

    def _unpack(self, blob: Path, dest: Path, subdir: str, what: str, *, strip: int) -> None:
        unpack_archive(
            blob, dest, strip=strip, only=subdir, include=self.include, limits=LIMITS, what=what
        )
        check_links(dest, included_files(dest, self.include))

    def _archive(self, origin: ArchiveOrigin) -> Path:
        request = DownloadRequest(
            urls=(origin.url,),
            size=origin.size,
            sha256=origin.sha256,
            label=origin.url.rpartition("/")[2],
            exact_size=origin.sha256 is not None,
        )
        return download(request, self.store, offline=self.offline, reporter=self.reporter)

    def _git(self, origin: GitOrigin, dest: Path) -> None:
        if self.offline:
            raise DownloadError(
                f"commit {origin.commit} is not in the store, and --offline forbids to fetch it",
                why=f"missing: commit {origin.commit} of {origin.url}",
                hint="run the same command once without --offline",
                kind="offline",
            )
        scratch = scratch_beside(dest)
        scratch.mkdir()
        try:
            tree = check_out(origin, scratch, reporter=self.reporter)
            copy_included(tree / origin.subdir, dest, self.include)
        finally:
            remove_tree(scratch)

    def _folder(self, folder: Path, dest: Path) -> None:
        if not folder.is_dir():
            raise UsageError(
                f"the source folder {folder} is not there",
                hint="name an existing folder: --source path:/folder",
                kind="source",
            )
        copy_included(folder, dest, self.include)
