"""Verdicts, artifacts and command lines for the tests of the command line and the pipeline."""

from __future__ import annotations

import json
import os
import signal
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from llamawright.cli import main
from llamawright.digest import plain
from llamawright.errors import ExitCode
from llamawright.model.artifact import MANIFEST_SCHEMA, Artifact, Manifest
from llamawright.model.built import CapabilityState, StageTiming
from llamawright.model.plan import KeyPart
from llamawright.model.platform import Backend
from llamawright.model.request import ProofRequest
from llamawright.model.verdict import Check, Device, Outcome, Speed, State, Verdict
from llamawright.pipeline import Outcome as RunOutcome
from package_kit import LINUX

NAME = "tiny-012345678-vulkan-linux_x86_64"
DEVICE = Device(
    id="Vulkan0", name="Imaginary GPU 9000", backend="Vulkan", memory=1, software=False
)  # fmt: skip


def check(outcome: Outcome) -> Check:
    """Return one piece of evidence that names its outcome."""
    return Check(
        name=f"check-{outcome}", outcome=outcome, expected="a wish", seen="a sight", source="log"
    )


def verdict(state: State = State.VERIFIED, failure: str = "", **changes: object) -> Verdict:
    """Return a verdict on the imaginary device."""
    base = Verdict(
        state=state, failure=failure, why="", hint="", artifact=NAME, artifact_sha256="a" * 64,
        model="m", model_sha256="b" * 64, device=DEVICE, devices=(DEVICE,), checks=(), runs=(),
        speed=Speed(), kld_per_chunk=(), date="2026-01-01", host=(), seconds=3.0,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def manifest(**changes: object) -> Manifest:
    """Return the manifest of an artifact with one capability lost."""
    base = Manifest(
        schema=MANIFEST_SCHEMA, name=NAME, key="k" * 64, abi="a" * 64, upstream="someone/tiny",
        commit="0123456789" * 4, build_number=7, source_digest="s" * 64, patched_digest="p" * 64,
        backend=Backend.VULKAN, platform=LINUX, patches=(), retired=(), tools=(), options=(),
        capabilities=(
            CapabilityState(name="coopmat", present=True, cost="slow prompts"),
            CapabilityState(name="bfloat16", present=False, cost="slow BF16"),
        ),
        inputs=(KeyPart(name="tree", value="t"), KeyPart(name="cxx", value="gcc 12")),
        modules=(), programs=(), files=(), binaries=(),
        system_libraries=("libc.so.6", "libm.so.6"), glibc="2.38", glibcxx="3.4.30",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def artifact(path: Path, **changes: object) -> Artifact:
    """Return an artifact of 2 KiB that is not written anywhere."""
    told = manifest(**changes)
    return Artifact(path=path / f"{told.name}.tar.zst", size=2048, sha256="c" * 64, manifest=told)


def write_json(path: Path, value: object) -> Path:
    """Write any frozen type as JSON."""
    path.write_text(json.dumps(plain(value)), encoding="utf-8")
    return path


@dataclass
class Line:
    """A command line in a folder of its own; what it prints is kept by pytest's capture."""

    root: Path
    capture: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    @property
    def store(self) -> Path:
        return self.root / "store"

    def __call__(self, *arguments: object) -> int:
        code = main([str(a) for a in arguments])
        self.out, self.err = self.capture.readouterr()
        return code

    @property
    def last(self) -> str:
        """Return the last line on stderr."""
        return self.err.splitlines()[-1]


@dataclass
class StubPipeline:
    """A pipeline that ends as it is told: with an outcome, or with what ``fails`` is."""

    root: Path
    verdict: Verdict | None = field(default_factory=verdict)
    fails: BaseException | None = None
    calls: list[str] = field(default_factory=list)
    watched: tuple[Path, ...] = ()
    wanted: ProofRequest = field(default_factory=ProofRequest)

    @property
    def result_file(self) -> Path:
        return self.root / "dist" / f"{NAME}.result.json"

    def open(self, flags: Namespace, *_arguments: object) -> StubPipeline:
        self.wanted = ProofRequest(require_hardware=bool(flags.require_hardware))
        return self

    def build(self, *, prove: bool) -> RunOutcome:
        self.calls.append(f"build prove={prove}")
        if self.fails:
            raise self.fails
        return self._outcome(self.verdict if prove else None)

    def verify_file(self, path: Path) -> RunOutcome:
        self.calls.append(f"verify {path.name} require_hardware={self.wanted.require_hardware}")
        if self.fails:
            raise self.fails
        return self._outcome(self.verdict)

    def touched(self, _outcome: RunOutcome) -> Iterator[Path]:
        yield self.result_file
        yield from self.watched

    def _outcome(self, proof: Verdict | None) -> RunOutcome:
        return RunOutcome(
            name=NAME,
            artifact=artifact(self.root / "dist"),
            verdict=proof,
            reports=(self.root / "dist" / "report.md",),
            timings=(StageTiming(stage="plan", wall_s=0.1),),
        )


def last_line(code: ExitCode, kind: str) -> str:
    """Return the documented last line of a failing run, spelled out here on purpose."""
    return f"llamawright: exit {code.value} ({code.name.replace('_', '-').lower()}: {kind})"


@pytest.fixture
def line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Line]:
    """The command line in an empty folder; nothing of this machine's settings reaches it."""
    for name in [n for n in os.environ if "LLAMAWRIGHT" in n] + ["GITHUB_ACTIONS", "GITLAB_CI"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLAMAWRIGHT_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    yield Line(tmp_path, capsys)
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def stub(line: Line, monkeypatch: pytest.MonkeyPatch) -> StubPipeline:
    """A pipeline in place of the rooms, for build and verify."""
    made = StubPipeline(line.root)
    monkeypatch.setattr("llamawright.cli.make.Pipeline", made)
    monkeypatch.setattr("llamawright.cli.make.touched", lambda own, outcome: own.touched(outcome))
    return made
