"""Machines that went down during a proof: found by a journal line that was never ended."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from llamawright.model.verdict import State
from llamawright.store import Journal, Unfinished
from llamawright.verify.judge import Ruling
from llamawright.verify.supervise import JOURNAL_PREFIX

CLEAR = "--clear-quarantine"
WHAT_NEXT = (
    "the machine may freeze again. Try another backend, a newer driver or a smaller -ub; "
    f"{CLEAR} lifts this"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A phase that a machine did not survive.

    ``name`` is the artifact's; ``device`` and ``driver`` are empty when the machine went down
    before one was chosen, as while the devices were listed.
    """

    token: str
    phase: str
    run: str
    name: str = ""
    device: str = ""
    driver: str = ""
    began: float = 0.0

    @property
    def told(self) -> str:
        """Name what is quarantined: the artifact, the driver, the device."""
        name = self.name or "this artifact"
        if not self.device:
            return f"{name} before it had chosen a device"
        driver = f" with the driver {self.driver}" if self.driver else ""
        return f"{name} on {self.device}{driver}"


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
        why=f"{last.told}: the machine was restarted while '{last.run}' was in phase {last.phase}",
        hint=WHAT_NEXT,
    )


def quarantined(journal: Journal) -> tuple[str, ...]:
    """Return a note for each artifact during whose proof this machine went down. Settles none.

    One that froze several times is told once, by its last time.
    """
    ours = (u for u in journal.unfinished() if u.phase.startswith(JOURNAL_PREFIX) and u.rebooted)
    last = {u.facts.get("artifact"): _freeze(u) for u in ours}
    return tuple(
        f"quarantined: {f.told}: the machine was restarted while '{f.run}' was in phase {f.phase} "
        f"({_day(f.began)}); {WHAT_NEXT.replace(CLEAR, f'llamawright verify FILE {CLEAR}')}"
        for f in last.values()
    )


def _day(began: float) -> str:
    """Return a moment by the user's own clock."""
    return dt.datetime.fromtimestamp(began).astimezone().isoformat(" ", timespec="minutes")


def _of_artifact(unfinished: Iterable[Unfinished], artifact: str) -> list[Unfinished]:
    return [u for u in unfinished if u.facts.get("artifact") == artifact]


def _freeze(unfinished: Unfinished) -> Freeze:
    return Freeze(
        token=unfinished.token,
        phase=unfinished.phase.removeprefix(JOURNAL_PREFIX),
        run=str(unfinished.facts.get("run", "")),
        name=str(unfinished.facts.get("name", "")),
        device=str(unfinished.facts.get("device", "")),
        driver=str(unfinished.facts.get("driver", "")),
        began=unfinished.began,
    )
