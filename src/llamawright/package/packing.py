"""From built trees to an audited archive that was opened again before it counts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright import codec
from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.artifact import MANIFEST_NAME, Artifact, Manifest
from llamawright.model.built import BuiltTree, StageTiming
from llamawright.model.inventory import Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.platform import Backend
from llamawright.model.ports import Reporter
from llamawright.package.archive import Packed, write_archive
from llamawright.package.audit import audit
from llamawright.package.companion import (
    PackedCompanion,
    companion_libraries,
    pack_companion,
    stored_companion,
)
from llamawright.package.examine import Examined, examine
from llamawright.package.findings import Severity, grouped, refuse
from llamawright.package.manifest import manifest_of
from llamawright.package.trees import Trees, artifact_file, artifact_key
from llamawright.paths import remove_tree
from llamawright.store import Store
from llamawright.transfer.opened import SIDECAR, open_artifact, read_manifest

SHELF = "artifacts"
_OPENED = "opened"
# Holds the companion's key: to find it again, no library need be read.
_COMPANION = "companion.key"


@dataclass(slots=True)
class _Clock:
    timings: list[StageTiming] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.timings.append(StageTiming(stage=name, wall_s=time.monotonic() - start))


def pack(
    plan: Plan,
    patched: PatchedTree,
    host: BuiltTree,
    module: BuiltTree | None,
    *,
    store: Store,
    reporter: Reporter,
) -> Artifact:
    """Pack host and module into one audited archive, kept in the store.

    With ``plan.with_tests`` a second archive, ``Artifact.tests``, holds the test programs
    as well; CUDA's runtime libraries go into ``Artifact.companion`` where the plan bundles
    them. Raises ``PackageError`` with every fault the audit found, ``DiskError`` when the
    disk is full; then nothing is left behind.
    """
    trees = Trees(plan=plan, patched=patched, host=host, module=module)
    require_fit(trees)
    clock = _Clock()
    with clock.stage("companion"):
        trees = replace(trees, companion=pack_companion(plan, store=store, reporter=reporter))
    artifact = _packed(trees, store, reporter)
    if trees.companion:
        timings = (*clock.timings, *artifact.timings)
        artifact = replace(artifact, companion=trees.companion.path, timings=timings)
    if not plan.with_tests:
        return artifact
    return replace(artifact, tests=_packed(replace(trees, tests=True), store, reporter))


def packed_before(plan: Plan, store: Store) -> Artifact | None:
    """Return what ``pack`` made of this plan earlier, or ``None``; no tree is needed.

    Only the stamp is asked: opening the archive again is the proof's affair.
    """
    main = _known(plan, store, tests=False)
    if main is None or not plan.with_tests:
        return main
    tests = _known(plan, store, tests=True)
    return replace(main, tests=tests) if tests else None


def _known(plan: Plan, store: Store, *, tests: bool) -> Artifact | None:
    key = artifact_key(plan, tests=tests)
    archive = store.shelf(SHELF, key) / artifact_file(plan, tests=tests)
    if not store.is_stamped(SHELF, key) or not archive.is_file():
        return None
    store.used(SHELF, key)
    known = _stored(archive, ())
    if not companion_libraries(known.manifest):
        return known
    companion = _companion_of(archive.parent, store)
    if companion is None or not _goes_with(archive, companion):
        return None
    # The archive with the tests goes with the same companion: the main one names it.
    return known if tests else replace(known, companion=companion.path)


def _companion_of(folder: Path, store: Store) -> PackedCompanion | None:
    """Return the companion archive of an artifact's entry, if it is still in the store."""
    noted = folder / _COMPANION
    return stored_companion(noted.read_text(encoding="utf-8"), store) if noted.is_file() else None


def require_fit(trees: Trees) -> None:
    """Raise ``PackageError`` unless host and module were made to work together."""
    plan, host, module = trees.plan, trees.host, trees.module
    if (module is None) != (plan.backend is Backend.CPU):
        raise PackageError(
            f"{plan.name} cannot be packed",
            why="its module was not built" if module is None else "a CPU artifact has no module",
            hint="this is a bug: please report it with the output of `llamawright plan`",
            kind="module-missing" if module is None else "module-unexpected",
        )
    if module is not None and module.abi != host.abi:
        raise PackageError(
            f"host and module of {plan.name} do not fit together",
            why=_abi_difference(host, module, plan),
            hint="build both again with one compiler and one set of options: "
            "`llamawright gc --keep-days 0`, then the same command",
            kind="abi-mismatch",
        )


def _abi_difference(host: BuiltTree, module: BuiltTree, plan: Plan) -> str:
    own = {option.name for option in plan.module_options}
    ours = {e.name: e.value for e in host.effective}
    theirs = {e.name: e.value for e in module.effective}
    lines = [
        f"{name}: host {ours[name]!r}, module {theirs[name]!r}"
        for name in sorted(ours.keys() & theirs.keys() - own)
        if ours[name] != theirs[name]
    ]
    keys = f"their ABI keys differ: host {host.abi[:12]}, module {module.abi[:12]}"
    return "\n".join([keys, *lines])


def _packed(trees: Trees, store: Store, reporter: Reporter) -> Artifact:
    clock = _Clock()
    key = trees.key
    archive = store.shelf(SHELF, key) / trees.file_name
    if store.is_stamped(SHELF, key) and not _goes_with(archive, trees.companion):
        # Someone took the file out of the store, or it goes with other libraries.
        store.forget(SHELF, key, reporter=reporter)
    entry = store.materialise(
        SHELF,
        key,
        make=lambda folder: _make(folder, trees, store, reporter, clock),
        check=lambda folder: _check(folder, trees, clock),
        reporter=reporter,
        label=trees.name,
    )
    return _stored(entry.root / trees.file_name, tuple(clock.timings))


def _goes_with(archive: Path, companion: PackedCompanion | None) -> bool:
    """Whether a packed archive is there and names the companion it must go with."""
    if not archive.is_file():
        return False
    said = read_manifest(archive.parent, what=archive.name).cuda
    meant = companion.facts if companion else None
    named = said.companion if said and said.companion and said.companion.file else None
    noted = archive.parent / _COMPANION
    return named == meant and noted.is_file() == (meant is not None)


def _make(folder: Path, trees: Trees, store: Store, reporter: Reporter, clock: _Clock) -> None:
    with clock.stage("audit"):
        examined = _audited(trees, store, reporter)
    manifest = _manifest(trees, store, examined)
    folder.mkdir(parents=True)
    if trees.companion:
        (folder / _COMPANION).write_text(trees.companion.key, encoding="utf-8", newline="\n")
    text = codec.encode(manifest)
    (folder / MANIFEST_NAME).write_text(text, encoding="utf-8", newline="\n")
    with clock.stage("archive"):
        archive = folder / trees.file_name
        _write(archive, trees, examined, text, reporter)
        sidecar = archive.with_name(archive.name + SIDECAR)
        line = f"{sha256_file(archive)}  {archive.name}\n"
        sidecar.write_text(line, encoding="utf-8", newline="\n")


def _audited(trees: Trees, store: Store, reporter: Reporter) -> Examined:
    roots = (store.root.absolute(), store.root.resolve())
    private = tuple(dict.fromkeys(p for r in roots for p in (f"{r}{os.sep}", f"{r.as_posix()}/")))
    examined = examine(trees, private=private)
    findings = audit(examined.subject)
    refuse(trees.name, findings)
    for line in grouped(f for f in findings if f.severity is Severity.WARNING):
        reporter.warn(f"{trees.name}: {line}")
    return examined


def _manifest(trees: Trees, store: Store, examined: Examined) -> Manifest:
    private = {store.root: "<store>", store.root.resolve(): "<store>", Path.home(): "~"}
    private[trees.patched.root] = "<source>"
    for role in (Role.CMAKE, Role.NINJA):
        if tool := trees.plan.tool(role):
            private[tool.path] = f"<{role.value}>"
    return manifest_of(trees, subject=examined.subject, measured=examined.measured, private=private)


def _write(
    archive: Path, trees: Trees, examined: Examined, manifest: str, reporter: Reporter
) -> None:
    members = [
        Packed(path=f.path, source=f.source, link=f.link, executable=f.executable)
        for f in examined.subject.files
    ]
    members.append(Packed(path=MANIFEST_NAME, content=manifest.encode()))
    total = sum(member.size for member in members)
    with reporter.meter(f"packing {trees.name}", total=float(total), unit="bytes") as meter:
        write_archive(
            archive,
            trees.name,
            members,
            platform=trees.plan.platform,
            date=trees.timestamp,
            progress=lambda done: meter.update(float(done)),
        )


def _check(folder: Path, trees: Trees, clock: _Clock) -> None:
    """Open what was just written as a stranger would, and compare it with what was meant."""
    with clock.stage("check"):
        opened = open_artifact(folder / trees.file_name, folder / _OPENED)
        remove_tree(folder / _OPENED)
        if opened != read_manifest(folder, what=trees.name):
            raise PackageError(
                f"{trees.file_name} does not hold the manifest it was given",
                why="what was read back differs from what was written",
                hint="check the disk, then run the same command again",
                kind="manifest-mismatch",
            )


def _stored(archive: Path, timings: tuple[StageTiming, ...]) -> Artifact:
    sidecar = archive.with_name(archive.name + SIDECAR)
    return Artifact(
        path=archive,
        size=archive.stat().st_size,
        sha256=sidecar.read_text(encoding="utf-8").split()[0],
        manifest=read_manifest(archive.parent, what=archive.name),
        timings=timings,
    )
