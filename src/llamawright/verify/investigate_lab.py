"""Runs of a case: bounded in time, journalled like those of a proof, and compared with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.model.investigation import Trial
from llamawright.model.ports import Meter
from llamawright.process import Command
from llamawright.verify.investigate_case import BATCH, HANG, Case, Kind, Shape, beyond, number_of
from llamawright.verify.judge import run_failure
from llamawright.verify.logs import read_numbers
from llamawright.verify.runs import Stage
from llamawright.verify.supervise import Finished, PhaseLimits, Sample

# A run that comes to no end is given this share of the whole time, and never less than this.
HANG_SHARE = 8
LEAST_HANG_S = 15.0
# Any other run may take so many times what the failing one took, or a third of the time.
PATIENCE = 8.0
LEAST_RUN_S = 30.0
RUN_SHARE = 3
# Below this a run is not begun: it could only be stopped.
LEAST_LEFT_S = 2.0
PREFIX = "investigate"

Wrap = Callable[[tuple[str, ...]], tuple[str, ...]]


@dataclass(slots=True, kw_only=True)
class Clock:
    """How much time an investigation has left, in seconds."""

    limit_s: float
    now: Callable[[], float] = time.monotonic
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.now()

    @property
    def spent(self) -> float:
        """Return the seconds since it began."""
        return self.now() - self.began

    @property
    def left(self) -> float:
        """Return the seconds that are left, never less than none."""
        return max(0.0, self.limit_s - self.spent)


@dataclass(slots=True, kw_only=True)
class Lab:
    """Repeats a case under changes and keeps a note of every run.

    ``work`` is the folder for what runs write; ``planned`` counts the runs that are expected,
    for the meter.
    """

    stage: Stage
    case: Case
    clock: Clock
    meter: Meter
    work: Path
    planned: int = 0
    usual_s: float = 0.0
    trials: list[Trial] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    unrun: list[str] = field(default_factory=list)
    bases: dict[str, Path] = field(default_factory=dict)

    def run(
        self,
        name: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        *,
        on_device: bool = True,
        sample: Sample | None = None,
        extra_s: float = 0.0,
        judged: bool = True,
    ) -> Finished | None:
        """Run one program; ``None`` without a run when the time is over.

        ``extra_s`` comes on top for an instrument that has to say something at the end. A run
        that is not ``judged`` ends as its instrument does, which says nothing of the case.
        """
        if self.clock.left < LEAST_LEFT_S:
            self.unrun.append(name)
            return None
        number = len(self.trials) + 1
        stage = replace(self.stage, limits=self.bounds(extra_s))
        label = f"{PREFIX} {number:02d} {name}"
        done = stage.run(label, argv, env, on_device=on_device, sample=sample)
        outcome = self.class_of(done)
        word = "passed" if judged else "done"
        self.trials.append(
            Trial(
                name=name,
                outcome=outcome,
                same=self.is_same(outcome) if judged else None,
                seconds=round(done.seconds, 2),
                command=plain_command(argv, env),
                log=done.task.log.name,
            )
        )
        self.planned = max(self.planned, number + 1)
        self.meter.update(number, total=self.planned, note=f"{name}: {outcome or word}")
        return done

    def again(self, name: str, shape: Shape = Shape(), **more: str) -> Finished | None:  # noqa: B008
        """Run the case itself in another shape."""
        argv = (*shape.applied(self.case.argv), *shape.flags)
        env = {**self.case.env, **dict(shape.variables), **more}
        return self.run(name, argv, env, on_device=self.case.on_device)

    def fails(self, name: str, shape: Shape) -> bool | None:
        """Return whether the case fails in another shape; ``None`` when nobody can tell."""
        match self.case.kind:
            case Kind.RUN | Kind.CLAIMS:
                done = self.again(name, shape)
                return None if done is None else self.is_same(self.class_of(done))
            case Kind.TEXT:
                return self._text_differs(name, shape)
            case Kind.NUMBERS:
                return self._numbers_differ(name, shape)

    def class_of(self, run: Finished) -> str:
        """Return the class of a run's end, empty when it ended well."""
        failure = run_failure(run)
        return failure[0] if failure else ""

    def is_same(self, outcome: str) -> bool | None:
        """Whether a run's end is that of the case; stopping a run proves only a hang."""
        if self.case.hangs:
            return outcome.startswith(HANG)
        if outcome.startswith(HANG):
            return None
        return bool(outcome) and outcome == self.case.failure

    def skip(self, told: str) -> None:
        """Note what was not done, once."""
        if told not in self.limits:
            self.limits.append(told)

    @property
    def told_limits(self) -> tuple[str, ...]:
        """Return all that was not done: what the time did not allow as one sentence."""
        names = ", ".join(dict.fromkeys(self.unrun))
        late = (f"the time was over; not run: {names}",) if names else ()
        return (*self.limits, *late)

    @property
    def cap_s(self) -> float:
        """Return the seconds that one run may take."""
        whole = self.clock.limit_s
        if self.case.hangs:
            return max(LEAST_HANG_S, whole / HANG_SHARE)
        return min(max(LEAST_RUN_S, PATIENCE * self.usual_s), max(LEAST_HANG_S, whole / RUN_SHARE))

    def bounds(self, extra_s: float = 0.0) -> PhaseLimits:
        """Return the limits of the next run: its phases', its own, and the time that is left."""
        given, cap = self.stage.limits, self.cap_s + extra_s
        return replace(
            given,
            start_s=min(given.start_s + extra_s, cap),
            load_s=min(given.load_s + extra_s, cap),
            first_token_s=min(given.first_token_s + extra_s, cap),
            total_s=min(given.total_s + extra_s, cap, self.clock.left),
        )

    def _text_differs(self, name: str, shape: Shape) -> bool | None:
        ours = self._reference(f"{name}, on the CPU", shape, {})
        theirs = self.again(name, shape) if ours is not None and ours.clean else None
        if ours is None or theirs is None or not theirs.clean:
            return None
        return self._note(differs=ours.stdout != theirs.stdout)

    def _numbers_differ(self, name: str, shape: Shape) -> bool | None:
        base = self.base_of(shape.model)
        if base is None:
            return None
        argv = (*shape.applied(self.case.argv), *shape.flags)
        argv = with_base(argv, base)
        env = {**self.case.env, **dict(shape.variables)}
        done = self.run(name, argv, env)
        if done is None or not done.clean:
            return None
        context, batch = number_of(argv, "-c"), number_of(argv, BATCH)
        table = read_numbers(done.stdout, self.stage.patterns, context=context, batch=batch)
        wrong = beyond(table, most=self.case.most, least=self.case.least)
        return self._note(differs=wrong)

    def base_of(self, model: Path | None) -> Path | None:
        """Return the CPU's probabilities of a model, computed once."""
        key = model.name if model else ""
        if key in self.bases:
            return self.bases[key]
        path = self.work / f"{key or 'given'}.kld"
        at = self.case.reference.index("--save-all-logits") + 1
        argv = (*self.case.reference[:at], str(path), *self.case.reference[at + 1 :])
        done = self._reference("probabilities on the CPU", Shape(model=model), {}, argv)
        if done is None or not done.clean:
            return None
        self.bases[key] = path
        return path

    def _reference(
        self, name: str, shape: Shape, more: Mapping[str, str], argv: tuple[str, ...] = ()
    ) -> Finished | None:
        # The reference computes on the CPU, in its own batches.
        plain = replace(shape, batch=None, layers=None, device=None, flags=(), variables=())
        env = {**(self.case.reference_env or {}), **more}
        return self.run(name, plain.applied(argv or self.case.reference), env, on_device=False)

    def _note(self, *, differs: bool) -> bool:
        """Write the comparison's outcome into the last trial: the run itself ended well."""
        outcome = self.case.failure if differs else ""
        self.trials[-1] = replace(self.trials[-1], outcome=outcome, same=differs)
        return differs


def with_base(argv: tuple[str, ...], base: Path) -> tuple[str, ...]:
    """Return a comparison's command line with other probabilities to compare with."""
    at = argv.index("--kl-divergence-base") + 1
    return (*argv[:at], str(base), *argv[at + 1 :])


# Folders of ours: a person has their own.
OWN = frozenset({
    "HOME", "USERPROFILE", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR", "PATH", "USER", "LOGNAME", "LANG",
})  # fmt: skip


def plain_command(argv: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Return a line for a shell: the variables that lead to the device, then the program."""
    kept = {k: v for k, v in env.items() if k not in OWN}
    line = Command(argv=argv, cwd=Path("/"), env=kept).pasteable
    return line.removeprefix("cd / && ")
