"""Artifacts to prove: packed from any folder of programs, or of fakes that misbehave."""

from __future__ import annotations

import hashlib
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import zstandard

from llamawright import codec
from llamawright.config import load_recipe
from llamawright.model.artifact import MANIFEST_NAME, MANIFEST_SCHEMA, FileEntry, Manifest
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.ports import Meter
from llamawright.model.recipe import Recipe, Threshold, Verification, Workload
from llamawright.paths import data_root

LINUX = Platform(System.LINUX, "x86_64")
NAME = "llama.cpp-0c1e57098-vulkan-linux_x86_64"


class Told:
    """A reporter that keeps what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def meter(self, label: str, *, total: float | None, unit: str) -> Iterator[Meter]:
        told = self

        class Kept:
            def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
                told.notes.append(f"{label} {done:g} {note}")

        yield Kept()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.lines.append(title)
        yield


def recipe() -> Recipe:
    """Return the real recipe: the tests hold for what users get."""
    return load_recipe(data_root() / "recipes" / "llama.cpp.toml")


def verification(**changes: object) -> Verification:
    """Return the real recipe's table with limits that fit a test."""
    quick = {
        "context": 8,
        "chunks": 2,
        "hardware": Workload(context=8, chunks=2, batches=(1, 4, 32), prompts=(256, 4, 1)),
        "software": Workload(context=8, chunks=2, batches=(32,), prompts=(256, 256)),
        "probe_s": 10.0,
        "load_s": 10.0,
        "first_token_s": 10.0,
        "total_s": 30.0,
        "output_cap": 1 << 20,
    }
    return replace(recipe().verification, **{**quick, **changes})  # type: ignore[arg-type]


def thresholds(kld: float = 0.02, top1: float = 0.8) -> dict[str, Threshold]:
    return {
        "max_mean_kld": Threshold(value=kld, reason="a test"),
        "min_top1": Threshold(value=top1, reason="a test"),
    }


def manifest(root: Path, *, name: str = NAME, backend: Backend = Backend.VULKAN,
             platform: Platform = LINUX) -> Manifest:  # fmt: skip
    """Return a manifest that tells the truth about the files below ``root``."""
    files = []
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.name != MANIFEST_NAME):
        data = path.read_bytes()
        files.append(
            FileEntry(
                path=path.relative_to(root).as_posix(),
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                executable=bool(path.stat().st_mode & stat.S_IXUSR) and not path.is_symlink(),
                link=path.readlink().as_posix() if path.is_symlink() else "",
            )
        )
    return Manifest(
        schema=MANIFEST_SCHEMA, name=name, key="k" * 64, abi="a" * 64,
        upstream="ggml-org/llama.cpp", commit="0c1e57098", build_number=11312,
        source_digest="s" * 64, patched_digest="p" * 64, backend=backend, platform=platform,
        patches=(), retired=(), tools=(), options=(), capabilities=(), inputs=(), modules=(),
        programs=(), files=tuple(files), binaries=(), system_libraries=(), glibc="", glibcxx="",
    )  # fmt: skip


def pack(root: Path, dest: Path, told: Manifest) -> Path:
    """Write a folder and its manifest as an artifact; ``told`` may lie."""
    (root / MANIFEST_NAME).write_text(codec.encode(told), encoding="utf-8")
    path = dest / f"{told.name}.tar.zst"
    with path.open("wb") as sink, zstandard.ZstdCompressor(level=1).stream_writer(sink) as packed:
        with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            tar.add(root, arcname=told.name)
    return path
