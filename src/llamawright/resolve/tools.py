"""Compiler, cmake, ninja, compiler cache and git: which of those found are used."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from llamawright.model.inventory import Found, Rejected, Role
from llamawright.model.request import CacheChoice, Request
from llamawright.resolve.choice import Choice, Field, conflict_of

FAMILIES = ("gcc", "clang")
NAMED_BY_ENVIRONMENT = ("CXX", "CC")


def choose_compiler(request: Request, field: Field) -> Choice:
    """Return the compiler: the one that was named, else the first that fits.

    A compiler that ``CXX`` or ``CC`` names and that cannot be used is a conflict, not a
    reason to take another one silently.
    """
    usable, refused = field.usable(Role.CXX), field.refused(Role.CXX)
    wanted = request.compiler
    if wanted == "auto":
        said = tuple(r for r in refused if r.where in NAMED_BY_ENVIRONMENT)
        if said:
            variable = said[0].where
            what = f"the compiler that {variable} names cannot be used"
            return _none(what, said, f"unset {variable}", role=Role.CXX)
        return _first(usable, "no C++ compiler can be used", refused, field, role=Role.CXX)
    if wanted in FAMILIES:
        usable = tuple(f for f in usable if f.name == wanted)
        others = {f.name for f in field.usable(Role.CXX)} - {wanted}
        cures = [f"--compiler {name}" for name in sorted(others)]
        refused = tuple(r for r in refused if r.name in (wanted, "compiler"))
        what = f"no {wanted} can be used"
        return _first(usable, what, refused, field, *cures, role=Role.CXX)
    usable = tuple(f for f in usable if f.path == Path(wanted))
    refused = tuple(r for r in refused if r.path == Path(wanted))
    what = f"the compiler {wanted} cannot be used"
    return _first(usable, what, refused, field, "--compiler auto", role=Role.CXX)


def choose_program(role: Role, wanted: str, field: Field) -> Choice:
    """Return cmake or ninja: the named file, else the first that fits."""
    usable, refused = field.usable(role), field.refused(role)
    if wanted == "auto":
        return _first(usable, f"no {role} can be used", refused, field, role=role)
    usable = tuple(f for f in usable if f.path == Path(wanted))
    refused = tuple(r for r in refused if r.path == Path(wanted))
    what = f"the {role} {wanted} cannot be used"
    return _first(usable, what, refused, field, f"leave --{role} out", role=role)


def choose_cache(request: Request, field: Field) -> Choice:
    """Return the compiler cache, or none: ``auto`` takes ccache when it can be had."""
    usable = {f.name: f for f in reversed(field.usable(Role.CACHE))}
    wanted = request.cache
    match wanted:
        case CacheChoice.OFF:
            return Choice()
        case CacheChoice.AUTO:
            return Choice(tools=(usable["ccache"],) if "ccache" in usable else ())
        case CacheChoice.CCACHE | CacheChoice.SCCACHE:
            if wanted in usable:
                return Choice(tools=(usable[wanted],))
            refused = tuple(r for r in field.refused(Role.CACHE) if r.name == wanted)
            return _none(f"{wanted} cannot be used", refused, "--cache off", role=Role.CACHE)
        case _:
            assert_never(wanted)


def require_git(request: Request, field: Field) -> Choice:
    """Return a conflict when the source can only come by git and git is not there (S6)."""
    if request.source != "git" and not request.source.startswith("git+"):
        return Choice()
    if field.usable(Role.GIT):
        return Choice()
    what = f"the source {request.source} needs git"
    cures = [field.cure(Role.GIT), "--source auto"]
    return _none(what, field.refused(Role.GIT), *cures, role=Role.GIT)


def _first(
    usable: tuple[Found, ...],
    what: str,
    refused: tuple[Rejected, ...],
    field: Field,
    *cures: str,
    role: Role,
) -> Choice:
    if usable:
        return Choice(tools=usable[:1])
    return _none(what, refused, field.cure(role), *cures, role=role)


def _none(what: str, refused: tuple[Rejected, ...], *cures: str, role: Role) -> Choice:
    return Choice(conflicts=(conflict_of(what, refused, *cures, role=role),))
