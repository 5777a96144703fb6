"""What upstream's programs print, as versioned data: one table per change of wording."""

from __future__ import annotations

import re
from dataclasses import dataclass
from re import Pattern

from llamawright.verify.patterns_cuda import CUDA_FAILURES


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternSet:
    """How one range of upstream builds words its log.

    ``version`` goes into the verdict. ``since_build`` is the first upstream build number
    that prints these words, as far as it was tried.
    """

    version: int
    since_build: int
    prefix: Pattern[str]
    listed: Pattern[str]
    none_listed: Pattern[str]
    backend_loaded: Pattern[str]
    load_begins: Pattern[str]
    using: Pattern[str]
    assigned: Pattern[str]
    offloaded: Pattern[str]
    weights: Pattern[str]
    no_gpu: Pattern[str]
    cpu_type: Pattern[str]
    compute_begins: Pattern[str]
    token: Pattern[str]
    chunk_pass: Pattern[str]
    chunk: Pattern[str]
    closing: Pattern[str]
    cuda_found: Pattern[str]
    cuda_card: Pattern[str]
    cuda_failed: Pattern[str]


# Read from real runs of build 11312 (commit 0c1e57098) at verbosity 5; the fixtures in
# tests/golden/verify are their output. Version 2 reads CUDA's lines too, by the words of
# ggml-cuda.cu of the same commit, version 3 the closing line.
BUILD_11312 = PatternSet(
    version=3,
    since_build=0,
    # minutes.seconds.milliseconds.microseconds, then one letter for the level
    prefix=re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} [A-Z] "),
    listed=re.compile(
        r"^\s+(?P<id>[A-Za-z]+\d+): (?P<name>.+) \((?P<mib>\d+) MiB, \d+ MiB free\)$"
    ),
    none_listed=re.compile(r"^\s+\(none\)$"),
    backend_loaded=re.compile(r"load_backend: loaded (?P<name>\S+) backend from (?P<path>.+)$"),
    load_begins=re.compile(r"llama_model_loader: loaded meta data"),
    using=re.compile(
        r"using device (?P<id>\S+) \((?P<name>.+)\) \((?P<pci>[^()]*)\) - \d+ MiB free"
    ),
    assigned=re.compile(r"load_tensors: layer +\d+ assigned to device (?P<id>[^\s,]+)"),
    offloaded=re.compile(r"offloaded (?P<done>\d+)/(?P<all>\d+) layers to GPU"),
    weights=re.compile(
        r"load_tensors: +(?P<buffer>\S+) model buffer size = +(?P<mib>\d+\.\d+) MiB"
    ),
    no_gpu=re.compile(r"no usable GPU found"),
    cpu_type=re.compile(r"Warning: Device type is CPU"),
    compute_begins=re.compile(
        r"^generate: n_ctx = |: computing over \d+ chunks|calculating perplexity over \d+ chunks"
    ),
    token=re.compile(r"^n_remain: (?P<left>-?\d+)"),
    # The words before it ("seconds per pass") wait for their line's end; these do not.
    chunk_pass=re.compile(r"^(\d+ hours )?\d+\.\d+ minutes$"),
    chunk=re.compile(
        r"^ *(?P<chunk>\d+) +(?P<ppl>\S+) ± +\S+ +(?P<ratio>\S+) ± +\S+ "
        r"+(?P<kld>\S+) ± +\S+ +(?P<dp>\S+) ± +\S+ % +(?P<top>\S+) ± +\S+ %$"
    ),
    # The last line of llama-completion and llama-perplexity, through the same queue as the text.
    closing=re.compile(r"(common_perf_print|llama_perf_context_print): +graphs reused = "),
    cuda_found=re.compile(r"ggml_cuda_init: found (?P<count>\d+) CUDA devices"),
    cuda_card=re.compile(
        r"Device (?P<index>\d{1,3}): (?P<name>.+), "
        r"compute capability (?P<major>\d{1,2})\.(?P<minor>\d)"
    ),
    cuda_failed=re.compile(r"failed to initialize CUDA: (?P<why>.+)$"),
)

PATTERN_SETS = (BUILD_11312,)


def patterns_for(build_number: int) -> PatternSet:
    """Return the newest table that an upstream build is known to follow."""
    fitting = [p for p in PATTERN_SETS if p.since_build <= build_number]
    return max(fitting or PATTERN_SETS, key=lambda p: p.since_build)


# Names of devices that are a CPU in disguise, or that compute for nobody but a compiler test.
SOFTWARE_NAMES = re.compile(
    r"llvmpipe|lavapipe|softpipe|swiftshader|basic render|\bWARP\b|swrast|paravirtual",
    re.IGNORECASE,
)
# VkDriverId of Mesa's llvmpipe, of SwiftShader; VK_PHYSICAL_DEVICE_TYPE_CPU.
SOFTWARE_DRIVER_IDS = frozenset({10, 13})
CPU_DEVICE_TYPE = 4

# Libraries that do a driver's work, by the name of the file that is mapped.
DRIVER_LIBRARIES = re.compile(
    r"^(libvulkan_\w+\.so|libGLX_nvidia\.so|libEGL_nvidia\.so|libnvidia-(vulkan|gl|eglcore)\S*\.so"
    r"|amdvlk(32|64)\.so|libcuda\.so|libvk_swiftshader\.so|vulkan_dzn)"
)
# What such renderers call the threads that compute. A loader that only looks at a driver starts
# none of them: seen with Mesa 22.3.6, whose llvmpipe starts them with the first device.
SOFTWARE_THREADS = re.compile(r"^(llvmpipe|lavapipe|lp_cs|swiftshader)", re.IGNORECASE)
SOFTWARE_LIBRARIES = re.compile(r"^(libvulkan_lvp\.so|libvk_swiftshader\.so)")

# What a run that failed says about the reason, tried in this order: class, pattern.
FAILURES = (
    ("device-lost", re.compile(r"ErrorDeviceLost|VK_ERROR_DEVICE_LOST|device lost", re.IGNORECASE)),
    *((f.kind, f.pattern) for f in CUDA_FAILURES),
    ("out-of-device-memory", re.compile(r"ErrorOutOfDeviceMemory")),
    ("driver-too-old", re.compile(r"Vulkan 1\.2 required")),
    (
        "library-missing",
        re.compile(r"error while loading shared libraries|GLIBC\w*_[\d.]+' not found"),
    ),
    ("invalid-device", re.compile(r"invalid device: ")),
    ("model-refused", re.compile(r"failed to load model|error loading model|unable to load model")),
)
