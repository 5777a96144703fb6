"""What the user asked for, with the origin of every value kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import Recipe


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
class Request:
    """A build as the user wants it, before the machine was looked at.

    ``jobs`` and ``offline`` never change the output and are no part of a key.
    ``compiler`` is ``auto``, ``gcc``, ``clang`` or a path to a C++ compiler.
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
    source: str = "auto"
    jobs: int | None = None
    offline: bool = False
    dist: Path = Path("dist")
    device: str | None = None
    model: Path | None = None
    settings: tuple[Setting, ...] = ()
