"""What a new upstream release is, and how it differs from the pinned one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.recipe import SourcePin


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPin:
    """A pin that was measured from the bytes themselves.

    ``age_days`` since it was published, ``None`` when nobody says when that was. ``unknown``
    are the fields that could not be found out and keep a stand-in; each has its reason.
    """

    pin: SourcePin
    version: str
    age_days: float | None
    unknown: tuple[str, ...] = ()


class Weight(StrEnum):
    """How much a difference matters."""

    BLOCKS = "blocks"
    LOOK = "look"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two trees: ``before`` or ``after`` is empty where it is not."""

    topic: str
    name: str
    before: str
    after: str
    weight: Weight = Weight.INFO
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchState:
    """How a patch fares on the new tree: applies, refresh, retired or failed."""

    name: str
    state: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BumpReport:
    """Everything a maintainer must know before the pin is changed."""

    recipe: str
    old: SourcePin
    new: NewPin
    patches: tuple[PatchState, ...]
    changes: tuple[Change, ...]

    @property
    def blocking(self) -> tuple[str, ...]:
        """Return what must be solved first, one line each."""
        failed = (f"patch {p.name} does not apply" for p in self.patches if p.state == "failed")
        gone = (f"{c.name}: {c.why}" for c in self.changes if c.weight is Weight.BLOCKS)
        return (*failed, *gone)
