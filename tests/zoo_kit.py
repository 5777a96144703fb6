"""A small good artifact for the zoo's own tests: text files for programs, no compiler."""

from __future__ import annotations

from pathlib import Path

from llamawright import codec
from verify_kit import NAME, manifest
from zoo.base import Base, open_base, pack
from zoo.changes import Cage
from zoo.compiling import Compiler
from zoo.model import Mutant, Named, Result

__all__ = ["NAME", "cage", "good_base", "good_tree", "mutant", "result"]
PROGRAMS = ("llama-completion", "llama-perplexity", "llama-bench")
MODULES = ("libggml-vulkan.so", "libggml-cpu-x64.so", "libggml-base.so")


def good_tree(root: Path) -> Path:
    """Write an artifact that nothing is wrong with, and return its root."""
    (root / "bin").mkdir(parents=True)
    for name in (*PROGRAMS, *MODULES):
        place = root / "bin" / name
        place.write_bytes(f"{name} in twenty-odd bytes\n".encode())
        place.chmod(0o755 if name in PROGRAMS else 0o644)
    told = codec.encode(manifest(root))
    (root / "manifest.json").write_text(told, encoding="utf-8")
    return root


def good_base(folder: Path) -> Base:
    """Return that artifact packed and opened as the zoo does."""
    archive = folder / f"{NAME}.tar.zst"
    pack(good_tree(folder / "good"), NAME, archive)
    return open_base(archive, folder / "bases", python="/nonexistent")


def cage(folder: Path, base: Base) -> Cage:
    """Return a cage for one mutant; its compiler is none."""
    room = folder / "cage"
    room.mkdir()
    store = folder / "store"
    store.mkdir(exist_ok=True)
    return Cage(
        base=base,
        compiler=Compiler(program="", headers=None),
        store=store,
        folder=room,
        tree=room / "tree",
        archive=room / f"{base.name}.tar.zst",
    )


def mutant(name: str = "cut", **changes: object) -> Mutant:
    """Return a mutant of the device's artifact that must be refused."""
    told: dict[str, object] = {
        "group": "archive",
        "tells": "cut in half",
        "on": "device",
        "changes": (("cut", "0.5"),),
        "expect": Named(state="refused", failure="truncated", exit=9),
    }
    return Mutant(name=name, **{**told, **changes})  # type: ignore[arg-type]


def result(name: str = "cut", **changes: object) -> Result:
    """Return a right result of that mutant."""
    expect = Named(state="refused", failure="truncated", exit=9)
    told: dict[str, object] = {
        "backend": "vulkan",
        "expect": expect,
        "seen": expect,
        "seconds": 3.2,
    }
    return Result(name=name, **{**told, **changes})  # type: ignore[arg-type]
