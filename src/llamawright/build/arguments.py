"""CMake's command line from a plan: pure, so that it can be read in a test on any system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import Option

TUNING = "toolchains/cmake/host.cmake"
# The target nlohmann puts ``<this>/..`` on the path: ccache shortens that before the compiler
# sees it, and the assertions of json.hpp hold the name of their file.
PARENT_INCLUDE = "vendor/nlohmann"
# Where nothing listens: what a build tries to download fails at once and is seen (case S7).
# CMake's own downloads, curl, git and npm all obey these; no root and no namespace is needed.
NOWHERE = "http://127.0.0.1:9"
NO_NETWORK = {
    name: NOWHERE
    for plain in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy")
    for name in (plain, plain.upper())
} | {"no_proxy": "", "NO_PROXY": "", "GIT_TERMINAL_PROMPT": "0"}


def configure_arguments(
    cmake: Path,
    source: Path,
    build: Path,
    options: tuple[Option, ...],
    *,
    tuning: Path,
    platform: Platform,
    backend: Backend = Backend.CPU,
) -> tuple[str, ...]:
    """Return the whole argument list of one configure run, every entry typed."""
    return (
        str(cmake),
        "-S",
        str(source),
        "-B",
        str(build),
        "-G",
        "Ninja",
        *(o.argument for o in (*options, *build_entries(source, build, tuning, platform, backend))),
    )


def build_entries(
    source: Path, build: Path, tuning: Path, platform: Platform, backend: Backend = Backend.CPU
) -> tuple[Option, ...]:
    """Return the entries that depend on where the trees stand.

    The run path is written at link time, as it is to stay: with a build-time path CMake
    would add the folder of the Vulkan loader that was linked with.
    """
    origin = "@loader_path" if platform.system is System.MACOS else "$ORIGIN"
    entries = [
        Option(
            name="CMAKE_PROJECT_TOP_LEVEL_INCLUDES",
            value=tuning.as_posix(),
            type="FILEPATH",
            reason="how the parts that compute nothing are compiled",
        ),
        Option(
            name="CMAKE_BUILD_WITH_INSTALL_RPATH",
            value="ON",
            reason="no path of this machine in a binary",
        ),
        Option(
            name="CMAKE_INSTALL_RPATH",
            value=origin,
            type="STRING",
            reason="libraries and modules stand beside the programs",
        ),
    ]
    if platform.system is System.WINDOWS:
        return tuple(entries)
    return (*entries, *_flags(prefix_map(source, build), backend))


def _flags(maps: tuple[str, ...], backend: Backend) -> Iterator[Option]:
    """Yield the same flags for each language; nvcc hands them to the compiler of its host code."""
    languages = {"C": "", "CXX": ""} | ({"CUDA": "-Xcompiler="} if backend is Backend.CUDA else {})
    for language, prefix in languages.items():
        yield Option(
            name=f"CMAKE_{language}_FLAGS",
            value=" ".join(f"{prefix}{f}" for f in maps),
            type="STRING",
            reason="the same bytes from any folder",
        )


def prefix_map(source: Path, build: Path) -> tuple[str, ...]:
    """Return the flags that write both folders as ``.`` into debug data and ``__FILE__``.

    The source's path relative to the build folder is mapped too: so ccache rewrites it, and
    an object must not tell whether a cache was used. CMake hands its flags to the compiler's
    command line as they are: quoted for spaces.
    """
    relative = Path(os.path.relpath(source, build)).as_posix()
    folders = (source.as_posix(), build.as_posix(), relative)
    # The last one counts, so the longer path comes after the source's own.
    up = f'"-ffile-prefix-map={source.as_posix()}/{PARENT_INCLUDE}/..=./{_above(PARENT_INCLUDE)}"'
    return (*(f'"-ffile-prefix-map={f}=."' for f in folders), up)


def _above(folder: str) -> str:
    return PurePosixPath(folder).parent.as_posix()


def environment(plan: Plan, programs: tuple[Path, ...], ceiling: Path) -> dict[str, str]:
    """Return what both runs add to the clean environment.

    The folders of the chosen programs lead PATH: the nested shader generator looks for
    ninja there. git looks for no repository at or above ``ceiling``. No network.
    """
    folders = [str(p.parent) for p in programs]
    system = ("/usr/bin", "/bin") if plan.platform.system is not System.WINDOWS else ()
    path = ":".join(dict.fromkeys([*folders, *system]))
    extra = {**NO_NETWORK, **dict(plan.environment)}
    extra["GIT_CEILING_DIRECTORIES"] = str(ceiling)
    if plan.platform.system is not System.WINDOWS:
        extra["PATH"] = path
    return extra
