"""From a packed artifact to a wheel: opened, laid out, built, measured, opened again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.artifact import Artifact, BinaryFacts, FileEntry, Manifest
from llamawright.model.cuda import Companion
from llamawright.model.platform import System
from llamawright.model.ports import Reporter
from llamawright.model.wheel import WHEEL_PACKAGE, WHEEL_SUFFIX, BuiltWheel
from llamawright.package.manifest import floors_of
from llamawright.package.wheels.canonical import rewrite
from llamawright.package.wheels.claims import (
    Policy,
    auditwheel_policy,
    binary_facts,
    platform_tag,
    require_claim,
)
from llamawright.package.wheels.members import Members, wheel_members
from llamawright.package.wheels.naming import PYTHON_TAG, wheel_stem, wheel_version
from llamawright.package.wheels.project import Project
from llamawright.package.wheels.runpath import set_runpath
from llamawright.package.wheels.runtime import Runtime, known_packages, wheel_runtime
from llamawright.paths import remove_tree
from llamawright.process import Command, Limits, base_environment, run
from llamawright.store import Store, disk_guard, work_lock
from llamawright.transfer.opened import SIDECAR, open_artifact
from llamawright.transfer.wheel import read_wheel

# PEP 517's one call, in a process of its own: a backend works in the current folder.
CALL = """
import json, sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], json.loads(sys.argv[2]))
"""
UNASKED = Policy(name="")
# Copying and compressing 0.3 GB on one slow core takes a minute.
LIMIT_S = 900.0
# bin/ lies two folders below site-packages.
DEPTH = 2
_DIGITS = 9


def build_wheel(artifact: Artifact, dist: Path, *, store: Store, reporter: Reporter) -> BuiltWheel:
    """Make the runtime wheel of a packed artifact in ``dist``, with its sha256 file.

    The same archive gives the same bytes. Raises ``PackageError`` for what may not be in a
    wheel, for a wheel that is not what was meant, and with the log's end when
    scikit-build-core fails; then ``dist`` is left as it was.
    """
    key = f"wheel-{artifact.sha256[:_DIGITS]}"
    with store.lock(work_lock(key), reporter=reporter, what=f"the wheel of {artifact.path.name}"):
        room = store.work(key)
        remove_tree(room)
        room.mkdir(parents=True)
        try:
            with disk_guard(room):
                making = _Making.of(artifact, room, store.logs(f"wheel-{artifact.manifest.name}"))
                return making.placed(dist)
        finally:
            remove_tree(room)


def audit_wheel(path: Path, *, store: Store, reporter: Reporter) -> BuiltWheel:
    """Measure a finished wheel again, whoever made it, and compare it with what it claims.

    Raises ``PackageError`` for a wheel that is not whole, and with all that speaks against
    its claim. Nothing of it runs.
    """
    contents, sha256 = read_wheel(path), sha256_file(path)
    key = f"claim-{sha256[:_DIGITS]}"
    with store.lock(work_lock(key), reporter=reporter, what=f"the audit of {path.name}"):
        room = store.work(key)
        remove_tree(room)
        room.mkdir(parents=True)
        try:
            with disk_guard(room):
                claim = require_claim(path, contents, room / "claim")
        finally:
            remove_tree(room)
    return BuiltWheel(
        path=path,
        size=path.stat().st_size,
        sha256=sha256,
        source_sha256="",
        version=contents.version,
        claim=claim,
        contents=contents,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    artifact: Artifact
    room: Path
    logs: Path
    members: Members
    runtime: Runtime

    @classmethod
    def of(cls, artifact: Artifact, room: Path, logs: Path) -> _Making:
        manifest = artifact.manifest
        runtime = wheel_runtime(manifest, known_packages())
        members = wheel_members(manifest, runtime.libraries)
        return cls(artifact=artifact, room=room, logs=logs, members=members, runtime=runtime)

    @property
    def version(self) -> str:
        return wheel_version(self.artifact.manifest)

    def placed(self, dist: Path) -> BuiltWheel:
        """Build, then let the wheel appear in ``dist`` by one rename."""
        built = self._built()
        dist.mkdir(parents=True, exist_ok=True)
        final = dist / built.path.name
        beside = final.with_name(f".{final.name}.{os.getpid()}")
        sidecar = final.with_name(final.name + SIDECAR)
        sidecar.unlink(missing_ok=True)
        try:
            with disk_guard(dist):
                beside.write_bytes(built.path.read_bytes())
                beside.replace(final)
        finally:
            beside.unlink(missing_ok=True)
        sidecar.write_text(f"{built.sha256}  {final.name}\n", encoding="utf-8", newline="\n")
        return replace(built, path=final)

    def _built(self) -> BuiltWheel:
        opened, project = self.room / "opened", self.room / "project"
        manifest = open_artifact(self.artifact.path, opened)
        laid = Project(
            manifest=manifest, version=self.version, members=self.members, runtime=self.runtime
        )
        laid.write(project, opened)
        remove_tree(opened)
        self._point(project)
        facts = binary_facts(project, self.members.binaries)
        own = wheel_manifest(laid, project, facts)
        laid.write_manifest(project, own)
        made = self._call(project, platform_tag(manifest.platform, facts, UNASKED))
        return self._finished(made, self._tag(made, own), own)

    def _point(self, project: Path) -> None:
        """Let the files that import NVIDIA's libraries find them beside the wheel."""
        importing = {
            b.path
            for b in self.artifact.manifest.binaries
            if set(b.imports) & set(self.runtime.libraries)
        }
        if self.artifact.manifest.platform.system is System.LINUX:
            for path in sorted(importing):
                set_runpath(project / path, self.runtime.runpath(DEPTH))

    def _tag(self, made: Path, own: Manifest) -> str:
        """Return the measured tag: only a finished wheel can be shown to auditwheel."""
        on_linux = own.platform.system is System.LINUX
        policy = auditwheel_policy(made, self.runtime.requires) if on_linux else UNASKED
        return platform_tag(own.platform, own.binaries, policy)

    def _call(self, project: Path, tag: str) -> Path:
        """Build the project with scikit-build-core; the network is never asked."""
        dist = self.room / "built"
        remove_tree(dist)
        settings = json.dumps({"wheel.tags": [f"{PYTHON_TAG}-{tag}"]})
        date = {"SOURCE_DATE_EPOCH": str(self.artifact.manifest.timestamp)}
        argv = (sys.executable, "-I", "-c", CALL, str(dist), settings)
        command = Command(argv=argv, cwd=project, env=base_environment(date))
        log = self.logs / "scikit-build-core.log"
        result = run(command, limits=Limits(total_s=LIMIT_S), log=log)
        made = sorted(dist.glob(f"*{WHEEL_SUFFIX}"))
        if not result.ok or len(made) != 1:
            raise PackageError(
                f"scikit-build-core made no wheel of {self.artifact.path.name}",
                why=f"it ended with {result.returncode} ({result.ending})",
                hint="look at the log; `llamawright doctor` shows which cmake and ninja there are",
                kind="wheel-backend",
                command=command.pasteable,
                tail=result.tail,
                log=str(log),
            )
        return made[0]

    def _finished(self, made: Path, tag: str, meant: Manifest) -> BuiltWheel:
        """Fix the bytes, then open the wheel as a stranger would."""
        final = self.room / f"{wheel_stem(self.version, tag)}{WHEEL_SUFFIX}"
        rewrite(made, final, platform_tag=tag, date=self.artifact.manifest.timestamp)
        contents = read_wheel(final)
        if contents.manifest != meant:
            raise PackageError(
                f"{final.name} does not hold the manifest it was given",
                why="what was read back differs from what was written",
                hint="check the disk, then run the same command again",
                kind="manifest-mismatch",
            )
        return BuiltWheel(
            path=final,
            size=final.stat().st_size,
            sha256=sha256_file(final),
            source_sha256=self.artifact.sha256,
            version=self.version,
            claim=require_claim(final, contents, self.room / "claim"),
            contents=contents,
        )


def wheel_manifest(laid: Project, root: Path, facts: tuple[BinaryFacts, ...]) -> Manifest:
    """Return the manifest of a wheel: the archive's, with the wheel's own files.

    ``facts`` are read from the files in ``root``. Paths are relative to the Python package;
    the licences are the metadata's. What CUDA needs comes from other distributions, so
    there is no companion archive.
    """
    manifest, outside, cuda = laid.manifest, laid.runtime.libraries, laid.manifest.cuda
    floors = floors_of(facts)
    if cuda is not None:
        companion = Companion(file="", sha256="", size=0, libraries=outside)
        cuda = replace(cuda, companion=companion)
    return replace(
        manifest,
        name=f"{WHEEL_PACKAGE}-{laid.version}-{manifest.platform.tag}",
        files=tuple(_entries(root, laid.members)),
        binaries=facts,
        system_libraries=tuple(sorted({*manifest.system_libraries, *outside})),
        cuda=cuda,
        glibc=floors["glibc"],
        glibcxx=floors["glibcxx"],
        cxxabi=floors["cxxabi"],
        toolset=floors["toolset"],
        min_os=floors["min_os"],
    )


def _entries(root: Path, members: Members) -> Iterable[FileEntry]:
    for path in members.binaries:
        place = root / path
        yield FileEntry(
            path=path,
            size=place.stat().st_size,
            sha256=sha256_file(place),
            executable=path in members.programs,
        )
