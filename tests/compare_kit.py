"""Two artifacts of fakes on one machine, and comparisons that were never run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from llamawright.model.comparison import (
    CompareRequest,
    Comparison,
    Entrant,
    Finding,
    Letter,
    Measure,
    Metric,
    MetricKind,
)
from llamawright.model.platform import Backend
from llamawright.model.verdict import Device, RunRecord
from llamawright.process import Ending
from llamawright.verify import compare
from llamawright.verify.compare_plan import Effort, Step, Turn
from llamawright.verify.compare_runs import Observation
from llamawright.verify.supervise import Finished, Phase, PhaseLimits, Task
from verify_kit import GPU, NAME, PCI, Bench

QUICK = Effort(rounds=5, contexts=(4, 8), prompt=16, generation=8)
LIMITS = PhaseLimits(start_s=1, load_s=1, first_token_s=1, total_s=1, output_cap=1 << 20)
A_TPS = [1000.0, 1010.0, 990.0, 1005.0, 995.0, 1002.0, 998.0]


def pair(
    bench: Bench,
    a: Mapping[str, object] | None = None,
    b: Mapping[str, object] | None = None,
    *,
    backends: tuple[Backend, Backend] = (Backend.VULKAN, Backend.VULKAN),
) -> tuple[Path, Path]:
    """Pack two behaviours into two folders; both files have the name of their backend."""
    made = []
    for letter, told, backend in (("a", a, backends[0]), ("b", b, backends[1])):
        path = bench.artifact({"side": letter, **(told or {})}, backend)
        folder = bench.root / f"dist-{letter}"
        folder.mkdir(exist_ok=True)
        made.append(Path(shutil.move(path, folder / path.name)))
    return made[0], made[1]


def folder_of(bench: Bench, behaviour: Mapping[str, object] | None = None) -> Path:
    """Return a folder of programs as an upstream archive unpacks to, with a behaviour."""
    bench.artifact({"side": "folder", **(behaviour or {})})
    folder = bench.root / "upstream-b1234"
    shutil.copytree(bench.tree / "bin", folder / "build" / "bin")
    return folder


def request(bench: Bench, a: Path, b: Path, **changes: object) -> CompareRequest:
    """Return what a user wants compared, in five rounds of short prompts."""
    names = ("rounds", "contexts", "min_ratio", "seed")
    own = {k: changes.pop(k) for k in names if k in changes}
    base = CompareRequest(first=bench.request(a, **changes), other=b, rounds=5, contexts=(4, 8))
    return replace(base, **own)  # type: ignore[arg-type]


def play(bench: Bench, a: Path, b: Path, **changes: object) -> Comparison:
    """Compare two builds on the fake machine."""
    bench._probe()
    # Few runs are looked at here: a fake must not wait for that.
    bench.patch.delenv("FAKE_SEEN", raising=False)
    wanted = request(bench, a, b, **changes)
    return compare(wanted, store=bench.store, reporter=bench.told)


def measure_of(comparison: Comparison, name: str) -> Measure:
    """Return a measure by its metric's name."""
    return next(m for m in comparison.measures if m.metric.name == name)


def finished(
    letter: Letter = Letter.A,
    *,
    marks: Mapping[Phase, float] | None = None,
    stdout: str = "",
    lines: Sequence[str] = (),
    returncode: int = 0,
) -> Finished:
    """Return a run that nobody started."""
    task = Task(
        name=f"{letter} run", argv=("/x/llama-bench",), cwd=Path("/"), env={}, log=Path("/x.log"),
        limits=LIMITS, on_device=True,
    )  # fmt: skip
    return Finished(
        task=task, returncode=returncode, ending=Ending.EXITED, seconds=1.0, stdout=stdout,
        lines=tuple(lines), phase=Phase.DONE, overran=None, marks=dict(marks or {}), tokens=(),
    )  # fmt: skip


def seen(
    number: int, step: Step, letter: Letter, run: Finished | None = None, **more: object
) -> Observation:
    """Return what one turn showed."""
    tokens = more.pop("tokens", 4 if step in (Step.WARM, Step.COLD, Step.FRESH) else 0)
    turn = Turn(round=number, step=step, letter=letter, tokens=int(str(tokens)))
    base = Observation(turn=turn, run=run or finished(letter))
    return replace(base, **more)  # type: ignore[arg-type]


def metric(name: str = "prompt", kind: MetricKind = MetricKind.RATE, **more: object) -> Metric:
    unit = {MetricKind.RATE: "tok/s", MetricKind.TIME: "s", MetricKind.AMOUNT: "bytes"}[kind]
    base = Metric(name=name, title=name, unit=unit, kind=kind)
    return replace(base, **more)  # type: ignore[arg-type]


def measure(**changes: object) -> Measure:
    """Return a measure in which B is 10 % faster."""
    base = Measure(
        metric=metric(), a=(100.0, 101.0, 99.0), b=(110.0, 111.0, 109.0), median_a=100.0,
        median_b=110.0, ratio=1.1, low=1.08, high=1.12, p=0.004, finding=Finding.FASTER,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def entrant(letter: Letter, **changes: object) -> Entrant:
    device = Device(
        id="Vulkan0", name=GPU, backend="vulkan", memory=1 << 30, software=False, pci=PCI
    )  # fmt: skip
    base = Entrant(
        letter=letter, name=NAME, file=f"{NAME}.tar.zst", sha256=letter.lower() * 64,
        backend="vulkan", device=device, source="ggml-org/llama.cpp 0c1e57098",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def comparison(*measures: Measure, **changes: object) -> Comparison:
    """Return a comparison of three rounds."""
    base = Comparison(
        a=entrant(Letter.A), b=entrant(Letter.B), model="m.gguf", model_sha256="c" * 64, rounds=3,
        order=("AB", "BA", "AB"), seed=1, confidence=0.95, alpha=0.01,
        measures=measures or (measure(),), notes=("something to know",),
        runs=(
            RunRecord(name="A round 1 bench", command=("/x/llama-bench", "-p", "a b"),
                      returncode=0, seconds=1.5, phase="start", excerpt=("one", "two")),
        ),
        date="2026-12-01T02:31:30+00:00", host=(("cpu", "Some CPU"),), seconds=95.0,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]
