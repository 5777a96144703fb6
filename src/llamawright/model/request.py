"""What the user asked for, with the origin of every value kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import BackendRule, Recipe, Verification


class VulkanChoice(StrEnum):
    """Where the Vulkan build side comes from."""

    AUTO = "auto"
    SDK = "sdk"
    SYSTEM = "system"
    PROVIDED = "provided"


class CacheChoice(StrEnum):
    """Which compiler cache is used. ``auto`` takes ccache when it can be had."""

    AUTO = "auto"
    OFF = "off"
    CCACHE = "ccache"
    SCCACHE = "sccache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of the request and where it was said: flag, environment, file, default."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """What every verb that proves may be told, whatever was built.

    ``device`` and ``model`` are ``None`` for the first hardware device and the recipe's
    model. ``offline`` holds for the whole run: only the store may be used.
    ``clear_quarantine`` lifts what an earlier freeze of the machine left behind.
    ``find_links`` are folders with the wheels that a wheel depends on.
    """

    device: str | None = None
    model: Path | None = None
    require_hardware: bool = False
    clear_quarantine: bool = False
    offline: bool = False
    find_links: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A build as the user wants it, before the machine was looked at.

    ``jobs`` and ``proof`` never change the output and are no part of a key.
    ``compiler`` is ``auto``, ``gcc``, ``clang`` or a path to a C++ compiler. ``archs`` are
    CUDA device code as the user said it (``sm_61``, ``native``, ``all-major``, ``release``;
    empty: the cards of this machine, or a release build when there are none).
    ``cuda_toolkit`` is ``auto``, ``system``, ``provided``, the beginning of a version, or
    the toolkit's folder.
    """

    recipe: Recipe
    backend: Backend
    platform: Platform
    vulkan: VulkanChoice = VulkanChoice.AUTO
    compiler: str = "auto"
    cmake: str = "auto"
    ninja: str = "auto"
    cache: CacheChoice = CacheChoice.AUTO
    native: bool = False
    with_tests: bool = False
    archs: tuple[str, ...] = ()
    cuda_toolkit: str = "auto"
    source: str = "auto"
    jobs: int | None = None
    dist: Path = Path("dist")
    proof: ProofRequest = ProofRequest()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareDriver:
    """A software driver that was chosen on purpose.

    ``env`` leads a program to it and to nothing else; its libraries lie below ``root``.
    """

    name: str
    env: tuple[tuple[str, str], ...]
    root: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """A proof as the user wants it.

    ``artifact`` is the packed file, ``model`` a GGUF file that is there already;
    ``model_sha256`` what it must be (empty: the user's own model). ``device`` is a name,
    ggml's id (``Vulkan0``) or a PCI id; ``None`` takes the first hardware device, and
    ``driver`` when there is none. ``rules`` are the recipe's, one for each backend.
    ``clear_quarantine`` lifts what an earlier freeze of the machine left behind.
    ``find_links`` are folders with the wheels that a wheel depends on; its own counts anyway.
    """

    artifact: Path
    model: Path
    model_sha256: str
    verification: Verification
    rules: tuple[BackendRule, ...]
    platform: Platform
    device: str | None = None
    driver: SoftwareDriver | None = None
    require_hardware: bool = False
    clear_quarantine: bool = False
    find_links: tuple[Path, ...] = ()
