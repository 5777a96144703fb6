"""The keys: every input that can change the output, by name, so that two can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from llamawright import __version__
from llamawright.digest import digest_data
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import KeyPart, PlannedPatch
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Option, Recipe, SourcePin
from llamawright.model.request import Request
from llamawright.resolve.options import PLACED
from llamawright.resolve.sides import ModuleSide

SOURCE = "source tree"
_KEY = re.compile(r"[0-9a-f]{64}")
# What a compiler told about the parts of itself that decide the output.
COMPILER_FACTS = (
    "revision", "target", "c_sha256", "backend_sha256", "assembler", "linker", "libc", "libstdcxx",
)  # fmt: skip


def host_parts(
    request: Request,
    pin: SourcePin,
    *,
    tools: Sequence[Found],
    patches: Iterable[PlannedPatch],
    options: Iterable[Option],
    environment: Iterable[tuple[str, str]],
    cpu: str,
) -> tuple[KeyPart, ...]:
    """Return what the host build depends on. Jobs, cache, store and network are not in it."""
    parts = [
        _part("llamawright", __version__),
        _part("platform", request.platform.tag),
        *_source(request, pin),
        *(_part(f"patch {p.name}", p.sha256) for p in patches),
        *_options("option", options),
        *(part for tool in tools for part in _tool(tool)),
        *(_part(f"environment {name}", value) for name, value in environment),
        *_contents(request.recipe, with_tests=request.with_tests),
    ]
    if request.native:
        parts.append(_part("processor", cpu))
    return tuple(parts)


def module_parts(
    rule: BackendRule, options: Iterable[Option], side: ModuleSide | None
) -> tuple[KeyPart, ...]:
    """Return what the backend's module depends on besides the host."""
    return (
        _part("backend", rule.backend),
        _part("module targets", " ".join(rule.targets)),
        _part("module files", " ".join(rule.modules)),
        *_options("module option", options),
        *(side.parts if side else ()),
    )


def key_of(parts: Iterable[KeyPart]) -> str:
    """Return the key: 64 hex digits over all parts, whatever their order."""
    return digest_data(sorted((p.name, p.value) for p in parts))


def _source(request: Request, pin: SourcePin) -> Iterator[KeyPart]:
    yield _part(SOURCE, pin.tree or f"not pinned: {request.source}")
    yield _part("source files", " ".join(pin.include))
    yield _part("source commit", f"{pin.commit} build {pin.build_number}")


def _options(label: str, options: Iterable[Option]) -> Iterator[KeyPart]:
    for option in options:
        if option.name not in PLACED:
            yield _part(f"{label} {option.name}", f"{option.type}={option.value}")


def _tool(tool: Found) -> Iterator[KeyPart]:
    """Yield a tool's parts; cmake and ninja work alike wherever a tool environment puts them."""
    known = [tool.name, tool.version, tool.sha256]
    match tool.role:
        case Role.CXX:
            yield _part(tool.role, " ".join([*known, _standing(tool.path)]))
            yield _part("c compiler", _standing(Path(tool.fact("c_compiler"))))
            for name in COMPILER_FACTS:
                yield _part(f"compiler {name}", tool.fact(name))
        case Role.CMAKE | Role.NINJA:
            yield _part(tool.role, " ".join(known))
        case _:
            return


def _standing(path: Path) -> str:
    """Return where a compiler stands; one of the store's own stands under its key in any store."""
    if _KEY.fullmatch(path.parent.name):
        return path.relative_to(path.parent.parent).as_posix()
    return path.as_posix()


def _contents(recipe: Recipe, *, with_tests: bool) -> Iterator[KeyPart]:
    cpu = recipe.rule(Backend.CPU)
    lists = {
        "programs": recipe.programs,
        "test programs": recipe.test_programs if with_tests else (),
        "libraries": recipe.libraries,
        "licenses": recipe.licenses,
        "host targets": cpu.targets if cpu else (),
        "host modules": cpu.modules if cpu else (),
    }
    for name, values in lists.items():
        yield _part(name, " ".join(values))


def _part(name: str, value: str) -> KeyPart:
    return KeyPart(name=str(name), value=str(value))
