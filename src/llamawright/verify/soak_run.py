"""From a passed proof to a soak: rounds until the time is over, kept one by one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace

from llamawright.errors import UsageError
from llamawright.model.ports import Meter, Reporter
from llamawright.model.recipe import SoakRules
from llamawright.model.request import VerifyRequest
from llamawright.model.soak import KernelEvent, SoakReport, SoakRound
from llamawright.model.verdict import Limit, Proof, State, Verdict
from llamawright.store import Store
from llamawright.verify.conclude import Attempt
from llamawright.verify.device import ProvideDriver
from llamawright.verify.judge import Ruling
from llamawright.verify.prove import verify
from llamawright.verify.soak_events import read_events
from llamawright.verify.soak_judge import drifts, limits_of_soak, rule_soak
from llamawright.verify.soak_kernel import KernelLog, open_kernel_log
from llamawright.verify.soak_record import SHELF, Past, Record, soak_key
from llamawright.verify.soak_round import Rounds

PASSED = frozenset({State.VERIFIED, State.VERIFIED_SOFTWARE})
# A page and a file that can still be opened; the record in the store has every round.
MOST_KEPT = 2000


def soak(
    request: VerifyRequest,
    asked_s: float,
    *,
    store: Store,
    reporter: Reporter,
    provide_driver: ProvideDriver | None = None,
) -> tuple[Proof, SoakReport | None]:
    """Prove, then run again and again for ``asked_s`` seconds in all, sessions added up.

    ``None`` when the proof was not passed: then there is nothing to soak. Raises what
    ``verify`` raises, and ``UsageError`` for a recipe without the limits of a soak.
    """
    rules = request.verification.soak
    if rules is None:
        raise UsageError(
            "the recipe has no limits for --soak",
            hint="add [verification.soak] to it; recipes/llama.cpp.toml shows how",
            kind="no-soak-limits",
        )
    found: list[SoakReport] = []

    def then(attempt: Attempt, verdict: Verdict) -> None:
        if verdict.state in PASSED:
            found.append(begin(attempt, verdict, rules, asked_s, store=store, reporter=reporter))

    proof = verify(
        request, store=store, reporter=reporter, provide_driver=provide_driver, then=then
    )
    return proof, found[0] if found else None


def begin(
    attempt: Attempt,
    verdict: Verdict,
    rules: SoakRules,
    asked_s: float,
    *,
    store: Store,
    reporter: Reporter,
) -> SoakReport:
    """Find the record of an earlier session, go on, and return the report."""
    rounds = Rounds(attempt, rules)
    device = attempt.chosen.device
    key = soak_key(
        artifact=verdict.artifact_sha256,
        model=verdict.model_sha256,
        device=device,
        work={"tokens": rounds.tokens},
    )
    log = open_kernel_log()
    try:
        run = SoakRun(
            take=rounds.take,
            record=Record(store.root / SHELF / f"{key}.jsonl"),
            log=log,
            pci=device.pci,
            limits=limits_of_soak(rules, slow=device.software or attempt.setting.cpu),
            passed=verdict.state,
            asked_s=asked_s,
            reporter=reporter,
        )
        ruling, past = run.go()
    finally:
        log.close()
    return report(verdict, attempt, run, ruling, past)


# (number, session, first of its session, seconds so far) to what the round showed.
Take = Callable[..., SoakRound]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakRun:
    """The loop: takes rounds, keeps them, judges after each."""

    take: Take
    record: Record
    log: KernelLog
    pci: str
    limits: tuple[Limit, ...]
    passed: State
    asked_s: float
    reporter: Reporter

    def go(self) -> tuple[Ruling, Past]:
        """Run until the time is over or something is wrong; an ended record begins anew."""
        past = self.record.read()
        if past.ended:
            past = Past()
        self.record.begin(past)
        if past.rounds:
            at, count = past.rounds[-1].at, len(past.rounds)
            self.reporter.info(f"soak: goes on after round {count}, {at:.0f} s were done before")
        if not self.log.readable:
            self.reporter.warn(f"soak: the kernel's log cannot be read ({self.log.told})")
        ruling, rounds, events = self._rounds(list(past.rounds), list(past.events))
        self.record.end(ruling.failure)
        return ruling, Past(rounds=tuple(rounds), events=tuple(events), ended=True)

    def _rounds(
        self, rounds: list[SoakRound], events: list[KernelEvent]
    ) -> tuple[Ruling, list[SoakRound], list[KernelEvent]]:
        before = rounds[-1].at if rounds else 0.0
        session = rounds[-1].session + 1 if rounds else 1
        ruling = self._judge(rounds, events)
        left = max(0.0, self.asked_s - before)
        with self.reporter.meter("soak", total=left or 1.0, unit="s") as meter:
            first = True
            while ruling.state is self.passed and (not rounds or rounds[-1].at < self.asked_s):
                done = self._round(rounds, session, first=first)
                fresh = read_events(self.log.new(), pci=self.pci, at=done.at)
                for event in fresh:
                    self.record.add_event(event)
                rounds.append(done)
                events.extend(fresh)
                self.record.add_round(done)
                ruling = self._judge(rounds, events)
                _tell(meter, done, before)
                first = False
        return ruling, rounds, events

    def _round(self, rounds: list[SoakRound], session: int, *, first: bool) -> SoakRound:
        """Take a round; its words are kept when they are the first ones or other ones."""
        at = rounds[-1].at if rounds else 0.0
        done = self.take(len(rounds) + 1, session, first=first, at=at)
        known = bool(rounds) and done.answer == rounds[0].answer
        return replace(done, text="") if known else done

    def _judge(self, rounds: list[SoakRound], events: list[KernelEvent]) -> Ruling:
        return rule_soak(rounds, events, drifts(rounds, self.limits), passed=self.passed)


def _tell(meter: Meter, done: SoakRound, before: float) -> None:
    speed = f", {done.tps:.1f} tok/s" if done.tps else ""
    meter.update(done.at - before, note=f"round {done.number}{speed}")


def report(
    verdict: Verdict,
    attempt: Attempt,
    run: SoakRun,
    ruling: Ruling,
    past: Past,
) -> SoakReport:
    """Return all that a soak showed."""
    rounds = past.rounds
    return SoakReport(
        state=ruling.state,
        failure=ruling.failure,
        why=ruling.why,
        hint=ruling.hint,
        artifact=verdict.artifact,
        artifact_sha256=verdict.artifact_sha256,
        model=verdict.model,
        model_sha256=verdict.model_sha256,
        device=attempt.chosen.device,
        asked_s=run.asked_s,
        soaked_s=rounds[-1].at if rounds else 0.0,
        count=len(rounds),
        sessions=len({r.session for r in rounds}),
        rounds=thinned(rounds),
        drifts=drifts(rounds, run.limits),
        events=past.events,
        kernel_log=run.log.told,
        kernel_read=run.log.readable,
        answer=rounds[0].text if rounds else "",
        record=str(run.record.path),
        limits=run.limits,
        date=dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        host=verdict.host,
    )


def thinned(rounds: tuple[SoakRound, ...]) -> tuple[SoakRound, ...]:
    """Return at most some thousand rounds, evenly spread: first, last and odd ones are kept."""
    step = -(-len(rounds) // MOST_KEPT)
    return tuple(
        r
        for i, r in enumerate(rounds)
        if i % step == 0 or r is rounds[-1] or r.failure or r.text or r.first
    )
