"""What ``--source`` means: which origins are tried, and whether the pin binds them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from llamawright.errors import UsageError
from llamawright.model.recipe import (
    ArchiveOrigin,
    GitOrigin,
    IndexOrigin,
    Origin,
    PathOrigin,
    SourcePin,
)

AUTO = "auto"
_KINDS = ("index", "archive", "git", "path")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The origins to try in order. ``tree`` is the digest they must lead to, if any."""

    origins: tuple[Origin, ...]
    tree: str | None


def choose(pin: SourcePin, source: str) -> Choice:
    """Read ``source``: ``auto``, a kind, ``path:/folder`` or ``git+URL@<40 hex digits>``.

    A folder and a commit that the user names are the user's own: the pin does not bind
    them. Raises ``UsageError`` for anything else.
    """
    if source == AUTO:
        if not pin.origins:
            raise _unknown(pin, source)
        return Choice(origins=pin.origins, tree=pin.tree)
    if source in _KINDS:
        chosen = tuple(o for o in pin.origins if kind_of(o) == source)
        if not chosen:
            raise _unknown(pin, source)
        return Choice(origins=chosen, tree=pin.tree)
    if source.startswith("path:"):
        return Choice(origins=(_folder(source.removeprefix("path:")),), tree=None)
    if source.startswith("git+"):
        origin = _commit(source.removeprefix("git+"))
        return Choice(origins=(origin,), tree=pin.tree if origin.commit == pin.commit else None)
    raise _unknown(pin, source)


def kind_of(origin: Origin) -> str:
    """Return the word that selects an origin."""
    match origin:
        case IndexOrigin():
            return "index"
        case ArchiveOrigin():
            return "archive"
        case GitOrigin():
            return "git"
        case PathOrigin():
            return "path"
        case _:
            assert_never(origin)


def _folder(text: str) -> PathOrigin:
    path = Path(text).expanduser().absolute()
    if not text or not path.is_dir():
        raise UsageError(
            f"--source path:{text} names no folder",
            why=f"{path} is not a folder",
            hint="give the root of a llama.cpp checkout: --source path:/home/me/llama.cpp",
            kind="source",
        )
    return PathOrigin(path=str(path))


def _commit(text: str) -> GitOrigin:
    url, _, commit = text.rpartition("@")
    if not url or not _COMMIT.fullmatch(commit):
        raise UsageError(
            f"--source git+{text} names no full commit",
            why="a branch, a tag or a short hash can be another commit tomorrow",
            hint="write git+URL@ and the 40 hex digits that `git rev-parse HEAD` prints there",
            kind="source",
        )
    return GitOrigin(url=url, commit=commit)


def _unknown(pin: SourcePin, source: str) -> UsageError:
    kinds = tuple(dict.fromkeys(kind_of(o) for o in pin.origins))
    close = difflib.get_close_matches(source, (AUTO, *kinds), n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return UsageError(
        f"--source {source} is not a source of {pin.upstream}",
        why=f"its recipe has: {', '.join(kinds) or 'none'}",
        hint=f"{meant}use auto, {', '.join((*kinds, 'path:/folder', 'git+URL@commit'))}",
        kind="source",
    )
