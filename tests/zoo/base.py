"""A good artifact, unpacked once; copies of it; and packing them again as if they were good."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from llamawright.digest import sha256_file
from llamawright.model.artifact import MANIFEST_NAME
from llamawright.process import ask
from llamawright.transfer.opened import open_artifact

SCORE = """import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
print(ctypes.CDLL(sys.argv[2]).ggml_backend_score())"""
FLUSH_PATCH = "flush-log-at-exit"
MODULES = {"vulkan": "libggml-vulkan.so", "cuda": "libggml-cuda.so"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A good artifact: the archive, its unpacked tree, its manifest's name and backend.

    ``module`` is the file that a proxy takes the place of: the device's, or the best CPU variant.
    ``flushes``: its programs write their log to the end, by the patch of that name; without it
    the end is lost now and then on a busy machine. ``companion`` is CUDA's archive beside it.
    """

    archive: Path
    tree: Path
    name: str
    backend: str
    sha256: str
    module: str
    flushes: bool = True
    companion: Path | None = None


def open_base(archive: Path, folder: Path, *, python: str) -> Base:
    """Unpack an artifact below ``folder``, unless it lies there."""
    sha256 = sha256_file(archive)
    tree = folder / sha256[:16]
    if not (tree / MANIFEST_NAME).is_file():
        shutil.rmtree(tree, ignore_errors=True)
        open_artifact(archive, tree)
    manifest = json.loads((tree / MANIFEST_NAME).read_text(encoding="utf-8"))
    backend = str(manifest["backend"])
    return Base(
        archive=archive,
        tree=tree,
        name=str(manifest["name"]),
        backend=backend,
        sha256=sha256,
        module=MODULES.get(backend) or best_variant(tree / "bin", python=python),
        flushes=any(FLUSH_PATCH in str(patch["name"]) for patch in manifest["patches"]),
        companion=_companion(archive, manifest),
    )


def _companion(archive: Path, manifest: Mapping[str, object]) -> Path | None:
    cuda = manifest.get("cuda")
    told = cuda.get("companion") if isinstance(cuda, dict) else None
    place = archive.parent / str(told["file"]) if told and told["file"] else None
    return place if place is not None and place.is_file() else None


def best_variant(folder: Path, *, python: str) -> str:
    """Return the CPU module that this machine would take, asked as ggml does: by its score."""
    core = next(p for p in folder.iterdir() if p.name.startswith("libggml-base.so"))
    scores = {}
    for path in sorted(folder.glob("libggml-cpu-*.so")):
        result = ask((python, "-I", "-c", SCORE, str(core), str(path)))
        scores[path.name] = int(result.stdout) if result.ok else 0
    return max(scores, key=lambda name: scores[name])


def copy_tree(source: Path, dest: Path) -> None:
    """Copy by hard links: a change must put a new file in a link's place, never write into it."""
    shutil.copytree(source, dest, symlinks=True, copy_function=os.link)


def put(path: Path, data: bytes, *, executable: bool = False) -> None:
    """Put a new file in the place of another."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    path.chmod(0o755 if executable else 0o644)


def restamp(tree: Path, says: Mapping[str, object]) -> None:
    """Let the manifest list what is there, so that nothing but the sabotage itself is wrong."""
    place = tree / MANIFEST_NAME
    manifest = json.loads(place.read_text(encoding="utf-8"))
    files = [p for p in sorted(tree.rglob("*")) if not p.is_dir() or p.is_symlink()]
    manifest["files"] = [_entry(tree, p) for p in files if p != place]
    names = {p.name for p in files}
    manifest["modules"] = [m for m in manifest["modules"] if m in names]
    manifest |= says
    put(place, (json.dumps(manifest, indent=2) + "\n").encode())


def _entry(tree: Path, path: Path) -> dict[str, object]:
    return {
        "path": path.relative_to(tree).as_posix(),
        "size": path.stat().st_size,
        "sha256": sha256_file(path),
        "executable": path.parent.name == "bin" and os.access(path, os.X_OK),
        "link": path.readlink().as_posix() if path.is_symlink() else "",
    }


def pack(tree: Path, top: str, dest: Path, more: Sequence[tarfile.TarInfo] = ()) -> None:
    """Pack a tree as one top folder; ``more`` are members that no honest packer writes."""
    packer = zstandard.ZstdCompressor(level=1)
    with (
        dest.open("wb") as stream,
        packer.stream_writer(stream) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        archive.add(tree, top)
        for member in more:
            archive.addfile(member, io.BytesIO(b"evil"[: member.size]))


def digest_of(*parts: bytes) -> str:
    """Return one digest over parts, each with its length."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def files_digest(files: Sequence[Path]) -> str:
    """Return the digest of files by name and content, whatever their order."""
    ordered = sorted(files)
    return digest_of(*(part for p in ordered for part in (p.name.encode(), p.read_bytes())))
