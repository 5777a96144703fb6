"""Wheels made by hand, so that each test can lie about one thing."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from llamawright import codec
from llamawright.model.artifact import BinaryFacts, FileEntry, Manifest
from llamawright.model.wheel import WHEEL_MANIFEST, WHEEL_PACKAGE
from llamawright.package.wheels.members import Members
from llamawright.package.wheels.project import Project
from llamawright.package.wheels.runtime import Runtime
from llamawright.transfer.wheel import record_digest

TAG = "manylinux_2_17_x86_64"
VERSION = "0.0.11312+vulkan"
DIST_INFO = f"{WHEEL_PACKAGE}-{VERSION}.dist-info"
Edits = Mapping[str, bytes | None]


def facts(name: str = "libx.so", **changes: object) -> BinaryFacts:
    """Return what was read from one ELF file that needs nothing."""
    told: dict[str, object] = {
        "path": f"bin/{name}", "format": "elf", "machine": "x86_64", "imports": (),
        "runpath": (), "glibc": "", "glibcxx": "", **changes,
    }  # fmt: skip
    return BinaryFacts(**told)  # type: ignore[arg-type]


def entry(path: str, data: bytes = b"x", *, link: str = "", runs: bool = False) -> FileEntry:
    """Return a manifest's line."""
    digest = hashlib.sha256(data).hexdigest()
    return FileEntry(path=path, size=len(data), sha256=digest, executable=runs, link=link)


def write_wheel(
    dest: Path,
    tree: Path,
    told: Manifest,
    *,
    scratch: Path,
    tag: str = TAG,
    requires: Sequence[str] = (),
    edits: Edits | None = None,
    late_edits: Edits | None = None,
    links: Sequence[str] = (),
) -> Path:
    """Write the wheel of the files below ``tree``; the generated Python is the real one.

    ``edits`` replace, add or remove (``None``) members before RECORD is written,
    ``late_edits`` after it: then RECORD accuses them. ``links`` are members marked as links.
    """
    members = _members(tree, told, scratch, requires)
    members |= {
        f"{DIST_INFO}/METADATA": _metadata(requires).encode(),
        f"{DIST_INFO}/WHEEL": f"Wheel-Version: 1.0\nTag: py3-none-{tag}\n".encode(),
        f"{DIST_INFO}/entry_points.txt": _entry_points(told).encode(),
        f"{DIST_INFO}/{WHEEL_MANIFEST}": codec.encode(told).encode(),
        f"{WHEEL_PACKAGE}/manifest.json": codec.encode(told).encode(),
    }
    _edit(members, edits or {})
    rows = [f"{n},{record_digest(hashlib.sha256(d).digest())},{len(d)}" for n, d in members.items()]
    members[f"{DIST_INFO}/RECORD"] = "\n".join([*rows, f"{DIST_INFO}/RECORD,,", ""]).encode()
    _edit(members, late_edits or {})
    path = dest / f"{WHEEL_PACKAGE}-{VERSION}-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w") as zipped:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2026, 10, 1, 0, 0, 0))
            runs = any(e.executable and name.endswith(f"/{e.path}") for e in told.files)
            kind = stat.S_IFLNK if name in links else stat.S_IFREG
            info.external_attr = (kind | (0o755 if runs else 0o644)) << 16
            zipped.writestr(info, data)
    return path


def _members(
    tree: Path, told: Manifest, scratch: Path, requires: Sequence[str]
) -> dict[str, bytes]:
    binaries = tuple(e.path for e in told.files if not e.link and e.path.startswith("bin/"))
    programs = tuple(f"bin/{name}" for name in told.programs)
    chosen = Members(binaries=binaries, programs=programs, licenses=())
    runtime = Runtime(requires=tuple(requires))
    project = Project(manifest=told, version=VERSION, members=chosen, runtime=runtime)
    project.write(scratch / "project", tree)
    package = scratch / "project" / "src" / WHEEL_PACKAGE
    python = {f"{WHEEL_PACKAGE}/{p.name}": p.read_bytes() for p in sorted(package.iterdir())}
    return python | {f"{WHEEL_PACKAGE}/{p}": (tree / p).read_bytes() for p in binaries}


def _metadata(requires: Sequence[str]) -> str:
    lines = [f"Requires-Dist: {requirement}" for requirement in requires]
    head = ["Metadata-Version: 2.1", "Name: llamawright-llama-cpp", f"Version: {VERSION}"]
    return "\n".join([*head, *lines, "", "text"])


def _entry_points(told: Manifest) -> str:
    names = (name for name in told.programs)
    lines = [f"{n} = {WHEEL_PACKAGE}._programs:{n.replace('-', '_')}" for n in names]
    return "\n".join(["[console_scripts]", *lines, ""])


def _edit(members: dict[str, bytes], edits: Edits) -> None:
    for name, data in edits.items():
        if data is None:
            del members[name]
        else:
            members[name] = data


def write_dependency(dest: Path, project: str, version: str, files: Mapping[str, bytes]) -> Path:
    """Write a wheel of somebody else's, as NVIDIA's are."""
    stem = f"{project.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    members = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{n},{record_digest(hashlib.sha256(d).digest())},{len(d)}" for n, d in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path = dest / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as zipped:
        for name, data in members.items():
            zipped.writestr(name, data)
    return path
