"""A new release measured: its size, digests, commit and date, as a pin."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from llamawright.errors import DownloadError, UsageError
from llamawright.fetch.git import check_out, commit_date, tagged_commit
from llamawright.fetch.origins import Placer
from llamawright.fetch.tree import digest_included, included_files
from llamawright.fetch.vendored import Vendored, vendored_commit
from llamawright.model.bump import NewPin
from llamawright.model.ports import Reporter
from llamawright.model.recipe import (
    ArchiveOrigin,
    GitOrigin,
    IndexOrigin,
    Origin,
    SourcePin,
)
from llamawright.store import Store
from llamawright.transfer import download_index_file
from llamawright.transfer.listing import Listed, list_files_of
from llamawright.transfer.pipconfig import IndexSettings, user_settings

_O = TypeVar("_O", IndexOrigin, GitOrigin)
DAY_S = 86400.0
_FULL = re.compile(r"[0-9a-f]{40}")
_TAG = re.compile(r"b(\d+)")
_VERSION = re.compile(r"set\(LLAMA_VERSION_(MAJOR|MINOR|PATCH) (\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bumper:
    """Finds and measures the release that comes after a pin. ``now`` in seconds since 1970."""

    pin: SourcePin
    store: Store
    reporter: Reporter
    now: float
    least_days: float
    settings: Callable[[], IndexSettings] = user_settings

    def measure(self, wanted: str, *, commit: str = "", build_number: int = 0) -> NewPin:
        """Return the pin of ``wanted``: a version of the index, a tag b123 or a full commit.

        ``commit`` and ``build_number`` are a maintainer's own word where the bytes are
        silent. Raises ``DownloadError`` for what cannot be had, ``UsageError`` for what is
        younger than ``least_days`` days.
        """
        if _FULL.fullmatch(wanted) or _TAG.fullmatch(wanted):
            return self._revision(wanted, build_number)
        origin = self._first(IndexOrigin, wanted)
        listed = self._listed(origin, wanted)
        age = None if listed.uploaded is None else (self.now - listed.uploaded) / DAY_S
        self._require_age(wanted, age)
        new = replace(
            origin,
            version=wanted,
            filename=listed.filename,
            size=listed.size,
            sha256=listed.sha256,
        )
        blob = download_index_file(
            new, self.store, offline=False, reporter=self.reporter, settings=self.settings()
        )
        vendored = vendored_commit(blob, origin.subdir)
        named = Vendored(commit=commit, timestamp=vendored.timestamp) if commit else vendored
        tree, version = self._measured(new)
        pin, unknown = self._pin(new, named, tree=tree, version=version, number=build_number)
        return NewPin(pin=pin, version=wanted, age_days=age, unknown=unknown)

    def _listed(self, origin: IndexOrigin, wanted: str) -> Listed:
        files = list_files_of(origin.project, settings=self.settings())
        found = next((f for f in files if f.version == wanted), None)
        if found is None or not found.sha256 or not found.size:
            known = ", ".join(f.version for f in files[-5:])
            raise DownloadError(
                f"the index does not list a source distribution of {origin.project} {wanted}"
                if found is None
                else f"the index does not tell size and sha256 of {found.filename}",
                why=f"its newest are: {known}" if known else "it lists none",
                hint="name one of them, or a tag (b11312) or full commit of the git origin",
                kind="absent",
            )
        return found

    def _revision(self, wanted: str, build_number: int) -> NewPin:
        origin = self._first(GitOrigin, wanted)
        tag = _TAG.fullmatch(wanted)
        commit = tagged_commit(origin, wanted) if tag else wanted
        new = replace(origin, commit=commit)
        with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
            tree = check_out(new, Path(folder), reporter=self.reporter)
            date = commit_date(tree)
            root = tree / new.subdir
            digest = digest_included(root, self.pin.include)
            version = _version(root)
        age = (self.now - date) / DAY_S if date else None
        self._require_age(wanted, age)
        number = int(tag[1]) if tag else build_number
        vendored = Vendored(commit=commit, timestamp=date)
        pin, unknown = self._pin(new, vendored, tree=digest, version=version, number=number)
        return NewPin(pin=pin, version=wanted, age_days=age, unknown=unknown)

    def _measured(self, origin: Origin) -> tuple[str, str]:
        placer = Placer(
            include=self.pin.include, store=self.store, offline=False, reporter=self.reporter
        )
        with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
            root = Path(folder) / "tree"
            placer.place(origin, root)
            if not included_files(root, ("CMakeLists.txt",)):
                raise DownloadError(
                    f"{origin.label} has no CMakeLists.txt where the recipe looks",
                    hint="did the folder move? look into it and change `subdir` in the recipe",
                    kind="wrong-tree",
                )
            return digest_included(root, self.pin.include), _version(root)

    def _pin(
        self, origin: Origin, vendored: Vendored, *, tree: str, version: str, number: int
    ) -> tuple[SourcePin, tuple[str, ...]]:
        origins, unknown = _origins(self.pin, origin, vendored.commit)
        if not vendored.commit:
            unknown.append("commit: the source distribution does not tell it; use --commit")
        if not vendored.timestamp:
            unknown.append("timestamp: the commit's date is in no file; look it up")
        if not number:
            unknown.append("build_number: the number of upstream's tag; use --build-number")
        pin = replace(
            self.pin,
            commit=vendored.commit or "0" * 40,
            build_number=number,
            version=version or self.pin.version,
            tree=tree,
            origins=origins,
            timestamp=vendored.timestamp or self.pin.timestamp,
        )
        return pin, tuple(unknown)

    def _first(self, kind: type[_O], wanted: str) -> _O:
        found = next((o for o in self.pin.origins if isinstance(o, kind)), None)
        if found is None:
            raise UsageError(
                f"{wanted} cannot be looked up: the recipe has no such origin",
                why="a version is one of [[source.index]], a tag or commit one of [[source.git]]",
                hint="name a version, a tag (b11312) or a full commit, as the recipe's origins are",
                kind="source",
            )
        return found

    def _require_age(self, wanted: str, age: float | None) -> None:
        if self.least_days <= 0 or (age is not None and age >= self.least_days):
            return
        old = "nobody says when it was published" if age is None else f"it is {age:.1f} days old"
        raise UsageError(
            f"{wanted} is too young for a pin",
            why=f"{old}; the recipe asks for {self.least_days:g} days, in which a bad or "
            "stolen release is usually found",
            hint="wait, or take the risk with --young",
            kind="too-young",
        )


def _origins(pin: SourcePin, measured: Origin, commit: str) -> tuple[tuple[Origin, ...], list[str]]:
    """Return the pin's origins for the new commit, and those that had to be left out."""
    kept: list[Origin] = []
    unknown: list[str] = []
    full = bool(_FULL.fullmatch(commit))
    for origin in pin.origins:
        match origin:
            case _ if type(origin) is type(measured):
                kept.append(measured)
            case ArchiveOrigin() if full and pin.commit in origin.url:
                # Its own digest is another one now; the tree's digest pins the content.
                url = origin.url.replace(pin.commit, commit)
                kept.append(replace(origin, url=url, sha256=None))
            case GitOrigin() if full:
                kept.append(replace(origin, commit=commit))
            case _:
                unknown.append(f"origin {origin.label}: left out, its new address is not known")
    return tuple(kept), unknown


def _version(root: Path) -> str:
    """Return llama's own version as its CMake makes it, or nothing."""
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace")
    parts = dict(_VERSION.findall(text))
    if len(parts) != len(("MAJOR", "MINOR", "PATCH")):
        return ""
    dev = re.search(r"option\(LLAMA_BUILD_IS_DEV [^)]*\bON\)", text)
    return f"{parts['MAJOR']}.{parts['MINOR']}.{parts['PATCH']}{'-dev' if dev else ''}"
