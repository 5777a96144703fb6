"""For maintainers: what digest a new pin has to say."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.fetch.origins import Placer
from llamawright.fetch.tree import digest_included, included_files, missing_parts
from llamawright.model.ports import Reporter
from llamawright.model.recipe import Origin
from llamawright.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFacts:
    """What an origin holds. ``size`` in bytes; ``missing`` are entries it does not have."""

    origin: str
    digest: str
    files: int
    size: int
    missing: tuple[str, ...]


def digest_of(
    origin: Origin,
    *,
    include: Sequence[str],
    store: Store,
    reporter: Reporter,
    offline: bool = False,
) -> TreeFacts:
    """Fetch an origin into a temporary folder and measure it, whatever a recipe says."""
    placer = Placer(include=include, store=store, offline=offline, reporter=reporter)
    with tempfile.TemporaryDirectory(prefix="llamawright-") as scratch:
        root = Path(scratch) / "tree"
        placer.place(origin, root)
        names = included_files(root, include)
        return TreeFacts(
            origin=origin.label,
            digest=digest_included(root, include),
            files=len(names),
            size=sum((root / name).lstat().st_size for name in names),
            missing=missing_parts(root, include),
        )
