"""Statements that somebody changed: every byte and every field counts, and nothing crashes."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attest_kit import NOW, Json, Shelf, key, packed, payload
from llamawright.attest import dsse, signatures, strict
from llamawright.attest.check import Shown, View, read_statements
from llamawright.attest.claim import VerdictRule
from llamawright.attest.findings import Demand, Finding, Part, Standing, conclude
from llamawright.attest.opening import Subject, open_subject
from llamawright.attest.statement import PROVENANCE_TYPE, SBOM_TYPE, VERDICT_TYPE

FILES = ("statements", "sbom")
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


class Scene:
    """A signed file whose archive is opened once: thousands of flips look only beside it."""

    def __init__(self, folder: Path) -> None:
        self.shelf = Shelf(path=packed(folder), keys=(key(folder / "keys"),)).attest()
        self.subject: Subject = open_subject(self.shelf.path)
        self.saved = {name: self.place(name).read_bytes() for name in FILES}

    def place(self, name: str) -> Path:
        return self.shelf.statements if name == "statements" else self.shelf.sbom

    def restore(self) -> None:
        for name, data in self.saved.items():
            self.place(name).write_bytes(data)

    def findings(self) -> tuple[Finding, ...]:
        shown: tuple[Shown, ...]
        shown, broken = read_statements(self.shelf.path, self.shelf.trust())
        view = View(
            path=self.shelf.path, sha256=self.subject.sha256, subject=self.subject, shown=shown,
            rule=VerdictRule(now=NOW),
        )  # fmt: skip
        archive = Finding(part=Part.ARCHIVE, standing=Standing.VALID, seen="opened before")
        return (archive, *broken, *view.sbom(), *view.provenance(), *view.verdict())

    def refused(self) -> str:
        """Return the class of the refusal; every part is asked for."""
        parts = frozenset({Part.SBOM, Part.PROVENANCE, Part.VERDICT})
        error = conclude("x", self.findings(), Demand(trust=True, parts=parts))
        return "" if error is None else error.kind


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def scene(shared: Scene) -> Iterator[Scene]:
    shared.restore()
    yield shared
    shared.restore()


def test_the_scene_is_accepted_as_it_is(scene: Scene) -> None:
    assert scene.refused() == ""
    assert {f.standing for f in scene.findings()} == {Standing.VALID}


@pytest.mark.parametrize("name", FILES)
def test_no_byte_can_be_flipped(scene: Scene, name: str) -> None:
    """Each flip is refused, or both files still say exactly the same (a space, a line's end)."""
    whole = scene.saved[name]
    before = meaning(scene, name, whole)
    step = max(1, len(whole) // 110)
    for at in range(0, len(whole), step):
        data = bytearray(whole)
        data[at] ^= 1 << (at % 8)
        scene.place(name).write_bytes(data)
        if not scene.refused():
            assert meaning(scene, name, bytes(data)) == before, f"byte {at}"


@settings(max_examples=120, suppress_health_check=SLOW, deadline=None)
@given(st.data())
def test_no_run_of_bytes_can_be_replaced(scene: Scene, draw: st.DataObject) -> None:
    name = draw.draw(st.sampled_from(FILES))
    whole = scene.saved[name]
    at = draw.draw(st.integers(0, len(whole) - 1))
    length = draw.draw(st.integers(0, 30))
    data = whole[:at] + draw.draw(st.binary(max_size=8)) + whole[at + length :]
    scene.place(name).write_bytes(data)
    if not scene.refused():
        assert meaning(scene, name, data) == meaning(scene, name, whole)


@pytest.mark.parametrize("name", FILES)
def test_no_file_can_be_cut(scene: Scene, name: str) -> None:
    whole = scene.saved[name]
    for length in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 2):
        scene.place(name).write_bytes(whole[:length])
        assert scene.refused()


def meaning(scene: Scene, name: str, data: bytes) -> object:
    if name == "sbom":
        return strict.load(data)
    return [strict.load(line) for line in data.removesuffix(b"\n").split(b"\n")]


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every field that is no object and no list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path


def changed(value: object, path: tuple[str | int, ...]) -> object:
    """Return a copy of a document with one field changed."""
    copy = json.loads(json.dumps(value))
    at = copy
    for step in path[:-1]:
        at = at[step]
    old = at[path[-1]]
    at[path[-1]] = (
        not old if isinstance(old, bool) else old + 1 if isinstance(old, int | float) else "x"
    )
    return copy


@pytest.mark.parametrize("kind", [PROVENANCE_TYPE, SBOM_TYPE, VERDICT_TYPE])
def test_no_field_of_a_statement_can_be_changed(scene: Scene, kind: str) -> None:
    lines = scene.shelf.lines()
    number = next(i for i, x in enumerate(lines) if payload(x)["predicateType"] == kind)
    said = payload(lines[number])
    for path in leaves(said):
        text = json.dumps(changed(said, path)).encode()
        new = {**lines[number], "payload": base64.b64encode(text).decode()}
        scene.shelf.rewrite([*lines[:number], new, *lines[number + 1 :]])
        assert scene.refused(), path


def test_no_field_of_the_sbom_can_be_changed(scene: Scene) -> None:
    document = json.loads(scene.saved["sbom"])
    for path in leaves(document):
        scene.shelf.sbom.write_text(json.dumps(changed(document, path)))
        assert scene.refused() == "invalid-sbom", path


@pytest.mark.parametrize("field", ["payload", "payloadType", "signatures"])
@pytest.mark.parametrize("value", [None, 1, "", [], {}, "QUI=", [{"sig": "QUI="}]])
def test_no_field_of_an_envelope_can_be_replaced(scene: Scene, field: str, value: object) -> None:
    lines = scene.shelf.lines()
    for number in range(len(lines)):
        new: Json = {**lines[number], field: value}  # type: ignore[dict-item]
        scene.shelf.rewrite([*lines[:number], new, *lines[number + 1 :]])
        assert scene.refused()


def test_statements_cannot_swap_their_signatures(scene: Scene) -> None:
    lines = scene.shelf.lines()
    first, second = dict(lines[0]), dict(lines[1])
    first["signatures"], second["signatures"] = lines[1]["signatures"], lines[0]["signatures"]
    scene.shelf.rewrite([first, second, *lines[2:]])
    assert scene.refused() == "bad-signature"


def test_a_duplicated_key_is_refused_in_envelope_statement_and_sbom(scene: Scene) -> None:
    """One reader takes the first, another the last: here neither is taken."""
    text = scene.saved["statements"].decode()
    twice = text.replace('"payloadType":', '"payloadType":"x","payloadType":', 1)
    scene.shelf.statements.write_text(twice)
    assert scene.refused() == "invalid-statements"
    scene.restore()
    line = scene.shelf.lines()[0]
    said = base64.b64decode(str(line["payload"])).decode()
    inner = said.replace('"_type":', '"_type":"x","_type":', 1).encode()
    sealed = dsse.encode(dsse.seal(inner, scene.shelf.keys)) + b"\n"
    scene.shelf.statements.write_bytes(sealed)
    found = scene.findings()
    assert "is there twice" in next(f.seen for f in found if f.part is Part.STATEMENTS)
    scene.restore()
    bill = scene.saved["sbom"].decode().replace('"bomFormat":', '"bomFormat":"x","bomFormat":', 1)
    scene.shelf.sbom.write_text(bill)
    assert scene.refused() == "invalid-sbom"


def test_a_genuine_signature_of_another_payload_type_is_no_statement(scene: Scene) -> None:
    """The key also signs other things: what it signed as one is not taken as the other."""
    (mine,) = scene.shelf.keys
    said = base64.b64decode(str(scene.shelf.lines()[2]["payload"]))
    sig = mine.sign(dsse.encoded_for_signing("text/plain", said))
    for kind in ("text/plain", dsse.PAYLOAD_TYPE):
        made = dsse.Envelope(
            payload=said, payload_type=kind,
            signatures=(dsse.Signature(keyid=mine.keyid, sig=sig),),
        )  # fmt: skip
        scene.shelf.statements.write_bytes(dsse.encode(made) + b"\n")
        assert scene.refused()
        assert any(f.standing is Standing.INVALID for f in scene.findings())


def test_a_predicate_under_another_type_is_refused(scene: Scene) -> None:
    for kind in (SBOM_TYPE, PROVENANCE_TYPE):

        def disguise(said: Json, kind: str = kind) -> None:
            said["predicateType"] = kind

        scene.restore()
        scene.shelf.resign(disguise, kind=VERDICT_TYPE)
        assert scene.refused() in {"invalid-sbom", "invalid-provenance"}


def test_a_statement_of_a_kind_that_nobody_knows_is_not_passed_over(scene: Scene) -> None:
    def strange(said: Json) -> None:
        said["predicateType"] = "https://example.com/trust-me/v1"

    scene.shelf.resign(strange, kind=PROVENANCE_TYPE)
    assert scene.refused() == "invalid-statements"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"\n\n\n", b"[]\n", b"null\n", b"{}\n", b"\xff\xfe\n", b"<html></html>",
        b"[" * 200_000, b"{}\n" * 5000, b'"x"', b"\x00" * 5000,
    ],
)  # fmt: skip
def test_files_that_hold_no_statements_are_told_so(scene: Scene, data: bytes) -> None:
    scene.shelf.statements.write_bytes(data)
    assert scene.refused() == "invalid-statements"
    scene.restore()
    scene.shelf.sbom.write_bytes(data)
    assert scene.refused() == "invalid-sbom"


def test_huge_files_are_refused_unread(scene: Scene) -> None:
    for name in FILES:
        scene.restore()
        with scene.place(name).open("ab") as stream:
            stream.truncate(strict.SIZE_LIMIT + 1)
        assert "larger than 32 MiB" in " ".join(f.seen for f in scene.findings())
        assert scene.refused()


def test_hundreds_of_statements_and_signatures_are_refused(scene: Scene) -> None:
    scene.shelf.statements.write_bytes(scene.saved["statements"] * 30)
    assert scene.refused() == "invalid-statements"
    lines = scene.shelf.lines()[:3]
    lines[0]["signatures"] = list(lines[0]["signatures"]) * 17  # type: ignore[arg-type]
    scene.shelf.rewrite(lines)
    assert scene.refused() == "invalid-statements"


def test_a_folder_or_a_loop_in_a_file_s_place_is_no_crash(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / scene.shelf.path.name
    shutil.copyfile(scene.shelf.path, path)
    there = Shelf(path=path, keys=scene.shelf.keys)
    there.statements.mkdir()
    there.sbom.symlink_to(there.sbom.name)
    assert there.kind() == "10 missing-verdict"


@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_a_sentence(data: bytes) -> None:
    try:
        made = dsse.decode(strict.load(data))
    except ValueError as error:
        assert str(error)  # noqa: PT017 - both ends are right
    else:
        assert signatures.judge(made, ())[0] in {Standing.UNSIGNED, Standing.NOT_CHECKED}
