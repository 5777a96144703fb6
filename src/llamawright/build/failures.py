"""What a failing compile means: the text of its log to a class, a cure and a second try."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureClass:
    """A class of failures; ``retry`` when one more try with one job can help."""

    kind: str
    pattern: str
    hint: str
    retry: bool = False


CLASSES = (
    FailureClass(
        kind="disk-full",
        pattern=r"No space left on device|Disk quota exceeded|ENOSPC",
        hint="free some space or name another store: --store DIR; `llamawright gc` frees some",
    ),
    FailureClass(
        kind="out-of-memory",
        pattern=r"Killed signal terminated program|virtual memory exhausted|out of memory"
        r"|Cannot allocate memory|C1060|0xC000012D|cc1plus.*Killed",
        hint="fewer jobs need less memory: --jobs 1",
        retry=True,
    ),
    FailureClass(
        kind="compiler-crashed",
        pattern=r"internal compiler error|cicc.*signal|PLEASE submit a bug report",
        hint="try another compiler: --compiler clang (or gcc); the log names the source file",
    ),
    FailureClass(
        kind="headers-too-old",
        pattern=r"LayerSettingEXT|VkPhysicalDeviceCooperativeMatrixFeaturesKHR.*not declared"
        r"|is not a member of .?vk.?|conversion from .int. to .vk::",
        hint="the Vulkan headers are older than this llama.cpp needs: --vulkan provided",
    ),
    FailureClass(
        kind="spirv-headers-missing",
        pattern=r"spirv\.hpp: No such file|package configuration file provided by .SPIRV-Headers"
        r"|.spv. has not been declared",
        hint="install SPIRV-Headers (Debian: spirv-headers), or --vulkan provided",
    ),
    FailureClass(
        kind="glslc-missing",
        pattern=r"missing: glslc|GLSLC_EXECUTABLE-NOTFOUND",
        hint="install glslc (Debian: glslc; Fedora: glslc; Arch: shaderc), or --vulkan provided",
    ),
    FailureClass(
        kind="shader-failed",
        pattern=r"cannot compile .*\.comp|glslc: |vulkan-shaders-gen.*(fail|error)",
        hint="the shader compiler refused a shader: --vulkan provided brings a known one",
    ),
    FailureClass(
        kind="stale-build-folder",
        pattern=r"Does not match the generator used previously",
        hint="`llamawright gc --keep-days 0` drops old build folders",
    ),
    FailureClass(
        kind="host-compiler",
        pattern=r"unsupported GNU version|unsupported Microsoft Visual Studio version",
        hint="the toolkit does not accept this host compiler: --compiler FILE names another",
    ),
    FailureClass(
        kind="gpu-arch",
        pattern=r"Unsupported gpu architecture",
        hint="the toolkit cannot make code for this architecture: choose another toolkit or arch",
    ),
    FailureClass(
        kind="toolset-integration",
        pattern=r"No CUDA toolset found",
        hint="Visual Studio lacks CUDA's integration; llamawright builds with Ninja instead",
    ),
    FailureClass(
        kind="path-too-long",
        pattern=r"CMAKE_OBJECT_PATH_MAX|The filename or extension is too long|File name too long",
        hint="use a store with a short path: --store DIR",
    ),
    FailureClass(
        kind="downloads",
        pattern=r"file\(DOWNLOAD|FetchContent.*(fail|error)|Could not resolve host",
        hint="the project tried to download during the build; the recipe must switch that off",
    ),
    FailureClass(
        kind="link-failed",
        pattern=r"undefined reference to|undefined symbol|ld returned \d+ exit status"
        r"|cannot find -l",
        hint="a library is missing or of another build; the log names it",
    ),
    FailureClass(
        kind="no-compiler",
        pattern=r"No CMAKE_CXX_COMPILER could be found|not able to compile a simple test program",
        hint="install a C++17 compiler (Debian, Ubuntu: g++), or name one: --compiler FILE",
    ),
)
STALL = FailureClass(
    kind="stall",
    pattern=r"(?!)",
    hint="no output and no CPU time for minutes: a compiler or shader child hung; "
    "run again with --jobs 1, and look for antivirus or a full process table",
    retry=True,
)
OTHER = FailureClass(
    kind="compile-failed",
    pattern=r"",
    hint="the log's first `error:` line names the cause",
)


def classify(log: str) -> FailureClass:
    """Return the first class whose text is in the log, else ``compile-failed``."""
    return next((c for c in CLASSES if re.search(c.pattern, log)), OTHER)


def first_error(log: str, count: int = 8) -> tuple[str, ...]:
    """Return the lines around the first error of a log: what a reader wants to see."""
    lines = log.splitlines()
    at = next((i for i, t in enumerate(lines) if re.search(r"\berror\b|FAILED:", t)), None)
    return tuple(lines[-count:] if at is None else lines[max(0, at - 1) : at + count])
