"""Wheels, records and answers that nobody sane would make."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.errors import PackageError, PublishError
from llamawright.release import read_record
from llamawright.release.github_api import Asset, RemoteRelease, read, upload_address
from llamawright.release.index import project_html, project_json
from llamawright.release.notes import _cell
from llamawright.release.record import is_whole
from llamawright.release.wheels import WheelFacts, read_wheel
from release_kit import plan, release_run, tree_of, write_wheel

NAME = "tiny-1.0-py3-none-any.whl"


def refused(path: Path) -> PackageError:
    with pytest.raises(PackageError) as caught:
        read_wheel(path)
    assert caught.value.kind == "bad-wheel"
    return caught.value


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\x05\x06" + b"\0" * 18, b"<html>404</html>", b"\x1f\x8b" * 99]
)
def test_what_is_no_zip_is_no_wheel(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / NAME
    path.write_bytes(data)
    refused(path)


@pytest.mark.parametrize(
    "name", ["tiny.whl", "tiny-1.0.whl", "tiny-1.0-py3-none.whl", "tiny-x-y-z-a-b-c.whl", "a b.whl"]
)
def test_a_name_that_is_no_wheels_is_refused(tmp_path: Path, name: str) -> None:
    path = write_wheel(tmp_path / NAME)
    refused(path.rename(tmp_path / name))


@pytest.mark.parametrize(
    "metadata",
    ["", "Name: other\nVersion: 1.0\n", "Name: tiny\nVersion: 2.0\n", "Name: tiny\n",
     "\n\nName: tiny\nVersion: 1.0\n", "\0\0\0"],
)  # fmt: skip
def test_metadata_of_another_project_is_refused(tmp_path: Path, metadata: str) -> None:
    refused(write_wheel(tmp_path / NAME, metadata=metadata or " "))


def test_a_wheel_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = write_wheel(tmp_path / "whole" / NAME).read_bytes()
    path = tmp_path / NAME
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        refused(path)


def test_a_flipped_byte_of_a_member_is_found(tmp_path: Path) -> None:
    path = write_wheel(tmp_path / NAME)
    path.write_bytes(path.read_bytes().replace(b"VALUE = '1.0'", b"VALUE = '6.6'"))
    refused(path)


@pytest.mark.parametrize("folders", [0, 2])
def test_one_dist_info_is_wanted(tmp_path: Path, folders: int) -> None:
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("tiny.py", "")
        for number in range(folders):
            packed.writestr(f"tiny{number}-1.0.dist-info/METADATA", "Name: tiny\nVersion: 1.0\n")
    assert f"{folders} .dist-info folders" in refused(path).why


def test_a_bomb_of_metadata_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("tiny-1.0.dist-info/METADATA", b"Name: tiny\n" + b"X" * (5 << 20))
    assert "far too large" in refused(path).why


WORDS = st.text(max_size=60)


@given(file=WORDS, version=WORDS, python=WORDS)
def test_no_text_breaks_out_of_a_page(file: str, version: str, python: str) -> None:
    facts = WheelFacts(
        file=file, project="p", version=version, requires_python=python, size=1,
        sha256="a" * 64, metadata=b"",
    )  # fmt: skip
    html = project_html("p", [facts], "../../../")
    assert html.count("<a ") == html.count("</a>") == 1
    assert html.count("<") == project_html("p", [], "").count("<") + 3
    assert json.loads(project_json("p", [facts], "../../../"))["files"][0]["filename"] == file


@given(WORDS)
def test_no_device_breaks_a_table(text: str) -> None:
    cell = _cell(text)
    assert "\n" not in cell
    assert all(cell[i - 1] == "\\" for i, c in enumerate(cell) if c == "|")


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "{", '{"schema": 1}', "\ufeff{}", '{"files": [{}]}', "[" * 5000],
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "release.json").write_text(text, encoding="utf-8")
    with pytest.raises(PackageError) as caught:
        read_record(tmp_path)
    assert caught.value.kind == "no-release"
    assert not is_whole(tmp_path, plan())


@pytest.mark.parametrize("name", ["SHA256SUMS", "release.json", "RELEASE.md"])
@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"a" * 70 + b"\n"])
def test_a_torn_file_of_a_release_is_noticed(tmp_path: Path, name: str, data: bytes) -> None:
    folder = release_run(tmp_path).make().folder
    (folder / name).write_bytes(data)
    before = tree_of(folder)
    with pytest.raises(PackageError) as caught:
        release_run(tmp_path).make()
    assert caught.value.kind == "release-exists"
    assert tree_of(folder) == before


def test_a_link_in_a_release_is_no_file(tmp_path: Path) -> None:
    folder = release_run(tmp_path).make().folder
    artifact = folder / "tiny-cpu-linux_x86_64.tar.zst"
    artifact.rename(tmp_path / "elsewhere")
    artifact.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PackageError):
        release_run(tmp_path).make()


@pytest.mark.parametrize(
    "data",
    [None, [], {}, "text", {"id": "x"}, {"id": 1}, {"id": 1, "name": None, "size": -1},
     {"id": 1, "name": "a", "size": "many", "state": "uploaded"}],
)  # fmt: skip
def test_an_answer_without_sense_is_told(data: object) -> None:
    for kind in (Asset, RemoteRelease):
        with pytest.raises(PublishError) as caught:
            read(kind, data, "https://host/x")
        assert caught.value.kind == "strange-answer"


@given(st.text(min_size=1, max_size=40))
def test_a_file_name_never_leaves_its_place_in_the_address(name: str) -> None:
    release = RemoteRelease(
        id=1, tag_name="v", draft=True, html_url="", upload_url="https://up/1/assets{?name,label}"
    )
    if not any("\ud800" <= c <= "\udfff" for c in name):
        address = upload_address(release, name)
        assert address.startswith("https://up/1/assets?name=")
        assert not set("&#/? ") & set(address.removeprefix("https://up/1/assets?name="))
