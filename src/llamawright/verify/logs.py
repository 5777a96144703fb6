"""Logs to facts. Pure: a list of lines in, what they claim out; nothing is judged here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from llamawright.model.verdict import Device, Numbers
from llamawright.verify.patterns import FAILURES, SOFTWARE_NAMES, PatternSet

MIB = 1 << 20
PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBackend:
    """A backend module that the program says it loaded."""

    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFacts:
    """What one run's log claims about where the model went.

    ``assigned`` counts layers by device id, ``weights`` bytes by buffer name; ``offloaded``
    is (done, all), ``None`` when the line is absent. ``cards`` are CUDA's devices by number:
    name and compute capability without its dot.
    """

    backends: tuple[LoadedBackend, ...] = ()
    using: tuple[str, ...] = ()
    pci: str = ""
    offloaded: tuple[int, int] | None = None
    assigned: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    no_gpu: bool = False
    cpu_type: bool = False
    cards: Mapping[int, tuple[str, int]] = field(default_factory=dict)


def strip_prefix(line: str, patterns: PatternSet) -> str:
    """Return a log line without its time and level."""
    return patterns.prefix.sub("", line.rstrip("\r"), count=1)


def read_devices(output: str, patterns: PatternSet, *, backend: str) -> tuple[Device, ...] | None:
    """Return the devices of ``--list-devices``, or ``None`` when that is not such a list."""
    lines = output.splitlines()
    found = [m for m in map(patterns.listed.match, lines) if m]
    if not found and not any(map(patterns.none_listed.match, lines)):
        return None
    return tuple(
        Device(
            id=m["id"],
            name=m["name"],
            backend=backend,
            memory=int(m["mib"]) * MIB,
            software=SOFTWARE_NAMES.search(m["name"]) is not None,
        )
        for m in found
    )


def read_load(lines: Iterable[str], patterns: PatternSet) -> LoadFacts:
    """Return what a run's log claims; a second load in one log replaces the first."""
    backends: list[LoadedBackend] = []
    using: list[str] = []
    assigned: dict[str, int] = {}
    weights: dict[str, int] = {}
    offloaded: tuple[int, int] | None = None
    cards: dict[int, tuple[str, int]] = {}
    pci, no_gpu, cpu_type = "", False, False
    for raw in lines:
        line = strip_prefix(raw, patterns)
        if patterns.load_begins.search(line):
            using, assigned, weights, offloaded = [], {}, {}, None
        elif match := patterns.backend_loaded.search(line):
            backends.append(LoadedBackend(name=match["name"], path=match["path"]))
        elif match := patterns.using.search(line):
            using.append(match["id"])
            pci = match["pci"] if ":" in match["pci"] else pci
        elif match := patterns.assigned.search(line):
            assigned[match["id"]] = assigned.get(match["id"], 0) + 1
        elif match := patterns.offloaded.search(line):
            offloaded = int(match["done"]), int(match["all"])
        elif match := patterns.weights.search(line):
            size = int(float(match["mib"]) * MIB)
            weights[match["buffer"]] = weights.get(match["buffer"], 0) + size
        elif match := patterns.cuda_card.search(line):
            cards[int(match["index"])] = match["name"], int(match["major"] + match["minor"])
        no_gpu = no_gpu or patterns.no_gpu.search(line) is not None
        cpu_type = cpu_type or patterns.cpu_type.search(line) is not None
    return LoadFacts(
        backends=tuple(backends),
        using=tuple(using),
        pci=pci,
        offloaded=offloaded,
        assigned=assigned,
        weights=weights,
        no_gpu=no_gpu,
        cpu_type=cpu_type,
        cards=cards,
    )


def read_numbers(output: str, patterns: PatternSet, *, context: int, batch: int) -> Numbers | None:
    """Return the table of ``llama-perplexity --kl-divergence``, or ``None`` without one.

    Each row is the mean over all chunks so far; the chunks' own means are computed from the
    differences. Half of a chunk's tokens, less one, are compared.
    """
    rows = [m for m in map(patterns.chunk.match, output.splitlines()) if m]
    means = [_number(m["kld"]) for m in rows]
    if not rows or [int(m["chunk"]) for m in rows] != list(range(1, len(rows) + 1)):
        return None
    sums = [0.0, *(mean * (i + 1) for i, mean in enumerate(means))]
    return Numbers(
        batch=batch,
        mean_kld=means[-1],
        top1=_number(rows[-1]["top"]) / PERCENT,
        positions=(context - 1 - context // 2) * len(rows),
        per_chunk=tuple(b - a for a, b in pairwise(sums)),
    )


def read_bench(output: str) -> tuple[float, float]:
    """Return prompt and generation tokens per second of ``llama-bench -o jsonl``; 0: absent."""
    prompt, generation = 0.0, 0.0
    for line in output.splitlines():
        try:
            row = json.loads(line)
            rate = float(row["avg_ts"])
            prompt, generation = (
                (rate, generation) if row["n_prompt"] and not row["n_gen"] else (prompt, rate)
            )
        except (ValueError, KeyError, TypeError):
            continue
    return prompt, generation


def failure_reason(lines: Sequence[str]) -> tuple[str, str] | None:
    """Return the class that a failed run's own words point to, and the line that says it."""
    for kind, pattern in FAILURES:
        for line in lines:
            if pattern.search(line):
                return kind, line.strip()
    return None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
