"""The runs of a comparison in their order. Pure.

Sides take turns step by step, and each round begins with the other one (A B B A A B …): what
warms up, slows down or wakes up on the machine in the meantime hits both alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.comparison import Letter

MOST_ROUNDS = 200


class Step(StrEnum):
    """One kind of run.

    ``prepare`` is not measured: what the driver compiles for a length of prompt (0: for the
    benchmark) is kept from then on. ``fresh`` has an empty driver cache, ``warm`` is the same
    run once more, ``cold`` has the model given back by the page cache, ``context`` a longer
    prompt, ``bench`` is upstream's own benchmark.
    """

    PREPARE = "prepare"
    FRESH = "fresh"
    WARM = "warm"
    COLD = "cold"
    CONTEXT = "context"
    BENCH = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is computed: rounds, prompt lengths in tokens, the benchmark's two lengths."""

    rounds: int
    contexts: tuple[int, ...]
    prompt: int
    generation: int


# On hardware a round takes seconds; llvmpipe computes a few tokens a second.
HARDWARE = Effort(rounds=7, contexts=(32, 512, 2048), prompt=512, generation=128)
SOFTWARE = Effort(rounds=5, contexts=(8, 32), prompt=8, generation=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One run: whose, in which round (from 1 on; 0 before), after how many tokens of prompt."""

    round: int
    step: Step
    letter: Letter
    tokens: int = 0

    @property
    def name(self) -> str:
        """Return the run's name, which its log has too."""
        length = f" {self.tokens}" if self.step in {Step.CONTEXT, Step.PREPARE} else ""
        return f"{self.letter} round {self.round} {self.step}{length}"


def effort(*, software: bool, rounds: int | None = None, contexts: tuple[int, ...] = ()) -> Effort:
    """Return how much is computed: what the device can bear, unless it was said."""
    usual = SOFTWARE if software else HARDWARE
    return Effort(
        rounds=rounds or usual.rounds,
        contexts=tuple(sorted(set(contexts))) or usual.contexts,
        prompt=usual.prompt,
        generation=usual.generation,
    )


def order(number: int) -> tuple[Letter, Letter]:
    """Return who comes first in a round, counted from 1."""
    return (Letter.A, Letter.B) if number % 2 else (Letter.B, Letter.A)


def orders(rounds: int) -> tuple[str, ...]:
    """Return the order of each round as a word."""
    return tuple("".join(order(n)) for n in range(1, rounds + 1))


def turns(work: Effort, *, speed_only: bool = False) -> Iterator[Turn]:
    """Yield every run in order; ``speed_only`` leaves all but the benchmark out."""
    short, *longer = work.contexts
    steps = [(Step.FRESH, short), (Step.WARM, short), (Step.COLD, short)]
    steps += [(Step.CONTEXT, tokens) for tokens in longer]
    for tokens in (0, *([] if speed_only else work.contexts)):
        for letter in Letter:
            yield Turn(round=0, step=Step.PREPARE, letter=letter, tokens=tokens)
    for number in range(1, work.rounds + 1):
        for step, tokens in [*([] if speed_only else steps), (Step.BENCH, 0)]:
            for letter in order(number):
                yield Turn(round=number, step=step, letter=letter, tokens=tokens)
