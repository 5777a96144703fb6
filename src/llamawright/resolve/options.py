"""The CMake entries of both builds, from the recipe and the chosen tools."""

from __future__ import annotations

from collections.abc import Iterable

from llamawright.model.inventory import Found
from llamawright.model.platform import Platform
from llamawright.model.recipe import Option, SourcePin
from llamawright.model.request import Request
from llamawright.resolve.sides import cmake_path

COMMIT_DIGITS = 9
# Entries that only say where a tool stands: the tool's own part of the key covers them.
PLACED = frozenset(
    {
        "CMAKE_C_COMPILER",
        "CMAKE_CXX_COMPILER",
        "CMAKE_MAKE_PROGRAM",
        "CMAKE_C_COMPILER_LAUNCHER",
        "CMAKE_CXX_COMPILER_LAUNCHER",
        "Vulkan_INCLUDE_DIR",
        "Vulkan_LIBRARY",
        "Vulkan_GLSLC_EXECUTABLE",
        "SPIRV-Headers_DIR",
        "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES",
        "CMAKE_CUDA_COMPILER",
        "CMAKE_CUDA_COMPILER_LAUNCHER",
        "CMAKE_CUDA_HOST_COMPILER",
        "CMAKE_CUDA_STANDARD_INCLUDE_DIRECTORIES",
        "CUDAToolkit_ROOT",
    }
)


def merged(*groups: Iterable[Option]) -> tuple[Option, ...]:
    """Return the options of all groups, each name once; a later group's value counts."""
    named: dict[str, Option] = {}
    for group in groups:
        named |= {o.name: o for o in group}
    return tuple(named.values())


def host_options(
    request: Request, pin: SourcePin, compiler: Found, ninja: Found, cache: Found | None
) -> tuple[Option, ...]:
    """Return the entries of host and module alike."""
    recipe = request.recipe
    return merged(
        recipe.options,
        recipe.test_options if request.with_tests else (),
        _native(request),
        _identity(pin),
        _tools(request.platform, compiler, ninja, cache),
    )


def _native(request: Request) -> tuple[Option, ...]:
    if not request.native:
        return ()
    why = "--native: for this processor only"
    return (
        Option(name="GGML_NATIVE", value="ON", reason=why),
        Option(name="GGML_CPU_ALL_VARIANTS", value="OFF", reason=why),
    )


def _identity(pin: SourcePin) -> tuple[Option, ...]:
    why = "without git the sources say build 0, commit unknown"
    commit = pin.commit[:COMMIT_DIGITS]
    return (
        Option(name="LLAMA_BUILD_NUMBER", value=str(pin.build_number), type="STRING", reason=why),
        Option(name="LLAMA_BUILD_COMMIT", value=commit, type="STRING", reason=why),
    )


def _tools(
    platform: Platform, compiler: Found, ninja: Found, cache: Found | None
) -> tuple[Option, ...]:
    places = {
        "CMAKE_C_COMPILER": compiler.fact("c_compiler"),
        "CMAKE_CXX_COMPILER": compiler.path.as_posix(),
        "CMAKE_MAKE_PROGRAM": ninja.path.as_posix(),
    }
    if cache is not None:
        # Per language: a global launch rule would wrap nvcc and the linker too (case C19).
        places["CMAKE_C_COMPILER_LAUNCHER"] = cache.path.as_posix()
        places["CMAKE_CXX_COMPILER_LAUNCHER"] = cache.path.as_posix()
    return tuple(
        Option(name=n, value=cmake_path(v, platform), type="FILEPATH", reason="chosen by the plan")
        for n, v in places.items()
    )
