"""What a release will hold, file by file, known before anything is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from llamawright.digest import digest_data
from llamawright.model.release import ReleaseTarget, TargetKind

SUMS = "SHA256SUMS"
NOTES = "RELEASE.md"
RECORD = "release.json"
INDEX = "index"
COMBINED = "all"
VARIANTS = "variants"
SIDECAR = ".sha256"


class FileRole(StrEnum):
    """What a file of a release is for."""

    SOURCE = "source"
    ARTIFACT = "artifact"
    COMPANION = "companion"
    CHECKSUM = "checksum"
    VERDICT = "verdict"
    REPORT = "report"
    STATEMENT = "statement"
    METADATA = "wheel metadata"
    INDEX = "package index"
    SUMS = "sums"
    NOTES = "notes"
    RECORD = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A file that a run will make; ``*`` stands for what is measured from the built files.

    ``name`` is relative to the release's folder.
    """

    name: str
    role: FileRole

    def fits(self, name: str) -> bool:
        """Whether a made file is this one."""
        return fnmatchcase(name, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """A target with the names of its files, its artifact first.

    ``key`` holds everything that can change the artifact; ``command`` makes its proof by
    hand; ``project`` is the Python project of a wheel, empty for an archive.
    """

    target: ReleaseTarget
    key: str
    command: str
    files: tuple[PlannedFile, ...]
    project: str = ""

    @property
    def artifact(self) -> PlannedFile:
        """Return the file that users install or unpack."""
        return next(f for f in self.files if f.role is FileRole.ARTIFACT)

    @property
    def is_wheel(self) -> bool:
        """Whether it goes into the package index."""
        return self.target.kind is not TargetKind.ARCHIVE

    @property
    def channels(self) -> tuple[str, ...]:
        """Return the index folders of a wheel: its backend, and its label such as ``cu124``."""
        return channels_of(str(self.target.backend), self.artifact.name)

    def promised(self, role: FileRole) -> tuple[PlannedFile, ...]:
        """Return the planned files of a role."""
        return tuple(f for f in self.files if f.role is role)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """A release without open questions.

    ``tree`` is the digest of the source that every target is built from, ``timestamp`` its
    date in seconds since the epoch. ``files`` belong to no target. ``variants``: wheel
    variants are made too. ``files_at`` is the address that the index gives for the wheels;
    empty: beside it, by relative links.
    """

    name: str
    tag: str
    upstream: str
    commit: str
    tree: str
    timestamp: int
    platform: str
    recipe_digest: str
    targets: tuple[PlannedTarget, ...]
    files: tuple[PlannedFile, ...]
    variants: bool = False
    files_at: str = ""

    @property
    def digest(self) -> str:
        """Return what two runs of the same release agree in."""
        return digest_data(self)

    @property
    def source(self) -> PlannedFile:
        """Return the stamped source archive."""
        return next(f for f in self.files if f.role is FileRole.SOURCE)


def shared_files(
    name: str, targets: Iterable[PlannedTarget], *, variants: bool
) -> tuple[PlannedFile, ...]:
    """Return the files that belong to the release as a whole."""
    wheels = [t for t in targets if t.is_wheel]
    return (
        PlannedFile(name=f"{name}-source.tar.zst", role=FileRole.SOURCE),
        *(PlannedFile(name=n, role=FileRole.INDEX) for n in _index_files(wheels, variants)),
        PlannedFile(name=NOTES, role=FileRole.NOTES),
        PlannedFile(name=RECORD, role=FileRole.RECORD),
        PlannedFile(name=SUMS, role=FileRole.SUMS),
    )


def channels_of(backend: str, wheel: str) -> tuple[str, ...]:
    """Return the index folders of a wheel's file; CUDA releases have one of their own each.

    Which CUDA a machine's driver runs is not for an installer to guess.
    """
    _, _, label = wheel.split("-")[1].partition("+")
    return tuple(dict.fromkeys((backend, label or backend)))


def channels(wheels: Iterable[PlannedTarget]) -> dict[str, tuple[str, ...]]:
    """Return the index folders and the projects in each, the combined one among them."""
    found: dict[str, set[str]] = {}
    for wheel in wheels:
        for channel in (*wheel.channels, COMBINED):
            found.setdefault(channel, set()).add(wheel.project)
    return {channel: tuple(sorted(found[channel])) for channel in sorted(found)}


def _index_files(wheels: list[PlannedTarget], variants: bool) -> list[str]:  # noqa: FBT001
    if not wheels:
        return []
    found = [f"{INDEX}/content-types.txt"]
    for channel, projects in channels(wheels).items():
        folders = ["", *(f"{p}/" for p in projects)]
        found += [f"{INDEX}/{channel}/{f}index.{e}" for f in folders for e in ("html", "json")]
    if variants:
        runtime = sorted({w.project for w in wheels if w.target.kind is TargetKind.RUNTIME_WHEEL})
        folders = ["", *(f"{p}/" for p in runtime)]
        found += [f"{INDEX}/{VARIANTS}/{f}index.{e}" for f in folders for e in ("html", "json")]
        found += [f"{INDEX}/{VARIANTS}/{p.replace('-', '_')}-*" for p in runtime]
    return found


def archive_files(name: str, suffix: str, companion: str = "") -> tuple[PlannedFile, ...]:
    """Return the files of an archive target; ``companion`` is CUDA's runtime archive."""
    extra = [companion] if companion else []
    return (
        PlannedFile(name=f"{name}{suffix}", role=FileRole.ARTIFACT),
        *(PlannedFile(name=n, role=FileRole.COMPANION) for n in extra),
        *(
            PlannedFile(name=f"{n}{SIDECAR}", role=FileRole.CHECKSUM)
            for n in (f"{name}{suffix}", *extra)
        ),
        *proof_files(name),
    )


def wheel_files(name: str) -> tuple[PlannedFile, ...]:
    """Return the files of a wheel target; ``name`` is its file's without ``.whl``.

    The platform's tag is measured from the files: until then a ``*`` stands for it.
    """
    return (
        PlannedFile(name=f"{name}.whl", role=FileRole.ARTIFACT),
        PlannedFile(name=f"{name}.whl{SIDECAR}", role=FileRole.CHECKSUM),
        PlannedFile(name=f"{name}.whl.metadata", role=FileRole.METADATA),
        *proof_files(name),
    )


def proof_files(name: str) -> tuple[PlannedFile, ...]:
    """Return the files that a proof leaves for an artifact of that name."""
    return (
        PlannedFile(name=f"{name}.verdict.json", role=FileRole.VERDICT),
        PlannedFile(name=f"{name}.report.html", role=FileRole.REPORT),
    )
