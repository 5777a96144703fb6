from __future__ import annotations

import json
import os
from pathlib import Path

import psutil
import pytest

from llamawright.store import Journal, Store
from transfer_kit import python, was_killed

KILLED_IN_A_PHASE = """
    import os, signal, sys
    from pathlib import Path
    from llamawright.store import Journal
    journal = Journal(Path(sys.argv[1]))
    journal.end(journal.begin("load", device="a"))
    journal.begin("first-token", device="b", driver="1.2")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def only_file(folder: Path) -> Path:
    (path,) = folder.glob("*.jsonl")
    return path


def test_a_phase_is_on_the_disk_when_begin_returns(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    token = journal.begin("load", device="NVIDIA H200", layers=30)
    line = json.loads(only_file(tmp_path).read_text())
    assert line["begin"] == token
    assert line["phase"] == "load"
    assert line["facts"] == {"device": "NVIDIA H200", "layers": 30}
    assert line["process"]["pid"] == os.getpid()


def test_begin_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    Journal(tmp_path).begin("load")
    assert len(flushed) == 1


def test_a_running_phase_of_a_living_process_is_not_unfinished(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin("load")
    assert journal.unfinished() == ()


def test_a_phase_of_a_killed_process_is_found_with_its_facts(tmp_path: Path) -> None:
    assert was_killed(python(KILLED_IN_A_PHASE, tmp_path))
    (found,) = Journal(tmp_path).unfinished()
    assert found.phase == "first-token"
    assert found.facts == {"device": "b", "driver": "1.2"}
    assert not found.rebooted


def test_a_found_phase_can_be_settled_by_another_process(tmp_path: Path) -> None:
    python(KILLED_IN_A_PHASE, tmp_path)
    journal = Journal(tmp_path)
    journal.end(journal.unfinished()[0].token, outcome="quarantined")
    assert journal.unfinished() == ()


def test_after_a_reboot_the_phase_is_known_to_have_taken_the_machine_down(tmp_path: Path) -> None:
    python(KILLED_IN_A_PHASE, tmp_path)
    path = only_file(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "process" in line:
            line["process"]["boot"] = psutil.boot_time() - 5000
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (found,) = Journal(tmp_path).unfinished()
    assert found.rebooted


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    token = journal.begin("load")
    with only_file(tmp_path).open("ab") as stream:
        stream.write(b'{"end": "' + token.encode()[:10])
    assert len(list(journal.records())) == 1
    assert len(list(Journal(tmp_path).records())) == 1


@pytest.mark.parametrize("junk", [b"\x00\x00\n", b"[1, 2]\n", b"null\n", b"\n\n", b"\xff\xfe\n"])
def test_junk_between_lines_is_left_out(tmp_path: Path, junk: bytes) -> None:
    journal = Journal(tmp_path)
    token = journal.begin("load")
    with only_file(tmp_path).open("ab") as stream:
        stream.write(junk)
    journal.end(token)
    assert [("begin" in r, "end" in r) for r in journal.records()] == [(True, False), (False, True)]


def test_records_without_a_process_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl").write_text('{"begin": "t", "phase": "x"}\n{"begin": "u"}\n')
    assert Journal(tmp_path).unfinished() == ()


def test_a_phase_block_ends_also_when_it_raises(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(ZeroDivisionError), journal.phase("load", n=1):
        raise ZeroDivisionError
    with journal.phase("done") as token:
        assert token
    endings = [r["facts"] for r in journal.records() if "end" in r]
    assert endings == [{"ending": "raised"}, {"ending": "done"}]


def test_facts_of_any_kind_are_written_as_text(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin("load", where=Path("/x"))
    (record,) = journal.records()
    assert record["facts"] == {"where": str(Path("/x"))}


def test_an_absent_journal_is_empty(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "none")
    assert list(journal.records()) == []
    assert journal.unfinished() == ()
    assert journal.settled() == ()


def test_a_file_with_an_open_phase_is_not_settled(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    python(KILLED_IN_A_PHASE, tmp_path)
    assert journal.settled() == ()
    journal.end(journal.unfinished()[0].token)
    (other,) = journal.settled()
    assert str(os.getpid()) not in other.name


def test_the_store_has_a_journal(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.journal.end(store.journal.begin("load"))
    assert len(list((tmp_path / "journal").glob("*.jsonl"))) == 1
