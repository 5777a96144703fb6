"""Programs and files that answer with nonsense, never with an end, or from another world."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from pathlib import Path

import psutil
import pytest

from llamawright.detect import build_tools, compilers, msvc, vulkan
from llamawright.detect.candidates import Candidate, Sighting, on_folders
from llamawright.detect.loader import vulkan_notes
from llamawright.detect.vulkan_parts import Headers, find_headers
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import BackendRule
from llamawright.model.toolchain import Fact
from machine_kit import Machine, stand_up, write_program

LINUX = Platform(System.LINUX, "x86_64")
RULE = BackendRule(backend=Backend.VULKAN, min_headers=272, min_headers_patched=239)


def ask_cmake(root: Path, script: str, *, limit_s: float = 10) -> Sighting:
    path = write_program(root / "bin/cmake", script)
    machine = Machine(root=root, env={"PATH": f"{root}/bin"}, about={"limit_s": limit_s})
    candidate = Candidate(role=Role.CMAKE, name="cmake", path=path, where="PATH")
    return build_tools.prove(candidate, machine.surroundings())


def look(machine: Machine) -> list[Sighting]:
    around = machine.surroundings()
    return [s for root in vulkan.roots(around) for s in vulkan.survey(root, RULE, around)]


def ends(pid: int) -> bool:
    """Whether a process is gone within two seconds, or dead and not yet collected."""
    for _ in range(40):
        if not psutil.pid_exists(pid):
            return True
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nprintf '\\377\\376\\000\\001'\n",
        "#!/bin/sh\nprintf 'cmake version \\377.\\376'\n",
        "#!/bin/sh\nprintf 'cmake version'\n",
        "#!/bin/sh\nprintf '\\033]0;title\\007'; exit 3\n",
        "#!/bin/sh\n",
        "",
        "#!/bin/sh\nprintf '%01000000d' 0\n",
    ],
)
def test_nonsense_for_an_answer_is_a_refusal(tmp_path: Path, script: str) -> None:
    seen = ask_cmake(tmp_path, script)
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.FAILED
    assert len(seen.reason) < 300


def test_a_version_of_thousands_of_digits_breaks_nothing(tmp_path: Path) -> None:
    digits = "9" * 6000
    seen = ask_cmake(tmp_path, f"#!/bin/sh\nprintf 'cmake version 1.{digits}'\n")
    assert isinstance(seen, Found)
    assert seen.version == f"1.{digits}"


def test_a_question_is_not_waited_for(tmp_path: Path) -> None:
    seen = ask_cmake(tmp_path, "#!/bin/sh\nread answer || echo cmake version 4.0.0\n")
    assert isinstance(seen, Found)


def test_a_child_that_outlives_its_tool_is_ended(tmp_path: Path) -> None:
    script = f"#!/bin/sh\n/bin/sleep 77 & echo $! > {tmp_path}/pid\necho cmake version 4.0.0\n"
    start = time.monotonic()
    assert isinstance(ask_cmake(tmp_path, script), Found)
    assert time.monotonic() - start < 9
    pid = int((tmp_path / "pid").read_text())
    assert ends(pid)


def test_a_tool_that_ignores_the_polite_signal_is_ended_too(tmp_path: Path) -> None:
    script = "#!/bin/sh\ntrap '' TERM INT\nwhile :; do /bin/sleep 1; done\n"
    start = time.monotonic()
    seen = ask_cmake(tmp_path, script, limit_s=0.5)
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.HUNG
    assert time.monotonic() - start < 9


def test_strange_names_on_path_are_passed_by(tmp_path: Path) -> None:
    machine = stand_up("compilers", "several", tmp_path)
    folder = tmp_path / "usr/bin"
    for name in ("g++-", "g++-x", "g++-12-13", "xg++", "g++ -12", "g++\n", "clang++-7.0", "G++"):
        write_program(folder / name, "#!/bin/sh\nexit 0\n")
    (folder / os.fsdecode(b"g++-\xff")).write_text("")
    names = {p.name for p in on_folders(machine.surroundings(), r"(?:g|clang)\+\+(?:-\d+)?")}
    assert names == {"g++", "g++-11", "g++-13", "clang++", "clang++-9"}


def test_a_path_of_files_absent_and_closed_folders_is_walked(tmp_path: Path) -> None:
    machine = stand_up("compilers", "plain", tmp_path)
    (tmp_path / "file").write_text("")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    words = [tmp_path / "file", tmp_path / "absent", closed, "\u00e9\n", tmp_path / "usr/bin"]
    try:
        around = machine.surroundings(PATH=os.pathsep.join(map(str, words)))
        (item,) = compilers.candidates("auto", around)
        assert isinstance(item, Candidate)
        assert isinstance(compilers.prove(item, around), Found)
    finally:
        closed.chmod(stat.S_IRWXU)


def test_a_folder_called_like_a_compiler_is_refused(tmp_path: Path) -> None:
    (tmp_path / "usr/bin/g++").mkdir(parents=True)
    around = Machine(root=tmp_path, env={"PATH": f"{tmp_path}/usr/bin"}, about={}).surroundings()
    (item,) = compilers.candidates("auto", around)
    assert isinstance(item, Candidate)
    seen = compilers.prove(item, around)
    assert isinstance(seen, Rejected)
    assert seen.reason == "it is a folder"


def test_a_compiler_that_prints_lies_beside_its_facts_is_judged_by_them(tmp_path: Path) -> None:
    machine = stand_up("compilers", "plain", tmp_path)
    text = (tmp_path / "usr/bin/g++").read_text().replace("machine=x86_64", "junk\nmachine=x86_64")
    write_program(tmp_path / "usr/bin/g++", text)
    around = machine.surroundings()
    (item,) = compilers.candidates("auto", around)
    assert isinstance(item, Candidate)
    assert isinstance(compilers.prove(item, around), Found)


@pytest.mark.parametrize("name", ["with space", "quo'te", 'dou"ble', "semi;colon", "d$llar", "ü"])
def test_odd_folder_names_reach_the_tools_whole(tmp_path: Path, name: str) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path / name)
    found = next(s for s in look(machine) if s.role is Role.VULKAN)
    assert isinstance(found, Found)
    assert found.fact(Fact.INCLUDE_DIR) == str(tmp_path / name / "usr/include")


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"#define VK_HEADER_VERSION 309\r\n", 309),
        (b"\xff\xfe#define\n#  define  VK_HEADER_VERSION  272 // text\n", 272),
        (b"#define VK_HEADER_VERSION " + b"9" * 5000, None),
        (b"#define VK_HEADER_VERSION -1", None),
        (b"#define VK_HEADER_VERSION VK_OTHER", None),
        (b"// #define VK_HEADER_VERSION 309\n", None),
        (b"#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, 4, X)\n", None),
        (b"\0" * 4096, None),
        (b"", None),
    ],
)
def test_headers_are_read_whatever_stands_in_them(
    tmp_path: Path, data: bytes, number: int | None
) -> None:
    folder = tmp_path / "include/vulkan"
    folder.mkdir(parents=True)
    (folder / "vulkan_core.h").write_bytes(data)
    (folder / "vulkan.hpp").write_bytes(b"")
    seen = find_headers(tmp_path)
    assert (seen.number if isinstance(seen, Headers) else None) == number


def test_a_loop_of_links_for_a_loader_is_told(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    loader = tmp_path / "usr/lib/x86_64-linux-gnu/libvulkan.so"
    loader.unlink()
    loader.symlink_to("libvulkan.so")
    refused = [s for s in look(machine) if isinstance(s, Rejected)]
    assert [r.fault for r in refused] == [Fault.DANGLING]


def test_a_loader_that_is_no_library_at_all_is_left_to_the_linker(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    (tmp_path / "usr/lib/x86_64-linux-gnu/libvulkan.so.1.3.239").write_text("INPUT(-lvulkan)")
    assert not [s for s in look(machine) if isinstance(s, Rejected)]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"ICD": ' * 50_000,
        '{"ICD": {"library_path": "\\ud800"}}',
        '{"ICD": {"library_path": ""}}',
        '{"ICD": {"library_path": null}}',
        '{"ICD": []}',
        "null",
        "\ufeff{}",
    ],
)
def test_a_damaged_driver_manifest_never_breaks_doctor(tmp_path: Path, text: str) -> None:
    machine = stand_up("drivers", "no-driver", tmp_path)
    (tmp_path / "usr/share/vulkan/icd.d/odd.json").write_text(text, encoding="utf-8")
    notes = vulkan_notes(machine.env, LINUX, root=tmp_path)
    assert any("odd.json: " in note for note in notes)


def test_a_driver_manifest_of_bytes_never_breaks_doctor(tmp_path: Path) -> None:
    machine = stand_up("drivers", "no-driver", tmp_path)
    (tmp_path / "usr/share/vulkan/icd.d/odd.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "usr/share/vulkan/icd.d/folder.json").mkdir()
    notes = "\n".join(vulkan_notes(machine.env, LINUX, root=tmp_path))
    assert "odd.json: it is no driver manifest" in notes
    assert "folder.json: it cannot be read" in notes


@pytest.mark.parametrize("text", ["[" * 100_000, json.dumps([{"displayName": "x"}]), "\0"])
def test_a_damaged_list_of_instances_is_one_refusal(text: str) -> None:
    (seen,) = msvc.judge(text, Platform(System.WINDOWS, "x86_64"))
    assert seen.fault is Fault.FAILED
