"""Garbage collection: what was not used for a while, and what dead runs left behind."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import LockedError
from llamawright.paths import remove_tree
from llamawright.store import locks
from llamawright.store.files import MAKING, SCRATCH, size_of
from llamawright.store.journal import Journal

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One thing that was (or, in a dry run, would be) removed; ``size`` in bytes."""

    path: Path
    size: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GcReport:
    """What a collection did. ``busy`` names what was spared because a run holds it."""

    removed: tuple[Removal, ...]
    busy: tuple[str, ...]
    dry_run: bool

    @property
    def freed(self) -> int:
        """Return the bytes freed, or that would be."""
        return sum(r.size for r in self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    path: Path
    lock: str
    stamp: Path | None = None
    also: tuple[Path, ...] = ()

    @property
    def leftover(self) -> bool:
        """Whether this is an entry without a stamp, or one that was still being made."""
        return self.path.name.startswith(MAKING) or (
            self.stamp is not None and not self.stamp.exists()
        )

    @property
    def used(self) -> float:
        """Return the Unix time of the last use."""
        with contextlib.suppress(OSError):
            return (self.stamp or self.path).stat().st_mtime
        return 0.0


def collect(root: Path, *, keep_days: float, dry_run: bool) -> GcReport:
    """Remove candidates older than ``keep_days`` days; see ``Store.gc``.

    Nothing is removed that a living process locked or could have looked up: everything
    used since the oldest lock holder started is spared too, whatever ``keep_days`` says.
    """
    limit = time.time() - keep_days * DAY_S
    running = [holder.started for _name, holder in locks.holders(root / "locks")]
    removed: list[Removal] = []
    busy: list[str] = []
    for item in _candidates(root):
        if not (item.leftover or item.used <= limit):
            continue
        if not item.leftover and item.used > min([limit, *running]):
            busy.append(item.lock)
        elif removal := _remove(root, item, limit, dry_run=dry_run):
            removed.append(removal)
        else:
            busy.append(item.lock)
    return GcReport(removed=tuple(removed), busy=tuple(busy), dry_run=dry_run)


def remove_entry(root: Path, shelf: str, key: str) -> None:
    """Remove one entry: its stamp first, so that a crash in between leaves no evidence."""
    (root / "stamps" / shelf / f"{key}.json").unlink(missing_ok=True)
    remove_tree(root / shelf / key)
    remove_tree(root / "records" / shelf / key)


def _remove(root: Path, item: _Candidate, limit: float, *, dry_run: bool) -> Removal | None:
    try:
        with locks.hold(root / "locks", item.lock, reporter=None, wait_s=0, what="gc"):
            # Looked at again: a run may have finished or used it before the lock was ours.
            if not (item.leftover or item.used <= limit):
                return None
            days = (time.time() - item.used) / DAY_S
            reason = "left by a run that died" if item.leftover else f"unused for {days:.0f} days"
            removal = Removal(path=item.path, size=size_of(item.path), reason=reason)
            if not dry_run:
                for path in (*item.also, item.path):
                    remove_tree(path)
            return removal
    except LockedError:
        return None


def _candidates(root: Path) -> Iterator[_Candidate]:
    yield from _entries(root)
    for path in _sorted(root / "blobs" / "sha256", "*/*"):
        sha256 = path.name.partition(".")[0]
        yield _Candidate(path=path, lock=f"blob-{sha256}")
    for path in _sorted(root / "blobs" / "by-address", "*"):
        name = path.name.partition(".")[0]
        yield _Candidate(path=path, lock=f"blob-{name}")
    for path in _sorted(root / "work", "*"):
        yield _Candidate(path=path, lock=f"work-{path.name}")
    for path in _sorted(root / "logs", "*"):
        yield _Candidate(path=path, lock=f"logs-{path.name}")
    for path in Journal(root / "journal").settled():
        yield _Candidate(path=path, lock=f"journal-{path.name}")


def _entries(root: Path) -> Iterator[_Candidate]:
    """Yield the entries of all shelves; one without a stamp is a leftover.

    Only a folder that has stamps is a shelf: others are not for us to judge.
    """
    for shelf in _sorted(root / "stamps", "*"):
        for path in _sorted(root / shelf.name, "*"):
            key = path.name.removeprefix(MAKING).removesuffix(SCRATCH)
            making = path.name.startswith(MAKING)
            stamp = shelf / f"{key}.json"
            record = root / "records" / shelf.name / key
            yield _Candidate(
                path=path,
                lock=f"{shelf.name}-{key}",
                stamp=None if making else stamp,
                also=() if making else (stamp, record),
            )


def _sorted(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))
