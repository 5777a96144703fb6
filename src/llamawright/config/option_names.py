"""CMake option names that llama.cpp no longer knows, and what each is called today.

Upstream's own reaction differs: ``LLAMA_CUBLAS`` is fatal, ``LLAMA_CUDA`` and
``LLAMA_METAL`` warn and map, ``LLAMA_CURL`` is ignored and ``LLAMA_VULKAN`` is not known at
all, which gives a CPU-only build with exit status 0 (ggml-org/llama.cpp#10201, #8155).
Here all of them are refused before anything is built.
"""

from __future__ import annotations

import re

from llamawright.config.document import Place

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
BACKENDS = (
    "BLAS", "CANN", "CUDA", "HEXAGON", "HIP", "METAL", "MUSA", "OPENCL", "OPENVINO", "RPC",
    "SYCL", "VULKAN", "WEBGPU", "ZDNN",
)  # fmt: skip
MOVED = (
    "ACCELERATE", "AVX", "AVX2", "AVX512", "BLAS_VENDOR", "CCACHE", "CPU_ALL_VARIANTS",
    "CPU_HBM", "CUDA_F16", "CUDA_FORCE_CUBLAS", "CUDA_FORCE_MMQ", "CUDA_NO_VMM", "F16C", "FMA",
    "LLAMAFILE", "LTO", "METAL_EMBED_LIBRARY", "METAL_NDEBUG", "NATIVE", "OPENMP", "STATIC",
    "SYCL_F16", "VULKAN_CHECK_RESULTS", "VULKAN_DEBUG", "VULKAN_MEMORY_DEBUG", "VULKAN_VALIDATE",
)  # fmt: skip
RENAMED = {
    **{f"LLAMA_{name}": f"GGML_{name}" for name in (*BACKENDS, *MOVED)},
    "LLAMA_CUBLAS": "GGML_CUDA",
    "LLAMA_CLBLAST": "GGML_OPENCL",
    "LLAMA_HIPBLAS": "GGML_HIP",
    "LLAMA_KOMPUTE": "GGML_VULKAN",
    "LLAMA_OPENBLAS": "GGML_BLAS",
    "GGML_CUBLAS": "GGML_CUDA",
    "GGML_CLBLAST": "GGML_OPENCL",
    "GGML_HIPBLAS": "GGML_HIP",
    "GGML_KOMPUTE": "GGML_VULKAN",
    "LLAMA_BUILD_WEBUI": "LLAMA_BUILD_UI",
    "LLAMA_USE_PREBUILT_WEBUI": "LLAMA_USE_PREBUILT_UI",
    "LLAMA_SERVER_SSL": "LLAMA_OPENSSL",
    "GGML_SHADERS_GEN_TOOLCHAIN": "GGML_VULKAN_SHADERS_GEN_TOOLCHAIN",
    "VULKAN_INCLUDE_DIRS": "Vulkan_INCLUDE_DIR",
    "VULKAN_INCLUDE_DIR": "Vulkan_INCLUDE_DIR",
    "VULKAN_LIBRARIES": "Vulkan_LIBRARY",
    "VULKAN_LIBRARY": "Vulkan_LIBRARY",
}
DROPPED = {
    "LLAMA_CURL": "downloads inside llama.cpp go through its own HTTP client now: leave it out",
    "LLAMA_HTTPLIB": "the HTTP client is always built in now: leave it out",
}


def check_option_name(name: str, place: Place) -> None:
    """Refuse a name that CMake would ignore, or that could change the command line."""
    if not NAME.fullmatch(name):
        raise place.refuse(
            f"{name!r} is no name of a CMake option",
            hint="letters, digits and _ only; the value goes behind the =",
            kind="bad-value",
        )
    if name in DROPPED:
        raise place.refuse(
            f"{name} is an option that llama.cpp has dropped",
            why="CMake ignores it and ends with status 0",
            hint=DROPPED[name],
            kind="renamed-option",
        )
    if name in RENAMED:
        raise place.refuse(
            f"{name} is not an option of this llama.cpp",
            why="CMake ignores unknown names and ends with status 0: the result would be a build "
            "without what was asked for",
            hint=f"it is called {RENAMED[name]} today",
            kind="renamed-option",
        )
