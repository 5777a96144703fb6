"""The File API reader over answers written in CMake's shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright.build.fileapi import CLIENT, Reply, ask_for_reply, read_reply
from llamawright.errors import BuildError

TARGET = {
    "name": "ggml-vulkan",
    "type": "MODULE_LIBRARY",
    "id": "ggml-vulkan::@1",
    "artifacts": [{"path": "bin/libggml-vulkan.so"}],
    "compileGroups": [
        {
            "language": "CXX",
            "compileCommandFragments": [{"fragment": "-O3", "backtrace": 3}, {"fragment": "-Wall"}],
            "defines": [{"define": "GGML_SHARED"}, {"define": "COOPMAT=1", "backtrace": 2}],
            "includes": [{"path": "/sdk/include", "isSystem": True}],
            "languageStandard": {"standard": "17", "backtraces": [1]},
            "sourceIndexes": [0],
        },
        {"language": "C", "sourceIndexes": [1]},
    ],
}
ANSWERS: dict[str, dict[str, object]] = {
    "codemodel": {
        "configurations": [{"name": "Release", "targets": [{"jsonFile": "t.json", "name": "x"}]}],
        "paths": {"build": "/b", "source": "/s"},
    },
    "cache": {
        "entries": [{"name": "GGML_VULKAN", "value": "ON", "type": "BOOL", "properties": []}]
    },
    "toolchains": {
        "toolchains": [
            {
                "language": "CXX",
                "compiler": {
                    "path": "/usr/bin/g++",
                    "id": "GNU",
                    "version": "12.2.0",
                    "implicit": {},
                },
                "sourceFileExtensions": ["cpp"],
            },
            {"language": "ASM", "compiler": {"path": "/usr/bin/gcc"}},
        ]
    },
    "cmakeFiles": {
        "inputs": [{"path": "CMakeLists.txt"}, {"path": "/m/Find.cmake", "isCMake": True}]
    },
}


def answer(build: Path, *, index: str = "index-2026-12-01.json", **changes: object) -> Path:
    folder = build / ".cmake" / "api" / "v1" / "reply"
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {**ANSWERS, **changes}
    responses = []
    for kind, value in kinds.items():
        (folder / f"{kind}.json").write_text(json.dumps(value))
        responses.append({"kind": kind, "jsonFile": f"{kind}.json", "version": {"major": 2}})
    (folder / "t.json").write_text(json.dumps(TARGET))
    body = {"cmake": {}, "objects": [], "reply": {CLIENT: {"query.json": {"responses": responses}}}}
    (folder / index).write_text(json.dumps(body))
    return folder


@pytest.fixture
def reply(tmp_path: Path) -> Reply:
    answer(tmp_path)
    return read_reply(tmp_path)


def test_a_target_has_its_flags_definitions_and_folders(reply: Reply) -> None:
    target = reply.target("ggml-vulkan")
    assert target is not None
    assert target.type == "MODULE_LIBRARY"
    assert target.artifacts == ("bin/libggml-vulkan.so",)
    assert target.defines == {"GGML_SHARED", "COOPMAT"}
    assert target.includes == {"/sdk/include"}
    assert target.groups[0].flags == ("-O3", "-Wall")
    assert (target.groups[0].standard, target.groups[1].standard) == ("17", "")


def test_compilers_cache_and_inputs_are_read(reply: Reply) -> None:
    cxx = reply.compiler("CXX")
    assert cxx is not None
    assert (cxx.path, cxx.id, cxx.version) == ("/usr/bin/g++", "GNU", "12.2.0")
    assert reply.entry("GGML_VULKAN") == "ON"
    assert reply.entry("GGML_CUDA") is None
    assert reply.inputs == ("CMakeLists.txt", "/m/Find.cmake")


def test_what_is_not_there_is_none(reply: Reply) -> None:
    assert reply.target("ggml-cuda") is None
    assert reply.compiler("CUDA") is None


def test_the_newest_answer_counts(tmp_path: Path) -> None:
    answer(tmp_path, index="index-2026-12-01T02.json")
    off = {"entries": [{"name": "GGML_VULKAN", "value": "OFF"}]}
    answer(tmp_path, index="index-2026-12-01T03.json", cache=off)
    assert read_reply(tmp_path).entry("GGML_VULKAN") == "OFF"


def test_no_answer_is_an_error_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        read_reply(tmp_path)
    assert caught.value.kind == "no-file-api"
    assert "--cmake" in caught.value.hint


def test_a_kind_that_cmake_refused_is_an_error(tmp_path: Path) -> None:
    folder = answer(tmp_path)
    body = {"reply": {CLIENT: {"query.json": {"responses": [{"error": "unknown request kind"}]}}}}
    (folder / "index-2026-12-01.json").write_text(json.dumps(body))
    with pytest.raises(BuildError, match="cannot be read"):
        read_reply(tmp_path)


@pytest.mark.parametrize("kind", ["codemodel", "cache", "toolchains", "cmakeFiles"])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"entries": 3}', "\x00"])
def test_a_torn_answer_is_an_error_and_never_a_crash(tmp_path: Path, kind: str, text: str) -> None:
    (answer(tmp_path) / f"{kind}.json").write_text(text)
    with pytest.raises(BuildError) as caught:
        read_reply(tmp_path)
    assert caught.value.kind == "no-file-api"


def test_a_missing_file_of_an_answer_is_an_error(tmp_path: Path) -> None:
    (answer(tmp_path) / "t.json").unlink()
    with pytest.raises(BuildError):
        read_reply(tmp_path)


def test_the_question_asks_for_all_that_is_read(tmp_path: Path) -> None:
    ask_for_reply(tmp_path)
    ask_for_reply(tmp_path)
    query = tmp_path / ".cmake" / "api" / "v1" / "query" / CLIENT / "query.json"
    kinds = {r["kind"] for r in json.loads(query.read_text())["requests"]}
    assert kinds == set(ANSWERS)
