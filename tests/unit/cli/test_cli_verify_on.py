"""``verify --on``: what is sent, what comes back, and whose verdict it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli_kit import manifest, verdict
from llamawright import codec
from llamawright.cli import main
from llamawright.digest import plain, sha256_file
from llamawright.errors import ExitCode, LockedError
from llamawright.model.cuda import Companion, CudaFacts
from llamawright.model.platform import Platform, System
from llamawright.model.ports import Reporter
from llamawright.model.remote import FarRun, Host
from llamawright.model.request import ProofRequest
from llamawright.model.verdict import State
from llamawright.pipeline import Pipeline
from llamawright.remote import Errand

ROOM = "llamawright.cli.verify_on"


class Desk:
    """The verb with another machine that answers as told."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.errands, self.hosts = root, list[Errand](), list[Host]()
        self.artifact = root / "x.tar.zst"
        self.artifact.write_bytes(b"no archive, which is the other side's to say")
        self.model = root / "m.gguf"
        self.model.write_bytes(b"GGUF")
        self.verdict = verdict(
            artifact=self.artifact.name, artifact_sha256=sha256_file(self.artifact)
        )
        self.answer: dict[str, object] | None = None
        self.extra = dict[str, str]()
        self.code = 0
        patch.setattr(f"{ROOM}.send_and_run", self._run)
        patch.setattr(f"{ROOM}.pack_tool", lambda _checkout, _folder: None)
        patch.setattr(Pipeline, "_model", lambda _self: self.model)

    def _run(self, errand: Errand, host: Host, folder: Path, _reporter: Reporter) -> FarRun:
        self.errands.append(errand)
        self.hosts.append(host)
        written = {
            "result.json": json.dumps(self.result()), **self.extra,
            **dict.fromkeys(errand.keep, codec.encode(self.verdict)),
        }  # fmt: skip
        for name, text in written.items():
            (folder / name).write_text(text)
        return FarRun(code=self.code, files=tuple(sorted(folder.iterdir())), last="the last line")

    def result(self) -> dict[str, object] | None:
        """Return what the other side's ``--json`` printed."""
        whole = {"code": self.code, "class": self.verdict.failure, "verdict": plain(self.verdict)}
        return whole if self.answer is None else self.answer

    def verify(self, *words: str, on: str = "ssh://me@box:22") -> int:
        store = str(self.root / "store")
        return main(["verify", str(self.artifact), "--on", on, "--store", store, *words])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def test_the_verdict_comes_as_it_is_and_its_page_is_made_here(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.verify("--json") == 0
    assert desk.hosts == [Host(name="box", user="me", port=22)]
    assert (desk.root / "x.verdict.json").read_text() == codec.encode(desk.verdict)
    assert desk.verdict.artifact_sha256 in (desk.root / "x.report.html").read_text()
    assert not (desk.root / "result.json").exists()
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert result["on"] == "box"
    assert result["reports"] == [
        str(desk.root / "x.verdict.json"), str(desk.root / "x.report.html"),
    ]  # fmt: skip
    assert "made on   box" in said.err


def test_it_says_what_machine_made_the_verdict(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.verdict = replace(desk.verdict, host=(("system", "Linux 6.1"), ("machine", "x86_64")))
    assert desk.verify() == 0
    assert "made on   box (Linux 6.1, x86_64)" in capsys.readouterr().err


def test_files_of_other_names_do_not_come_beside_the_artifact(desk: Desk) -> None:
    """A machine that lies would else write over the verdict of another artifact."""
    good = desk.root / "good.verdict.json"
    good.write_text("mine")
    desk.extra = {good.name: "theirs", "x.report.html": "<script>", "evil.html": "<script>"}
    assert desk.verify() == 0
    assert good.read_text() == "mine"
    assert not (desk.root / "evil.html").exists()
    assert "<script>" not in (desk.root / "x.report.html").read_text()
    assert desk.errands[0].keep == ("x.verdict.json",)


def test_artifact_sidecar_and_model_are_sent(desk: Desk) -> None:
    sidecar = desk.root / "x.tar.zst.sha256"
    sidecar.write_text("0  x.tar.zst\n")
    desk.verify()
    assert [p.name for p in desk.errands[0].parcels] == ["x.tar.zst", "m.gguf", sidecar.name]
    words = desk.errands[0].argv
    assert words[:4] == ("verify", "@ROOM@/x.tar.zst", "--model", "@ROOM@/m.gguf")
    assert "--on" not in words


def test_the_companion_with_cudas_libraries_goes_along(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "cuda-runtime-13.0-linux_x86_64.tar.zst"
    companion = Companion(file=name, sha256="a" * 64, size=9, libraries=("libcudart.so.13",))
    facts = CudaFacts(toolkit="13.0.88", codes=(), driver="", driver_jit="", companion=companion)
    made = manifest(name="x", cuda=facts)
    (desk.root / name).write_bytes(b"libraries")
    monkeypatch.setattr(f"{ROOM}.open_artifact", lambda _path, _room: made)
    desk.verify()
    assert name in {p.name for p in desk.errands[0].parcels}


def test_a_wheel_brings_the_wheels_that_it_needs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = desk.root / "links"
    links.mkdir()
    desk.artifact = desk.artifact.rename(desk.root / "x-1-py3-none-any.whl")
    desk.verdict = replace(desk.verdict, artifact=desk.artifact.name)
    for place, name in ((desk.root, "nvidia_cublas_cu12-12-py3-none-any.whl"),
                        (links, "nvidia_cuda_runtime-12-py3-none-any.whl"),
                        (links, "nvidia_other-1-py3-none-any.whl")):  # fmt: skip
        (place / name).write_bytes(name.encode())
    needs = ("nvidia-cublas-cu12==12", "nvidia.cuda-runtime>=12")
    made = SimpleNamespace(requires=needs, manifest=manifest(name="inside"))
    monkeypatch.setattr(f"{ROOM}.read_wheel", lambda _path: made)
    assert desk.verify("--find-links", str(links)) == 0
    sent = {p.name for p in desk.errands[0].parcels}
    assert {
        "nvidia_cublas_cu12-12-py3-none-any.whl",
        "nvidia_cuda_runtime-12-py3-none-any.whl",
    } < sent
    assert "nvidia_other-1-py3-none-any.whl" not in sent
    assert desk.errands[0].keep == ("inside.verdict.json",)


def test_the_platform_is_the_artifacts_not_this_machines(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    mac = Platform(System.MACOS, "arm64")
    made = manifest(name="x", platform=mac)
    monkeypatch.setattr(f"{ROOM}.open_artifact", lambda _path, _room: made)
    desk.verify()
    assert desk.errands[0].platform == mac


def test_packages_may_be_fetched_unless_it_is_offline(desk: Desk) -> None:
    desk.verify()
    desk.verify("--offline")
    with_index, without = (errand.lock for errand in desk.errands)
    assert with_index is not None
    assert with_index.name == "tool.lock"
    assert with_index.is_file()
    assert without is None


def test_the_users_wishes_go_along(desk: Desk) -> None:
    desk.verify("--device", "RTX 4090", "--require-hardware", "--clear-quarantine", "--offline")
    words = desk.errands[0].argv
    assert words[words.index("--device") + 1] == "RTX 4090"
    assert {"--require-hardware", "--clear-quarantine", "--offline"} <= set(words)


def test_a_recipe_file_is_sent_and_a_name_is_said(desk: Desk) -> None:
    desk.verify("--recipe", "llama.cpp")
    assert desk.errands[0].argv[-2:] == ("--recipe", "llama.cpp")
    own = desk.root / "own.toml"
    own.write_text((Path(__file__).parents[3] / "recipes" / "llama.cpp.toml").read_text())
    desk.verify("--recipe", str(own))
    assert desk.errands[1].argv[-2:] == ("--recipe", "@ROOM@/own.toml")
    assert own in {p.path for p in desk.errands[1].parcels}


@pytest.mark.parametrize(
    ("state", "failure", "words", "code"),
    [
        (State.FAILED, "wrong-numbers", (), ExitCode.VERIFICATION),
        (State.QUARANTINED, "froze", (), ExitCode.VERIFICATION),
        (State.UNVERIFIED, "no-device", (), ExitCode.NO_DEVICE),
        (State.VERIFIED_SOFTWARE, "", (), ExitCode.OK),
        (State.VERIFIED_SOFTWARE, "", ("--require-hardware",), ExitCode.NO_DEVICE),
    ],
)
@pytest.mark.parametrize("honest", [True, False])
def test_the_exit_code_is_what_the_verdict_demands(  # noqa: PLR0917
    desk: Desk, state: State, failure: str, words: tuple[str, ...], code: ExitCode, honest: bool
) -> None:
    """Also when the other side ends with 0 on a verdict that is none."""
    desk.verdict = replace(desk.verdict, state=state, failure=failure)
    desk.code = int(code) if honest else 0
    assert desk.verify(*words) == int(code)
    assert (desk.root / "x.verdict.json").is_file()


def test_a_doubt_of_the_other_side_counts_as_well(desk: Desk) -> None:
    desk.code = 11
    assert desk.verify() == int(ExitCode.NO_DEVICE)


def test_a_failed_proof_ends_with_its_class(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.verdict = replace(desk.verdict, state=State.FAILED, failure="wrong-numbers")
    desk.verify()
    assert "llamawright: exit 10 (verification: wrong-numbers)" in capsys.readouterr().err


def test_an_error_there_is_told_by_its_class(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.answer = {"error": {"code": 11, "class": "no-hardware-device", "what": "x"}}
    desk.code = 11
    assert desk.verify() == int(ExitCode.NO_DEVICE)
    assert "no-hardware-device" in capsys.readouterr().err


def test_a_verdict_of_another_file_is_refused(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.verdict = replace(desk.verdict, artifact_sha256="f" * 64)
    assert desk.verify() == int(ExitCode.VERIFICATION)
    assert "other-artifact" in capsys.readouterr().err
    assert not (desk.root / "x.verdict.json").exists()


def test_a_run_that_left_no_result_is_told_with_its_last_line(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Desk, "result", lambda _desk: None)
    desk.code = 137
    assert desk.verify() == int(LockedError.code)
    said = capsys.readouterr().err
    assert "far-no-result" in said
    assert "the last line" in said


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("--soak", "20m"), "not-elsewhere"),
        (("--against", "y"), "not-elsewhere"),
        (("--investigate",), "not-elsewhere"),
    ],
)
def test_what_needs_this_machine_is_refused(
    desk: Desk, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], kind: str
) -> None:
    assert desk.verify(*words) == int(ExitCode.USAGE)
    assert kind in capsys.readouterr().err
    assert desk.errands == []


def test_a_bad_address_or_a_missing_file_ends_at_once(desk: Desk) -> None:
    assert desk.verify(on="box") == int(ExitCode.USAGE)
    desk.artifact.unlink()
    assert desk.verify() == int(ExitCode.PACKAGE)


def test_two_files_of_one_name_are_refused(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    other = desk.root / "elsewhere"
    other.mkdir()
    desk.model = other / "x.tar.zst"
    desk.model.write_bytes(b"GGUF")
    assert desk.verify() == int(ExitCode.USAGE)
    assert "same-name" in capsys.readouterr().err


def test_the_pinned_model_counts_as_pinned_when_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the other machine could not check the known answer."""
    from llamawright.cli.arguments import make_parser
    from llamawright.console import Console
    from pipeline_kit import proof_of

    flags = make_parser().parse_args(["verify", "x", "--model", str(tmp_path / "m.gguf")])
    flags.backend = None
    assert isinstance(proof_of(flags), ProofRequest)
    pipeline = Pipeline.open(flags, tmp_path / "store", Console.for_process(quiet=True))
    (tmp_path / "m.gguf").write_bytes(b"own")
    assert pipeline.proof_request(Path("x")).model_sha256 == ""
    pin = pipeline.recipe.verification.model
    monkeypatch.setattr("llamawright.pipeline.sha256_file", lambda _path: pin.sha256)
    with (tmp_path / "m.gguf").open("wb") as stream:
        stream.truncate(pin.size)
    assert pipeline.proof_request(Path("x")).model_sha256 == pin.sha256
