"""How long each step took before: what makes the time left more than a count of steps."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

# Seconds of processor time on a 2026 server core with gcc 12.2, for the first build on a
# machine. Only their proportions count, and a step that is not here takes the usual time.
MEASURED = {
    "ops.cpp.o": 9.0,
    "repack.cpp.o": 5.8,
    "sgemm.cpp.o": 4.5,
    "quants.c.o": 3.5,
    "mmq.cpp.o": 4.0,
    "ggml-quants.c.o": 4.0,
    "arg.cpp.o": 14.0,
    "httplib.cpp.o": 17.0,
    "llama-model.cpp.o": 8.0,
    "llama-bench.cpp.o": 8.0,
    "ggml-vulkan.cpp.o": 42.0,
    "ggml-vulkan-buffers.cpp.o": 7.0,
    "ggml-vulkan-debug.cpp.o": 6.0,
    "mul_mm.comp": 45.0,
    "mul_mm.comp.cpp.o": 24.0,
    "mul_mat_vec.comp": 16.0,
    "mul_mat_vecq.comp": 15.0,
    "mul_mmq.comp": 12.0,
    "mul_mm_cm2.comp": 10.0,
    "mul_mat_vecq.comp.cpp.o": 3.5,
    "mul_mat_vec.comp.cpp.o": 3.0,
}
UNITY = 11.0
USUAL = 1.5
LINK = 0.2
FIELDS = 5
OUTPUT = re.compile(r" -o (\S+)")
SHADER = re.compile(r" --source +(\S+)")


@dataclass(frozen=True, slots=True)
class Weights:
    """What each step weighs, by the name of what it makes; ``known`` in seconds."""

    known: Mapping[str, float] = field(default_factory=dict)

    def of(self, description: str) -> float:
        """Return the weight of a step from ninja's description of it."""
        name = name_of(description)
        for table in (self.known, MEASURED):
            if name in table:
                return table[name]
        if name.startswith("unity_"):
            return UNITY
        return USUAL if name.endswith((".o", ".obj", ".comp")) else LINK


def name_of(description: str) -> str:
    """Return what a step makes: the last word's file name, the same in every build folder."""
    words = description.split()
    return words[-1].rpartition("/")[2] if words else ""


def read_log(text: str) -> dict[str, float]:
    """Return the mean seconds of each step in ninja's own log, by file name.

    A line is start, end (milliseconds), time stamp, output and command hash; later lines of
    one output replace earlier ones. A torn last line is left out.
    """
    latest: dict[str, float] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if line.startswith("#") or len(fields) != FIELDS:
            continue
        start, end, _stamp, output, _hash = fields
        if start.isdecimal() and end.isdecimal():
            latest[output] = max(0, int(end) - int(start)) / 1000
    grouped: dict[str, list[float]] = defaultdict(list)
    for output, seconds in latest.items():
        # A shader's step is described by the shader, and makes a C++ file of that name.
        name = output.rpartition("/")[2]
        grouped[name.removesuffix(".cpp") if name.endswith(".comp.cpp") else name].append(seconds)
    return {name: round(statistics.fmean(values), 3) for name, values in grouped.items()}


def steps_of(commands: str, finished: Collection[str]) -> list[str]:
    """Return what is still to be made, from ``ninja -t commands`` and the outputs in its log.

    A dry run would not do: where a project looks for new files at every build (ggml's shaders)
    it lists that look and nothing else.
    """
    steps = []
    for line in commands.splitlines():
        output = OUTPUT.search(line)
        shader = SHADER.search(line)
        if output and output[1] in finished:
            continue
        if shader and any(o.endswith(f"/{name_of(shader[1])}.cpp") for o in finished):
            continue
        steps.append(name_of(shader[1] if shader else output[1] if output else line))
    return steps


def finished_in(text: str) -> frozenset[str]:
    """Return the outputs that ninja's own log calls made."""
    rows = (line.split("\t") for line in text.splitlines())
    return frozenset(row[3] for row in rows if len(row) == FIELDS)


def merged(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
    """Return what is known after a build: the newer time of each step counts.

    Hits of a compiler cache say nothing about compiling: a time below a tenth of the known
    one is left out.
    """
    kept = {name: s for name, s in new.items() if s >= old.get(name, 0.0) / 10}
    return {**old, **kept}


def total(weights: Weights, descriptions: Iterable[str]) -> float:
    """Return the weight of all steps that are to be done."""
    return sum(weights.of(d) for d in descriptions)
