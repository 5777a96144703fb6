"""The program for the other machine, called as it is there: by its verbs, in its own folder."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from llamawright.remote import far_side


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "llamawright" / "remote"


def sent(home: Path, data: bytes, *, cut: int = 4) -> str:
    """Leave the pieces of a file as sftp would have."""
    sha256 = hashlib.sha256(data).hexdigest()
    folder = home / "incoming" / sha256
    folder.mkdir(parents=True)
    for number, at in enumerate(range(0, len(data), cut)):
        (folder / str(number)).write_bytes(data[at : at + cut])
    return sha256


def test_looking_makes_the_folders_that_are_sent_to(home: Path) -> None:
    answer = far_side.look({"wanted": ["a" * 64, "b" * 64]})
    assert sorted(p.name for p in (home / "incoming").iterdir()) == ["a" * 64, "b" * 64]
    assert answer["folder"] == str(home)
    assert answer["whole"] == []
    assert answer["pieces"] == []


def test_looking_tells_what_is_there_whole_and_in_part(home: Path) -> None:
    far_side.look({"wanted": []})
    (home / "files" / ("c" * 64)).write_bytes(b"whole")
    sha256 = sent(home, b"0123456789")
    answer = far_side.look({"wanted": ["c" * 64, sha256]})
    assert answer["whole"] == ["c" * 64]
    assert answer["pieces"] == [[f"{sha256}/0", 4], [f"{sha256}/1", 4], [f"{sha256}/2", 2]]
    assert not (home / "incoming" / ("c" * 64)).exists()


def test_pieces_are_joined_by_number_and_not_by_name(home: Path) -> None:
    data = bytes(range(60))
    far_side.look({"wanted": []})
    sha256 = sent(home, data)
    assert len(list((home / "incoming" / sha256).iterdir())) == 15
    assert far_side.join({"parcels": [sha256]}) == {"bad": []}
    assert (home / "files" / sha256).read_bytes() == data
    assert not (home / "incoming" / sha256).exists()


def test_other_bytes_are_thrown_away_and_told(home: Path) -> None:
    far_side.look({"wanted": []})
    sha256 = sent(home, b"0123456789")
    (home / "incoming" / sha256 / "1").write_bytes(b"45x7")
    assert far_side.join({"parcels": [sha256]}) == {"bad": [sha256]}
    assert not (home / "files" / sha256).exists()
    assert not (home / "incoming" / sha256).exists()


def test_a_part_that_is_still_on_its_way_is_no_piece(home: Path) -> None:
    far_side.look({"wanted": []})
    sha256 = sent(home, b"0123")
    (home / "incoming" / sha256 / "1.part").write_bytes(b"half")
    assert far_side.join({"parcels": [sha256]}) == {"bad": []}


def test_what_is_there_is_not_joined_again(home: Path) -> None:
    far_side.look({"wanted": []})
    (home / "files" / ("d" * 64)).write_bytes(b"there")
    assert far_side.join({"parcels": ["d" * 64]}) == {"bad": []}
    assert (home / "files" / ("d" * 64)).read_bytes() == b"there"


def packed(home: Path, name: str = "bootstrap.py") -> str:
    far_side.look({"wanted": []})
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = 5
        archive.addfile(member, io.BytesIO(b"tool\n"))
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    (home / "files" / sha256).write_bytes(buffer.getvalue())
    return sha256


def test_the_tool_is_unpacked_once(home: Path) -> None:
    sha256 = packed(home)
    folder = far_side.unpacked(sha256)
    assert (folder / "bootstrap.py").read_text() == "tool\n"
    (folder / "mark").touch()
    assert (far_side.unpacked(sha256) / "mark").exists()
    assert [p.name for p in (home / "tool").iterdir()] == [sha256]


def test_a_tidied_run_is_gone_and_its_files_stay(home: Path) -> None:
    far_side.look({"wanted": []})
    (home / "files" / ("e" * 64)).write_bytes(b"artifact")
    room = home / "runs" / "x"
    room.mkdir(parents=True)
    (room / "artifact").symlink_to(home / "files" / ("e" * 64))
    far_side.tidy({"id": "x"})
    assert not room.exists()
    assert (home / "files" / ("e" * 64)).read_bytes() == b"artifact"


@pytest.mark.parametrize("verb", ["look", "join", "tidy"])
def test_an_answer_is_one_marked_line(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    order = {"wanted": [], "parcels": [], "id": "x"}
    assert far_side.main(verb, json.dumps(order)) == 0
    (line,) = [n for n in capsys.readouterr().out.splitlines() if n]
    assert line.startswith("@llamawright@{")


def test_an_unknown_verb_is_an_error_and_does_nothing(home: Path) -> None:
    with pytest.raises(KeyError):
        far_side.main("remove", "{}")
    assert not home.exists()
