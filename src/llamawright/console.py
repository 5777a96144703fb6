"""Everything a person reads: stages, live lines, folds, summary and the error page.

All of it goes to stderr; stdout belongs to data (``--json``). A terminal gets one live
line per job; a log gets plain lines, at most one every ten seconds; hosted CI gets folds
and annotations in its own words.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TextIO

from llamawright.errors import LlamawrightError
from llamawright.model.ports import Meter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PLAIN_EVERY_S = 10.0
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Host(Enum):
    """The place a log is read in: it decides how a fold is written."""

    TERMINAL = "terminal"
    PLAIN = "plain"
    GITHUB = "github"
    GITLAB = "gitlab"


@dataclass
class Console:
    """The one writer to stderr. ``quiet`` keeps warnings, errors and the summary only."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    host: Host = Host.PLAIN
    quiet: bool = False
    warnings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    _open: list[str] = field(default_factory=list)
    _live: Progress | None = None

    @classmethod
    def for_process(cls, *, quiet: bool = False) -> Console:
        """Return the console that fits this process's stderr and environment."""
        if os.environ.get("GITHUB_ACTIONS") == "true":
            host = Host.GITHUB
        elif os.environ.get("GITLAB_CI") == "true":
            host = Host.GITLAB
        elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            host = Host.TERMINAL
        else:
            host = Host.PLAIN
        return cls(stream=sys.stderr, host=host, quiet=quiet)

    def info(self, text: str) -> None:
        """Print one line of progress, indented below its stage."""
        if not self.quiet:
            self._write(f"{'  ' if self._open else ''}{text}")

    def warn(self, text: str) -> None:
        """Print a warning now and once more in the summary."""
        if text in self.warnings:
            return
        self.warnings.append(text)
        self._write(f"::warning::{text}" if self.host is Host.GITHUB else f"warning: {text}")

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Open a stage: a heading now, its seconds at the end, a fold in CI."""
        start = time.monotonic()
        mark = f"{title.replace(' ', '_')}_{len(self._open)}"
        self._heading(title, mark)
        self._open.append(title)
        try:
            yield
        except BaseException:
            self._open.pop()
            self._close(mark)
            raise
        self._open.pop()
        seconds = time.monotonic() - start
        self._close(mark)
        if not self.quiet:
            self._write(f"{'  ' * len(self._open)}✓ {title} ({duration(seconds)})")

    @contextlib.contextmanager
    def meter(self, label: str, *, total: float | None, unit: str) -> Iterator[Meter]:
        """Open a live line with rate and time left."""
        if self.host is Host.TERMINAL and not self.quiet:
            with self._live_meter(label, total=total, unit=unit) as meter:
                yield meter
            return
        meter = PlainMeter(self, label, total, unit)
        yield meter
        meter.finish()

    def lines(self, *texts: str) -> None:
        """Print lines that always show: summaries, tables and errors."""
        for text in texts:
            self._write(text)

    def elapsed(self) -> float:
        """Return the seconds since this console was opened."""
        return time.monotonic() - self.started

    def failure(self, error: LlamawrightError) -> None:
        """Print an error for a stranger: what, why, command, last lines, log, hint."""
        title = f"error: {error.what}"
        if self.host is Host.GITHUB:
            self._write(f"::error::{error.what}. {error.hint}".replace("\n", " "))
        self._write(title)
        for line in filter(None, error.why.splitlines()):
            self._write(f"  because: {line}" if line == error.why else f"  {line}")
        if error.tail:
            self._write("  last lines:")
            self.lines(*(f"    {line}" for line in error.tail))
        for name, value in (("command", error.command), ("log", error.log)):
            if value:
                self._write(f"  {name}: {value}")
        for line in filter(None, error.hint.splitlines()):
            self._write(f"hint: {line}")

    def _heading(self, title: str, mark: str) -> None:
        match self.host:
            case Host.GITHUB:
                self._write(f"::group::{title}")
            case Host.GITLAB:
                stamp = int(time.time())
                head = f"\x1b[0Ksection_start:{stamp}:{mark}[collapsed=true]\r\x1b[0K"
                self._write(f"{head}{title}")
            case _ if not self.quiet:
                self._write(f"{'  ' * len(self._open)}• {title}")

    def _close(self, mark: str) -> None:
        match self.host:
            case Host.GITHUB:
                self._write("::endgroup::")
            case Host.GITLAB:
                self._write(f"\x1b[0Ksection_end:{int(time.time())}:{mark}\r\x1b[0K")
            case _:
                pass

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError, ValueError):
            if self._live is not None:
                self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                self.stream.write(f"{text}\n")
                self.stream.flush()

    @contextlib.contextmanager
    def _live_meter(self, label: str, *, total: float | None, unit: str) -> Iterator[Meter]:
        from rich.console import Console as RichConsole  # noqa: PLC0415 - terminals only
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        if self._live is not None:
            yield RichMeter(self._live, self._live.add_task(label, total=total, note=""))
            return
        count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
        left = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        columns = (TextColumn("  {task.description}"), BarColumn(24), count, *left)
        terminal = RichConsole(file=self.stream)
        with Progress(
            *columns, TextColumn("{task.fields[note]}"), console=terminal, transient=True
        ) as live:
            self._live = live
            try:
                yield RichMeter(live, live.add_task(label, total=total, note=""))
            finally:
                self._live = None


@dataclass
class RichMeter:
    """A live line on a terminal."""

    live: Progress
    task: TaskID

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """Set how much is done."""
        if total is not None:
            self.live.update(self.task, completed=done, note=note, total=total)
        else:
            self.live.update(self.task, completed=done, note=note)


def _now() -> float:
    return time.monotonic()


@dataclass
class PlainMeter:
    """Progress for logs: one line at most every ten seconds, with the time left."""

    console: Console
    label: str
    total: float | None
    unit: str
    done: float = 0.0
    start: float = field(default_factory=_now)
    said: float = field(default_factory=_now)

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """Set how much is done; print when it is time to."""
        self.done = done
        self.total = total if total is not None else self.total
        now = time.monotonic()
        if now - self.said >= PLAIN_EVERY_S:
            self.said = now
            self.console.info(f"{self.text(now)}{f'  {note}' if note else ''}")

    def text(self, now: float) -> str:
        """Return the line: done, total, percent and the time left."""
        amount = quantity(self.done, self.unit)
        if not self.total:
            return f"{self.label}: {amount}"
        share = min(1.0, self.done / self.total)
        left = (now - self.start) * (1 - share) / share if share > 0 else 0.0
        whole = quantity(self.total, self.unit)
        return f"{self.label}: {amount} of {whole} ({share:.0%}, {duration(left)} left)"

    def finish(self) -> None:
        """Print the last line, unless the job was too short for any."""
        if time.monotonic() - self.start >= PLAIN_EVERY_S:
            seconds = duration(time.monotonic() - self.start)
            self.console.info(f"{self.label}: {quantity(self.done, self.unit)} in {seconds}")


def quantity(amount: float, unit: str) -> str:
    """Return an amount in a readable unit; bytes in powers of 1024."""
    if unit != "bytes":
        return f"{amount:.0f} {unit}"
    step = 0
    while amount >= 1024 and step < len(UNITS) - 1:  # noqa: PLR2004
        amount /= 1024
        step += 1
    return f"{amount:.0f} {UNITS[step]}" if step == 0 else f"{amount:.1f} {UNITS[step]}"


def duration(seconds: float) -> str:
    """Return seconds as ``0.4 s``, ``42 s``, ``3 min 05 s`` or ``1 h 02 min``."""
    if seconds < 10:  # noqa: PLR2004 - below ten seconds the tenth matters
        return f"{seconds:.1f} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if not minutes:
        return f"{whole} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
