"""SBOM, provenance and materials: what they say, that they repeat, and what they may not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import attest_kit
from attest_kit import BSD, COMMIT, Json, packed, wheel
from llamawright.attest import provenance, sbom, statement, strict
from llamawright.attest.materials import materials
from llamawright.attest.opening import Subject, open_subject
from llamawright.attest.provenance import Invocation
from llamawright.model.cuda import CudaFacts
from llamawright.model.plan import KeyPart


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return open_subject(packed(tmp_path_factory.mktemp("packed")))


def bill(subject: Subject) -> Json:
    return json.loads(sbom.sbom(subject))  # type: ignore[no-any-return]


def component(document: Json, name: str) -> Json:
    found = [c for c in document["components"] if c["name"] == name]  # type: ignore[index,union-attr,call-overload]
    assert len(found) == 1
    return found[0]  # type: ignore[return-value]


def test_the_same_file_gives_the_same_bytes(subject: Subject) -> None:
    assert sbom.sbom(subject) == sbom.sbom(subject)
    other = sbom.sbom(replace(subject, sha256="1" * 64))
    assert json.loads(other)["serialNumber"] != bill(subject)["serialNumber"]


def test_the_bill_is_of_the_form_that_others_read(subject: Subject) -> None:
    told = bill(subject)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    root = told["metadata"]["component"]  # type: ignore[index,call-overload]
    assert root["name"] == subject.name  # type: ignore[index,call-overload]
    assert {"alg": "SHA-256", "content": subject.sha256} in root["hashes"]  # type: ignore[index,call-overload,operator]
    assert told["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"  # type: ignore[index,call-overload]


def test_every_file_is_in_it_with_its_digest(subject: Subject) -> None:
    told = bill(subject)
    for entry in subject.manifest.files:
        hashes = component(told, entry.path)["hashes"]
        assert hashes == [{"alg": "SHA-256", "content": entry.sha256}]
    assert component(told, "bin/libggml.so")["type"] == "library"
    assert component(told, "bin/llama-cli")["type"] == "file"


def test_the_source_has_its_commit_patches_and_licences(subject: Subject) -> None:
    source = component(bill(subject), "llama.cpp")
    assert source["version"] == COMMIT
    assert source["purl"] == f"pkg:github/ggml-org/llama.cpp@{COMMIT}"
    pedigree = json.dumps(source["pedigree"])
    assert "0001-fix" in pedigree
    assert "a" * 64 in pedigree
    assert '"type": "defect"' in pedigree
    assert [c["license"]["id"] for c in source["licenses"]] == ["BSD-2-Clause", "MIT"]  # type: ignore[index,union-attr,call-overload]


def test_the_tools_are_in_it_with_their_digests(subject: Subject) -> None:
    tools = bill(subject)["metadata"]["tools"]["components"]  # type: ignore[index,call-overload]
    names = {t["name"]: t.get("hashes", [{}])[0].get("content") for t in tools}  # type: ignore[union-attr,index,call-overload]
    assert names == {
        "gcc": "c" * 64, "cmake": "d" * 64, "vulkan-debian13": "5" * 64, "llamawright": None,
    }  # fmt: skip


def test_a_wheel_has_a_bill_too(tmp_path: Path) -> None:
    subject = open_subject(wheel(tmp_path))
    told = bill(subject)
    assert component(told, "bin/llama-cli")["hashes"]
    assert sbom.faults(strict.load(sbom.sbom(subject).encode()), subject) == ()
    assert [path for path, _ in subject.licenses] == [
        "licenses/AUTHORS", "licenses/LICENSE", "licenses/vendor-x-LICENSE",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIT License\n\nCopyright", "MIT"),
        ("The MIT License (MIT)\n", "MIT"),
        (BSD, "BSD-2-Clause"),
        ("Apache License\nVersion 2.0", "Apache-2.0"),
        ("2010-06-11 : Igor Pavlov : Public domain", ""),
        ("", ""),
        ("\n" * 20 + "MIT License", ""),
    ],
)
def test_a_licence_is_known_by_its_title_only(text: str, expected: str) -> None:
    assert sbom.license_id(text) == expected


def edited(subject: Subject, path: list[str | int], value: object) -> tuple[str, ...]:
    told: object = bill(subject)
    at = told
    for step in path[:-1]:
        at = at[step]  # type: ignore[index]
    at[path[-1]] = value  # type: ignore[index]
    return sbom.faults(told, subject)  # type: ignore[arg-type]


ROOT: list[str | int] = ["metadata", "component"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ([*ROOT, "name"], "other.tar.zst"),
        ([*ROOT, "version"], "b1"),
        ([*ROOT, "hashes", 0, "content"], "0" * 64),
        ([*ROOT, "properties", 0, "value"], "cpu"),
        (["components", 1, "hashes", 0, "content"], "0" * 64),
        (["components", 1, "name"], "bin/evil"),
        (["components", 0, "version"], "f" * 40),
        (["components", 0, "properties", 0, "value"], "b" * 64),
        (["metadata", "tools", "components", 0, "version"], "13"),
        (["metadata", "tools", "components", 0, "hashes", 0, "content"], "0" * 64),
        (["specVersion"], "1.4"),
    ],
)
def test_a_bill_that_disagrees_with_the_file_is_told_where(
    subject: Subject, path: list[str | int], value: object
) -> None:
    wrong = edited(subject, path, value)
    assert any("left out or changed" in w for w in wrong)
    assert any("is not in the file so" in w for w in wrong)


def test_a_component_more_or_less_is_told(subject: Subject) -> None:
    told = bill(subject)
    components = told["components"]
    assert isinstance(components, list)
    assert sbom.faults({**told, "components": components[:-1]}, subject)
    extra: Json = {"name": "bin/evil", "type": "file"}
    assert sbom.faults({**told, "components": [*components, extra]}, subject)


@pytest.mark.parametrize(
    "document", [None, [], {}, {"bomFormat": "SPDX"}, {"bomFormat": "CycloneDX"}, "x", 3]
)
def test_what_is_no_bill_is_refused(subject: Subject, document: object) -> None:
    with pytest.raises(ValueError, match="CycloneDX"):
        sbom.faults(document, subject)  # type: ignore[arg-type]


def test_the_provenance_names_request_decision_and_inputs(subject: Subject) -> None:
    told = provenance.provenance(subject.manifest, Invocation())
    definition = told["buildDefinition"]
    assert isinstance(definition, dict)
    assert definition["externalParameters"] == {
        "upstream": "https://github.com/ggml-org/llama.cpp", "commit": COMMIT, "backend": "vulkan",
        "platform": "linux_x86_64", "native": False, "archs": [], "programs": ["llama-cli"],
    }  # fmt: skip
    inner = definition["internalParameters"]
    assert inner["options"] == {"GGML_VULKAN": "ON"}  # type: ignore[index,call-overload]
    inputs = definition["resolvedDependencies"]
    assert [d["name"] for d in inputs] == [  # type: ignore[index,union-attr,call-overload]
        "ggml-org/llama.cpp", "0001-fix", "gcc", "cmake", "vulkan-debian13",
    ]  # fmt: skip
    assert inputs[0]["digest"] == {"gitCommit": COMMIT}  # type: ignore[index,call-overload]
    assert inputs[1]["digest"] == {"sha256": "a" * 64}  # type: ignore[index,call-overload]


def test_what_nobody_told_is_left_out_and_not_made_up(subject: Subject) -> None:
    told = provenance.provenance(subject.manifest, Invocation())
    assert told["runDetails"] == {
        "builder": {"id": provenance.LOCAL_BUILDER, "version": {"llamawright": "0.1.0"}},
        "metadata": {}, "byproducts": [],
    }  # fmt: skip
    run = Invocation(
        builder="https://ci", invocation="7", started="2026-01-01T00:00:00Z",
        finished="2026-01-01T01:00:00Z", byproducts=(("r.json", "e" * 64),),
    )  # fmt: skip
    told = provenance.provenance(subject.manifest, run)
    assert provenance.told_times(told) == ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")
    assert provenance.builder_of(told) == "https://ci"
    assert "e" * 64 in json.dumps(told)


@pytest.mark.parametrize("predicate", [{}, {"runDetails": 1}, {"runDetails": {"metadata": []}}])
def test_times_of_a_strange_provenance_are_not_told(predicate: Json) -> None:
    assert provenance.told_times(predicate) == ("", "")
    assert provenance.builder_of(predicate) == ""


def test_cuda_tells_its_code_and_its_toolkit(subject: Subject) -> None:
    cuda = CudaFacts(toolkit="12.4.131", codes=("sm_61",), driver="525", driver_jit="550")
    inputs = (
        KeyPart(name="cuda toolkit", value="cuda-12.4-debian13 12.4.131 set " + "7" * 64),
        KeyPart(name="cuda host compiler", value="gcc 12.2.0 /usr/bin/g++ " + "8" * 64),
        KeyPart(name="cuda code", value="61-real"),
    )
    manifest = replace(subject.manifest, cuda=cuda, inputs=inputs)
    told = {m.role: m for m in materials(manifest)}
    assert told["cuda toolkit (nvcc)"].digest == "7" * 64
    assert (told["cuda host compiler"].name, told["cuda host compiler"].digest) == ("gcc", "8" * 64)
    request = provenance.definition(manifest)["externalParameters"]
    assert request["archs"] == ["sm_61"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize("value", ["", "one", "/usr/include", "a b c d"])
def test_a_tool_set_that_is_told_otherwise_does_no_harm(subject: Subject, value: str) -> None:
    inputs = (
        KeyPart(name="vulkan", value=value), KeyPart(name="cuda host compiler", value=value),
    )  # fmt: skip
    manifest = replace(subject.manifest, inputs=inputs)
    assert all(m.digest == "" for m in materials(manifest) if m.role.startswith("cuda"))
    provenance.definition(manifest)
    sbom.sbom(replace(subject, manifest=manifest))


@pytest.mark.parametrize(
    "change",
    [
        {"commit": "f" * 40}, {"key": "0" * 64}, {"patches": ()}, {"tools": ()}, {"native": True},
        {"options": ()}, {"inputs": ()}, {"source_digest": "0" * 64}, {"timestamp": 5},
    ],
)  # fmt: skip
def test_a_provenance_of_another_manifest_is_told(subject: Subject, change: Json) -> None:
    other = replace(subject.manifest, **change)  # type: ignore[arg-type]
    told = provenance.provenance(other, Invocation())
    assert provenance.faults(told, subject.manifest)
    assert provenance.faults(told, other) == ()


@pytest.mark.parametrize(
    "predicate",
    [
        {}, {"buildDefinition": {}}, {"buildDefinition": {}, "runDetails": {}},
        {"buildDefinition": {}, "runDetails": {"builder": {}}},
        {"buildDefinition": {}, "runDetails": {"builder": {"id": 3}}},
        {"buildDefinition": {}, "runDetails": {"builder": {"id": "x"}}, "more": 1},
    ],
)  # fmt: skip
def test_what_is_no_provenance_is_refused(subject: Subject, predicate: Json) -> None:
    with pytest.raises(ValueError, match=r"."):
        provenance.faults(predicate, subject.manifest)


def test_a_statement_comes_back_as_it_was() -> None:
    data = attest_kit.statement_bytes("t", "a" * 64, {"x": 1})
    told = statement.decode(data)
    assert (told.predicate_type, told.name, told.sha256) == ("t", "x", "a" * 64)
    assert statement.encode(told) == data


def raw(**changes: object) -> bytes:
    told = json.loads(attest_kit.statement_bytes("t", "a" * 64, {}))
    return json.dumps({**told, **changes}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (raw(_type="https://in-toto.io/Statement/v0.1"), "its type is"),
        (raw(subject=[]), "exactly one file"),
        (raw(subject=[{"name": "a", "digest": {"sha256": "a" * 64}}] * 2), "exactly one file"),
        (raw(subject=[{"name": "a"}]), "no digest"),
        (raw(subject=[{"name": "a", "digest": {"md5": "a"}}]), "no sha256"),
        (raw(subject=[{"name": "a", "digest": {"sha256": "A" * 64}}]), "64 hex digits"),
        (raw(subject=[{"name": "a", "digest": {"sha256": "a" * 63}}]), "64 hex digits"),
        (raw(subject=[{"name": 1, "digest": {"sha256": "a" * 64}}]), "no text"),
        (raw(predicate=[]), "predicate is no object"),
        (raw(predicateType=1), "predicateType is no text"),
        (raw(more=1), "an unknown 'more'"),
        (b"[]", "no object"),
        (b"", "Expecting"),
    ],
)
def test_what_is_no_statement_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        statement.decode(data)
    assert why in str(caught.value)
