"""Which commit a source distribution has vendored: read from the git folder it left inside."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from llamawright.process import ask

_SMALL = 1 << 16
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_COMMITTER = re.compile(rb"^committer .* (\d+) [+-]\d{4}$", re.MULTILINE)
_SHORT = re.compile(r"[\w.-]+/[\w.-]+@([0-9a-f]{7,40})\b")
_ENOUGH = 4 << 20
_PACK = re.compile(r"pack-[0-9a-f]{40}\.(?:pack|idx)")
_PACK_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendored:
    """A commit, ``short`` when only its first digits are known, and its date (0: unknown)."""

    commit: str = ""
    timestamp: int = 0


def vendored_commit(archive: Path, subdir: str) -> Vendored:
    """Return what an sdist tells of the commit below ``subdir``; empty when it tells nothing.

    First the submodule's own ``HEAD``, with the commit's date out of its objects; else the
    newest ``owner/name@commit`` of its CHANGELOG.md.
    """
    parts = _git_parts(archive, f".git/modules/{subdir}/")
    commit = _head(parts)
    if commit:
        date = _date(parts, commit) or _packed_date(archive, subdir, commit)
        return Vendored(commit=commit, timestamp=date)
    changes = parts.get("CHANGELOG.md", b"").decode("utf-8", errors="replace")
    named = _SHORT.search(changes)
    return Vendored(commit=named[1] if named else "")


def _git_parts(archive: Path, prefix: str) -> dict[str, bytes]:
    """Return the small files of the git folder, and the change log, by their short names."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            wanted = name.startswith(prefix) or name == "CHANGELOG.md"
            limit = _ENOUGH if name == "CHANGELOG.md" else _SMALL
            if wanted and member.isreg() and member.size < limit:
                content = tar.extractfile(member)
                found[name.removeprefix(prefix)] = content.read() if content else b""
    return found


def _head(parts: dict[str, bytes]) -> str:
    text = parts.get("HEAD", b"").decode("ascii", errors="replace").strip()
    if text.startswith("ref: "):
        text = parts.get(text.removeprefix("ref: "), b"").decode("ascii", errors="replace").strip()
    return text if _COMMIT.fullmatch(text) else ""


def _date(parts: dict[str, bytes], commit: str) -> int:
    packed = parts.get(f"objects/{commit[:2]}/{commit[2:]}")
    if packed is None:
        return 0
    try:
        plain = zlib.decompressobj().decompress(packed, _SMALL)
    except zlib.error:
        return 0
    found = _COMMITTER.search(plain)
    return int(found[1]) if found else 0


def _packed_date(archive: Path, subdir: str, commit: str) -> int:
    """Return the date of a commit that stands in a pack; git reads it, 0 without git.

    Only the packs are taken over into a repository of ours: a repository that somebody sent
    has settings and hooks, and git would obey them.
    """
    program = shutil.which("git")
    if program is None:
        return 0
    with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
        root = Path(folder)
        started = ask((program, "init", "--quiet", "--bare", "--template=", "."), cwd=root)
        packs = root / "objects" / "pack"
        packs.mkdir(parents=True, exist_ok=True)
        _copy_packs(archive, f".git/modules/{subdir}/objects/pack/", packs)
        shown = ask((program, "cat-file", "commit", commit), cwd=root)
        found = _COMMITTER.search(shown.stdout.encode()) if started.ok and shown.ok else None
    return int(found[1]) if found else 0


def _copy_packs(archive: Path, prefix: str, dest: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/")[2].removeprefix(prefix)
            content = tar.extractfile(member) if _PACK.fullmatch(name) else None
            if content is not None and member.size < _PACK_LIMIT:
                with (dest / name).open("wb") as sink:
                    shutil.copyfileobj(content, sink)
