"""What an archive says it holds, and the judgement over all of it before a byte is written."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from llamawright.errors import DownloadError

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Small archives may be empty space for the most part.
_RATIO_FROM = 64 << 20
_BLOCK = 512


class Kind(StrEnum):
    """What a member is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "device, pipe, socket or sparse file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member as the archive names it; ``size`` in bytes, ``mtime`` in Unix seconds.

    ``number`` is its position; ``target`` a link's target as written.
    """

    number: int
    name: str
    kind: Kind
    size: int = 0
    target: str = ""
    executable: bool = False
    mtime: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """Bounds of one archive: bytes in all, members, times its own size, name lengths.

    ``case_collisions`` lets names differ by case only (Linux packages may).
    ``rebase_links`` reads an absolute link as one from the archive's root, as Debian's
    packages mean it, and makes it relative.
    """

    total_bytes: int = 8 << 30
    members: int = 300_000
    ratio: int = 100
    name_bytes: int = 255
    path_chars: int = 1024
    case_collisions: bool = False
    rebase_links: bool = False

    def stream_cap(self, archive_size: int) -> int:
        """Return how many bytes the expanded stream of a tar may have.

        Headers and padding add to the content: half as much again is more than enough.
        """
        headers = self.members * 3 * _BLOCK
        content = min(self.total_bytes, max(_RATIO_FROM, self.ratio * archive_size))
        return content + content // 2 + headers


def judge(
    members: Iterable[Member], *, limits: UnpackLimits, archive_size: int, what: str
) -> tuple[Member, ...]:
    """Return the members with clean names, or raise ``DownloadError`` for the whole archive."""
    cleaned: list[Member] = []
    total = 0
    for member in members:
        if member.size < 0:
            raise unsafe(what, f"{member.name[:80]!r} has a negative size")
        total += member.size
        if len(cleaned) >= limits.members:
            raise unsafe(what, f"it has more than {limits.members} members")
        if total > limits.total_bytes:
            raise unsafe(what, f"it would unpack to more than {limits.total_bytes} bytes")
        cleaned.append(_clean(member, limits, what))
    if total > _RATIO_FROM and total > limits.ratio * archive_size:
        raise unsafe(what, f"it would unpack to {total / archive_size:.0f} times its size")
    _no_collisions(cleaned, limits, what)
    return tuple(cleaned)


def select(members: Sequence[Member], *, strip: int, only: str, what: str) -> tuple[Member, ...]:
    """Return the members below ``only`` after dropping ``strip`` leading folders.

    ``strip`` folders must be the same for all members, otherwise trees would be mixed.
    """
    tops = {tuple(m.name.split("/")[:strip]) for m in members if m.name.count("/") >= strip}
    if strip and len(tops) > 1:
        found = ", ".join(sorted("/".join(t) for t in tops)[:3])
        raise unsafe(what, f"it has several top folders ({found} …)")
    prefix = [*(next(iter(tops)) if tops else ()), *(p for p in only.split("/") if p)]
    chosen = [m for m in (_below(m, prefix, what) for m in members) if m]
    if not chosen:
        raise unsafe(what, f"it has no folder {'/'.join(prefix) or 'at all'}")
    return tuple(chosen)


def unsafe(what: str, why: str) -> DownloadError:
    """Return the error of an archive that must not be unpacked."""
    return DownloadError(
        f"{what} was not unpacked",
        why=why,
        hint="nothing was written; check where the archive comes from",
        kind="unsafe-archive",
    )


def _below(member: Member, prefix: Sequence[str], what: str) -> Member | None:
    parts = member.name.split("/")
    inside = parts[: len(prefix)] == list(prefix) and len(parts) > len(prefix)
    if not inside or member.name == ".":
        return None
    name = "/".join(parts[len(prefix) :])
    if member.kind is Kind.LINK and _resolved(name, member.target) is None:
        raise unsafe(what, f"the link {member.name!r} leads out of the folder that is unpacked")
    return replace(member, name=name)


def _clean(member: Member, limits: UnpackLimits, what: str) -> Member:
    name, kind = member.name, member.kind
    shown = repr(name[:80])
    if kind is Kind.OTHER:
        raise unsafe(what, f"{shown} is a {kind.value}")
    if reason := _bad_name(name, limits):
        raise unsafe(what, f"{shown} {reason}")
    path = posixpath.normpath(name)
    if path == "." and kind is not Kind.FOLDER:
        raise unsafe(what, f"{shown} names no file")
    if kind is not Kind.LINK:
        return replace(member, name=path)
    target = member.target
    if limits.rebase_links and target.startswith("/"):
        target = posixpath.relpath(target.lstrip("/") or ".", posixpath.dirname(path) or ".")
    if _bad_name(target, limits, link=True) or _resolved(path, target) is None:
        raise unsafe(what, f"the link {shown} leads out of the archive, to {target[:80]!r}")
    return replace(member, name=path, target=target)


def _bad_name(name: str, limits: UnpackLimits, *, link: bool = False) -> str:
    """Return what is wrong with a name, or nothing. Links may start with ``..`` parts."""
    parts = name.split("/")
    if not name or _CONTROL.search(name) or "\udc80" <= max(name) <= "\udcff":
        return "has no name, or control characters or undecodable bytes in it"
    if name.startswith("/") or "\\" in name or _DRIVE.match(name):
        return "is absolute, or has a drive letter or a backslash"
    if ".." in parts and not link:
        return "climbs out with .."
    if len(name) > limits.path_chars or any(len(p.encode()) > limits.name_bytes for p in parts):
        return "is too long"
    return ""


def _resolved(name: str, target: str) -> str | None:
    """Return where a link leads, relative to the root; ``None`` when that is outside.

    ``..`` may only come first: after a component that is itself a link, the system's
    ``..`` is another place than the one the text names.
    """
    parts = [p for p in target.split("/") if p not in {"", "."}]
    climbs = next((i for i, p in enumerate(parts) if p != ".."), len(parts))
    if ".." in parts[climbs:]:
        return None
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(name), *parts))
    return None if resolved == ".." or resolved.startswith("../") else resolved


def _no_collisions(members: Sequence[Member], limits: UnpackLimits, what: str) -> None:
    """Refuse two members in one place, and anything below a file or a link."""
    seen: dict[str, Member] = {}
    parents: dict[str, str] = {}
    for member in members:
        key = _folded(member.name, limits)
        other = seen.get(key)
        both = other is not None and other.kind is member.kind is Kind.FOLDER
        if other is not None and not (both and other.name == member.name):
            raise unsafe(what, f"{other.name!r} and {member.name!r} are the same place")
        seen[key] = member
        _note_parents(member.name, parents, limits, what)
    for key, shown in parents.items():
        holder = seen.get(key)
        if holder is not None and (holder.kind is not Kind.FOLDER or holder.name != shown):
            raise unsafe(what, f"{holder.name!r} is a {holder.kind.value} and a folder {shown!r}")


def _note_parents(name: str, parents: dict[str, str], limits: UnpackLimits, what: str) -> None:
    parent = posixpath.dirname(name)
    while parent:
        known = parents.setdefault(_folded(parent, limits), parent)
        if known != parent:
            raise unsafe(what, f"the folders {known!r} and {parent!r} are the same place")
        parent = posixpath.dirname(parent)


def _folded(name: str, limits: UnpackLimits) -> str:
    return name if limits.case_collisions else unicodedata.normalize("NFC", name).casefold()
