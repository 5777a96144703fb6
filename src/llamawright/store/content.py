"""The store: where every finished thing stands, and the one way it gets there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from llamawright.model.ports import Reporter
from llamawright.paths import remove_tree
from llamawright.store import gc as collection
from llamawright.store import locks
from llamawright.store.files import (
    MAKING,
    flush_folder,
    flush_tree,
    move,
    read_json,
    scratch_beside,
    touch_used,
    write_json,
)
from llamawright.store.guard import disk_guard
from llamawright.store.journal import Journal

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WORK_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A finished entry. ``fresh``: made by this call, not found."""

    root: Path
    fresh: bool


class Store:
    """A content store below one folder, shared by any number of processes.

    An entry counts only when its stamp exists, and the stamp is written last: what a
    killed run left behind is never taken for a result.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def journal(self) -> Journal:
        """Return the journal of phases that can kill a machine."""
        return Journal(self.root / "journal")

    def blob(self, sha256: str) -> Path:
        """Return where the file of that sha256 stands, or would."""
        if not _SHA256.fullmatch(sha256):
            raise ValueError(f"not a sha256: {sha256!r}")
        return self.root / "blobs" / "sha256" / sha256[:2] / sha256

    def has_blob(self, sha256: str, size: int | None = None) -> bool:
        """Whether the blob is there with ``size`` bytes; its content was checked when stored."""
        path = self.blob(sha256)
        return path.is_file() and (size is None or path.stat().st_size == size)

    def shelf(self, shelf: str, key: str) -> Path:
        """Return where an entry stands, or would."""
        return self.root / _safe(shelf) / _safe(key)

    def is_stamped(self, shelf: str, key: str) -> bool:
        """Whether the entry was finished; a folder without a stamp is never evidence."""
        return self._stamp(shelf, key).is_file() and self.shelf(shelf, key).exists()

    def used(self, shelf: str, key: str) -> None:
        """Note that an entry was used now; ``gc`` goes by that."""
        touch_used(self._stamp(shelf, key))

    def materialise(
        self,
        shelf: str,
        key: str,
        *,
        make: Callable[[Path], None],
        check: Callable[[Path], None] | None = None,
        reporter: Reporter,
        label: str,
        wait_s: float | None = None,
    ) -> Entry:
        """Return the entry, making it when it is not finished yet.

        ``make`` gets a path beside the final one that does not exist and creates a file or
        folder there; ``check`` may refuse it by raising. Only then is it flushed, renamed
        into place and stamped. Of any number of processes exactly one makes it.
        """
        final = self.shelf(shelf, key)
        if self.is_stamped(shelf, key):
            self.used(shelf, key)
            return Entry(root=final, fresh=False)
        with disk_guard(self.root), self.lock(
            f"{shelf}-{key}", reporter=reporter, wait_s=wait_s, what=label
        ):  # fmt: skip
            if self.is_stamped(shelf, key):
                return Entry(root=final, fresh=False)
            self._make(shelf, key, make, check)
        return Entry(root=final, fresh=True)

    def _make(
        self,
        shelf: str,
        key: str,
        make: Callable[[Path], None],
        check: Callable[[Path], None] | None,
    ) -> None:
        final, stamp = self.shelf(shelf, key), self._stamp(shelf, key)
        beside = final.with_name(f"{MAKING}{final.name}")
        final.parent.mkdir(parents=True, exist_ok=True)
        # Made first: a folder without a place for stamps is no shelf to garbage collection.
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        # Both were left by a run that died: only a lock's holder gets here.
        remove_tree(beside)
        remove_tree(scratch_beside(beside))
        remove_tree(final)
        try:
            make(beside)
            if check:
                check(beside)
            flush_tree(beside)
        except BaseException:
            remove_tree(beside)
            raise
        finally:
            remove_tree(scratch_beside(beside))
        move(beside, final)
        flush_folder(final.parent)
        write_json(stamp, {"shelf": shelf, "key": key})

    def forget(self, shelf: str, key: str, *, reporter: Reporter | None = None) -> None:
        """Remove an entry, its stamp first, so that the next run makes it again."""
        with disk_guard(self.root), self.lock(f"{shelf}-{key}", reporter=reporter):
            collection.remove_entry(self.root, shelf, key)

    def read_record(self, shelf: str, key: str, name: str) -> dict[str, object] | None:
        """Return a small JSON record kept beside an entry, or ``None``."""
        return read_json(self._record(shelf, key, name))

    def write_record(self, shelf: str, key: str, name: str, value: Mapping[str, object]) -> None:
        """Keep a small JSON record beside an entry; readers see the old or the new one whole."""
        with disk_guard(self.root):
            write_json(self._record(shelf, key, name), value)

    @contextmanager
    def lock(
        self, name: str, *, reporter: Reporter | None, wait_s: float | None = None, what: str = ""
    ) -> Iterator[None]:
        """Hold the lock ``name`` of this store; raises ``LockedError`` after ``wait_s``."""
        with disk_guard(self.root):
            self._locks.mkdir(parents=True, exist_ok=True)
        with locks.hold(self._locks, name, reporter=reporter, wait_s=wait_s, what=what):
            yield

    def work(self, key: str) -> Path:
        """Return the mutable build tree of a key, kept for resume.

        The caller holds ``lock(work_lock(key))`` as long as anything writes into it.
        """
        path = self.root / "work" / _safe(key)[:_WORK_DIGITS]
        with disk_guard(self.root):
            path.mkdir(parents=True, exist_ok=True)
        touch_used(path)
        return path

    def logs(self, run_name: str) -> Path:
        """Return the folder of one run's logs, made when absent."""
        path = self.root / "logs" / _safe(run_name)
        with disk_guard(self.root):
            path.mkdir(parents=True, exist_ok=True)
        return path

    def gc(self, *, keep_days: float, dry_run: bool = False) -> collection.GcReport:
        """Remove what was not used for ``keep_days`` days and what dead runs left behind."""
        with disk_guard(self.root):
            return collection.collect(self.root, keep_days=keep_days, dry_run=dry_run)

    @property
    def _locks(self) -> Path:
        return self.root / "locks"

    def _stamp(self, shelf: str, key: str) -> Path:
        return self.root / "stamps" / _safe(shelf) / f"{_safe(key)}.json"

    def _record(self, shelf: str, key: str, name: str) -> Path:
        return self.root / "records" / _safe(shelf) / _safe(key) / f"{_safe(name)}.json"


def work_lock(key: str) -> str:
    """Return the name of the lock that guards ``Store.work(key)``."""
    return f"work-{_safe(key)[:_WORK_DIGITS]}"


def _safe(name: str) -> str:
    """Refuse names that could leave the store's folder: keys come from data files too."""
    if not _SAFE.fullmatch(name):
        raise ValueError(f"not a name for the store: {name!r}")
    return name
