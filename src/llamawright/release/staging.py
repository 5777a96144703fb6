"""Steps that are done once: each in a folder of its own, which appears by one rename.

A folder that is there was finished, its bytes flushed before; what a killed run was making
has another name and is removed. Its files are hashed again before they are believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from llamawright import codec
from llamawright.digest import sha256_file
from llamawright.paths import remove_tree
from llamawright.store import disk_guard
from llamawright.store.files import flush_folder, flush_tree, move

MAKING = "making-"
RECORD = ".record.json"
OUTCOME = ".outcome.json"
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file as it was when its step ended; ``size`` in bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """What a step was made for, and every file that it left."""

    key: str
    files: tuple[KeptFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged(Generic[T_co]):
    """A finished step; ``fresh`` when this run did it."""

    folder: Path
    outcome: T_co
    files: tuple[KeptFile, ...]
    fresh: bool

    def sha256(self, name: str) -> str:
        """Return the digest of one of its files, empty when there is none of that name."""
        return next((f.sha256 for f in self.files if f.name == name), "")


@dataclass(frozen=True, slots=True)
class Staging:
    """The folder of a release's steps."""

    root: Path

    def step(
        self,
        name: str,
        key: str,
        kind: type[T],
        make: Callable[[Path], T],
        *,
        keep: Callable[[T], bool] | None = None,
    ) -> Staged[T]:
        """Return a finished step, doing it when it is not there whole and for the same ``key``.

        One whose outcome is not worth to ``keep`` is done again.
        """
        final = self.root / name
        with disk_guard(self.root):
            known = _finished(final, key, kind)
            if known is not None and (keep is None or keep(known.outcome)):
                return known
            making = self.root / f"{MAKING}{name}"
            remove_tree(making)
            making.mkdir(parents=True)
            try:
                outcome = make(making)
                record = StepRecord(key=key, files=kept_files(making))
                (making / OUTCOME).write_text(codec.encode(outcome), encoding="utf-8")
                (making / RECORD).write_text(codec.encode(record), encoding="utf-8")
                flush_tree(making)
            except BaseException:
                remove_tree(making)
                raise
            remove_tree(final)
            move(making, final)
            flush_folder(self.root)
        return Staged(folder=final, outcome=outcome, files=record.files, fresh=True)


def kept_files(folder: Path) -> tuple[KeptFile, ...]:
    """Return every plain file directly in a folder, hashed, in the order of names."""
    return tuple(
        KeptFile(name=p.name, size=p.stat().st_size, sha256=sha256_file(p))
        for p in sorted(folder.iterdir())
        if p.is_file() and p.name not in {RECORD, OUTCOME}
    )


def _finished(folder: Path, key: str, kind: type[T]) -> Staged[T] | None:
    try:
        text = (folder / RECORD).read_text(encoding="utf-8")
        record = codec.decode_text(StepRecord, text, what=str(folder))
        if record.key != key or kept_files(folder) != record.files:
            return None
        said = (folder / OUTCOME).read_text(encoding="utf-8")
        outcome = codec.decode_text(kind, said, what=str(folder))
    except (OSError, ValueError):
        return None
    return Staged(folder=folder, outcome=outcome, files=record.files, fresh=False)
