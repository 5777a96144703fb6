"""The patches that are shipped: whole, in line with the recipe, and only guards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llamawright.model.condition import holds
from llamawright.patching import Series, load_series
from llamawright.patching.diff import FileEdit, parse
from llamawright.patching.series import Patch

ROOT = Path(__file__).resolve().parents[3]
OURS = load_series(ROOT / "patches", "llama.cpp")
HEADERS = "vulkan-headers"
ALWAYS = ["0003", "0004", "0005"]


@pytest.fixture
def series() -> Series:
    return OURS


def edits(patch: Patch) -> tuple[FileEdit, ...]:
    return parse(OURS.text(patch), patch.file)


def chosen(version: int) -> list[str]:
    facts = {HEADERS: str(version), "backend": "vulkan"}
    return [p.name[:4] for p in OURS.patches if all(holds(n, facts) for n in p.needs)]


@pytest.mark.parametrize(
    ("version", "names"),
    [
        (239, ["0001", "0002", *ALWAYS]),
        (254, ["0001", "0002", *ALWAYS]),
        (255, ["0001", *ALWAYS]),
        (271, ["0001", *ALWAYS]),
        (272, ALWAYS),
        (309, ALWAYS),
    ],
)
def test_each_header_version_gets_the_guards_it_lacks(version: int, names: list[str]) -> None:
    assert chosen(version) == names


def test_without_vulkan_only_what_every_build_gets_is_applied() -> None:
    """One host serves all modules, so the unconditional patches are in all of them."""
    facts = {"backend": "cpu"}
    met = [p.name[:4] for p in OURS.patches if all(holds(n, facts) for n in p.needs)]
    assert met == ALWAYS


def test_no_patch_file_is_left_over(series: Series) -> None:
    named = {p.file for p in series.patches}
    assert {p.name for p in series.folder.glob("*.patch")} == named


@pytest.mark.parametrize("patch", OURS.patches, ids=lambda p: p.name)
def test_the_series_names_what_its_file_changes(patch: Patch) -> None:
    assert [e.path for e in edits(patch)] == [t.path for t in patch.targets]
    assert patch.upstream.startswith(("https://", "none: "))
    assert patch.reason
    assert patch.first_build == 11312, "the build its digests were measured on"
    assert patch.needs or patch.type in ("bugfix", "performance")


def test_a_later_patch_starts_where_the_one_before_ended(series: Series) -> None:
    last: dict[str, str] = {}
    for patch in series.patches:
        for target in patch.targets:
            assert last.get(target.path, target.before) == target.before
            last[target.path] = target.after


@pytest.mark.parametrize("patch", OURS.patches, ids=lambda p: p.name)
def test_a_guard_is_closed_where_it_is_opened(patch: Patch) -> None:
    for edit in edits(patch):
        opened = {
            side: sum(
                line.lstrip().startswith("#if") - line.lstrip().startswith("#endif")
                for hunk in edit.hunks
                for line in getattr(hunk, side)
            )
            for side in ("old", "new")
        }
        assert opened["old"] == opened["new"]


@pytest.mark.parametrize("patch", OURS.patches, ids=lambda p: p.name)
def test_a_patch_carries_no_more_of_upstream_than_a_diff_needs(patch: Patch) -> None:
    text = OURS.text(patch).decode()
    runs = re.findall(r"(?:^ .*\n)+", text, re.MULTILINE)
    assert max(run.count("\n") for run in runs) <= 6
