"""Flags, environment and settings file to a ``Request``, every value with its origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from llamawright.config import values
from llamawright.config.document import suggestion
from llamawright.config.settings import Said, gather
from llamawright.errors import UsageError
from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import Recipe
from llamawright.model.request import (
    CacheChoice,
    ProofRequest,
    Request,
    Setting,
    VulkanChoice,
)

PROOF = ("device", "model", "offline", "require_hardware")
NAMES = (
    "archs", "backend", "cache", "cmake", "compiler", "cuda_toolkit", "dist", "jobs", "native",
    "ninja", "source", "vulkan", "with_tests", *PROOF,
)  # fmt: skip
V = TypeVar("V")


def build_request(
    flags: Mapping[str, object],
    *,
    env: Mapping[str, str],
    settings_file: Path | None,
    recipe: Recipe,
    platform: Platform,
    cwd: Path | None = None,
) -> Request:
    """Return what the user wants; ``UsageError`` for a value that cannot be understood.

    A flag beats a ``LLAMAWRIGHT_…`` variable, which beats the settings file. ``None`` as a
    flag's value means that it was not given. Relative paths are relative to the folder of
    the settings file that holds them, else to ``cwd``.
    """
    said = gather(NAMES, flags, env=env, settings_file=settings_file, cwd=cwd or Path.cwd())

    def take(name: str, read: Callable[[Said], V], default: V) -> V:
        return read(said[name]) if name in said else default

    request = Request(
        recipe=recipe,
        backend=_backend(said, recipe),
        platform=platform,
        vulkan=take("vulkan", lambda s: values.choice(s, VulkanChoice), VulkanChoice.AUTO),
        compiler=take("compiler", values.compiler, "auto"),
        cmake=take("cmake", values.tool, "auto"),
        ninja=take("ninja", values.tool, "auto"),
        cache=take("cache", lambda s: values.choice(s, CacheChoice), CacheChoice.AUTO),
        native=take("native", values.switch, default=False),
        with_tests=take("with_tests", values.switch, default=False),
        archs=take("archs", values.archs, ()),
        cuda_toolkit=take("cuda_toolkit", values.cuda_toolkit, "auto"),
        source=take("source", values.source, "auto"),
        jobs=take("jobs", values.jobs, None),
        dist=take("dist", values.path, Path("dist")),
        proof=_proof(said, flags),
    )
    return replace(request, settings=_origins(request, said))


def build_proof(
    flags: Mapping[str, object],
    *,
    env: Mapping[str, str],
    settings_file: Path | None,
    cwd: Path | None = None,
) -> ProofRequest:
    """Return what the user wants of a proof, from the same three places as a whole request."""
    said = gather(NAMES, flags, env=env, settings_file=settings_file, cwd=cwd or Path.cwd())
    return _proof(said, flags)


def _proof(said: Mapping[str, Said], flags: Mapping[str, object]) -> ProofRequest:
    def switch(name: str) -> bool:
        return values.switch(said[name]) if name in said else False

    links = flags.get("find_links")
    return ProofRequest(
        device=values.plain_text(said["device"]) if "device" in said else None,
        model=values.path(said["model"]) if "model" in said else None,
        require_hardware=switch("require_hardware"),
        # Said on the command line only: left in a file or variable, no quarantine would hold.
        clear_quarantine=bool(flags.get("clear_quarantine")),
        offline=switch("offline"),
        find_links=tuple(map(Path, links)) if isinstance(links, list) else (),
    )


def _backend(said: Mapping[str, Said], recipe: Recipe) -> Backend:
    if "backend" not in said:
        raise UsageError(
            "no backend was named",
            hint=f"one of: {', '.join(str(r.backend) for r in recipe.backends)}",
            kind="no-backend",
        )
    backend = values.choice(said["backend"], Backend)
    if recipe.rule(backend) is None:
        words = [str(r.backend) for r in recipe.backends]
        raise said["backend"].refuse(
            f"the recipe {recipe.name} has no rule for {backend}",
            why=f"it has: {', '.join(words)}",
            hint=suggestion(str(backend), words),
        )
    return backend


def _origins(request: Request, said: Mapping[str, Said]) -> tuple[Setting, ...]:
    return tuple(
        Setting(
            name=name,
            value=_shown(getattr(request.proof if name in PROOF else request, name)),
            origin=said[name].origin if name in said else "default",
        )
        for name in NAMES
    )


def _shown(value: object) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case None:
            return "auto"
        case Path():
            return value.as_posix()
        case tuple():
            return " ".join(map(str, value)) or "auto"
        case _:
            return str(value)
