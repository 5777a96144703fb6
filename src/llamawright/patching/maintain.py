"""What maintainers do with a series: make a patch, look how it fares, write it anew."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import list_files, sha256_bytes
from llamawright.errors import PatchError
from llamawright.patching.diff import DEV_NULL, parse
from llamawright.patching.series import SERIES, TYPES, Patch, Series, Target
from llamawright.patching.trees import Overlay, Trial

HEADER = "# The series of patches, in the order they are applied: docs/reference/patches.md\n"


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


def _report(trial: Trial) -> PatchReport:
    state = "applied" if trial.applies else "retired" if trial.retired else "failed"
    lines = trial.faults if state == "failed" else tuple(
        f"{f.path}: {f.fit}{f' ({f.detail})' if f.detail else ''}" for f in trial.files
    )  # fmt: skip
    return PatchReport(name=trial.patch.name, state=state, lines=lines)


def new_patch(
    series: Series,
    name: str,
    *,
    source: Path,
    edited: Path,
    kind: str,
    reason: str,
    upstream: str,
) -> Patch:
    """Write a patch of the differences of ``edited`` and append it to the series.

    The new patch comes after all others: ``edited`` must hold theirs already, or they are
    applied to ``source`` first. Raises ``PatchError`` when nothing differs.
    """
    if kind not in TYPES:
        raise PatchError(f"a patch is {', '.join(TYPES)}, not {kind}", kind="bad-series")
    number = len(series.patches) + 1
    overlay = Overlay(source)
    for patch in series.patches:
        overlay.try_patch(series, patch)
    names = sorted({*_texts(source), *_texts(edited), *overlay.changed})
    changes = [(n, overlay.read(n), _content(edited / n)) for n in names]
    changes = [c for c in changes if c[1] != c[2]]
    if not changes:
        raise PatchError(
            "nothing differs: there is nothing to make a patch of",
            why=f"{edited} equals the source with the series applied",
            kind="empty-patch",
        )
    patch = Patch(
        name=f"{number:04d}-{name}",
        type=kind,
        reason=reason,
        upstream=upstream or "none",
        sha256="",
        targets=tuple(Target(path=n, before=_sha(a), after=_sha(b)) for n, a, b in changes),
    )
    return _write(series, series.patches, patch, _diff(patch, changes))


def refresh_series(series: Series, root: Path) -> tuple[Patch, ...]:
    """Rewrite each patch with the tree's own lines and digests; all or nothing.

    Raises ``PatchError`` when one does not apply exactly or with a plain offset.
    """
    overlay = Overlay(root)
    rows: list[tuple[Patch, str]] = []
    for patch in series.patches:
        known = replace(patch, sha256=sha256_bytes((series.folder / patch.file).read_bytes()))
        before = {e.path: overlay.read(e.path) for e in parse(series.text(known), patch.file)}
        trial = overlay.try_patch(series, known)
        if not trial.applies:
            raise PatchError(
                f"{patch.name} does not apply to this tree; nothing was written",
                why="\n".join(trial.faults),
                hint="resolve it by hand in a copy of the source, then `llamawright patch new`",
                kind="patch-drift",
            )
        changes = [(f.path, before[f.path], f.content) for f in trial.files]
        targets = tuple(Target(path=n, before=_sha(a), after=_sha(b)) for n, a, b in changes)
        rows.append((replace(patch, targets=targets), _diff(patch, changes)))
    done: tuple[Patch, ...] = ()
    for patch, text in rows:
        _write(replace(series, patches=done), done, patch, text)
        done = (*done, replace(patch, sha256=sha256_bytes(text.encode())))
    return done


def _write(series: Series, before: tuple[Patch, ...], patch: Patch, text: str) -> Patch:
    series.folder.mkdir(parents=True, exist_ok=True)
    (series.folder / patch.file).write_text(text, encoding="utf-8", newline="\n")
    finished = replace(patch, sha256=sha256_bytes(text.encode()))
    parts = [HEADER, *(_toml(p) for p in (*before, finished))]
    beside = series.folder / f".{SERIES}.part"
    beside.write_text("\n".join(parts), encoding="utf-8", newline="\n")
    beside.replace(series.folder / SERIES)
    return finished


def _diff(patch: Patch, changes: Iterable[tuple[str, bytes | None, bytes | None]]) -> str:
    head = f"{patch.type}: {patch.reason}\n\nUpstream: {patch.upstream}\n---\n"
    return head + "".join(_file_diff(*change) for change in changes)


def _file_diff(name: str, before: bytes | None, after: bytes | None) -> str:
    old = f"a/{name}" if before is not None else DEV_NULL
    new = f"b/{name}" if after is not None else DEV_NULL
    lines = difflib.unified_diff(_lines(before), _lines(after), old, new)
    # difflib leaves the marker of a missing last line end to the caller.
    return "".join(x if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8").splitlines(keepends=True)


def _texts(root: Path) -> list[str]:
    return [n for n in list_files(root) if not n.startswith(".git/")]


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _sha(data: bytes | None) -> str:
    return sha256_bytes(data) if data is not None else ""


def _toml(patch: Patch) -> str:
    quoted = {
        "name": patch.name, "type": patch.type, "reason": patch.reason,
        "upstream": patch.upstream, "sha256": patch.sha256,
    }  # fmt: skip
    lines = [
        "[[patch]]",
        *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in quoted.items()),
    ]
    if patch.needs:
        lines.append(f"needs = {json.dumps(list(patch.needs))}")
    bounds = {"first_build": patch.first_build, "last_build": patch.last_build}
    lines += [f"{k} = {v}" for k, v in bounds.items() if v]
    for target in patch.targets:
        lines += ["", "[[patch.targets]]", f"path = {json.dumps(target.path)}"]
        lines += [f'before = "{target.before}"', f'after = "{target.after}"']
    return "\n".join(lines) + "\n"
