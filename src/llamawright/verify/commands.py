"""Command lines of upstream's programs, as data: no quoting, no shell, no interaction.

Flags were read in common/arg.cpp of commit 0c1e57098. Verbosity 5 prints where each layer
goes and one line for each token; ``--fit off`` keeps the program from changing what was
asked; ``-no-cnv`` keeps it from waiting for a person (cases R9).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llamawright.model.recipe import Prompt, Workload

ALL_LAYERS = "999"
VERBOSITY = "5"
GREEDY_CONTEXT = "256"
WHOLE_PROMPT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a run computes: ggml's device id, or the CPU alone.

    ``plain`` takes the CPU's slow paths: no repacked weights, no flash attention.
    """

    device: str = ""
    threads: int = 1
    plain: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags that say so."""
        own = ("--no-repack", "-fa", "off") if self.plain else ()
        where = ("-ngl", ALL_LAYERS) if self.device else ()
        threads = ("-t", str(self.threads), "--poll", "0")
        return ("--device", self.device or "none", *where, *threads, *own)


# First of all flags: naming a device loads the modules at once, and their lines count.
COMMON = ("--no-warmup", "--fit", "off", "--offline", "--log-colors", "off", "-lv", VERBOSITY)


def list_devices(program: Path) -> tuple[str, ...]:
    """List the devices and leave; the order of the flags matters."""
    return (str(program), "-lv", VERBOSITY, "--list-devices")


def greedy(
    program: Path, model: Path, prompt: Prompt, target: Target, *, batch: int
) -> tuple[str, ...]:
    """Continue a prompt by the likeliest token each time; only new text goes to stdout."""
    return (
        str(program), *COMMON, "-m", str(model), "-p", prompt.text, "-n", str(prompt.tokens),
        "--temp", "0", "--seed", "1", "-c", GREEDY_CONTEXT, "-b", str(max(batch, 32)),
        "-ub", str(batch), "-no-cnv", "--no-display-prompt", *target.flags,
    )  # fmt: skip


def save_logits(
    program: Path, model: Path, target: Target, work: Workload, *, text: Path, out: Path
) -> tuple[str, ...]:
    """Write the reference's probabilities over the text to a file."""
    return (
        str(program), *COMMON, "-m", str(model), "-f", str(text), "-c", str(work.context),
        "-b", str(work.context), "-ub", str(work.context), "--chunks", str(work.chunks),
        "--save-all-logits", str(out), *target.flags,
    )  # fmt: skip


def compare_logits(
    program: Path, model: Path, target: Target, work: Workload, *, base: Path, batch: int
) -> tuple[str, ...]:
    """Compare a device's probabilities with the file's, ``batch`` tokens at a time."""
    return (
        str(program), *COMMON, "-m", str(model), "-c", str(work.context), "-b", str(batch),
        "-ub", str(batch), "--chunks", str(work.chunks), "--kl-divergence",
        "--kl-divergence-base", str(base), *target.flags,
    )  # fmt: skip


def requantise(program: Path, model: Path, out: Path, kind: str) -> tuple[str, ...]:
    """Make another type of a model; what was rounded once stays as it is in a finer type."""
    return (str(program), "--allow-requantize", str(model), str(out), kind)


def make_plain(
    program: Path, model: Path, out: Path, kind: str, *, importance: Path | None = None
) -> tuple[str, ...]:
    """Make a type with every matrix in it, embeddings and output too."""
    own = ("--imatrix", str(importance)) if importance else ()
    return (str(program), "--pure", *own, str(model), str(out), kind)


def bench(program: Path, model: Path, target: Target) -> tuple[str, ...]:
    """Measure generation speed; a prompt's would compile its kernels once more, for seconds."""
    return (
        str(program), "-m", str(model), "-p", "0", "-n", "64", "-r", "3", "-o", "jsonl",
        "--device", target.device, "-ngl", ALL_LAYERS, "-t", str(target.threads),
    )  # fmt: skip
