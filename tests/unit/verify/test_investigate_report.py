"""The attachment: what stands in it, that it stays text, and how it is written."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from investigate_kit import frame, halt, investigation, thread
from llamawright import codec
from llamawright.model.investigation import Investigation, Message, Reduction
from llamawright.verify.investigate_report import (
    MOST_MESSAGES,
    MOST_THREADS,
    call,
    investigation_lines,
    markdown,
    stack,
    write_investigation,
)

NAME = "llama.cpp-0c1e57098-vulkan-linux_x86_64.investigation"


def test_the_page_says_what_a_maintainer_asks_for() -> None:
    page = markdown(investigation())
    for word in (
        "# crashed on Vulkan0 llvmpipe", "**First cause** (gdb)", "libvulkan_lvp.so+0x29c3eb",
        "2 of 2 runs", "## Smallest failing case", "ARTIFACT/bin/llama-completion",
        "| layers (-ngl) | 999 (all) | 3 | 2 |", "-fa off", "## Where it stopped: SIGSEGV",
        "## Environment", "sha256", "## Instruments", "not here", "Every run", "VUID-x",
        "segfault at e8", "the time was over", "report.json",
    ):  # fmt: skip
        assert word in page, word


def test_what_programs_print_stays_text() -> None:
    page = markdown(investigation())
    assert "| cpu | A \\| B &lt;c> |" in page
    assert "vkFoo: bad | <thing>" in page


@pytest.mark.parametrize("fence", ["```", "````", "``````"])
def test_a_fence_in_a_message_does_not_end_the_code(fence: str) -> None:
    message = Message(source="x", id="a`b", text=f"{fence}\n# not a heading")
    page = markdown(investigation(messages=(message,)))
    lines = page.splitlines()
    at = lines.index("# not a heading")
    assert lines[at + 1] == f"{fence}`"
    assert "`a'b`" in page


def test_a_line_break_in_a_cell_does_not_end_the_table() -> None:
    step = Reduction(name="a\nb", before="|", least="<b>", told="x")
    page = markdown(investigation(reductions=(step,)))
    assert "| a b | \\| | &lt;b> |  | x |" in page


def test_a_failure_without_runs_is_a_short_page() -> None:
    page = markdown(
        investigation(run="", repeated=0, commands=(), reductions=(), instruments=(), halt=None,
                      messages=(), kernel=(), trials=(), device="",
                      limits=("nothing was run: the archive is not whole",))
    )  # fmt: skip
    assert page.startswith("# crashed\n")
    assert "nothing was run: the archive is not whole" in page
    for word in ("Smallest", "Where it stopped", "Every run", "kernel's log"):
        assert word not in page


def test_other_threads_are_folded_and_bounded() -> None:
    threads = [thread(f"t{n}", [frame(0, f"f{n}")]) for n in range(40)]
    page = markdown(investigation(halt=halt(*threads)))
    assert "<details><summary>Other threads</summary>" in page
    assert f"f{MOST_THREADS - 1} " in page
    assert f"f{MOST_THREADS} " not in page


def test_many_messages_are_some_and_the_rest_is_counted() -> None:
    messages = tuple(Message(source="x", id=f"m{n}", text="t") for n in range(30))
    assert f"and {30 - MOST_MESSAGES} more" in markdown(investigation(messages=messages))


def test_a_doubtful_message_says_so() -> None:
    message = Message(source="x", id="m", text="t", doubt="the layer is old")
    assert "doubtful: the layer is old" in markdown(investigation(messages=(message,)))


def test_a_call_names_module_and_offset() -> None:
    assert call(frame(3, "f", "/x/liby.so", offset=0x10)) == "#3  f  liby.so+0x10"
    told = call(frame(12, "g", "", offset=None, source="a.c:3", guessed=True))
    assert told == "#12 g    a.c:3  (guessed)"


def test_a_thread_says_what_it_waits_for() -> None:
    lines = list(stack(thread("", waits="sleeps, in futex")))
    assert lines == ["thread ?  (sleeps, in futex)"]


def test_the_summary_is_short_and_names_what_could_not_be_done() -> None:
    lines = list(investigation_lines(investigation()))
    assert lines[0].startswith("cause: SIGSEGV in the driver's libvulkan_lvp.so")
    assert "again: 2 of 2 runs failed in the same way" in lines
    assert "layers (-ngl): 999 (all) -> 3, passes: 2" in lines
    assert "Vulkan validation layers: not here: install it" in lines
    assert "not done: model type F16: not run, the time was over" in lines
    assert not any(line.startswith("gdb:") for line in lines)


def test_the_long_list_of_what_changed_nothing_is_left_to_the_page() -> None:
    step = Reduction(name="switches", before="none set", least="9 change nothing",
                     passes="-fa off", told="fails with: A=1, B=1")  # fmt: skip
    lines = list(investigation_lines(investigation(reductions=(step,))))
    assert "switches: none set -> 9 change nothing, passes: -fa off" in lines


def test_folder_and_archive_hold_the_same(tmp_path: Path) -> None:
    found = investigation()
    page, archive = write_investigation(found, [("a.log", "hello\n")], tmp_path)
    folder = tmp_path / NAME
    assert (page, archive) == (folder / "report.md", tmp_path / f"{NAME}.zip")
    with zipfile.ZipFile(archive) as packed:
        names = sorted(packed.namelist())
        assert names == [f"{NAME}/logs/a.log", f"{NAME}/report.json", f"{NAME}/report.md"]
        for name in names:
            assert packed.read(name) == (tmp_path / name).read_bytes()


def test_the_data_can_be_read_again(tmp_path: Path) -> None:
    found = investigation()
    write_investigation(found, [], tmp_path)
    text = (tmp_path / NAME / "report.json").read_text()
    assert codec.decode_text(Investigation, text, what="a test") == found
    assert json.loads(text)["schema"].endswith("investigation-1.json")


def test_an_earlier_attachment_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write_investigation(investigation(), [("old.log", "old")], tmp_path)
    write_investigation(investigation(failure="hang-at-load"), [("new.log", "new")], tmp_path)
    assert [p.name for p in (tmp_path / NAME / "logs").iterdir()] == ["new.log"]
    with zipfile.ZipFile(tmp_path / f"{NAME}.zip") as packed:
        assert f"{NAME}/logs/old.log" not in packed.namelist()
    assert sorted(p.name for p in tmp_path.iterdir()) == [NAME, f"{NAME}.zip"]


def test_what_an_interrupted_run_left_is_replaced(tmp_path: Path) -> None:
    import os

    left = tmp_path / f".{NAME}.{os.getpid()}"
    (left / "logs").mkdir(parents=True)
    (left / "logs" / "junk").write_text("x")
    write_investigation(investigation(), [], tmp_path)
    assert not (tmp_path / NAME / "logs").exists()
    assert not left.exists()


def test_the_same_findings_make_the_same_bytes(tmp_path: Path) -> None:
    one = write_investigation(investigation(), [("a.log", "x")], tmp_path / "one")[1]
    two = write_investigation(investigation(), [("a.log", "x")], tmp_path / "two")[1]
    assert one.read_bytes() == two.read_bytes()


def test_odd_text_is_written_as_it_is(tmp_path: Path) -> None:
    page, _ = write_investigation(
        investigation(why="ünïcode \u2028 \ufffd"), [("a.log", "a\r\nb\0")], tmp_path
    )
    assert "ünïcode" in page.read_text(encoding="utf-8")
    assert (page.parent / "logs" / "a.log").read_bytes() == b"a\r\nb\0"
