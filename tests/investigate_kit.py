"""Cases, runs and findings of an investigation, each test changing one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.model.investigation import (
    Cause,
    Frame,
    Halt,
    Instrument,
    Investigation,
    Message,
    Reduction,
    Thread,
    Trial,
    Use,
)
from llamawright.process import Ending
from llamawright.store import Journal
from llamawright.verify.investigate_case import Case, Kind, Shape
from llamawright.verify.investigate_lab import Clock, Lab
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.runs import Stage
from llamawright.verify.supervise import Finished, Phase, PhaseLimits, Sample, Task

GOLDEN = Path(__file__).parent / "golden" / "verify"
ARTIFACT = "/w/artifact"
DRIVER = "/d/usr/lib/libvulkan_lvp.so"
MODULE = f"{ARTIFACT}/bin/libggml-vulkan.so"
PROMPT = "We hold these truths to be self-evident, that all men are created"
LIMITS = PhaseLimits(start_s=60, load_s=180, first_token_s=240, total_s=600, output_cap=1 << 20)
ARGV = (
    f"{ARTIFACT}/bin/llama-completion", "-m", "/models/tiny.gguf", "-p", PROMPT, "-n", "9",
    "-b", "32", "-ub", "4", "--device", "Vulkan0", "-ngl", "999", "-t", "1",
)  # fmt: skip
COMPARE = (
    f"{ARTIFACT}/bin/llama-perplexity", "-m", "/models/tiny.gguf", "-c", "8", "-b", "8", "-ub", "8",
    "--chunks", "2", "--kl-divergence", "--kl-divergence-base", "/w/reference.kld",
    "--device", "Vulkan0", "-ngl", "999",
)  # fmt: skip
SAVE = (
    "/w/reference/bin/llama-perplexity", "-m", "/models/tiny.gguf", "-c", "8", "--chunks", "2",
    "--save-all-logits", "/w/reference.kld", "--device", "none",
)  # fmt: skip


def table(kld: str, top: str = "100.000") -> str:
    """Return what llama-perplexity prints of two chunks."""
    row = "32.5331 ±   22.2913       0.00002 ±       -nan"
    return "".join(
        f"{n:4}      {row}    {kld:>10} ±    0.00000     0.001 ±  0.000 %    {top} ±  0.000 %\n"
        for n in (1, 2)
    )


def case(**changes: object) -> Case:
    """Return a prompt that crashes on a device."""
    base = Case(
        kind=Kind.RUN, name="device prompt 2", failure="crashed",
        why="device prompt 2 in phase first-token: ended by SIGSEGV", argv=ARGV,
        env={"PATH": "/usr/bin", "VK_DRIVER_FILES": "/d/lvp.json"}, on_device=True,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def finished(task: Task, **changes: object) -> Finished:
    """Return a run that ended well."""
    base = Finished(
        task=task, returncode=0, ending=Ending.EXITED, seconds=1.0, stdout="", lines=(),
        phase=Phase.DONE, overran=None, marks={}, tokens=(),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


CRASH: Mapping[str, object] = {"returncode": -11, "phase": Phase.FIRST_TOKEN}
HANG: Mapping[str, object] = {
    "returncode": -9, "ending": Ending.STOPPED, "phase": Phase.FIRST_TOKEN,
    "overran": Phase.FIRST_TOKEN,
}  # fmt: skip
Behave = Callable[[tuple[str, ...], Mapping[str, str]], Mapping[str, object]]


class Ticking:
    """A clock that every run moves on."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@dataclass(slots=True)
class Notes:
    """A meter that keeps what it was told."""

    said: list[tuple[float, float | None, str]] = field(default_factory=list)

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        self.said.append((done, total, note))


@dataclass(slots=True)
class Bench:
    """A stage whose runs are answers of a function, and cost time on a clock of its own."""

    root: Path
    behave: Behave
    clock: Ticking = field(default_factory=Ticking)
    cost_s: float = 1.0
    runs: list[tuple[str, tuple[str, ...], Mapping[str, str], PhaseLimits]] = field(
        default_factory=list
    )
    notes: Notes = field(default_factory=Notes)

    def lab(self, what: Case, *, limit_s: float = 300.0) -> Lab:
        bench = self

        class Scripted(Stage):
            def run(
                self,
                name: str,
                argv: tuple[str, ...],
                env: Mapping[str, str],
                *,
                on_device: bool,
                sample: Sample | None = None,
            ) -> Finished:
                bench.runs.append((name, argv, env, self.limits))
                answer = bench.behave(argv, env)
                seconds = float(str(answer.get("seconds", bench.cost_s)))
                seconds = min(seconds, self.limits.total_s)
                bench.clock.at += seconds
                log = bench.root / f"{name.replace(' ', '-')}.log"
                log.write_text(str(answer.get("stdout", "")), encoding="utf-8")
                task = Task(
                    name=name, argv=argv, cwd=bench.root, env=env, log=log, limits=self.limits,
                    on_device=on_device,
                )  # fmt: skip
                return finished(task, **{**answer, "seconds": seconds})

        stage = Scripted(
            scratch=self.root, logs=self.root, patterns=BUILD_11312,
            journal=Journal(self.root / "journal"), limits=LIMITS, facts={},
        )  # fmt: skip
        return Lab(
            stage=stage, case=what, clock=Clock(limit_s=limit_s, now=self.clock),
            meter=self.notes, work=self.root,
        )  # fmt: skip

    @property
    def names(self) -> list[str]:
        """Return what was run, without the numbers before it."""
        return [name.split(" ", 2)[2] for name, *_ in self.runs]


def frame(number: int, function: str, module: str = MODULE, **changes: object) -> Frame:
    base = Frame(number=number, function=function, module=module, offset=0x1000 + number)
    return replace(base, **changes)  # type: ignore[arg-type]


def halt(*threads: Thread, **changes: object) -> Halt:
    base = Halt(signal="SIGSEGV", threads=threads, seen_by="gdb", address="0x18",
                instruction="mov %eax,(%rdi)")  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def thread(name: str, frames: Sequence[Frame] = (), waits: str = "") -> Thread:
    return Thread(name=name, frames=tuple(frames), waits=waits)


def investigation(**changes: object) -> Investigation:
    """Return all that an investigation of a crash may find."""
    base = Investigation(
        artifact="llama.cpp-0c1e57098-vulkan-linux_x86_64.tar.zst", artifact_sha256="a" * 64,
        model="tiny.gguf", model_sha256="b" * 64, state="failed", failure="crashed",
        why="device prompt 2 in phase first-token: ended by SIGSEGV", run="device prompt 2",
        device="Vulkan0 llvmpipe (LLVM 15.0.6, 256 bits)", driver="llvmpipe Mesa 22.3.6",
        cause=Cause(told="SIGSEGV in the driver's libvulkan_lvp.so+0x29c3eb", evidence="gdb"),
        reproduced=2, repeated=2, commands=("# ARTIFACT is x", "ARTIFACT/bin/llama-completion"),
        reductions=(
            Reduction(name="layers (-ngl)", before="999 (all)", least="3", passes="2"),
            Reduction(name="switches", before="none", least="none", passes="-fa off"),
        ),
        instruments=(
            Instrument(name="gdb", use=Use.USED, told="SIGSEGV", version="13.1", where="machine"),
            Instrument(name="Vulkan validation layers", use=Use.MISSING, told="install it"),
        ),
        halt=halt(thread("llvmpipe-0", [frame(0, "??", DRIVER)])),
        messages=(Message(source="layers", id="VUID-x (error)", text="vkFoo: bad | <thing>"),),
        kernel=("segfault at e8",),
        trials=(Trial(name="again 1", outcome="crashed", same=True, seconds=3.2,
                      command="ARTIFACT/bin/x", log="investigate-01-again-1.log"),),
        environment=(("system", "Linux 6.1"), ("cpu", "A | B <c>")),
        limits=("model type F16: not run, the time was over",), date="2026-12-01T09:00:00+00:00",
        seconds=93.0, limit_s=300.0,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def shape(**changes: object) -> Shape:
    return replace(Shape(), **changes)  # type: ignore[arg-type]
