"""The resolved build: nothing left to choose, every input named by digest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llamawright.model.cuda import CudaPlan
from llamawright.model.inventory import Available, Found, Role
from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import Option, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two things that do not fit, and what cures it; ``kind`` is the stable class word."""

    what: str
    why: str
    cures: tuple[str, ...]
    missing: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPatch:
    """A patch of the series as the plan sees it.

    ``needs`` are conditions such as ``vulkan-headers < 272``, all of which must hold.
    """

    name: str
    sha256: str
    type: str
    reason: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """One named input of a key; ``explain`` prints how two keys differ by these."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A build without open questions.

    ``host_key`` covers what the host (tools, ggml, CPU variants) depends on, ``key`` the
    host and the backend module together. ``host_options`` are given to both builds;
    ``module_options`` only to the module's. ``provisions`` must stand in the store before
    configure. ``jobs`` comes from cores and memory and is no part of a key.
    """

    name: str
    recipe: Recipe
    backend: Backend
    platform: Platform
    source: str
    tools: tuple[Found, ...]
    provisions: tuple[Available, ...]
    patches: tuple[PlannedPatch, ...]
    host_options: tuple[Option, ...]
    module_options: tuple[Option, ...]
    environment: tuple[tuple[str, str], ...]
    with_tests: bool
    jobs: int
    warnings: tuple[str, ...]
    host_parts: tuple[KeyPart, ...]
    parts: tuple[KeyPart, ...]
    host_key: str
    key: str
    cuda: CudaPlan | None = None

    def tool(self, role: Role) -> Found | None:
        """Return the tool chosen for ``role``, or ``None`` when the backend needs none."""
        return next((t for t in self.tools if t.role is role), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """Unpacked upstream source: ``digest`` is over the recipe's included files."""

    root: Path
    digest: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedTree:
    """A private copy of the source with the whole series applied.

    ``applied`` and ``retired`` name patches; a retired one is already upstream.
    """

    root: Path
    digest: str
    source_digest: str
    applied: tuple[str, ...]
    retired: tuple[str, ...]
