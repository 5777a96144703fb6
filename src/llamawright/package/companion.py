"""The companion archive: CUDA's runtime libraries with their licence, packed once a toolkit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from llamawright import codec
from llamawright.digest import digest_data, sha256_file
from llamawright.errors import PackageError
from llamawright.model.artifact import FileEntry, Manifest
from llamawright.model.cuda import Companion
from llamawright.model.plan import Plan
from llamawright.model.platform import Platform
from llamawright.model.ports import Reporter
from llamawright.package.archive import Packed, archive_suffix, write_archive
from llamawright.package.companion_parts import Part, companion_parts
from llamawright.package.layout import BIN
from llamawright.paths import remove_tree
from llamawright.store import Store
from llamawright.transfer.opened import LIMITS, SIDECAR
from llamawright.transfer.unpack import unpack_archive

SHELF = "companions"
COMPANION_MANIFEST = "cuda-runtime.json"
COMPANION_SCHEMA = "https://llamawright.dev/schema/cuda-runtime-1.json"
_FACTS = "companion.json"
_OPENED = "opened"
# No plan's date: the same libraries are one archive, whatever they go with. 1980-01-01 is the
# oldest date that a zip file can hold.
_DATE = 315_532_800
# Part of every key of the shelf: raise it when packing changes what it makes.
_PACKING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionManifest:
    """What a companion archive says of itself; written as ``cuda-runtime.json``."""

    toolkit: str
    platform: Platform
    files: tuple[FileEntry, ...]
    schema: str = COMPANION_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCompanion:
    """A companion archive in the store, under ``key`` of its shelf."""

    path: Path
    key: str
    facts: Companion


def pack_companion(plan: Plan, *, store: Store, reporter: Reporter) -> PackedCompanion | None:
    """Pack the runtime libraries of a plan, or find them packed; ``None`` without a need.

    Raises ``PackageError``: ``driver-library``, ``stub-library``, ``companion-library`` for
    what is no shared library of this platform, ``companion-incomplete``,
    ``companion-licence``; ``DiskError`` when the disk is full.
    """
    cuda = plan.cuda
    if cuda is None or not cuda.bundled:
        return None
    parts = companion_parts(cuda, plan.platform)
    contents = [(part.path, part.sha256) for part in parts]
    key = digest_data([_PACKING, cuda.toolkit, plan.platform.tag, contents])
    making = _Making(toolkit=cuda.toolkit, platform=plan.platform, parts=parts)
    # An entry that someone took a file out of is made again.
    stored_companion(key, store)
    store.materialise(
        SHELF,
        key,
        make=lambda folder: making.make(folder, reporter),
        check=making.check,
        reporter=reporter,
        label=making.name,
    )
    return stored_companion(key, store)


def stored_companion(key: str, store: Store) -> PackedCompanion | None:
    """Return a companion packed earlier; one that is no longer whole is forgotten."""
    folder = store.shelf(SHELF, key)
    if not store.is_stamped(SHELF, key):
        return None
    facts = _read_facts(folder)
    path = folder / facts.file if facts else folder
    if facts is None or not path.is_file() or path.stat().st_size != facts.size:
        store.forget(SHELF, key)
        return None
    store.used(SHELF, key)
    return PackedCompanion(path=path, key=key, facts=facts)


def companion_libraries(manifest: Manifest) -> tuple[str, ...]:
    """Return the file names that an artifact gets from its companion, none without one."""
    companion = manifest.cuda.companion if manifest.cuda else None
    return companion.libraries if companion and companion.file else ()


def _read_facts(folder: Path) -> Companion | None:
    try:
        data: object = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        return codec.decode(Companion, data, what=_FACTS)
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    toolkit: str
    platform: Platform
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return f"cuda-runtime-{self.toolkit}-{self.platform.tag}"

    @property
    def file(self) -> str:
        return f"{self.name}{archive_suffix(self.platform)}"

    def make(self, folder: Path, reporter: Reporter) -> None:
        """Write the archive, its sha256 file and what is known of it."""
        folder.mkdir(parents=True)
        archive = folder / self.file
        total = float(sum(part.size for part in self.parts))
        with reporter.meter(f"packing {self.name}", total=total, unit="bytes") as meter:
            write_archive(
                archive,
                self.name,
                self._members(),
                platform=self.platform,
                date=_DATE,
                progress=lambda done: meter.update(float(done)),
            )
        digest = sha256_file(archive)
        sidecar = archive.with_name(archive.name + SIDECAR)
        sidecar.write_text(f"{digest}  {archive.name}\n", encoding="utf-8", newline="\n")
        facts = Companion(
            file=archive.name,
            sha256=digest,
            size=archive.stat().st_size,
            libraries=tuple(p.name for p in self._paths() if p.parent.name == BIN),
        )
        (folder / _FACTS).write_text(codec.encode(facts), encoding="utf-8", newline="\n")

    def check(self, folder: Path) -> None:
        """Unpack what was just written as a stranger would, and compare every byte."""
        opened = folder / _OPENED
        names = unpack_archive(folder / self.file, opened, strip=1, limits=LIMITS)
        wanted = {part.path: part.sha256 for part in self.parts}
        seen = {n: sha256_file(opened / n) for n in names if n != COMPANION_MANIFEST}
        remove_tree(opened)
        if seen != wanted:
            raise PackageError(
                f"{self.file} does not hold the libraries it was given",
                why="what was read back differs from what was written",
                hint="check the disk, then run the same command again",
                kind="manifest-mismatch",
            )

    def _members(self) -> list[Packed]:
        members = [Packed(path=part.path, source=part.source) for part in self.parts]
        entries = tuple(
            FileEntry(path=part.path, size=part.size, sha256=part.sha256, executable=False)
            for part in self.parts
        )
        manifest = CompanionManifest(toolkit=self.toolkit, platform=self.platform, files=entries)
        content = codec.encode(manifest).encode()
        return [*members, Packed(path=COMPANION_MANIFEST, content=content)]

    def _paths(self) -> list[PurePosixPath]:
        return [PurePosixPath(part.path) for part in self.parts]
