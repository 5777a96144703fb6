"""Finished runs to evidence, numbers and speed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from llamawright.model.recipe import Verification, Workload
from llamawright.model.verdict import Numbers, RunRecord, Speed
from llamawright.verify import evidence
from llamawright.verify.evidence import Evidence, Expected, Observed
from llamawright.verify.logs import read_bench, read_load, read_numbers
from llamawright.verify.patterns import PatternSet
from llamawright.verify.repeat import same_again
from llamawright.verify.runs import AGAIN_RUN, REPEATED, SPEED_RUN
from llamawright.verify.supervise import Finished, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """All runs of a proof, as they ended: prompts first, then probabilities, then speed."""

    reference: tuple[Finished, ...]
    device: tuple[Finished, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the proof demands.

    ``layers`` is what an own model's head says, 0 when it does not; ``witness`` the device's
    name as its driver gives it, empty with the reason in ``unseen``; ``forbidden`` are the
    backends that a reference must not load.
    """

    expected: Expected
    verification: Verification
    work: Workload
    pinned: bool
    witness: str = ""
    unseen: str = ""
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What the runs add up to."""

    evidence: tuple[Evidence, ...]
    numbers: tuple[Numbers, ...]
    speed: Speed
    token_s: tuple[float, ...]


def collect(runs: Runs, demand: Demand, observed: Observed, patterns: PatternSet) -> Collected:
    """Judge every run of a proof whose runs all ended well."""
    prompts = len(runs.reference) - 1
    greedy, rest = runs.device[:prompts], runs.device[prompts:]
    compared = rest[: len(demand.work.batches)]
    facts = [read_load(r.lines, patterns) for r in (*greedy, *compared)]
    found: list[Evidence] = []
    if not demand.expected.cpu:
        pci = next((f.pci for f in facts if f.pci), "")
        device = demand.expected.device
        found.append(evidence.identity(device, pci, demand.witness, demand.unseen))
    names = [run.task.name for run in (*greedy, *compared)]
    found += evidence.placement(list(zip(names, facts, strict=True)), demand.expected)
    found += evidence.physical(observed, demand.expected)
    reference_facts = [read_load(r.lines, patterns) for r in runs.reference]
    found.append(evidence.reference(reference_facts, demand.forbidden))
    found += _answers(runs.reference[:prompts], greedy, demand)
    numbers = []
    for batch, run in zip(demand.work.batches, compared, strict=True):
        table = read_numbers(run.stdout, patterns, context=demand.work.context, batch=batch)
        found += evidence.divergence(
            table,
            f"batch {batch}",
            demand.work.chunks,
            most=demand.verification.max_mean_kld.value,
            least=demand.verification.min_top1.value,
        )
        numbers += [table] if table else []
    found += _repeated(compared, rest, numbers, demand, patterns)
    speed, token_s = _speed(greedy, compared, rest, demand)
    return Collected(evidence=tuple(found), numbers=tuple(numbers), speed=speed, token_s=token_s)


def _repeated(
    compared: Sequence[Finished],
    rest: Sequence[Finished],
    numbers: Sequence[Numbers],
    demand: Demand,
    patterns: PatternSet,
) -> list[Evidence]:
    """Hold the last comparison against the same one once more, where that was run."""
    limit = demand.verification.max_repeat
    again = next((r for r in rest if r.task.name == f"{compared[-1].task.name}{REPEATED}"), None)
    if again is None or limit is None:
        return []
    batch = demand.work.batches[-1]
    second = read_numbers(again.stdout, patterns, context=demand.work.context, batch=batch)
    first = next((n for n in numbers if n.batch == batch), None)
    return [same_again(f"batch {batch}", first, second, most=limit.value)]


def _answers(
    wanted: Sequence[Finished], seen: Sequence[Finished], demand: Demand
) -> list[Evidence]:
    found = []
    for number, (ours, theirs) in enumerate(zip(wanted, seen, strict=True)):
        prompt = demand.verification.prompts[number]
        # Another model may not know it; then its CPU run does not either.
        if prompt.expect and (demand.pinned or prompt.expect in ours.stdout):
            label = f"prompt {number + 1}"
            found.append(evidence.answer(label, theirs.stdout, prompt.expect))
            found.append(evidence.answer(f"{label}, reference", ours.stdout, prompt.expect))
        label = f"prompt {number + 1}, {prompt.tokens} tokens"
        found.append(evidence.tokens(label, ours.stdout, theirs.stdout, pinned=demand.pinned))
    return found


def _speed(
    greedy: Sequence[Finished],
    compared: Sequence[Finished],
    rest: Sequence[Finished],
    demand: Demand,
) -> tuple[Speed, tuple[float, ...]]:
    """Take upstream's benchmark where it ran, our own clock elsewhere."""
    longest = max(greedy, key=lambda r: len(r.tokens))
    steps = tuple(b - a for a, b in pairwise(longest.tokens))
    generation = len(steps) / sum(steps) if steps and sum(steps) > 0 else 0.0
    for run in rest:
        if run.task.name == SPEED_RUN:
            generation = read_bench(run.stdout)[1] or generation
    again = next((r for r in rest if r.task.name == AGAIN_RUN), None)
    first = again or greedy[0]
    return Speed(
        prompt_tps=round(_prompt_speed(compared, demand), 2),
        generation_tps=round(generation, 2),
        load_s=round(first.marks.get(Phase.FIRST_TOKEN, 0.0), 3),
        first_token_s=round(_between(first, Phase.FIRST_TOKEN, Phase.DONE), 3),
        jit_s=round(_compiled_for(greedy[0], again), 3),
    ), steps


def _compiled_for(first: Finished, again: Finished | None) -> float:
    """Return how much later the first token came than in the same run without compiling."""
    if again is None:
        return 0.0
    at = [run.marks.get(Phase.DONE, run.seconds) for run in (first, again)]
    return max(0.0, at[0] - at[1])


def _prompt_speed(compared: Sequence[Finished], demand: Demand) -> float:
    """Return prompt tokens per second at the largest batch.

    A pass computes as many chunks as fit into the batch, then prints their rows. The second
    pass counts, whose kernels are compiled; where all fits into one, that one does.
    """
    batches, context = demand.work.batches, demand.work.context
    run = compared[batches.index(max(batches))]
    together = min(max(1, max(batches) // context), demand.work.chunks)
    tokens = together * context
    if len(run.rows) > together:
        return tokens / max(run.rows[together] - run.rows[together - 1], 1e-6)
    return tokens / max(_between(run, Phase.FIRST_TOKEN, Phase.DONE), 1e-6)


def _between(run: Finished, first: Phase, then: Phase) -> float:
    return max(0.0, run.marks.get(then, run.seconds) - run.marks.get(first, 0.0))


def records(runs: Sequence[Finished], patterns: PatternSet) -> tuple[RunRecord, ...]:
    """Return the runs for the verdict, with the lines of their logs that were read."""
    told = (
        patterns.backend_loaded, patterns.using, patterns.offloaded, patterns.weights,
        patterns.no_gpu, patterns.cpu_type, patterns.compute_begins, patterns.cuda_found,
        patterns.cuda_card, patterns.cuda_failed,
    )  # fmt: skip

    def interesting(line: str) -> bool:
        return any(p.search(patterns.prefix.sub("", line, count=1)) for p in told)

    return tuple(run.record(interesting) for run in runs)
