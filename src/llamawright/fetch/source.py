"""The source tree: from the first origin that works, checked against the pinned digest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llamawright.digest import sha256_bytes
from llamawright.errors import DownloadError, LlamawrightError, ToolMissingError
from llamawright.fetch.choice import Choice, choose
from llamawright.fetch.origins import Placer
from llamawright.fetch.tree import digest_included, missing_parts
from llamawright.model.plan import SourceTree
from llamawright.model.ports import Reporter
from llamawright.model.recipe import GitOrigin, Origin, PathOrigin, SourcePin
from llamawright.store import Store

SHELF = "sources"


def fetch_source(
    pin: SourcePin, *, source: str, store: Store, offline: bool, reporter: Reporter
) -> SourceTree:
    """Return the pinned source tree, from the store or the first origin that gives it.

    ``source`` is read by ``choose``. A fall-back to a later origin is said aloud. Raises
    ``DownloadError`` (``wrong-tree`` when the files are not the pinned ones).
    """
    choice = choose(pin, source)
    placer = Placer(include=pin.include, store=store, offline=offline, reporter=reporter)
    fetch = _Fetch(pin, placer)
    if choice.tree is None:
        return fetch.unpinned(choice.origins[0])
    return _stored(choice.tree, store) or fetch.pinned(choice, choice.tree)


def _stored(tree: str, store: Store) -> SourceTree | None:
    if not store.is_stamped(SHELF, tree):
        return None
    record = store.read_record(SHELF, tree, "origin") or {}
    store.used(SHELF, tree)
    return SourceTree(
        root=store.shelf(SHELF, tree), digest=tree, origin=str(record.get("origin", "store"))
    )


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One fetch of one pin."""

    pin: SourcePin
    placer: Placer

    @property
    def store(self) -> Store:
        return self.placer.store

    @property
    def reporter(self) -> Reporter:
        return self.placer.reporter

    def pinned(self, choice: Choice, tree: str) -> SourceTree:
        """Try the origins in order; each must lead to the pinned tree."""
        failures: list[tuple[Origin, LlamawrightError]] = []
        for number, origin in enumerate(choice.origins):
            try:
                return self._entry(origin, tree)
            except (DownloadError, ToolMissingError) as error:
                failures.append((origin, error))
                rest = choice.origins[number + 1 :]
                if rest and not self.placer.offline:
                    self.reporter.warn(
                        f"source {origin.label}: {error.what} ({error.kind}); "
                        f"falling back to {rest[0].label}"
                    )
        raise self._none_worked(failures)

    def unpinned(self, origin: Origin) -> SourceTree:
        """Take a folder or commit that the user named, and digest what it holds."""
        match origin:
            case PathOrigin():
                return self._folder(origin)
            case GitOrigin():
                return self._commit(origin)
            case _:
                raise ValueError(f"{origin.label} has no pinned tree")

    def _folder(self, origin: PathOrigin) -> SourceTree:
        root = Path(origin.path)
        self._complain(root, origin.label)
        return self._told(self._entry(origin, digest_included(root, self.pin.include)))

    def _commit(self, origin: GitOrigin) -> SourceTree:
        """Remember which tree a commit has: the second time nothing is fetched."""
        name = sha256_bytes(f"{origin.url}@{origin.commit}:{','.join(self.pin.include)}".encode())
        record = self.store.read_record(SHELF, name, "commit")
        known = _stored(str(record["tree"]), self.store) if record else None
        if known:
            return self._told(known)
        found: list[str] = []

        def make(dest: Path) -> None:
            self.placer.place(origin, dest)
            self._complain(dest, origin.label)
            found.append(digest_included(dest, self.pin.include))

        # The digest is the key and is known only afterwards: first under the commit's name.
        first = self.store.materialise(
            "commits", name, make=make, reporter=self.reporter, label=origin.label
        )
        tree = found[0] if found else digest_included(first.root, self.pin.include)
        entry = self._entry(PathOrigin(path=str(first.root)), tree, label=origin.label)
        self.store.write_record(SHELF, name, "commit", {"tree": tree})
        self.store.forget("commits", name)
        return self._told(entry)

    def _entry(self, origin: Origin, tree: str, *, label: str = "") -> SourceTree:
        shown = label or origin.label

        def make(dest: Path) -> None:
            self.placer.place(origin, dest)
            self.store.write_record(SHELF, tree, "origin", {"origin": shown})

        def check(dest: Path) -> None:
            actual = digest_included(dest, self.pin.include)
            if actual != tree:
                raise self._wrong_tree(shown, dest, tree, actual)

        entry = self.store.materialise(
            SHELF, tree, make=make, check=check, reporter=self.reporter, label=f"source {shown}"
        )
        return SourceTree(root=entry.root, digest=tree, origin=shown)

    def _complain(self, root: Path, label: str) -> None:
        lacking = missing_parts(root, self.pin.include)
        if "CMakeLists.txt" in lacking:
            raise DownloadError(
                f"{label} is not the root of {self.pin.upstream}",
                why="it has no CMakeLists.txt",
                hint="name the folder that holds llama.cpp's top CMakeLists.txt",
                kind="wrong-tree",
            )
        if lacking:
            self.reporter.warn(f"{label} lacks {', '.join(lacking)}: another revision?")

    def _told(self, tree: SourceTree) -> SourceTree:
        if tree.digest != self.pin.tree:
            self.reporter.warn(
                f"source {tree.origin} is not the recipe's pinned tree "
                f"(its digest is {tree.digest[:12]}): the artifact's commit is what you say it is"
            )
        return tree

    def _wrong_tree(self, label: str, root: Path, expected: str, actual: str) -> DownloadError:
        lacking = missing_parts(root, self.pin.include)
        also = f"; it lacks {', '.join(lacking)}" if lacking else ""
        return DownloadError(
            f"{label} does not hold the pinned source tree",
            why=f"expected tree {expected}, got {actual}{also}",
            hint="nothing was kept; use another --source, or renew the pin after a review",
            kind="wrong-tree",
        )

    def _none_worked(self, failures: list[tuple[Origin, LlamawrightError]]) -> LlamawrightError:
        first = failures[0][1]
        if len(failures) == 1:
            return first
        lines = [f"{origin.label}: {error.what}: {error.why}" for origin, error in failures]
        kinds = {error.kind for _origin, error in failures}
        return DownloadError(
            f"{self.pin.upstream} {self.pin.commit[:9]} could not be had from any of its "
            f"{len(failures)} sources",
            why="\n".join(lines),
            hint=first.hint,
            kind=first.kind if len(kinds) == 1 else "no-source",
        )
