"""A reporter that keeps what it was told, for every room's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llamawright.model.ports import Meter


class Told:
    """Lines, warnings and what every meter said: label, how much is done of what, note."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.done: list[tuple[str, float, float | None]] = []
        self.notes: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def meter(self, label: str, *, total: float | None, unit: str) -> Iterator[Meter]:
        told = self

        class Kept:
            def update(self, done: float, *, total: float | None = total, note: str = "") -> None:
                told.done.append((label, done, total))
                told.notes.append(f"{label} {done:g} {note}")

        yield Kept()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.lines.append(title)
        yield
