"""What llamawright itself costs, as ratios measured in one run.

Seconds differ from machine to machine and from minute to minute; so each figure stands beside
a yardstick that was measured in the same rounds: the start of an interpreter, one sha256 and
one plain unpacking of the same file. Targets in seconds are the project's own promises.
"""
# ruff: noqa: INP001 - a script

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from llamawright.config import load_recipe
from llamawright.digest import sha256_file
from llamawright.errors import LlamawrightError
from llamawright.fetch import fetch_source
from llamawright.model.ports import Meter
from llamawright.model.recipe import IndexOrigin, SourcePin
from llamawright.paths import data_root, store_root
from llamawright.store import Store

ROOT = Path(__file__).resolve().parent.parent
CLI = (sys.executable, "-P", "-m", "llamawright")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured cost: median and best seconds, its yardstick, the promise if any."""

    name: str
    median_s: float
    best_s: float
    yardstick: str
    ratio: float
    target_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A cost that could not be measured here, and why."""

    name: str
    reason: str


class Silent:
    """A reporter and a meter that say nothing, so that nothing of them is measured."""

    def info(self, text: str) -> None:
        """Say nothing."""

    def warn(self, text: str) -> None:
        """Say nothing."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Open nothing."""
        del title
        return nullcontext()

    def meter(self, label: str, *, total: float | None, unit: str) -> AbstractContextManager[Meter]:
        """Show nothing."""
        del label, total, unit
        return nullcontext(self)

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """Show nothing."""


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table on stderr and, with ``--json``, write the figures."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds per figure (default: 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    flags = parser.parse_args(arguments)
    figures = [*commands(flags.rounds), *source(max(2, flags.rounds // 2))]
    sys.stderr.write("\n".join(table(figures)) + "\n")
    if flags.json:
        record = {
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cores": os.cpu_count(),
            "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
            "figures": [asdict(f) for f in figures],
        }
        flags.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


def commands(rounds: int) -> list[Figure | Skipped]:
    """Measure whole command lines beside the start of an interpreter, round by round."""
    start = [sys.executable, "-I", "-c", "pass"]
    noop = [sys.executable, str(ROOT / "bootstrap.py"), "build-vulkan"]
    wanted: dict[str, tuple[Sequence[str], float | None]] = {
        "llamawright --version": ([*CLI, "--version"], None),
        "llamawright plan vulkan": ([*CLI, "plan", "vulkan", "--json"], None),
        "llamawright doctor": ([*CLI, "doctor", "--json"], 3.0),
    }
    found: list[Figure | Skipped] = []
    if _finished():
        wanted["no-op: bootstrap.py build-vulkan"] = (noop, 0.5)
    else:
        why = "no finished build of this checkout: run build-vulkan first"
        found.append(Skipped(name="no-op: bootstrap.py build-vulkan", reason=why))
    for name, (command, target) in wanted.items():
        if _seconds(command) is None:
            found.append(Skipped(name=name, reason="the command fails here"))
            continue
        pairs = [(_seconds(start) or 0.0, _seconds(command) or 0.0) for _ in range(rounds)]
        found.append(_figure(name, pairs, "interpreter start", target))
    return found


def source(rounds: int) -> list[Figure | Skipped]:
    """Measure verify + unpack + digest of the source beside sha256 + plain unpacking."""
    name = "fetch: verify, judge, unpack, digest"
    pin = load_recipe(data_root() / "recipes" / "llama.cpp.toml").source
    origin = next(o for o in pin.origins if isinstance(o, IndexOrigin))
    blob = Store(store_root()).blob(origin.sha256)
    if not blob.is_file():
        return [Skipped(name=name, reason=f"{origin.filename} is not in the store: fetch it first")]
    pairs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="llamawright-bench-") as folder:
            plain = _timed(partial(_by_hand, blob, Path(folder, "by-hand")))
            ours = _timed(partial(_through_the_store, blob, pin, Path(folder, "store")))
        pairs.append((plain, ours))
    return [_figure(name, pairs, "sha256 + tarfile, same file", 2.0)]


def table(figures: Sequence[Figure | Skipped]) -> list[str]:
    """Return the figures as aligned lines."""
    lines = [f"{'what':38} {'median':>8} {'best':>8} {'target':>8}  ratio to yardstick"]
    for item in figures:
        if isinstance(item, Skipped):
            lines.append(f"{item.name:38} skipped: {item.reason}")
            continue
        target = f"{item.target_s:.1f} s" if item.target_s else ""
        seconds = f"{item.median_s:6.2f} s {item.best_s:6.2f} s {target:>8}"
        lines.append(f"{item.name:38} {seconds}  {item.ratio:.2f} x {item.yardstick}")
    return lines


def _figure(
    name: str, pairs: Sequence[tuple[float, float]], yardstick: str, target: float | None
) -> Figure:
    ours = [pair[1] for pair in pairs]
    ratio = statistics.median(own / stick for stick, own in pairs)
    return Figure(
        name=name,
        median_s=statistics.median(ours),
        best_s=min(ours),
        yardstick=yardstick,
        ratio=ratio,
        target_s=target,
    )


def _finished() -> bool:
    return any((ROOT / "dist").glob("*.result.json")) and (store_root() / "runs").is_dir()


def _seconds(command: Sequence[str]) -> float | None:
    start = time.perf_counter()
    ended = subprocess.run(list(command), cwd=ROOT, capture_output=True, check=False)
    return time.perf_counter() - start if ended.returncode == 0 else None


def _timed(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _by_hand(blob: Path, dest: Path) -> None:
    sha256_file(blob)
    with tarfile.open(blob) as archive:
        archive.extractall(dest, filter="data")


def _through_the_store(blob: Path, pin: SourcePin, root: Path) -> None:
    store = Store(root)
    own = store.blob(blob.name)
    own.parent.mkdir(parents=True)
    os.link(blob, own)
    if sha256_file(own) != blob.name:
        raise LlamawrightError(f"{blob} is damaged")
    fetch_source(pin, source="index", store=store, offline=True, reporter=Silent())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
