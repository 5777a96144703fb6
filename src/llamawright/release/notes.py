"""The release notes: what it is, how it was proved, what changed, every digest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from llamawright.release.coverage import TargetResult
from llamawright.release.plan import SUMS, FileRole, ReleasePlan
from llamawright.release.staging import KeptFile

FRAGMENTS = "changes"
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "Unreleased"
_SECTION = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_NAME = re.compile(r"(.+)\.(?:added|changed|fixed|removed|security)\.md")
SHIPPED = (FileRole.SOURCE, FileRole.ARTIFACT, FileRole.COMPANION)


def read_changes(root: Path, tag: str) -> str:
    """Return what changed: the fragments below ``changes/``, else a section of the changelog.

    That is the section of ``tag``, or the one of what is not released yet; empty when
    there is neither. A fragment is a file ``<topic>.<added|changed|fixed|removed|security>.md``.
    """
    folder = root / FRAGMENTS
    found = sorted(p for p in folder.glob("*.md") if _NAME.fullmatch(p.name))
    if found:
        return "\n".join(_fragment(p) for p in found)
    file = root / CHANGELOG
    if not file.is_file():
        return ""
    sections = _sections(file.read_text(encoding="utf-8"))
    return sections.get(tag, sections.get(UNRELEASED, ""))


def release_notes(
    plan: ReleasePlan,
    results: Sequence[TargetResult],
    files: Iterable[tuple[KeptFile, FileRole]],
    changes: str,
) -> str:
    """Return the page, in Markdown; the same release gives the same text."""
    return "\n".join([*_notes(plan, results, tuple(files), changes), ""])


def _notes(
    plan: ReleasePlan,
    results: Sequence[TargetResult],
    files: Sequence[tuple[KeptFile, FileRole]],
    changes: str,
) -> Iterator[str]:
    yield f"# {plan.tag}"
    yield ""
    yield f"{plan.upstream} at `{plan.commit}`, built for {plan.platform}."
    yield f"Every target is built from one source tree: `{plan.tree}`."
    yield ""
    yield "## Proof"
    yield ""
    yield "| target | verdict | device | accepted because |"
    yield "| --- | --- | --- | --- |"
    yield from (_proof_row(r) for r in results)
    if changes.strip():
        yield from ("", "## Changes", "", changes.strip())
    yield from ("", "## Files", "", "| file | bytes | sha256 |", "| --- | --- | --- |")
    yield from (f"| `{f.name}` | {f.size} | `{f.sha256}` |" for f, role in files if role in SHIPPED)
    yield ""
    yield f"`sha256sum -c {SUMS}` checks every file; `llamawright verify FILE` proves an archive"
    yield "again, on your own device."


def _proof_row(result: TargetResult) -> str:
    proved = result.proved.outcome if result.proved else None
    state = str(proved.state) if proved else "none"
    device = (proved.device if proved else "") or "none"
    reason = result.planned.target.reason_for(state) or ""
    return f"| {result.planned.target.name} | {state} | {_cell(device)} | {_cell(reason)} |"


def _cell(text: str) -> str:
    """Return text that cannot break a table or become a tag: device names are not ours."""
    flat = " ".join(text.split())
    for sign in "\\`|<>[]*_":
        flat = flat.replace(sign, f"\\{sign}")
    return flat


def _fragment(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    return text if text.startswith(("-", "*", "#")) else f"- {text}"


def _sections(text: str) -> dict[str, str]:
    marks = list(_SECTION.finditer(text))
    ends = [m.start() for m in marks[1:]] + [len(text)]
    return {
        mark.group(1): text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)
    }
