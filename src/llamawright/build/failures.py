"""What a failing compile means: the text of its log to a class, a cure and a second try.

The table is data: a new kind of failure is one more row, with a line of a real log in the
tests. Rows are tried in their order, so a cause stands before its consequences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureClass:
    """A class of failures: its stable word, the text it is known by, and what cures it.

    ``retry``: one more try can help, with one job; ``uncached``: without compiler cache.
    """

    kind: str
    pattern: str
    hint: str
    retry: bool = False
    uncached: bool = False


DISK_FULL = "disk-full"
CLASSES = (
    FailureClass(
        kind=DISK_FULL,
        pattern=r"No space left on device|Disk quota exceeded|ENOSPC",
        hint="free some space or name another store: --store DIR; `llamawright gc` frees some",
    ),
    FailureClass(
        kind="compiler-cache",
        pattern=r"^s?ccache: (?:error|fatal|encountered|caused by|failed)|sccache.*\[ERROR\]"
        r"|s?ccache: (?:not found|No such file|Permission denied)",
        hint="the compiler cache itself fails: --cache off builds without it",
        uncached=True,
    ),
    FailureClass(
        kind="out-of-memory",
        pattern=r"Killed signal terminated program|virtual memory exhausted"
        r"|out of memory|Cannot allocate memory|C1060|0xC000012D|cc1plus.*Killed"
        r"|(?:cicc|ptxas|cudafe\+\+).? died due to signal 9|ptxas fatal\s*: Memory allocation"
        r"|Failed to (?:create pipe|fork)",
        hint="fewer jobs need less memory: --jobs 1",
        retry=True,
    ),
    FailureClass(
        kind="compiler-crashed",
        pattern=r"internal compiler error|(?:cicc|ptxas|cudafe\+\+).? died due to signal"
        r"|PLEASE submit a bug report",
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
        kind="generator-missing",
        pattern=r"vulkan-shaders-gen\S*: (?:command )?not found"
        r"|vulkan-shaders-gen.*missing and no known rule",
        hint="the shader generator must be built for this machine: in a cross build set "
        "GGML_VULKAN_SHADERS_GEN_TOOLCHAIN to a toolchain file of the machine's own compiler",
    ),
    FailureClass(
        kind="host-compiler",
        pattern=r"unsupported GNU version|unsupported Microsoft Visual Studio version"
        r"|unsupported clang version|nvcc fatal\s*: Cannot find compiler|__Float32x4_t",
        hint="the toolkit does not accept this host compiler: --compiler FILE names another",
    ),
    FailureClass(
        kind="gpu-arch",
        pattern=r"Unsupported gpu architecture",
        hint="the toolkit cannot make code for this architecture: choose another toolkit or arch",
    ),
    FailureClass(
        kind="cuda-toolkit",
        pattern=r"Could not find nvcc|CUDA Toolkit not found|Failed to find nvcc"
        r"|Could NOT find CUDAToolkit|No CMAKE_CUDA_COMPILER could be found",
        hint="the toolkit is not whole: `llamawright doctor` says what it lacks; "
        "--cuda-toolkit provided brings one",
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
    FailureClass(
        kind="header-missing",
        pattern=r"fatal error: \S+: No such file or directory|Cannot open include file"
        r"|fatal error: '\S+' file not found",
        hint="a header is missing: install the development package it belongs to (Debian: "
        "`apt-file search NAME`), or choose a provided toolchain",
    ),
)
STALL = FailureClass(
    kind="stall",
    pattern=r"(?!)",
    hint="no output and no CPU time for minutes: a compiler or shader child hung; "
    "run again with --jobs 1, and look for antivirus or a full process table",
    retry=True,
)
KILLED = FailureClass(
    kind="killed",
    pattern=r"(?!)",
    hint="another process or the system's memory guard ended the build: --jobs 1 needs less",
    retry=True,
)
TOO_LONG = FailureClass(
    kind="time-limit",
    pattern=r"(?!)",
    hint="what is compiled is kept: run the same command again to go on",
)
FLOOD = FailureClass(
    kind="output-flood",
    pattern=r"(?!)",
    hint="a tool printed without end: the log's last lines name it",
)
OTHER = FailureClass(
    kind="compile-failed",
    pattern=r"",
    hint="the log's first `error:` line names the cause",
)


STATUS_LINE = re.compile(r"^\[\d+/\d+\] ")
FAILED_LINE = re.compile(r"^FAILED: ")
READ_BYTES = 4 << 20


def classify(log: str) -> FailureClass:
    """Return the first class whose text is in what failed, else ``compile-failed``."""
    part = "\n".join(failing_part(log.splitlines()))
    return next((c for c in CLASSES if re.search(c.pattern, part, re.MULTILINE)), OTHER)


def failing_part(lines: Sequence[str]) -> tuple[str, ...]:
    """Return what ninja printed for the steps that failed; all of it when it named none.

    Steps that succeeded beside them may have printed thousands of warnings, with any words.
    """
    part: list[str] = []
    inside = False
    for line in lines:
        if FAILED_LINE.match(line):
            inside = True
        elif STATUS_LINE.match(line):
            inside = False
        if inside:
            part.append(line)
    return tuple(part) or tuple(lines)


def first_error(log: str, count: int = 8) -> tuple[str, ...]:
    """Return the lines around the first error of what failed: what a reader wants to see."""
    lines = failing_part(log.splitlines())
    at = next((i for i, t in enumerate(lines) if re.search(r"\berror\b", t, re.IGNORECASE)), None)
    if at is None:
        return lines[-count:]
    start = max(0, at - 1)
    head = lines[:1] if start > 0 and FAILED_LINE.match(lines[0]) else ()
    return (*head, *lines[start : start + count])


def last_part(path: Path) -> str:
    """Return the end of a log file: a failure stands in its last few megabytes."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - READ_BYTES))
        return stream.read().decode(errors="replace")
