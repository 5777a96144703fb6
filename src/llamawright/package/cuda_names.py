"""What the names of CUDA's libraries say: runtime or driver, and of which CUDA. Pure."""

from __future__ import annotations

import re

_RUNTIME = re.compile(
    r"lib(?:cudart|cublas|cublaslt)\.so(?:\.(?P<elf>\d+))?[.\d]*"
    r"|(?:cudart|cublas|cublaslt)64_(?P<pe>\d+)\.dll",
    re.IGNORECASE,
)
# Each machine has its own, from its own driver; another's does not work and may not be
# given away (cases P3: a wheel with 71 MB of libcuda inside).
_DRIVER = re.compile(
    r"lib(?:cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[\w-]+|GLX_nvidia|EGL_nvidia)\.so[.\d]*"
    r"|(?:nvcuda(?:64)?|nvcudadebugger|nvml|nvcuvid|nvapi(?:64)?|nvoptix|nvoglv\d+)\.(?:dll|lib)",
    re.IGNORECASE,
)
# cudart64_110.dll is of CUDA 11: up to there Windows' names have the minor version too.
_WITH_MINOR = 100


def is_driver_library(name: str) -> bool:
    """Whether a file name is one of the driver's own libraries."""
    return _DRIVER.fullmatch(name) is not None


def is_runtime_library(name: str) -> bool:
    """Whether a file name is cudart's, cuBLAS's or cuBLASLt's."""
    return _RUNTIME.fullmatch(name) is not None


def runtime_major(name: str) -> str:
    """Return the CUDA major version in a runtime library's name, empty where none is."""
    found = _RUNTIME.fullmatch(name)
    digits = (found["elf"] or found["pe"] or "") if found else ""
    return digits[:2] if digits.isdecimal() and int(digits) >= _WITH_MINOR else digits
