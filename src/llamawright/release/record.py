"""The release's account of itself, and the checks that hold it to its word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.digest import list_files, sha256_file
from llamawright.errors import PackageError
from llamawright.model.verdict import State
from llamawright.release.coverage import TargetResult
from llamawright.release.plan import RECORD, SUMS, FileRole, ReleasePlan
from llamawright.release.steps import Steps

RECORD_SCHEMA = "https://llamawright.dev/schema/release-1.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedFile:
    """One file of a release: its place in the folder, what it is for, its target."""

    name: str
    role: FileRole
    target: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetVerdict:
    """The verdict that a target was released with; ``reason``: why less than ``verified``."""

    target: str
    state: State
    device: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """The release's account of itself, written as ``release.json``.

    ``plan_digest`` is what it was planned by; the sums, this file and the index are not
    among ``files``.
    """

    name: str
    tag: str
    upstream: str
    commit: str
    tree: str
    plan_digest: str
    files: tuple[ReleasedFile, ...]
    verdicts: tuple[TargetVerdict, ...]
    schema: str = RECORD_SCHEMA


def recheck(
    plan: ReleasePlan,
    results: Iterable[TargetResult],
    folder: Path,
    record: ReleaseRecord,
    steps: Steps,
) -> None:
    """Hash every file again and open every artifact; ``PackageError`` names what is wrong."""
    faults = [*_sum_faults(folder), *_record_faults(folder, record), *_unplanned(plan, folder)]
    for result in results:
        if result.built is None:
            continue
        artifact = folder / result.built.outcome.artifact
        opened = steps.reopen(result.planned, artifact)
        if opened.tree != plan.tree:
            faults.append(f"{artifact.name} says that it is built from {opened.tree[:12]}")
    if faults:
        raise PackageError(
            f"the release {plan.name} did not pass its last check",
            why="\n".join(faults),
            hint="run the same command again; if it repeats, the disk or memory is at fault",
            kind="release-damaged",
        )


def is_whole(folder: Path, plan: ReleasePlan) -> bool:
    """Whether ``folder`` holds this very release, every byte of it."""
    try:
        text = (folder / RECORD).read_text(encoding="utf-8")
        record = codec.decode_text(ReleaseRecord, text, what=RECORD)
        return record.plan_digest == plan.digest and not [
            *_sum_faults(folder), *_record_faults(folder, record)
        ]  # fmt: skip
    except (OSError, ValueError):
        return False


def read_record(folder: Path) -> ReleaseRecord:
    """Return the record of a release folder; ``PackageError`` when it is none."""
    try:
        text = (folder / RECORD).read_text(encoding="utf-8")
        return codec.decode_text(ReleaseRecord, text, what=str(folder / RECORD))
    except (OSError, ValueError) as error:
        raise PackageError(
            f"{folder} is no release",
            why=str(error),
            hint="make one: llamawright release",
            kind="no-release",
        ) from error


def _sum_faults(folder: Path) -> Iterator[str]:
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    named = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    found = set(list_files(folder)) - {SUMS}
    yield from (f"{n} is not in {SUMS}" for n in sorted(found - named.keys()))
    yield from (f"{n} is missing" for n in sorted(named.keys() - found))
    for name in sorted(found & named.keys()):
        if sha256_file(folder / name) != named[name]:
            yield f"{name} has another sha256 than {SUMS} says"


def _record_faults(folder: Path, record: ReleaseRecord) -> Iterator[str]:
    for file in record.files:
        path = folder / file.name
        if not path.is_file() or path.is_symlink():
            yield f"{file.name} is missing"
        elif path.stat().st_size != file.size or sha256_file(path) != file.sha256:
            yield f"{file.name} is not the file that was built and proved"


def _unplanned(plan: ReleasePlan, folder: Path) -> Iterator[str]:
    planned = [*plan.files, *(f for t in plan.targets for f in t.files)]
    found = list_files(folder)
    yield from (f"{n} was not planned" for n in found if not any(p.fits(n) for p in planned))
    yield from (
        f"{p.name} was planned and is not there"
        for p in planned
        if not any(p.fits(n) for n in found)
    )
