"""The whole series on a private copy of the source, or nothing at all."""

from __future__ import annotations

import shutil
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.digest import digest_data, sha256_bytes, sha256_file, tree_digest
from llamawright.errors import PatchError
from llamawright.model.plan import PatchedTree, PlannedPatch, SourceTree
from llamawright.model.ports import Reporter
from llamawright.patching.apply import Application, Fit, try_edit
from llamawright.patching.diff import FileEdit, parse
from llamawright.patching.series import Patch, Series
from llamawright.store import Store

SHELF = "patched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one patch would do to a tree: its files, all of one mind or not."""

    patch: Patch
    files: tuple[Application, ...]

    @property
    def retired(self) -> bool:
        """Whether every change is in the source already."""
        return all(f.fit is Fit.PRESENT for f in self.files)

    @property
    def applies(self) -> bool:
        """Whether every file takes its change."""
        return all(f.applies for f in self.files)

    @property
    def faults(self) -> tuple[str, ...]:
        """Return one line for each file that does not take its change."""
        odd = (f for f in self.files if not f.applies)
        return tuple(
            f"{self.patch.name}: {f.path}: {f.fit}{f' ({f.detail})' if f.detail else ''}"
            for f in odd
        )


@dataclass
class Overlay:
    """A tree seen through the patches tried so far; nothing is written."""

    root: Path
    changed: dict[str, bytes | None] = field(default_factory=dict)

    def read(self, name: str) -> bytes | None:
        """Return a file's content, ``None`` when there is none; links are not followed."""
        if name in self.changed:
            return self.changed[name]
        path = self.root / name
        for step in (path, *path.parents[: name.count("/")]):
            if step.is_symlink() or (step.exists() and step.is_dir() is (step == path)):
                raise PatchError(
                    f"{name} cannot be patched",
                    why=f"{step.relative_to(self.root).as_posix()} is no plain "
                    f"{'file' if step == path else 'folder'} in the source",
                    hint="a patch changes files below real folders only",
                    kind="patch-link",
                )
        return path.read_bytes() if path.exists() else None

    def try_patch(self, series: Series, patch: Patch) -> Trial:
        """Try one patch and, when it applies, keep what it changes."""
        return self.try_edits(patch, parse(series.text(patch), patch.file))

    def try_edits(self, patch: Patch, edits: tuple[FileEdit, ...]) -> Trial:
        """Try a patch's edits; they must be of the files that the series names."""
        named, changed = {t.path for t in patch.targets}, {e.path for e in edits}
        if named != changed:
            raise PatchError(
                f"{patch.file} changes other files than the series says",
                why=f"not in both: {', '.join(sorted(named ^ changed))}",
                hint="after an edit on purpose: `llamawright patch refresh`",
                kind="bad-series",
            )
        before = {e.path: self.read(e.path) for e in edits}
        files = tuple(_checked(patch, before[e.path], try_edit(e, before[e.path])) for e in edits)
        trial = Trial(patch=patch, files=files)
        if trial.applies:
            self.changed |= {f.path: f.content for f in files}
        return trial


def _checked(patch: Patch, before: bytes | None, outcome: Application) -> Application:
    """Hold the series to its word: a file it knows must become the file it names."""
    target = next(t for t in patch.targets if t.path == outcome.path)
    if not outcome.applies or digest_of(before) != target.before:
        return outcome
    if digest_of(outcome.content) == target.after:
        return outcome
    return replace(outcome, fit=Fit.RESULT, detail=f"sha256 {digest_of(outcome.content)}")


def digest_of(content: bytes | None) -> str:
    """Return the sha256 of a file's content, the empty string when there is no file."""
    return sha256_bytes(content) if content is not None else ""


def patch_tree(
    source: SourceTree,
    series: Series,
    selected: tuple[PlannedPatch, ...],
    *,
    store: Store,
    reporter: Reporter,
) -> PatchedTree:
    """Return the source with all selected patches, or raise and change nothing.

    Without a patch the source itself is the result: builds never write into it. Raises
    ``PatchError`` with every patch that does not apply, the reason for each file.
    """
    overlay = Overlay(source.root)
    trials = [overlay.try_patch(series, series.patch(p.name)) for p in selected]
    _refuse(trials)
    for trial in (t for t in trials if t.retired):
        reporter.info(f"{trial.patch.name}: already upstream, not needed any more")
    applied = tuple(t for t in trials if t.applies)
    for trial in applied:
        _tell(trial, reporter)
    tree = source
    if applied:
        tree = _materialised(source, overlay, applied, store=store, reporter=reporter)
    return PatchedTree(
        root=tree.root,
        digest=tree.digest,
        source_digest=source.digest,
        applied=tuple(t.patch.name for t in applied),
        retired=tuple(t.patch.name for t in trials if t.retired),
    )


def _materialised(
    source: SourceTree,
    overlay: Overlay,
    applied: tuple[Trial, ...],
    *,
    store: Store,
    reporter: Reporter,
) -> SourceTree:
    key = digest_data([source.digest, [t.patch.sha256 for t in applied]])

    def make(dest: Path) -> None:
        shutil.copytree(source.root, dest, symlinks=True)
        _expect_source(dest, source)
        for name, content in overlay.changed.items():
            _write(dest / name, content)

    def check(dest: Path) -> None:
        digest = tree_digest(dest)
        _expect_change(dest, overlay, changed=digest != source.digest)
        store.write_record(SHELF, key, "tree", {"digest": digest})

    for _attempt in range(2):
        entry = store.materialise(
            SHELF, key, make=make, check=check, reporter=reporter, label="patching the source"
        )
        digest = tree_digest(entry.root)
        record = store.read_record(SHELF, key, "tree")
        if record is not None and record.get("digest") == digest:
            return SourceTree(root=entry.root, digest=digest, origin=source.origin)
        reporter.warn("the patched source in the store was changed since: making it anew")
        store.forget(SHELF, key, reporter=reporter)
    raise PatchError(
        "the patched source does not stay as it was written",
        why=f"{entry.root} has another tree digest each time it is read",
        hint="another program writes into the store, or its disk is broken: --store DIR",
        kind="patched-tree-changed",
    )


def _expect_source(dest: Path, source: SourceTree) -> None:
    if tree_digest(dest) != source.digest:
        raise PatchError(
            "the source in the store is not the one that was fetched",
            why=f"{source.root} does not have the tree digest {source.digest[:12]} any more",
            hint=f"remove {source.root}: it is unpacked anew",
            kind="source-changed",
        )


def _expect_change(dest: Path, overlay: Overlay, *, changed: bool) -> None:
    wrong = [n for n, c in overlay.changed.items() if not _holds(dest / n, c)]
    if wrong or not changed:
        raise PatchError(
            "the patches changed nothing",
            why=f"these files are not what they should be: {', '.join(wrong) or 'none'}",
            hint="the store may be on a broken disk: --store DIR names another",
            kind="applied-to-nothing",
        )


def _refuse(trials: list[Trial]) -> None:
    bad = [t for t in trials if not t.applies and not t.retired]
    if not bad:
        return
    half = any(f.fit in (Fit.PARTLY, Fit.PRESENT) for t in bad for f in t.files)
    crlf = any(f.fit is Fit.CRLF for t in bad for f in t.files)
    wrong = any(f.fit is Fit.RESULT for t in bad for f in t.files)
    hint = "the source is another revision than the patch is for: `llamawright patch check`"
    kind = "patch-drift"
    if wrong:
        hint, kind = "after an edit on purpose: `llamawright patch refresh`", "patch-result"
    if half:
        hint, kind = "the tree is half patched: use a fresh copy of the source", "half-patched"
    if crlf:
        hint = "the source was checked out with Windows line ends: set core.autocrlf=false"
        kind = "tree-crlf"
    raise PatchError(
        f"{len(bad)} of {len(trials)} patches do not apply; nothing was changed",
        why="\n".join(line for t in bad for line in t.faults),
        hint=hint,
        kind=kind,
    )


def _tell(trial: Trial, reporter: Reporter) -> None:
    known = {t.path: t for t in trial.patch.targets}
    for file in trial.files:
        if file.fit is Fit.OFFSET:
            reporter.warn(f"{trial.patch.name}: {file.path}: {file.detail}")
        elif known[file.path].after != digest_of(file.content):
            reporter.warn(f"{trial.patch.name}: {file.path} differs from the pinned revision")
    reporter.info(f"{trial.patch.name}: applied ({trial.patch.reason})")


def _write(path: Path, content: bytes | None) -> None:
    mode = path.stat().st_mode if path.exists() else 0o644
    if path.exists():
        # Sources may come without write bits, and Windows removes only what may be written.
        path.chmod(mode | stat.S_IWUSR)
        path.unlink()
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


def _holds(path: Path, content: bytes | None) -> bool:
    if content is None:
        return not path.exists()
    return path.is_file() and sha256_file(path) == sha256_bytes(content)
