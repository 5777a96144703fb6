"""What maintainers do with a series: make a patch, look how it fares, write it anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

from llamawright.digest import list_files, sha256_bytes
from llamawright.errors import PatchError
from llamawright.patching.apply import Fit, try_edit
from llamawright.patching.diff import FileEdit, parse
from llamawright.patching.series import TYPES, Patch, Series, Target
from llamawright.patching.trees import Overlay, Trial, digest_of
from llamawright.patching.written import Change, patch_text, write_series

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchReport:
    """How a patch fares on a tree: ``applied``, ``retired`` or ``failed`` with the lines."""

    name: str
    state: str
    lines: tuple[str, ...]


def check_series(series: Series, root: Path) -> tuple[PatchReport, ...]:
    """Try every patch on a tree, in order; write nothing."""
    overlay = Overlay(root)
    return tuple(_report(overlay.try_patch(series, p)) for p in series.patches)


def new_patch(
    series: Series,
    name: str,
    *,
    source: Path,
    edited: Path,
    kind: str,
    reason: str,
    upstream: str,
    counted: Callable[[Path], Iterable[str]] = list_files,
) -> Patch:
    """Write a patch of what was edited and append it to the series.

    ``edited`` is an edited copy of ``source``, with or without patches of the series in it:
    those it holds are no part of the new one. ``counted`` names the files of ``edited`` that
    the recipe takes from upstream: the rest of a full checkout is not ours to add. The new
    patch comes after all others and must apply there. Raises ``PatchError`` when it does not,
    or when nothing was edited.
    """
    _check_words(name, kind, reason)
    draft = Patch(
        name=f"{_next_number(series):04d}-{name}",
        type=kind,
        reason=reason,
        upstream=upstream or "none",
        sha256="",
        targets=(),
    )
    edits = _edited(series, source, edited, set(counted(edited)))
    if not edits:
        raise PatchError(
            "nothing differs: there is nothing to make a patch of",
            why=f"{edited} equals the source, or the source with our patches",
            kind="empty-patch",
        )
    changes = _on_top(series, draft, source, patch_text(draft, edits))
    text = patch_text(draft, changes)
    patch = _finished(draft, changes, text)
    write_series(series.folder, [*((p, None) for p in series.patches), (patch, text)])
    return patch


def refresh_series(series: Series, root: Path) -> tuple[Patch, ...]:
    """Rewrite each patch with the tree's own lines and digests; all or nothing.

    Raises ``PatchError`` when one does not apply exactly or with a plain offset.
    """
    overlay = Overlay(root)
    rows: list[tuple[Patch, str | None]] = []
    for patch in series.patches:
        present, edits = _as_it_stands(series, patch)
        before = {e.path: overlay.read(e.path) for e in edits}
        trial = overlay.try_edits(present, edits)
        if not trial.applies:
            raise _stale(trial)
        changes = [Change(path=f.path, before=before[f.path], after=f.content) for f in trial.files]
        text = patch_text(patch, changes)
        rows.append((_finished(patch, changes, text), text))
    write_series(series.folder, rows)
    return tuple(patch for patch, _text in rows)


def _report(trial: Trial) -> PatchReport:
    state = "applied" if trial.applies else "retired" if trial.retired else "failed"
    lines = trial.faults if state == "failed" else tuple(
        f"{f.path}: {f.fit}{f' ({f.detail})' if f.detail else ''}" for f in trial.files
    )  # fmt: skip
    return PatchReport(name=trial.patch.name, state=state, lines=lines)


def _check_words(name: str, kind: str, reason: str) -> None:
    why = ""
    if not NAME.fullmatch(name):
        why = f"{name!r} is no name: small letters, digits, dots and hyphens"
    elif kind not in TYPES:
        why = f"a patch is {', '.join(TYPES)}, not {kind}"
    elif not reason.strip() or "\n" in reason:
        why = "the reason is one sentence"
    if why:
        raise PatchError("no patch was made", why=why, kind="bad-series")


def _next_number(series: Series) -> int:
    numbers = [int(m[0]) for p in series.patches if (m := re.match(r"\d+", p.name))]
    return max(numbers, default=0) + 1


def _edited(series: Series, source: Path, edited: Path, counted: set[str]) -> tuple[Change, ...]:
    """Return what was edited, seen from the source with the series or without it.

    Nobody has to say which of the two was copied: it is the one that differs less.
    """
    bare, full = Overlay(source), Overlay(source)
    for patch in series.patches:
        full.try_patch(series, patch)
    known = list_files(source)
    both = [
        tuple(_changes(base, sorted({*known, *counted, *base.changed}), edited))
        for base in (full, bare)
    ]
    return min(both, key=lambda changes: sum(map(_size, changes)))


def _changes(base: Overlay, names: list[str], edited: Path) -> Iterator[Change]:
    for name in names:
        path = edited / name
        after = path.read_bytes() if path.is_file() else None
        before = base.read(name)
        if before != after:
            yield Change(path=name, before=before, after=after)


def _size(change: Change) -> int:
    """Return how many lines differ, as a diff counts them."""
    old, new = ((side or b"").splitlines() for side in (change.before, change.after))
    return sum(line[:1] in ("+", "-") for line in unified_diff(_words(old), _words(new), n=0))


def _words(lines: list[bytes]) -> list[str]:
    return [line.decode("latin-1") for line in lines]


def _on_top(series: Series, draft: Patch, source: Path, text: str) -> list[Change]:
    """Return the same changes made after all others of the series."""
    overlay = Overlay(source)
    for patch in series.patches:
        overlay.try_patch(series, patch)
    changes: list[Change] = []
    for edit in parse(text.encode(), draft.file):
        before = overlay.read(edit.path)
        outcome = try_edit(edit, before)
        if not outcome.applies:
            raise PatchError(
                f"{edit.path}: the change does not fit after the other patches",
                why=f"{outcome.fit} {outcome.detail}".strip(),
                hint="make the change in a copy of the source that has the series applied",
                kind="patch-drift",
            )
        changes.append(Change(path=edit.path, before=before, after=outcome.content))
    return changes


def _as_it_stands(series: Series, patch: Patch) -> tuple[Patch, tuple[FileEdit, ...]]:
    """Return a patch as its file is now: a refresh is where edits by hand come in."""
    try:
        data = (series.folder / patch.file).read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise PatchError(
            f"{patch.file} cannot be read", why=str(error), kind="patch-missing"
        ) from error
    edits = parse(data, patch.file)
    targets = tuple(Target(path=e.path, before="unknown", after="unknown") for e in edits)
    return replace(patch, targets=targets), edits


def _stale(trial: Trial) -> PatchError:
    hint = "resolve it by hand in a copy of the source, then `llamawright patch new`"
    if trial.retired:
        hint = "upstream has it: remove its file and its entry in series.toml"
    states = tuple(f"{trial.patch.name}: {f.path}: {Fit.PRESENT}" for f in trial.files)
    return PatchError(
        f"{trial.patch.name} does not apply to this tree; nothing was written",
        why="\n".join(states if trial.retired else trial.faults),
        hint=hint,
        kind="patch-retired" if trial.retired else "patch-drift",
    )


def _finished(patch: Patch, changes: list[Change], text: str) -> Patch:
    targets = tuple(
        Target(path=c.path, before=digest_of(c.before), after=digest_of(c.after)) for c in changes
    )
    return replace(patch, sha256=sha256_bytes(text.encode()), targets=targets)
