"""Machines that went down during a proof: found by a journal line that was never ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llamawright.model.verdict import State
from llamawright.store import Journal, Unfinished
from llamawright.verify.judge import Ruling
from llamawright.verify.supervise import JOURNAL_PREFIX

WHAT_NEXT = (
    "the machine may freeze again. Try another backend, a newer driver or a smaller -ub; "
    "--clear-quarantine lifts this"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A phase that a machine did not survive."""

    token: str
    phase: str
    run: str


def freezes(journal: Journal, *, artifact: str) -> tuple[Freeze, ...]:
    """Return the phases with this artifact during which the machine went down.

    Phases that were cut short without a restart (the tool was killed) are settled here.
    """
    ours = [u for u in journal.unfinished() if u.phase.startswith(JOURNAL_PREFIX)]
    for unfinished in ours:
        if not unfinished.rebooted:
            journal.end(unfinished.token, ending="killed")
    return tuple(_freeze(u) for u in _of_artifact(ours, artifact) if u.rebooted)


def lift(journal: Journal, found: Iterable[Freeze]) -> None:
    """End the phases, so that the next proof runs."""
    for freeze in found:
        journal.end(freeze.token, ending="cleared")


def ruling(found: tuple[Freeze, ...]) -> Ruling:
    """Return the verdict of an artifact during whose last proof the machine went down."""
    last = found[-1]
    return Ruling(
        state=State.QUARANTINED,
        failure="machine-went-down",
        why=f"the machine was restarted while '{last.run}' was in phase {last.phase}",
        hint=WHAT_NEXT,
    )


def _of_artifact(unfinished: Iterable[Unfinished], artifact: str) -> list[Unfinished]:
    return [u for u in unfinished if u.facts.get("artifact") == artifact]


def _freeze(unfinished: Unfinished) -> Freeze:
    return Freeze(
        token=unfinished.token,
        phase=unfinished.phase.removeprefix(JOURNAL_PREFIX),
        run=str(unfinished.facts.get("run", "")),
    )
