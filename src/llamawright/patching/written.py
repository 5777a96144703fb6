"""A series and its patches as text: what maintainers' verbs leave in the repository."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import PatchError
from llamawright.patching.diff import DEV_NULL, lines_of
from llamawright.patching.series import SERIES, Patch
from llamawright.paths import write_whole

HEADER = "# The series of patches, in the order they are applied: docs/reference/patches.md\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file before and after (``None``: no file)."""

    path: str
    before: bytes | None
    after: bytes | None


def patch_text(patch: Patch, changes: Iterable[Change]) -> str:
    """Return a patch file: its reason, then a plain unified diff.

    Raises ``PatchError`` for what such a diff cannot hold.
    """
    head = f"{patch.type}: {patch.reason}\n\nUpstream: {patch.upstream}\n---\n"
    return head + "".join(_file_diff(change) for change in changes)


def write_series(folder: Path, patches: Sequence[tuple[Patch, str | None]]) -> None:
    """Write the patch files (``None``: the file stays), then the series by one rename.

    A run that dies between the two leaves files whose sha256 the old series refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for patch, text in patches:
        if text is not None:
            (folder / patch.file).write_text(text, encoding="utf-8", newline="\n")
    rows = "\n".join([HEADER, *(_row(patch) for patch, _text in patches)])
    write_whole(folder / SERIES, rows)


def _file_diff(change: Change) -> str:
    old = f"a/{change.path}" if change.before is not None else DEV_NULL
    new = f"b/{change.path}" if change.after is not None else DEV_NULL
    lines = difflib.unified_diff(_lines(change, change.before), _lines(change, change.after),
                                 old, new)  # fmt: skip
    # difflib leaves the marker of a missing last line end to the caller.
    return "".join(x if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines)


def _lines(change: Change, data: bytes | None) -> list[str]:
    if data is None:
        return []
    why = ""
    if not data:
        why = "it is empty on one side"
    elif b"\0" in data:
        why = "it is no text"
    elif b"\r" in data:
        why = "it has Windows line ends"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    if why:
        raise PatchError(
            f"{change.path} cannot be in a patch",
            why=why,
            hint="leave the file as it is in the source, or set your editor to plain line ends",
            kind="bad-patch",
        )
    return lines_of(text)


def _row(patch: Patch) -> str:
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
        lines += ["", "[[patch.targets]]", f"path = {json.dumps(target.path, ensure_ascii=False)}"]
        lines += [f'before = "{target.before}"', f'after = "{target.after}"']
    return "\n".join(lines) + "\n"
