"""A machine that lies: what it sends back is believed only as far as it can be checked here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_kit import verdict
from llamawright import codec
from llamawright.digest import plain
from llamawright.errors import DownloadError, ExitCode, LlamawrightError
from llamawright.model.remote import FarRun, Host
from llamawright.model.verdict import State, Verdict
from llamawright.remote import FarResult, read_result
from llamawright.remote.plan import read_answer, read_machine
from remote_kit import parcel

FAR = Host(name="far")
PAGE = "x.verdict.json"


class Answers:
    """What the other machine sends back for one artifact."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.artifact = parcel(folder / "x.tar.zst", b"artifact")
        self.verdict = verdict(artifact="x.tar.zst", artifact_sha256=self.artifact.sha256)

    def read(
        self, result: object, page: Verdict | bytes | None = None, *, code: int = 0, last: str = ""
    ) -> FarResult:
        files = []
        for name, value in (("result.json", result), (PAGE, page)):
            data = codec.encode(value).encode() if isinstance(value, Verdict) else value
            if data is not None:
                path = self.folder / name
                path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
                files.append(path)
        ended = FarRun(code=code, files=tuple(files), last=last)
        return read_result(ended, artifact=self.artifact, page=PAGE, host=FAR)

    def refused(self, *given: object, code: int = 0, last: str = "") -> LlamawrightError:
        with pytest.raises(LlamawrightError) as caught:
            self.read(*given, code=code, last=last)  # type: ignore[arg-type]
        assert caught.value.hint
        return caught.value


@pytest.fixture
def far(tmp_path: Path) -> Answers:
    return Answers(tmp_path)


def told(found: Verdict, **changes: object) -> dict[str, object]:
    return {"code": 0, "class": "", "verdict": plain(found), **changes}


def test_an_honest_answer_is_taken(far: Answers) -> None:
    result = far.read(told(far.verdict), far.verdict)
    assert (result.verdict, result.code) == (far.verdict, ExitCode.OK)


def test_a_verdict_of_another_file_is_refused(far: Answers) -> None:
    other = replace(far.verdict, artifact_sha256="f" * 64)
    error = far.refused(told(other), other)
    assert (error.kind, error.code) == ("other-artifact", ExitCode.VERIFICATION)


@pytest.mark.parametrize("name", ["../../x.tar.zst", "/etc/x", "y.tar.zst", ""])
def test_a_verdict_with_another_name_is_refused(far: Answers, name: str) -> None:
    """Pages are written under the verdict's name when the archive cannot be read."""
    other = replace(far.verdict, artifact=name)
    assert far.refused(told(other), other).kind == "other-artifact"


def test_a_page_that_is_not_the_verdict_is_refused(far: Answers) -> None:
    """It is what gets signed: a failed one must not hide behind a good result."""
    other = replace(far.verdict, state=State.FAILED, failure="wrong-numbers")
    assert far.refused(told(far.verdict), other).kind == "other-verdict"
    same = json.dumps(plain(far.verdict)).encode()
    assert far.refused(told(far.verdict), same).kind == "other-verdict"


@pytest.mark.parametrize(
    "lie",
    [
        {}, {"verdict": None}, {"verdict": "good"}, {"verdict": {}}, {"verdict": []},
        {"error": None}, {"error": "text"}, {"error": {}}, {"error": {"code": 0}},
        {"error": {"code": 99}}, {"error": {"code": "11"}}, {"error": {"code": -1}},
    ],
)  # fmt: skip
def test_no_result_without_a_verdict_or_an_error_counts(far: Answers, lie: object) -> None:
    error = far.refused(lie)
    assert (error.kind, error.code) == ("far-bad-verdict", ExitCode.VERIFICATION)


@pytest.mark.parametrize("field", ["state", "artifact_sha256", "checks", "speed", "host"])
def test_a_verdict_that_lacks_a_part_is_none(far: Answers, field: str) -> None:
    whole = told(far.verdict)
    found = whole["verdict"]
    assert isinstance(found, dict)
    del found[field]
    assert far.refused(whole, far.verdict).kind == "far-bad-verdict"


def test_a_verdict_with_an_invented_state_is_none(far: Answers) -> None:
    whole = told(far.verdict)
    assert isinstance(whole["verdict"], dict)
    whole["verdict"]["state"] = "verified-by-me"
    assert far.refused(whole, far.verdict).kind == "far-bad-verdict"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 100_000]
)
def test_bytes_that_are_no_result_are_an_interrupted_run(far: Answers, data: bytes) -> None:
    error = far.refused(data, code=137, last="loading")
    assert (error.kind, error.code) == ("far-no-result", ExitCode.LOCKED)
    assert "loading" in (error.why or "")


def test_a_result_without_its_page_is_run_again(far: Answers) -> None:
    error = far.refused(told(far.verdict))
    assert (error.kind, error.code) == ("far-no-result", ExitCode.LOCKED)


def test_a_result_too_large_to_be_one_is_not_read(
    far: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamawright.remote.result.LARGEST", 100)
    assert far.refused(told(far.verdict), far.verdict).kind == "far-no-result"


@pytest.mark.parametrize(
    ("last", "code", "kind", "own"),
    [
        ("llamawright: exit 4 (tool-missing: venv-missing)", 4, "venv-missing", 4),
        ("llamawright: exit 13 (disk: disk)", 13, "disk", 13),
        ("llamawright: exit 6 (download: environment)", 6, "environment", 6),
        # Words alone are no end, and no words make a run that failed a good one.
        ("llamawright: exit 4 (tool-missing: venv-missing)", 1, "far-no-result", 12),
        ("llamawright: exit 0 (fine: fine)", 0, "far-no-result", 12),
        ("llamawright: exit 10 (verification: x)", 10, "far-no-result", 12),
    ],
)
def test_an_early_end_has_its_own_class(
    far: Answers, last: str, code: int, kind: str, own: int
) -> None:
    error = far.refused(None, code=code, last=last)
    assert (error.kind, int(error.code)) == (kind, own)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
NAMES = ("python", "system", "machine", "folder", "free", "whole", "pieces", "libc")


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_no_answer_is_a_bug_here(answer: dict[str, object]) -> None:
    try:
        machine = read_machine(answer, FAR)
    except DownloadError:
        return
    assert machine.folder.startswith("/")
    assert machine.folder.isprintable()


@given(st.text(max_size=200))
def test_no_output_is_a_bug_here(text: str) -> None:
    answer = read_answer(f"@llamawright@{text}")
    assert answer is None or isinstance(answer, dict)
