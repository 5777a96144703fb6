"""Backends and platforms: the two axes every artifact name is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Backend(StrEnum):
    """The device API an artifact's module speaks."""

    CPU = "cpu"
    VULKAN = "vulkan"
    CUDA = "cuda"
    METAL = "metal"


class System(StrEnum):
    """The operating system an artifact runs on."""

    LINUX = "linux"
    WINDOWS = "windows"
    MACOS = "macos"


@dataclass(frozen=True, slots=True)
class Platform:
    """Operating system and machine, e.g. ``linux`` on ``x86_64``."""

    system: System
    machine: str

    @property
    def tag(self) -> str:
        """Return the platform's part of an artifact name, e.g. ``linux_x86_64``."""
        return f"{self.system}_{self.machine}"

    def program(self, stem: str) -> str:
        """Return a program's file name on this platform."""
        return f"{stem}.exe" if self.system is System.WINDOWS else stem

    def module(self, stem: str) -> str:
        """Return a backend module's file name, e.g. ``libggml-vulkan.so``.

        CMake names MODULE libraries ``.so`` on macOS too; ggml looks for exactly that.
        """
        return f"{stem}.dll" if self.system is System.WINDOWS else f"lib{stem}.so"
