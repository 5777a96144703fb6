"""Strict unpacking: the whole archive is judged before the first byte is written."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import DownloadError
from llamawright.paths import remove_tree
from llamawright.store import DISK_ERRORS, disk_guard
from llamawright.transfer.containers import Container, copy_bounded, open_container
from llamawright.transfer.members import (
    Kind,
    Member,
    UnpackLimits,
    judge,
    select,
    unsafe,
)

_NO_TIME = 0.0
_WRITERS = 2
_BATCH = 128
_SMALL = 1 << 18


def unpack_archive(
    path: Path,
    dest: Path,
    *,
    strip: int = 0,
    only: str = "",
    include: Sequence[str] = (),
    limits: UnpackLimits | None = None,
    what: str = "",
) -> tuple[str, ...]:
    """Unpack into ``dest`` and return the paths of files and links, sorted.

    ``strip`` leading folders are dropped, then only what is below ``only`` is kept, its
    root becoming ``dest``; ``include`` keeps just these files and folders of it. All
    members are judged, also those not kept. ``dest`` may have content of other archives,
    which is never overwritten. Raises ``DownloadError`` (``unsafe-archive``,
    ``broken-archive``) with nothing written, ``DiskError`` when the disk is full.
    """
    shown, bounds = what or path.name, limits or UnpackLimits()
    wanted = _Wanted(strip, only, include)
    with disk_guard(dest.parent):
        dest.parent.mkdir(parents=True, exist_ok=True)
        with open_container(
            path, wanted=wanted.names, scratch=dest.parent, limits=bounds, what=shown
        ) as container:
            size = path.stat().st_size
            checked = judge(container.members(), limits=bounds, archive_size=size, what=shown)
            below = select(checked, strip=strip, only=only, what=shown)
            chosen = [m for m in below if wanted.includes(m.name)]
            _free_places(dest, chosen, shown)
            with _undone_unless_whole(dest):
                _write(container, dest, chosen)
    return tuple(sorted(m.name for m in chosen if m.kind is not Kind.FOLDER))


def extract_member(path: Path, member: str, dest: Path, *, size: int, what: str = "") -> None:
    """Write one file of an archive to ``dest`` without unpacking the rest.

    Raises ``DownloadError`` when it is absent or not ``size`` bytes long.
    """
    shown, bounds = what or path.name, UnpackLimits()
    with disk_guard(dest.parent):
        dest.parent.mkdir(parents=True, exist_ok=True)
        with open_container(
            path, wanted=member.__eq__, scratch=dest.parent, limits=bounds, what=shown
        ) as container:
            archive_size = path.stat().st_size
            checked = judge(
                container.members(), limits=bounds, archive_size=archive_size, what=shown
            )
            found = [m for m in checked if m.name == member and m.kind is Kind.FILE]
            if len(found) != 1:
                raise unsafe(shown, f"it holds {member} {len(found)} times, not once")
            if found[0].size != size:
                raise DownloadError(
                    f"{member} of {shown} has the wrong size",
                    why=f"expected {size} bytes, the archive says {found[0].size}",
                    hint="the recipe's model pin does not fit its file: renew it",
                    kind="size-mismatch",
                )
            with container.open(found[0]) as source, dest.open("wb") as sink:
                copy_bounded(source, sink, size)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which names of the archive are asked for, before and after the folders are dropped."""

    strip: int
    only: str
    include: Sequence[str]

    def names(self, name: str) -> bool:
        """Whether a member's name, as the archive writes it, can be asked for."""
        parts = [p for p in name.split("/") if p not in {"", "."}][self.strip :]
        prefix = [p for p in self.only.split("/") if p]
        return parts[: len(prefix)] == prefix and self.includes("/".join(parts[len(prefix) :]))

    def includes(self, name: str) -> bool:
        """Whether a name relative to the kept folder is asked for."""
        if not self.include:
            return True
        return any(name == i or name.startswith(f"{i}/") for i in self.include)


def _free_places(dest: Path, wanted: Sequence[Member], what: str) -> None:
    """Refuse to overwrite, and to write through a link that another archive put there."""
    if not dest.exists():
        return
    for member in wanted:
        place = dest / member.name
        taken = place.is_symlink() or (place.exists() and not place.is_dir())
        if taken or (member.kind is not Kind.FOLDER and place.exists()):
            raise unsafe(what, f"{member.name!r} is there already, from another archive")
    for folder in {p for m in wanted for p in _parents(m.name)}:
        if (dest / folder).is_symlink():
            raise unsafe(what, f"it would write through the link {folder!r}")


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")
    yield from ("/".join(parts[:i]) for i in range(1, len(parts)))


@contextmanager
def _undone_unless_whole(dest: Path) -> Iterator[None]:
    """Remove a folder that was not there before when its content comes to no good end."""
    fresh = not dest.exists()
    try:
        yield
    except BaseException:
        if fresh:
            remove_tree(dest)
        raise


def _write(container: Container, dest: Path, wanted: Sequence[Member]) -> None:
    dest.mkdir(exist_ok=True)
    folders = {p for m in wanted for p in _parents(m.name)}
    folders |= {m.name for m in wanted if m.kind is Kind.FOLDER}
    for folder in sorted(folders):
        (dest / folder).mkdir(exist_ok=True)
    _write_files(container, dest, [m for m in wanted if m.kind is Kind.FILE])
    # Links last: no file is ever written through one.
    _write_links(dest, [m for m in wanted if m.kind is Kind.LINK])


def _write_files(container: Container, dest: Path, files: Sequence[Member]) -> None:
    """Write small files by several threads: making them costs more than filling them."""
    with ThreadPoolExecutor(_WRITERS) as pool:
        for at in range(0, len(files), _BATCH):
            waiting: list[Future[None]] = []
            for member in files[at : at + _BATCH]:
                place = dest / member.name
                with container.open(member) as source:
                    if member.size > _SMALL:
                        with place.open("xb") as sink:
                            copy_bounded(source, sink, member.size)
                        _finish(place, member)
                        continue
                    content = io.BytesIO()
                    copy_bounded(source, content, member.size)
                waiting.append(pool.submit(_write_small, place, member, content.getvalue()))
            for writing in waiting:
                writing.result()


def _write_small(place: Path, member: Member, content: bytes) -> None:
    with place.open("xb") as sink:
        sink.write(content)
    _finish(place, member)


def _finish(place: Path, member: Member) -> None:
    if member.executable:
        place.chmod(0o755)
    if member.mtime > _NO_TIME:
        # The archive's own times: a tree unpacked again does not make ninja rebuild.
        os.utime(place, (member.mtime, member.mtime))


def _write_links(dest: Path, links: Sequence[Member]) -> None:
    """Write links; where the system allows none, copies, in the order the chains need."""
    left = list(links)
    while left:
        stuck = [m for m in left if not _write_link(dest / m.name, m.target)]
        if len(stuck) == len(left):
            names = ", ".join(m.name for m in stuck[:3])
            raise unsafe("the archive", f"this system allows no links, and {names} lead nowhere")
        left = stuck


def _write_link(place: Path, target: str) -> bool:
    try:
        place.symlink_to(target)
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise
        # Windows lets not every user make links: then a copy of what it leads to.
        source = place.parent / target
        if source.is_dir():
            shutil.copytree(source, place)
        elif source.is_file():
            shutil.copy2(source, place)
        else:
            return False
    return True
