"""From a build tree to a staged install: the wanted files, their links and the licences."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from llamawright.errors import BuildError
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform, System

BIN = "bin"
LICENSES = "licenses"


def library_patterns(stem: str, platform: Platform) -> tuple[str, ...]:
    """Return the file names of one shared library with its version links."""
    match platform.system:
        case System.WINDOWS:
            return (f"{stem}.dll",)
        case System.MACOS:
            return (f"lib{stem}.dylib", f"lib{stem}.*.dylib")
        case _:
            return (f"lib{stem}.so", f"lib{stem}.so.*")


def host_patterns(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return what the host must hold: one group of names for each program and library."""
    recipe, platform = plan.recipe, plan.platform
    programs = [*recipe.programs, *(recipe.test_programs if plan.with_tests else ())]
    groups: list[tuple[str, ...]] = [(platform.program(p),) for p in programs]
    groups += [library_patterns(name, platform) for name in recipe.libraries]
    for rule in recipe.backends:
        if rule.backend is Backend.CPU:
            groups += [(platform.module(m),) for m in rule.modules]
    return tuple(groups)


def stage_files(
    source: Path, dest: Path, groups: Iterable[tuple[str, ...]], what: str
) -> tuple[str, ...]:
    """Copy the files of each group with their links; every group must hold one.

    ``BuildError`` names all groups for which the compile left nothing.
    """
    dest.mkdir(parents=True, exist_ok=True)
    names = sorted(p.name for p in source.iterdir())
    taken: dict[str, None] = {}
    lacking: list[str] = []
    for group in groups:
        hits = [n for n in names if any(fnmatch(n, pattern) for pattern in group)]
        if not hits:
            lacking.append(group[0])
        taken |= dict.fromkeys(hits)
    if lacking:
        raise BuildError(
            f"the {what} was compiled, and {', '.join(lacking)} is not there",
            why=f"{source} holds {len(names)} other files",
            hint="the recipe expects a program or library that this source no longer makes",
            kind="output-missing",
        )
    for name in taken:
        shutil.copy2(source / name, dest / name, follow_symlinks=False)
    return tuple(f"{BIN}/{n}" for n in taken)


def stage_licenses(source: Path, dest: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Copy the licence texts under flat names; ``BuildError`` when one is gone."""
    dest.mkdir(parents=True, exist_ok=True)
    for name in names:
        text = source / name
        if not text.is_file():
            raise BuildError(
                f"the licence text {name} is not in the source",
                why="an artifact must carry the licences of all it is made of",
                hint="correct `licenses` in the recipe's [contents]",
                kind="license-missing",
            )
        shutil.copyfile(text, dest / name.replace("/", "-"))
    return tuple(f"{LICENSES}/{n.replace('/', '-')}" for n in names)
