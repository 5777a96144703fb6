"""NVIDIA's compute-sanitizer, which CUDA toolkits bring: found, told what to do, read."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from llamawright.model.investigation import Message

NAME = "compute-sanitizer"
PRINTS = "20"
LEAVES = ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT")
MOST_TEXT = 600
LINE = re.compile(r"^=+ ?(?P<text>.*)$")
# What begins a report; lines below it are indented.
BEGINS = re.compile(
    r"^(Invalid |Misaligned |Program hit |Error: |Out-of-range |Uninitialized |Race reported|"
    r"Warning: |Illegal |Leaked |Barrier error|Unsafe |Fatal )"
)
KERNEL = re.compile(r"^\s+at (?:0x[0-9a-f]+ in )?(?P<kernel>.+?)(?:\+0x[0-9a-f]+)?(?: in (\S+))?$")
UNFIT = re.compile(
    r"(Target application returned an error|Unable to find injection|"
    r"not supported|No attachable process|Device not supported).*",
    re.IGNORECASE,
)


def find(env: Mapping[str, str], *, base: Path = Path("/usr/local")) -> Path | None:
    """Return the program of this machine's toolkit: PATH, its own variables, the usual place."""
    on_path = shutil.which(NAME, path=env.get("PATH"))
    roots = [Path(env[name]) for name in LEAVES if env.get(name)]
    roots += sorted(base.glob("cuda*"), reverse=True)
    places = [Path(on_path)] if on_path else []
    places += [root / part for root in roots for part in (f"bin/{NAME}", f"{NAME}/{NAME}")]
    return next((p for p in places if p.is_file()), None)


def argv(program: Path, log: Path, debugged: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line that checks every access of ``debugged`` on the device."""
    return (
        str(program), "--tool", "memcheck", "--print-limit", PRINTS, "--error-exitcode", "86",
        "--target-processes", "application-only", "--log-file", str(log), *debugged,
    )  # fmt: skip


def read_messages(text: str) -> tuple[Message, ...]:
    """Return what was reported, each once, in the order in which it happened."""
    counts: Counter[tuple[str, str]] = Counter(_reports(text))
    return tuple(
        Message(source=NAME, id=kind, text=told[:MOST_TEXT], count=count)
        for (kind, told), count in counts.items()
    )


def summary(text: str) -> str:
    """Return the tool's own last words, or why it could not work."""
    rows = [m["text"].strip() for m in map(LINE.match, text.splitlines()) if m]
    last = next((r for r in reversed(rows) if r.startswith("ERROR SUMMARY")), "")
    unfit = next((m[0] for m in map(UNFIT.search, rows) if m), "")
    return last or unfit


def _reports(text: str) -> Iterator[tuple[str, str]]:
    head, where = "", ""
    for line in [*text.splitlines(), "=== Error: end"]:
        match = LINE.match(line)
        if match is None:
            continue
        if BEGINS.match(match["text"]):
            if head:
                yield head, f"{head} at {where}" if where else head
            head, where = match["text"].strip(), ""
        elif head and not where and (kernel := KERNEL.match(match["text"])):
            where = kernel["kernel"].strip()
