"""The verb repro: the same build twice on two made-up machines, compared byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

from llamawright.cli.repro_sides import (
    Side,
    build_arguments,
    environment,
    launcher,
    may_rename_host,
    two_sides,
)
from llamawright.console import Console, duration
from llamawright.digest import plain
from llamawright.errors import BuildError, ExitCode, PackageError, UsageError
from llamawright.model.platform import Backend
from llamawright.model.repro import Cause, Compared, Sameness
from llamawright.package.repro import compare_files
from llamawright.paths import remove_tree
from llamawright.process import Command, Limits, Line
from llamawright.process import run as run_process

# A CUDA build for every architecture takes hours on few cores; compiling is never silent so long.
BUILD = Limits(total_s=24 * 3600.0, stall_s=3600.0)
WHEEL = Limits(total_s=1800.0)
ARCHIVES = ("*.tar.zst", "*.zip")
# How the lines begin that tell how far a side is; the rest of its words are in its log.
PROGRESS = ("• ", "✓ ", "  compiling", "warning")
SHOWN = 12


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Compare two named files, or build twice and compare what was made."""
    sides: tuple[Side, ...] = ()
    work: Path | None = None
    found: tuple[Compared, ...]
    if flags.files:
        found = (compare_files(*flags.files),)
    else:
        work = (flags.work or store / "repro" / _backend(flags)).expanduser().absolute()
        names = may_rename_host()
        sides = two_sides(work, jobs=_jobs(flags), cache=flags.cache or "auto", namespaces=names)
        for side in sides:
            _make(side, flags, store, console)
        with console.step("compare"):
            found = tuple(compare_files(a, b) for a, b in pairs(*(made(s.dist) for s in sides)))
    stripped = flags.after_strip or flags.backend == Backend.CUDA
    failed = [c for c in found if not passes(c, stripped=stripped)]
    _tell(found, sides, flags, console)
    if failed:
        raise _differs(failed, work)
    if work is not None and flags.work is None:
        remove_tree(work)
    return int(ExitCode.OK)


def passes(found: Compared, *, stripped: bool) -> bool:
    """Whether two files are as equal as they must be."""
    if found.sameness is Sameness.STRIPPED:
        return stripped
    return found.sameness is Sameness.IDENTICAL


def made(dist: Path) -> tuple[Path, ...]:
    """Return the archives and wheels of a side, in the order of their names."""
    patterns = (*ARCHIVES, "*.whl")
    return tuple(sorted(p for pattern in patterns for p in dist.glob(pattern)))


def pairs(a: Iterable[Path], b: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield the files of two sides by their names; one without a partner is a failure."""
    ours, theirs = ({p.name: p for p in side} for side in (a, b))
    lonely = sorted(ours.keys() ^ theirs.keys())
    if lonely or not ours:
        raise PackageError(
            "the two builds did not make the same files",
            why=f"only one of them made {', '.join(lonely)}" if lonely else "neither made any",
            hint="compare both logs: a file's name holds what was measured from it",
            kind="not-reproducible",
        )
    yield from ((ours[name], theirs[name]) for name in sorted(ours))


def report_lines(found: Iterable[Compared]) -> Iterator[str]:
    """Yield the table: one line a file, below it every difference with its cause."""
    for one in found:
        yield f"{one.sameness.upper():22} {one.a.name}  ({one.members} members)"
        yield f"  sha256  {one.sha256_a}"
        if one.sha256_a != one.sha256_b:
            yield f"  other   {one.sha256_b}"
        for differing in one.differences[:SHOWN]:
            yield f"  {differing.cause:26} {differing.path or '(the file)'}  {differing.detail}"
        more = len(one.differences) - SHOWN
        if more > 0:
            yield f"  and {more} more (--json lists all)"


def _backend(flags: Namespace) -> str:
    if not flags.backend:
        raise UsageError(
            "nothing to compare",
            why="neither a backend to build nor two files were named",
            hint="llamawright repro cpu, or llamawright repro --files A B",
            kind="nothing-to-compare",
        )
    return str(flags.backend)


def _jobs(flags: Namespace) -> int:
    wanted = str(flags.jobs or os.cpu_count() or 1)
    if not wanted.isdecimal() or int(wanted) < 1:
        raise UsageError(
            f"--jobs {wanted} is no number of jobs", hint="for example --jobs 4", kind="bad-value"
        )
    return int(wanted)


def _make(side: Side, flags: Namespace, store: Path, console: Console) -> None:
    side.home.mkdir(parents=True, exist_ok=True)
    _seed(store / "blobs", side.store / "blobs")
    with console.step(f"build the {side.name} side"):
        console.info(side.told)
        argv = (*build_arguments(side, flags), "--json")
        told = _child(side, argv, BUILD, console)
    if not flags.no_wheel:
        with console.step(f"wheel of the {side.name} side"):
            argv = ("wheel", _artifact(told), "--dist", str(side.dist))
            _child(side, (*argv, "--store", str(side.store)), WHEEL, console)


def _artifact(told: str) -> str:
    """Return the archive's path out of a build's JSON."""
    return str(json.loads(told)["artifact"]["path"])


def _seed(blobs: Path, dest: Path) -> None:
    """Give a side the downloads that are there: they are checked by their digests anyway."""
    if blobs.is_dir() and not dest.exists():
        shutil.copytree(blobs, dest)


def _child(side: Side, argv: tuple[str, ...], limits: Limits, console: Console) -> str:
    log = side.root / f"{argv[0]}.log"
    command = Command(
        argv=(*launcher(side), *argv), cwd=Path.cwd(), env=environment(side, dict(os.environ))
    )

    def watch(seen: Line) -> None:
        if seen.stream == "stderr" and seen.text.startswith(PROGRESS):
            console.info(f"{side.name}: {seen.text.strip()}")

    result = run_process(command, limits=limits, log=log, watch=watch)
    if not result.ok:
        raise BuildError(
            f"the {side.name} side's {argv[0]} failed",
            why=next((t for t in reversed(result.tail) if t.strip()), f"it {result.ending}"),
            hint="run the command alone to see all of it; started again, repro goes on from there",
            kind="side-failed",
            command=command.pasteable,
            tail=result.tail,
            log=str(log),
        )
    return result.stdout


def _tell(
    found: tuple[Compared, ...], sides: tuple[Side, ...], flags: Namespace, console: Console
) -> None:
    if flags.json:
        record = {
            "sides": [plain(s) for s in sides],
            "files": [{**_record(c), "sameness": c.sameness.value} for c in found],
        }
        sys.stdout.write(json.dumps(record, indent=2, sort_keys=True) + "\n")
    console.lines("", *report_lines(found))
    console.lines(f"time      {duration(console.elapsed())}")


def _record(found: Compared) -> dict[str, object]:
    data = plain(found)
    return dict(data) if isinstance(data, dict) else {}


def _differs(failed: list[Compared], work: Path | None) -> PackageError:
    causes = sorted({d.cause.value for c in failed for d in c.differences})
    kept = f"; both sides are kept in {work}" if work else ""
    only_strip = all(c.sameness is Sameness.STRIPPED for c in failed)
    hint = "compare after strip with --after-strip" if only_strip else (
        f"the lines above name file and cause{kept}"
    )  # fmt: skip
    return PackageError(
        f"{', '.join(c.a.name for c in failed)}: the two are not the same",
        why=", ".join(causes) or str(Cause.CONTENT),
        hint=hint,
        kind="not-reproducible",
    )
