from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import verify_kit
from cli_kit import Line, line, manifest, write_json
from llamawright import codec
from llamawright.model.inventory import Fault, Inventory, Role
from llamawright.model.plan import KeyPart, Plan
from llamawright.model.platform import Backend
from resolve_kit import BASE, LINUX, NEW_SYSTEM, PROVIDED, inventory, refused

__all__ = ["line"]

MACHINE = inventory(*BASE, *NEW_SYSTEM, sets=(PROVIDED,), rejected=(
    refused(Role.GLSLC, "far too old", Fault.TOO_OLD, path="/old/glslc"),))  # fmt: skip
BARE = inventory()
NOTE = "two drivers answer for one device"


@pytest.fixture
def machine(line: Line, monkeypatch: pytest.MonkeyPatch) -> Line:
    return stand(line, monkeypatch, MACHINE)


def stand(line: Line, monkeypatch: pytest.MonkeyPatch, seen: Inventory) -> Line:
    """Let the command line see a machine of data."""
    room = "llamawright.pipeline"
    monkeypatch.setattr(f"{room}.detect_platform", lambda: LINUX)
    monkeypatch.setattr(f"{room}.take_inventory", lambda *_a, **_k: seen)
    monkeypatch.setattr(f"{room}.vulkan_notes", lambda *_a: (NOTE,))
    return line


def test_doctor_shows_what_is_there_what_is_not_and_what_comes_next(machine: Line) -> None:
    assert machine("doctor") == 0
    text = machine.out
    assert text.startswith("machine: linux_x86_64, 8 cores, 32.0 GiB memory\n")
    assert "ok        gcc 12.2.0  /usr/bin/g++  [PATH]" in text
    assert "rejected  glslc  /old/glslc  [PATH]\n            far too old" in text
    assert "cure: cure of far too old" in text
    assert "provided  vulkan-debian13 1.4.309  (in the store, dddddddddddd)" in text
    assert f"  ! {NOTE}\n" in text
    assert text.endswith("\n\nnext: nox -s build-vulkan\n")


def test_doctor_groups_by_role_and_skips_a_role_without_candidates(machine: Line) -> None:
    machine("doctor")
    heads = [t[:-1] for t in machine.out.splitlines() if t.endswith(":") and t[0] != " "]
    assert heads == [str(r) for r in Role if r in heads]
    assert str(Role.CXX) in heads
    assert str(Role.DRIVER) not in heads


def test_doctor_as_json_is_the_same_in_data(machine: Line) -> None:
    assert machine("doctor", "--json") == 0
    record = json.loads(machine.out)
    assert codec.decode(Inventory, record["inventory"], what="doctor") == MACHINE
    assert (record["notes"], record["next"]) == ([NOTE], "nox -s build-vulkan")


def test_doctor_looks_at_the_machine_only_once(
    machine: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look runs compilers; two could even disagree."""
    looks: list[Inventory] = []

    def look(*_given: object, **_named: object) -> Inventory:
        looks.append(MACHINE)
        return MACHINE

    monkeypatch.setattr("llamawright.pipeline.take_inventory", look)
    assert machine("doctor") == 0
    assert len(looks) == 1


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_doctor_on_a_bare_machine_ends_well_and_names_a_cure(
    form: tuple[str, ...], line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand(line, monkeypatch, BARE)
    assert line("doctor", *form) == 0
    said = json.loads(line.out)["next"] if form else line.out.partition("next: ")[2]
    assert said.strip()
    assert "build-vulkan" not in said
    assert "\n" not in said.strip()


def test_a_plan_of_a_bare_machine_fails_with_every_missing_tool(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand(line, monkeypatch, BARE)
    assert line("plan", "vulkan") == 4
    assert line.out == ""
    assert "compiler" in line.err


@pytest.mark.parametrize("words", [("plan", "vulkan"), ("build", "vulkan", "--plan-only")])
def test_a_printed_plan_can_be_read_back(words: tuple[str, ...], machine: Line) -> None:
    assert machine(*words, "--json") == 0
    plan = codec.decode_text(Plan, machine.out, what="plan")
    assert (plan.backend, plan.platform) == (Backend.VULKAN, LINUX)
    assert {t.path for t in plan.tools} >= {Path("/usr/bin/g++")}
    assert machine(*words) == 0
    assert machine.out.startswith(f"{plan.name}\n  key       {plan.key[:16]}")
    assert not machine.store.joinpath("runs").exists()


def test_explain_finds_what_two_plans_differ_in(machine: Line) -> None:
    for name, more in (("a", ()), ("b", ("--vulkan", "system"))):
        machine("plan", "vulkan", "--json", *more)
        (machine.root / f"{name}.json").write_text(machine.out)
    assert machine("explain", "a.json", "a.json") == 0
    assert machine.out == ""
    assert "every input is equal" in machine.err
    assert machine("explain", "a.json", "b.json") == 0
    assert "\n  - " in machine.out
    assert "\n  + " in machine.out
    assert "every input is equal" not in machine.err


def test_explain_reads_manifests_and_tells_only_the_difference(line: Line) -> None:
    newer = (KeyPart(name="tree", value="t"), KeyPart(name="cxx", value="gcc 13"))
    write_json(line.root / "a.json", manifest())
    write_json(line.root / "b.json", manifest(inputs=newer))
    assert line("explain", "a.json", "b.json") == 0
    assert line.out == "cxx\n  - gcc 12\n  + gcc 13\n"
    assert line("explain", "a.json", "b.json", "--json") == 0
    assert json.loads(line.out) == [{"name": "cxx", "a": "gcc 12", "b": "gcc 13"}]


def test_explain_names_an_input_that_only_one_side_has(line: Line) -> None:
    write_json(line.root / "a.json", manifest(inputs=()))
    write_json(line.root / "b.json", manifest(inputs=(KeyPart(name="tree", value="t"),)))
    assert line("explain", "a.json", "b.json") == 0
    assert line.out == "tree\n  - \n  + t\n"


def test_explain_opens_a_packed_artifact(line: Line) -> None:
    tree = line.root / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "llama-cli").write_bytes(b"program")
    inputs = (KeyPart(name="cxx", value="gcc 12"),)
    packed = verify_kit.pack(tree, line.root, replace(verify_kit.manifest(tree), inputs=inputs))
    write_json(line.root / "b.json", manifest(inputs=(KeyPart(name="cxx", value="clang"),)))
    assert line("explain", packed, "b.json") == 0
    assert line.out == "cxx\n  - gcc 12\n  + clang\n"
    assert not list(line.root.glob(".opened-*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("absent.json", None),
        ("absent.tar.zst", None),
        ("cut.json", b'{"inputs": [{"na'),
        ("binary.json", b"\xff\xfe\x00"),
        ("list.json", b"[1, 2]"),
        ("number.json", b"7"),
        ("other.json", b'{"code": 0}'),
        ("text.json", b'{"inputs": "many"}'),
        ("rows.json", b'{"parts": [{"name": "x"}]}'),
        ("null.json", b'{"inputs": null}'),
    ],
)
def test_explain_refuses_what_holds_no_inputs_as_a_mistake_of_the_line(
    name: str, content: bytes | None, line: Line
) -> None:
    write_json(line.root / "good.json", manifest())
    if content is not None:
        (line.root / name).write_bytes(content)
    for pair in ((name, "good.json"), ("good.json", name)):
        assert line("explain", *pair) == 2
        assert name in line.err
        assert "hint: " in line.err
        assert "Traceback" not in line.err


def test_explain_tells_a_damaged_artifact_from_a_wrong_word(line: Line) -> None:
    write_json(line.root / "good.json", manifest())
    (line.root / "x.tar.zst").write_bytes(b"no archive")
    assert line("explain", "x.tar.zst", "good.json") == 9


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "vulkan", "--jobs", "many"),
        ("plan", "vulkan", "--vulkan", "somewhere"),
        ("plan", "vulkan", "--recipe", "no-such-recipe"),
        ("doctor", "--jobs", "many"),
    ],
    ids=" ".join,
)
def test_a_value_that_makes_no_sense_is_a_usage_error_with_a_record(
    words: tuple[str, ...], machine: Line
) -> None:
    assert machine(*words, "--json") == 2
    assert json.loads(machine.out)["error"]["code"] == 2
    assert machine.last.startswith("llamawright: exit 2 (usage: ")
