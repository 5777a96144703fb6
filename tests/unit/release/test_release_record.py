"""``release.json``: its schema is the page's, and a real one fits it."""

from __future__ import annotations

import json
from pathlib import Path

from llamawright.paths import data_root
from llamawright.release import FileRole, read_record
from llamawright.release.record import RECORD_SCHEMA, is_whole
from llamawright.release.schema import release_schema
from release_kit import TinySteps, plan, planned, release_run, target, tree_of, two_targets

PAGE = data_root() / "docs" / "reference" / "release.schema.json"


def test_the_page_is_the_schema_of_the_types() -> None:
    assert PAGE.read_text(encoding="utf-8") == release_schema(), (
        "write it again: python -c 'from llamawright.release.schema import release_schema; "
        f'print(release_schema(), end="")\' > {PAGE.name}'
    )


def test_a_release_fits_its_schema(tmp_path: Path) -> None:
    folder = release_run(tmp_path, TinySteps(), wanted=two_targets()).make().folder
    data = json.loads((folder / "release.json").read_text())
    schema = json.loads(release_schema())
    assert data["schema"] == schema["$id"] == RECORD_SCHEMA
    assert set(schema["required"]) <= set(data) <= set(schema["properties"])
    for name, key in (("ReleasedFile", "files"), ("TargetVerdict", "verdicts")):
        part = schema["$defs"][name]
        assert all(set(part["required"]) <= set(d) <= set(part["properties"]) for d in data[key])


def test_the_record_names_every_file_but_those_made_of_it(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    named = {f.name for f in read_record(folder).files}
    assert set(tree_of(folder)) - named == {"RELEASE.md", "release.json", "SHA256SUMS"}


def test_roles_say_what_each_file_is_for(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    roles = {f.role for f in read_record(folder).files}
    assert roles == {
        FileRole.SOURCE, FileRole.ARTIFACT, FileRole.CHECKSUM, FileRole.VERDICT, FileRole.REPORT,
    }  # fmt: skip


def test_whole_means_this_plan_and_every_byte(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    assert is_whole(folder, plan())
    assert not is_whole(folder, plan(tag="v2"))
    assert not is_whole(folder, plan(planned(target("other"))))
    (folder / "RELEASE.md").write_text("another text")
    assert not is_whole(folder, plan())
    assert not is_whole(tmp_path / "nowhere", plan())
