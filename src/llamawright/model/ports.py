"""The Protocols through which rooms reach a person without knowing the console."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class Meter(Protocol):
    """A running job's live line. ``total`` and ``done`` share one unit."""

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """Set how much is done; the line shows the rate and the time left."""


class Reporter(Protocol):
    """What a room may tell a person."""

    def info(self, text: str) -> None:
        """Print one line of progress."""

    def warn(self, text: str) -> None:
        """Print one warning line, repeated in the summary."""

    def meter(self, label: str, *, total: float | None, unit: str) -> AbstractContextManager[Meter]:
        """Open a live line; ``unit`` is ``bytes`` or a noun such as ``steps``."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Open a stage: a heading now, its time at the end, a fold in CI."""
