"""What there is to look into: the run that failed, and the quantities that can be made smaller.

Pure: a proof's runs and verdict in, a case out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from llamawright.model.verdict import Numbers, Verdict
from llamawright.verify.conclude import Attempt
from llamawright.verify.judge import run_failure
from llamawright.verify.logs import read_numbers
from llamawright.verify.supervise import Finished, Phase

HANG = "hang-at-"
MODEL, PROMPT, TOKENS, BATCH, LAYERS, CHUNKS = "-m", "-p", "-n", "-ub", "-ngl", "--chunks"
DEVICE = "--device"
OF_NUMBERS = frozenset({"wrong-numbers", "not-a-number"})
OF_TEXT = frozenset({"wrong-tokens", "wrong-answer"})


class Kind(StrEnum):
    """How a case fails: by the run's own end, by its text, by its probabilities, by no run."""

    RUN = "run"
    TEXT = "text"
    NUMBERS = "numbers"
    CLAIMS = "claims"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A command line in its variable parts; ``None`` leaves a flag as it stands.

    ``variables`` and ``flags`` are added to the device's own.
    """

    prompt: str | None = None
    tokens: int | None = None
    batch: int | None = None
    layers: int | None = None
    chunks: int | None = None
    model: Path | None = None
    device: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()

    def applied(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command line with these values in the places of its own."""
        given = {
            PROMPT: self.prompt, TOKENS: self.tokens, BATCH: self.batch, LAYERS: self.layers,
            CHUNKS: self.chunks, MODEL: self.model, DEVICE: self.device,
        }  # fmt: skip
        for flag, value in given.items():
            if value is not None:
                argv = with_value(argv, flag, str(value))
        return argv


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run that failed and how it is told that it failed again.

    ``argv`` and ``env`` are the run's own; ``reference`` is the same on the CPU, for what is
    only wrong by comparison; ``most`` and ``least`` are the limits of divergence and
    agreement. ``kind_of_model`` names the quantisation that was made for the run.
    """

    kind: Kind
    name: str
    failure: str
    why: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    on_device: bool
    log: Path | None = None
    phase: Phase | None = None
    reference: tuple[str, ...] = ()
    reference_env: Mapping[str, str] | None = None
    most: float = 0.0
    least: float = 0.0
    kind_of_model: str = ""

    @property
    def hangs(self) -> bool:
        """Whether the run came to no end."""
        return self.failure.startswith(HANG)

    @property
    def stops(self) -> bool:
        """Whether there is a place where it stops: wrong numbers have none."""
        return self.kind is Kind.RUN

    @property
    def silent(self) -> bool:
        """Whether it failed without a signal and without hanging: it gave up by itself."""
        return self.kind is Kind.RUN and not self.hangs and self.failure not in SIGNALLED


SIGNALLED = frozenset({"crashed", "illegal-instruction", "device-lost"})


def case_of(attempt: Attempt, verdict: Verdict) -> Case | None:
    """Return the case of a failed proof; ``None`` when no run shows the failure."""
    for run in (*attempt.runs.reference, *attempt.runs.device, *attempt.runs_of_types):
        failure = run_failure(run)
        if failure is not None:
            return run_case(run, *failure)
    if verdict.failure in OF_TEXT:
        return _text_case(attempt, verdict)
    if verdict.failure in OF_NUMBERS:
        return _numbers_case(attempt, verdict)
    if attempt.runs.device:
        return _claims_case(attempt.runs.device[0], verdict)
    return None


def run_case(run: Finished, failure: str, why: str) -> Case:
    """Return the case of a run that did not end as it should."""
    return Case(
        kind=Kind.RUN,
        name=run.task.name,
        failure=failure,
        why=why,
        argv=run.task.argv,
        env=run.task.env,
        on_device=run.task.on_device,
        log=run.task.log,
        phase=run.phase,
    )


def _claims_case(run: Finished, verdict: Verdict) -> Case:
    return Case(
        kind=Kind.CLAIMS, name=run.task.name, failure=verdict.failure, why=verdict.why,
        argv=run.task.argv, env=run.task.env, on_device=True, log=run.task.log,
    )  # fmt: skip


def _text_case(attempt: Attempt, verdict: Verdict) -> Case | None:
    """Take the first prompt whose text differs; when the CPU is wrong too, nothing does."""
    for ours, theirs in zip(attempt.runs.reference, attempt.runs.device, strict=False):
        if PROMPT in theirs.task.argv and ours.stdout != theirs.stdout:
            return _compared(Kind.TEXT, ours, theirs, verdict)
    return None


def _numbers_case(attempt: Attempt, verdict: Verdict) -> Case | None:
    """Take the first comparison that is beyond its limit: batches first, then types."""
    course, patterns = attempt.course, attempt.setting.stage.patterns
    verification, work = course.verification, course.work
    prompts = len(attempt.runs.reference) - 1
    base = attempt.runs.reference[-1]
    compared = attempt.runs.device[prompts : prompts + len(work.batches)]
    rows = [(base, r, b, verification.max_mean_kld.value, "")
            for r, b in zip(compared, work.batches, strict=False)]  # fmt: skip
    rows += [(t.runs[-2], t.runs[-1], work.context, t.type.max_mean_kld.value, t.type.name)
             for t in attempt.types if len(t.runs) > 1]  # fmt: skip
    for reference, run, batch, most, kind in rows:
        table = read_numbers(run.stdout, patterns, context=work.context, batch=batch)
        if beyond(table, most=most, least=verification.min_top1.value):
            return replace(
                _compared(Kind.NUMBERS, reference, run, verdict),
                most=most,
                least=verification.min_top1.value,
                kind_of_model=kind,
            )
    return None


def _compared(kind: Kind, ours: Finished, theirs: Finished, verdict: Verdict) -> Case:
    return Case(
        kind=kind, name=theirs.task.name, failure=verdict.failure, why=verdict.why,
        argv=theirs.task.argv, env=theirs.task.env, on_device=True, log=theirs.task.log,
        reference=ours.task.argv, reference_env=ours.task.env,
    )  # fmt: skip


def beyond(table: Numbers | None, *, most: float, least: float) -> bool:
    """Whether a comparison is beyond its limits; one that shows no table is too, and NaN."""
    if table is None:
        return True
    return not (table.mean_kld <= most and table.top1 >= least)


def with_value(argv: tuple[str, ...], flag: str, value: str) -> tuple[str, ...]:
    """Return a command line with another value behind a flag that it has; else unchanged."""
    if flag not in argv:
        return argv
    at = argv.index(flag) + 1
    return (*argv[:at], value, *argv[at + 1 :])


def value_of(argv: tuple[str, ...], flag: str) -> str:
    """Return the value behind a flag, empty when the command line has not got it."""
    return argv[argv.index(flag) + 1] if flag in argv[:-1] else ""


def number_of(argv: tuple[str, ...], flag: str) -> int:
    """Return the number behind a flag, 0 when there is none."""
    text = value_of(argv, flag)
    return int(text) if text.isdecimal() else 0
