"""Upstream's test-backend-ops: one operation at a time, against the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from llamawright.model.investigation import Message

NAME = "test-backend-ops"
ENDINGS = (".tar.zst", ".zip")
# What a llama model is made of, the most likely culprits first.
OPS = (
    "MUL_MAT", "FLASH_ATTN_EXT", "SOFT_MAX", "ROPE", "RMS_NORM", "RMS_NORM_MUL_ADD", "GET_ROWS",
    "SWIGLU", "SET_ROWS", "CPY", "ADD", "MUL", "CONT", "SCALE",
)  # fmt: skip
MOST_MESSAGES = 10
FAILED = re.compile(r"^\s*(?P<op>[A-Z][A-Z0-9_]+\(.*?\)): (?P<why>.*)FAIL\s*$")
BEGUN = re.compile(r"(?P<op>[A-Z][A-Z0-9_]+\(.*\)):")
PASSED = re.compile(r"(?P<done>\d+)/(?P<all>\d+) tests passed")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def archive_of_tests(artifact: Path) -> Path | None:
    """Return the artifact's ``-tests`` archive, when it lies beside it."""
    for ending in ENDINGS:
        if artifact.name.endswith(ending):
            beside = artifact.with_name(f"{artifact.name.removesuffix(ending)}-tests{ending}")
            return beside if beside.is_file() else None
    return None


def argv(program: Path, device: str, op: str) -> tuple[str, ...]:
    """Return the command line that tests one operation on one device."""
    return (str(program), "test", "-b", device, "-o", op)


def read_failures(output: str) -> tuple[Message, ...]:
    """Return each case that failed, with the words before it."""
    return tuple(_failures(COLOURS.sub("", output)))[:MOST_MESSAGES]


def read_count(output: str) -> tuple[int, int] | None:
    """Return how many cases passed, of how many."""
    found = PASSED.search(COLOURS.sub("", output))
    return (int(found["done"]), int(found["all"])) if found else None


def last_begun(output: str) -> str:
    """Return the case that a run was at when it ended: it is printed before it is computed."""
    line = COLOURS.sub("", output).rstrip().rpartition("\n")[2].strip()
    begun = BEGUN.fullmatch(line)
    return begun["op"] if begun else ""


def _failures(output: str) -> Iterator[Message]:
    for line in output.splitlines():
        failed = FAILED.match(line)
        if failed:
            why = failed["why"].strip()
            text = f"{failed['op']}: {why}" if why else failed["op"]
            yield Message(source=NAME, id=failed["op"].partition("(")[0], text=text)
