"""A tiny release: a plan, steps that write a few bytes, wheels made by hand."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import LlamawrightError, VerificationError
from llamawright.model.platform import Backend
from llamawright.model.release import (
    Accepted,
    Exemption,
    ReleaseRule,
    ReleaseTarget,
    TargetKind,
    VariantProvider,
    VariantRule,
)
from llamawright.model.verdict import State
from llamawright.release import (
    Attested,
    Built,
    FileRole,
    Opened,
    PlannedFile,
    PlannedTarget,
    Proved,
    ReleasePlan,
    ReleaseRun,
    StampedSource,
    archive_files,
    shared_files,
    wheel_files,
)
from llamawright.store import Store
from reporter_kit import Told

TREE, COMMIT = "7" * 64, "c" * 40
NAME = "tiny-ccccccccc"
SOFTWARE = Exemption(state=Accepted.VERIFIED_SOFTWARE, reason="no GPU in this room")
PROJECT = "tiny-runtime"


def target(
    name: str = "cpu",
    backend: Backend = Backend.CPU,
    kind: TargetKind = TargetKind.ARCHIVE,
    accept: tuple[Exemption, ...] = (),
) -> ReleaseTarget:
    return ReleaseTarget(name=name, backend=backend, kind=kind, accept=accept)


def planned(wanted: ReleaseTarget, *, statements: tuple[str, ...] = ()) -> PlannedTarget:
    """Return a target with its files: an archive, or a wheel named after the backend."""
    stem = f"tiny-{wanted.name}-linux_x86_64"
    if wanted.kind is TargetKind.ARCHIVE:
        files = archive_files(stem, ".tar.zst")
    else:
        files = wheel_files(wheel_stem(wanted))
    more = tuple(PlannedFile(name=n, role=FileRole.STATEMENT) for n in statements)
    return PlannedTarget(
        target=wanted,
        key=f"key of {wanted.name}",
        command=f"llamawright build {wanted.backend}",
        files=(*files, *more),
        project="" if wanted.kind is TargetKind.ARCHIVE else PROJECT,
    )


def wheel_stem(wanted: ReleaseTarget) -> str:
    return f"tiny_runtime-1.0+{wanted.backend}-py3-none-*"


def plan(*targets: PlannedTarget, variants: bool = False, **changes: str) -> ReleasePlan:
    """Return the plan of a release of these targets; of one CPU archive without any."""
    wanted = targets or (planned(target()),)
    told = {"tag": "v1", "files_at": "", **changes}
    return ReleasePlan(
        name=NAME,
        tag=told["tag"],
        upstream="someone/tiny",
        commit=COMMIT,
        tree=TREE,
        timestamp=1_700_000_000,
        platform="linux_x86_64",
        recipe_digest="5" * 64,
        targets=wanted,
        files=shared_files(NAME, wanted, variants=variants),
        variants=variants,
        files_at=told["files_at"],
    )


def rule(*targets: ReleaseTarget) -> ReleaseRule:
    return ReleaseRule(
        targets=targets or (target(),),
        providers=(VariantProvider(namespace="gpu", requires=("gpu-provider>=1",)),),
        variants=(
            VariantRule(
                label="gpu12", backend=Backend.CUDA, properties=("gpu :: toolkit :: 12.4",)
            ),
        ),
    )


@dataclass
class TinySteps:
    """Steps that write a few bytes, the same each time; ``states`` and ``fails`` by target.

    ``killed_at`` ends the process in the middle of the call of that number, counted from 1.
    """

    states: Mapping[str, State] = field(default_factory=dict)
    fails: Mapping[str, LlamawrightError] = field(default_factory=dict)
    statements: tuple[str, ...] = ()
    tree: str = TREE
    killed_at: int = 0
    calls: list[str] = field(default_factory=list)

    def stamp_source(self, into: Path) -> StampedSource:
        self._write(into / f"{NAME}-source.tar.zst", b"the source", "source")
        return StampedSource(file=f"{NAME}-source.tar.zst", tree=TREE)

    def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
        assert source.read_bytes() == b"the source"
        name = target.target.name
        self._fail(f"build {name}")
        file = target.artifact.name.replace("*", "linux_x86_64")
        if target.is_wheel:
            self._call(f"build {name}")
            write_wheel(into / file)
        else:
            self._write(into / file, f"programs of {name}".encode() * 100, f"build {name}")
        sums = into / f"{file}.sha256"
        sums.write_text(f"{sha256_file(into / file)}  {file}\n")
        return Built(artifact=file, checksums=(sums.name,))

    def prove(self, target: PlannedTarget, artifact: Path, into: Path) -> Proved:
        name = target.target.name
        self._fail(f"prove {name}")
        state = self.states.get(name, State.VERIFIED)
        stem = artifact.name.removesuffix(".tar.zst").removesuffix(".whl")
        self._write(into / f"{stem}.verdict.json", f"{name} is {state}".encode(), f"prove {name}")
        (into / f"{stem}.report.html").write_text(f"<p>{state}</p>")
        return Proved(
            state=state,
            sha256=sha256_file(artifact),
            verdict=f"{stem}.verdict.json",
            reports=(f"{stem}.report.html",),
            device=f"{target.target.backend} device 0",
            why="" if state is State.VERIFIED else "because of the test",
        )

    def attest(self, target: PlannedTarget, artifact: Path, verdict: Path, into: Path) -> Attested:
        name = target.target.name
        self._fail(f"attest {name}")
        for file in self.statements:
            self._write(into / f"{name}.{file}", verdict.read_bytes(), f"attest {name}")
        return Attested(files=tuple(f"{name}.{f}" for f in self.statements))

    def reopen(self, target: PlannedTarget, artifact: Path) -> Opened:
        self._call(f"reopen {target.target.name}")
        self._fail(f"reopen {target.target.name}")
        return Opened(tree=self.tree, commit=COMMIT)

    def _write(self, path: Path, data: bytes, call: str) -> None:
        half = len(data) // 2
        with path.open("wb") as stream:
            stream.write(data[:half])
            stream.flush()
            self._call(call)
            stream.write(data[half:])

    def _call(self, call: str) -> None:
        self.calls.append(call)
        if len(self.calls) == self.killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _fail(self, call: str) -> None:
        if call in self.fails:
            raise self.fails[call]


def release_run(
    root: Path,
    steps: TinySteps | None = None,
    *,
    wanted: ReleasePlan | None = None,
    told: Told | None = None,
    changes: str = "- all is new",
) -> ReleaseRun:
    """Return a run that releases into ``root/dist/tiny-ccccccccc``."""
    chosen = wanted or plan()
    return ReleaseRun(
        plan=chosen,
        rule=rule(*(t.target for t in chosen.targets)),
        steps=steps or TinySteps(),
        dest=root / "dist" / NAME,
        store=Store(root / "store"),
        reporter=told or Told(),
        changes=changes,
    )


def two_targets(*, statements: tuple[str, ...] = ()) -> ReleasePlan:
    """Return a plan of a CPU archive, and a Vulkan one that software may prove."""
    vulkan = target("vulkan", Backend.VULKAN, accept=(SOFTWARE,))
    return plan(
        *(
            planned(t, statements=tuple(f"{t.name}.{s}" for s in statements))
            for t in (target(), vulkan)
        )
    )


def no_verdict(name: str) -> dict[str, LlamawrightError]:
    """Return the failures of a target whose proof cannot run."""
    return {f"prove {name}": VerificationError("the device is gone", why="it fell off the bus")}


def write_wheel(
    path: Path,
    *,
    metadata: str | None = None,
    files: Mapping[str, bytes] | None = None,
    requires_python: str = ">=3.9",
) -> Path:
    """Write a tiny pure wheel whose name is the file's; its module is ``VALUE = <version>``."""
    name, version = path.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    text = metadata or (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Requires-Python: {requires_python}\n"
    )
    tag = "-".join(path.name.removesuffix(".whl").split("-")[2:5])
    wheel = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
    members = {
        f"{name}.py": f"VALUE = {version!r}\n".encode(),
        **(files or {}),
        f"{info}/METADATA": text.encode(),
        f"{info}/WHEEL": wheel.encode(),
    }
    rows = [f"{n},{record_hash(d)},{len(d)}" for n, d in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as packed:
        for member, data in members.items():
            entry = zipfile.ZipInfo(member, (2024, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            packed.writestr(entry, data)
    return path


def record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={digest}"


def tree_of(root: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    files = [p for p in sorted(root.rglob("*")) if p.is_file()]
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in files}
