"""What a mutant is, and what came out. Frozen, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the tool said, or must say: the verdict's state, the class of failure, the exit code.

    Without a verdict the state is ``refused``: an error ended the run.
    """

    state: str
    failure: str
    exit: int

    @property
    def told(self) -> str:
        """Return it as one phrase."""
        return f"{self.state}{f' ({self.failure})' if self.failure else ''}, exit {self.exit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One sabotage. ``on`` is the artifact it is made from: cpu, vulkan, cuda, or device (any).

    ``changes`` are words for ``changes.py``, ``flags`` go to verify, ``short`` takes the zoo's
    own limits, which end a sleeper in seconds. ``own`` are expectations of single backends.
    """

    name: str
    group: str
    tells: str
    on: str
    changes: tuple[tuple[str, ...], ...]
    expect: Named
    own: Mapping[str, Named] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    model: str = ""
    short: bool = False

    def expected(self, backend: str) -> Named:
        """Return what must be said with an artifact of this backend."""
        return self.own.get(backend, self.expect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one mutant got.

    ``skipped`` says why it was not tried, ``why`` is the tool's own sentence, ``fault`` what it
    left behind.
    """

    name: str
    backend: str
    expect: Named
    seen: Named
    seconds: float
    why: str = ""
    key: str = ""
    skipped: str = ""
    fault: str = ""

    @property
    def right(self) -> bool:
        """Whether it was called by its name, and left nothing behind."""
        return not self.skipped and not self.fault and self.expect == self.seen
