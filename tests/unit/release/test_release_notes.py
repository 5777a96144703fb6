"""Release notes: proof, changes, digests; nothing that a device's name could break."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.model.verdict import State
from llamawright.release import read_changes
from llamawright.release.coverage import TargetResult
from llamawright.release.notes import release_notes
from llamawright.release.plan import FileRole
from llamawright.release.staging import KeptFile, Staged
from llamawright.release.steps import Proved
from release_kit import SOFTWARE, TREE, plan, planned, target

FILES = [
    (KeptFile(name="tiny.tar.zst", size=7, sha256="a" * 64), FileRole.ARTIFACT),
    (KeptFile(name="tiny.report.html", size=9, sha256="b" * 64), FileRole.REPORT),
]


def result(device: str = "GPU 9000", state: State = State.VERIFIED) -> TargetResult:
    proved = Proved(state=state, sha256="a" * 64, verdict="v.json", device=device)
    staged = Staged(folder=Path(), outcome=proved, files=(), fresh=True)
    return TargetResult(planned=planned(target(accept=(SOFTWARE,))), proved=staged)


def notes(*results: TargetResult, changes: str = "") -> str:
    return release_notes(plan(), results or (result(),), FILES, changes)


def test_the_notes_name_source_verdict_and_digests() -> None:
    text = notes()
    assert text.startswith("# v1\n")
    assert TREE in text
    assert "| cpu | verified | GPU 9000 |  |" in text
    assert f"| `tiny.tar.zst` | 7 | `{'a' * 64}` |" in text
    assert "tiny.report.html" not in text


def test_a_lesser_verdict_stands_with_its_reason() -> None:
    text = notes(result("llvmpipe", State.VERIFIED_SOFTWARE))
    assert "| cpu | verified-software | llvmpipe | no GPU in this room |" in text


def test_a_hostile_device_breaks_no_table_and_makes_no_tag() -> None:
    text = notes(result("evil | x |\n<script>alert(1)</script> [a](http://b) `c`"))
    row = next(line for line in text.splitlines() if line.startswith("| cpu"))
    assert "<script>" not in row.replace("\\<", "")
    assert row.replace("\\|", "").count("|") == 5
    assert "[a]" not in row.replace("\\[", "").replace("\\]", "")


def test_no_changes_no_heading() -> None:
    assert "## Changes" not in notes()
    assert "## Changes\n\n- better" in notes(changes="- better\n")


def test_the_notes_are_the_same_each_time() -> None:
    assert notes() == notes(replace(result()))


def test_fragments_come_before_the_changelog(tmp_path: Path) -> None:
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "12.fixed.md").write_text("The crash.\n")
    (tmp_path / "changes" / "11.added.md").write_text("- a verb\n")
    (tmp_path / "changes" / "README.md").write_text("how to write them")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- old\n")
    assert read_changes(tmp_path, "v1") == "- a verb\n- The crash."


@pytest.mark.parametrize(
    ("tag", "said"), [("v1", "- one"), ("v2", "- next\n- more"), ("v0", "- zero\n\n### sub")]
)
def test_the_changelogs_section_of_the_tag_or_what_is_not_released(
    tmp_path: Path, tag: str, said: str
) -> None:
    sections = ("# Changes", "## Unreleased", "- next\n- more", "## v1", "- one", "## v0", "- zero")
    (tmp_path / "CHANGELOG.md").write_text("\n\n".join([*sections, "### sub\n"]))
    assert read_changes(tmp_path, tag) == said


def test_without_both_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert read_changes(tmp_path, "v1") == ""
    (tmp_path / "changes").mkdir()
    assert read_changes(tmp_path, "v1") == ""
