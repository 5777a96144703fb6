"""LunarG's Vulkan SDK without administrator rights, on Linux and Windows."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.model.toolchain import ProvidedSet
from llamawright.process import Command, Limits, base_environment, run
from llamawright.transfer import UnpackLimits, unpack_archive

PARTS = ("bin/glslc", "include", "lib", "share/cmake", "share/vulkan/registry")
MACHINE = "x86_64"
LIMITS = UnpackLimits(case_collisions=True)
INSTALL_S = 1800.0
STALL_S = 600.0


def unpack_tar(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack glslc, headers, loader and SPIRV-Headers of ``<version>/x86_64``."""
    for file, blob in zip(provided.files, blobs, strict=True):
        what = f"{file.package} {file.version}"
        unpack_archive(blob, root, strip=1, only=MACHINE, include=PARTS, limits=LIMITS, what=what)


def run_installer(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Let the installer copy its files into ``root``.

    ``copy_only=1`` keeps it from the registry, the layers and the search path, so it needs
    no administrator; accepting the licences is what the user does by choosing the set.
    """
    for file, blob in zip(provided.files, blobs, strict=True):
        with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
            # The store's name of the file has no ending, and Windows starts only an .exe.
            program = Path(folder) / "vulkan_sdk.exe"
            shutil.copyfile(blob, program)
            program.chmod(0o755)
            result = run(
                Command(argv=_arguments(program, root), cwd=Path(folder), env=base_environment()),
                limits=Limits(total_s=INSTALL_S, stall_s=STALL_S),
            )
        if not result.ok:
            raise ToolMissingError(
                f"the installer of {file.package} {file.version} failed",
                why=f"it ended {result.ending} with status {result.returncode}",
                hint="install the SDK yourself and set VULKAN_SDK",
                kind="installer-failed",
                command=result.command.pasteable,
                tail=result.tail,
            )


def _arguments(program: Path, root: Path) -> tuple[str, ...]:
    return (
        str(program), "--root", str(root), "--accept-licenses", "--default-answer",
        "--confirm-command", "install", "copy_only=1",
    )  # fmt: skip
