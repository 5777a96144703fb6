"""What was seen in all runs to one verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llamawright.model.verdict import RunRecord, State, Verdict
from llamawright.transfer.opened import recheck
from llamawright.verify.collect import Demand, Runs, collect, records
from llamawright.verify.cuda_evidence import capability, device_code, runtime
from llamawright.verify.cuda_gate import Access
from llamawright.verify.cuda_setup import set_variables
from llamawright.verify.draft import Draft
from llamawright.verify.evidence import Evidence, Expected, Observed, listed, unmasked
from llamawright.verify.gguf_header import GgufHeader
from llamawright.verify.judge import (
    Ruling,
    cut_off,
    hint_of,
    needed_kinds,
    rule,
    rule_failure,
    run_failure,
)
from llamawright.verify.logs import read_load
from llamawright.verify.memory import MemoryWatch, maps_readable
from llamawright.verify.operations import OperationRun, judge_operations
from llamawright.verify.runs import Course, Side
from llamawright.verify.setup import Setting
from llamawright.verify.supervise import Finished
from llamawright.verify.survey import Chosen
from llamawright.verify.types import TypeRuns, judge_types, short_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A proof that ran: where, on what, and what came out.

    ``told`` names the reference, ``code`` the device code that a CUDA card took.
    """

    setting: Setting
    chosen: Chosen
    course: Course
    header: GgufHeader
    runs: Runs
    watch: MemoryWatch
    told: str
    code: Access | None = None
    types: tuple[TypeRuns, ...] = ()
    sides: tuple[Side, Side] | None = None
    operations: tuple[OperationRun, ...] = ()

    @property
    def runs_of_types(self) -> tuple[Finished, ...]:
        """Return every run of the other types, in order."""
        return tuple(run for each in self.types for run in each.runs)

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """Return every run for the verdict, the device list first."""
        view = self.chosen.view
        first = (view.run,) if view else ()
        tested = [o.run for o in self.operations if o.run is not None]
        own = (*self.runs.reference, *self.runs.device, *self.runs_of_types)
        every = (*first, *own, *tested)
        return records(every, self.setting.stage.patterns)


def conclude(attempt: Attempt, draft: Draft) -> Verdict:
    """Return the verdict: a lost file, a card in disguise, a failed run, or what was seen."""
    patterns = attempt.setting.stage.patterns
    ruling = _vanished(attempt) or _disguised(attempt) or _failed_run(attempt)
    if ruling is not None:
        return draft.verdict(
            ruling,
            device=attempt.chosen.device,
            devices=attempt.chosen.listed,
            runs=attempt.records,
            reference=attempt.told,
            patterns=patterns.version,
        )
    observed, demand = _observed(attempt), _demand(attempt)
    found = collect(attempt.runs, demand, observed, patterns)
    of_types, more = judge_types(attempt.types, attempt.course, patterns)
    tested = judge_operations(attempt.operations)
    every = (*_listed(attempt), *_of_cuda(attempt), *found.evidence, *of_types, *tested)
    numbers = (*found.numbers, *more)
    ruling = rule(
        every,
        numbers,
        software=attempt.chosen.device.software,
        needed=needed_kinds(cpu=attempt.setting.cpu, pinned=demand.pinned),
    )
    return draft.verdict(
        _with_code(ruling, attempt.code),
        device=attempt.chosen.device,
        devices=attempt.chosen.listed,
        checks=[e.check for e in every],
        runs=attempt.records,
        speed=found.speed,
        numbers=numbers,
        token_s=found.token_s,
        reference=attempt.told,
        patterns=patterns.version,
    )


def _vanished(attempt: Attempt) -> Ruling | None:
    """Look at every file again: antivirus software takes some away while they run."""
    faults = recheck(attempt.setting.install.root, attempt.setting.manifest)
    if not faults:
        return None
    kind = "removed-after-unpack"
    why = "; ".join(fault.told for fault in faults)
    return Ruling(state=State.FAILED, failure=kind, why=why, hint=hint_of(kind))


def _disguised(attempt: Attempt) -> Ruling | None:
    """Tell a software renderer that is called a card, whatever its runs came to.

    Such a one is given a card's work, of which it may die: that is no news of a card.
    """
    device = attempt.chosen.device
    seen = unmasked(attempt.watch.sampler.threads, device)
    if attempt.setting.cpu or not seen:
        return None
    why = f"{device.name} is called hardware, but its runs had {seen}"
    hint = hint_of("contradiction")
    return Ruling(state=State.FAILED, failure="contradiction", why=why, hint=hint)


def _failed_run(attempt: Attempt) -> Ruling | None:
    patterns = attempt.setting.stage.patterns
    judged = [
        (run, run_failure(run) or cut_off(run, patterns))
        for run in (*attempt.runs.reference, *attempt.runs.device)
    ]
    judged += [(run, run_failure(run)) for run in attempt.runs_of_types]
    judged += [(run, cut_off(run, patterns)) for run in short_tables(attempt.types, patterns)]
    return next(
        (rule_failure(*f, of_reference=not run.task.on_device) for run, f in judged if f), None
    )


def _listed(attempt: Attempt) -> tuple[Evidence, ...]:
    if attempt.setting.cpu:
        return ()
    return (listed(attempt.chosen.device, attempt.chosen.listed),)


def _of_cuda(attempt: Attempt) -> tuple[Evidence, ...]:
    cuda, code = attempt.setting.scene.cuda, attempt.code
    if cuda is None or code is None:
        return ()
    patterns = attempt.setting.stage.patterns
    facts = read_load(attempt.runs.device[0].lines, patterns)
    libraries = attempt.watch.sampler.libraries
    return (
        device_code(code, cuda.facts, libraries),
        capability(code, attempt.chosen.device, facts.cards),
        runtime(cuda.runtime, libraries, settled=attempt.watch.sampler.settled),
    )


def _with_code(ruling: Ruling, code: Access | None) -> Ruling:
    """Say in the verdict itself that a proof was one of PTX, and under which variables."""
    if code is None or ruling.state is not State.VERIFIED:
        return ruling
    own = [v for v in set_variables() if not code.variable or v != code.variable]
    told = [code.told, f"with {', '.join(own)} set" if own else ""]
    return replace(ruling, why="; ".join(t for t in told if t))


def _observed(attempt: Attempt) -> Observed:
    rise, source = attempt.watch.rise(repacked=_repacked(attempt))
    sampler = attempt.watch.sampler
    driver = attempt.chosen.driver
    return Observed(
        libraries=frozenset(sampler.libraries) if maps_readable() else None,
        settled=sampler.settled,
        memory=rise,
        memory_source=source,
        modules=tuple(str(m) for m in attempt.setting.modules),
        driver_root=str(driver.root.resolve()) if driver else "",
        threads=frozenset(sampler.threads),
    )


def _repacked(attempt: Attempt) -> int:
    """Return the bytes of weights that the reference holds beside the mapped file."""
    facts = read_load(attempt.runs.reference[0].lines, attempt.setting.stage.patterns)
    return sum(size for buffer, size in facts.weights.items() if not buffer.endswith("_Mapped"))


def _demand(attempt: Attempt) -> Demand:
    verification = attempt.course.verification
    pinned = bool(attempt.setting.request.model_sha256)
    witness, view = attempt.chosen.candidate.witness, attempt.chosen.view
    unseen = view.sighting.told if view else ""
    return Demand(
        expected=Expected(
            device=attempt.chosen.device,
            layers=verification.model.layers + 1 if pinned else _layers(attempt),
            weights=attempt.header.on_device,
            cpu=attempt.setting.cpu,
        ),
        verification=verification,
        work=attempt.course.work,
        pinned=pinned,
        witness=witness.name if witness else "",
        unseen=unseen or "the driver does not show it under this name",
        forbidden=attempt.setting.forbidden,
    )


def _layers(attempt: Attempt) -> int:
    """Return an own model's layers: some keep spare ones that are never loaded."""
    facts = read_load(attempt.runs.device[0].lines, attempt.setting.stage.patterns)
    return facts.offloaded[1] if facts.offloaded else attempt.header.layers + 1
