"""What CUDA's driver and runtime say when a run fails, as data: class, words, state, cure.

The words are those of ``cudaGetErrorString`` and of ggml's CUDA module; tried in this order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from re import Pattern

# CUDA's runtime libraries by the name that a module imports or a loader misses.
RUNTIME_LIBRARY = re.compile(
    r"(?P<name>lib(cudart|cublas|cublasLt)\.so\.\d[\d.]*|(cudart64|cublas64|cublasLt64)_\d+\.dll)",
    re.IGNORECASE,
)
DRIVER_LIBRARY = re.compile(r"libcuda\.so|nvcuda\.dll", re.IGNORECASE)
# The same by the names of mapped files; the compiler is what turns PTX into machine code.
DRIVER_MAPPED = re.compile(r"^(libcuda\.so|nvcuda)", re.IGNORECASE)
RUNTIME_MAPPED = re.compile(r"^(lib)?(cudart|cublas|cublasLt)(64_\d+)?\.(so|dll)", re.IGNORECASE)
JIT_MAPPED = re.compile(r"^(libnvidia-ptxjitcompiler\.so|nvptxJITCompiler)", re.IGNORECASE)

# What a kernel prints that finds itself on a card it was not compiled for, before it traps.
KERNEL_PRINTS = re.compile(r"ERROR: CUDA kernel \S+ has no device code compatible")

# Where toolkits put their libraries without telling the loader.
TOOLKIT_FOLDERS = (
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/targets/*/lib",
    "/opt/cuda/lib64",
    "/opt/cuda/targets/*/lib",
)

# The least driver of each major version of CUDA, and its last minor version
# (NVIDIA, "CUDA Compatibility", minor version compatibility).
TOOLKITS = ((580, "13.0"), (525, "12.9"), (450, "11.8"))

# The user's own variables that change what CUDA does; they reach the programs when set.
CUDA_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "LD_LIBRARY_PATH",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """A class of failure. ``machine``: the machine is to blame, so nothing is proved."""

    kind: str
    pattern: Pattern[str]
    cure: str
    machine: bool = False


CUDA_FAILURES = (
    RunFailure(
        kind="gpu-lost",
        pattern=re.compile(r"NVRM: Xid|GPU is lost|fallen off the bus"),
        cure="the card stopped answering: dmesg (look for Xid) names the reason; check power and "
        "heat, restart the machine, then try another driver or the Vulkan artifact",
    ),
    RunFailure(
        kind="gpu-memory-error",
        pattern=re.compile(r"uncorrectable (ECC|NVLink) error"),
        cure="the card's memory is at fault: nvidia-smi -q -d ECC shows the count; restart, and "
        "have the card exchanged if it comes back",
        machine=True,
    ),
    RunFailure(
        kind="no-device-code",
        pattern=KERNEL_PRINTS,
        cure="the module was compiled for other cards than this one: build with --arch native",
    ),
    RunFailure(
        kind="no-kernel-image",
        pattern=re.compile(r"no kernel image is available"),
        cure="the artifact holds no code for this card: build for it with --arch native, or "
        "--arch sm_NN with its compute capability",
    ),
    RunFailure(
        kind="invalid-kernel-image",
        pattern=re.compile(r"device kernel image is invalid"),
        cure="the driver cannot read this toolkit's code: update the driver, or build with an "
        "older toolkit (--cuda-toolkit) and machine code for this card (--arch native)",
        machine=True,
    ),
    RunFailure(
        kind="driver-too-old-for-ptx",
        pattern=re.compile(r"PTX was compiled with an unsupported toolchain"),
        cure="the driver is older than the toolkit that made the PTX: update the driver, or build "
        "machine code for this card (--arch native)",
        machine=True,
    ),
    RunFailure(
        kind="jit-unavailable",
        pattern=re.compile(r"PTX JIT compil\w+ (library was not found|was disabled|failed)"),
        cure="the driver could not compile the PTX: install libnvidia-ptxjitcompiler of the "
        "driver's version, unset CUDA_DISABLE_PTX_JIT, or build machine code for this card "
        "(--arch native)",
        machine=True,
    ),
    RunFailure(
        kind="driver-too-old",
        pattern=re.compile(r"driver version is insufficient"),
        cure="update the device's driver",
        machine=True,
    ),
    RunFailure(
        kind="driver-mismatch",
        pattern=re.compile(
            r"unsupported display driver / cuda driver combination|Driver/library version mismatch"
        ),
        cure="the driver's parts are of two versions, as after an update: restart the machine "
        "(in a container: restart that)",
        machine=True,
    ),
    RunFailure(
        kind="compat-unsupported",
        pattern=re.compile(r"forward compatibility was attempted on non supported HW"),
        cure="take the cuda-compat package (its libcuda.so) away: it serves data centre cards "
        "only; or update the driver itself",
        machine=True,
    ),
    RunFailure(
        kind="driver-stub",
        pattern=re.compile(r"CUDA driver is a stub library"),
        cure="the toolkit's stubs folder is on LD_LIBRARY_PATH: take it off",
        machine=True,
    ),
    RunFailure(
        kind="device-busy",
        pattern=re.compile(
            r"CUDA-capable device\(s\) is/are busy or unavailable"
            r"|CUDA-capable devices are busy or unavailable|exclusive-thread|MPS server"
        ),
        cure="another program holds the card alone, or MIG has no instance: nvidia-smi shows it; "
        "end that program, or nvidia-smi -c 0, or nvidia-smi mig -cgi",
        machine=True,
    ),
    RunFailure(
        kind="device-hidden",
        pattern=re.compile(r"no CUDA-capable device is detected"),
        cure="CUDA sees no card though NVIDIA's tool does: check CUDA_VISIBLE_DEVICES, the rights "
        "of /dev/nvidia* and MIG (nvidia-smi -L)",
        machine=True,
    ),
    RunFailure(
        kind="driver-not-ready",
        pattern=re.compile(
            r"failed to initialize CUDA: (unknown error|initialization error|system not yet "
            r"initialized|OS call failed)|CUDA error: (initialization error|system not yet init)"
        ),
        cure="CUDA does not start: load the kernel module nvidia-uvm (nvidia-modprobe -u), on "
        "machines with NVSwitch start nvidia-fabricmanager, then restart the machine",
        machine=True,
    ),
    RunFailure(
        kind="runtime-missing",
        pattern=re.compile(rf"{RUNTIME_LIBRARY.pattern}: cannot open shared object", re.IGNORECASE),
        cure="put the artifact's companion archive with CUDA's libraries beside it, or install "
        "the CUDA runtime and cuBLAS of the same major version",
        machine=True,
    ),
    RunFailure(
        kind="driver-library-missing",
        pattern=re.compile(r"libcuda\.so\.1: cannot open shared object"),
        cure="the driver's CUDA library is missing: install the driver's compute part (Debian: "
        "libcuda1), or start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        machine=True,
    ),
    RunFailure(
        kind="out-of-device-memory",
        pattern=re.compile(
            r"cudaMalloc failed|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
            r"|(unable|failed) to allocate CUDA\d+ buffer"
        ),
        cure="the device is too full or too small: free its memory",
        machine=True,
    ),
    RunFailure(
        kind="illegal-memory-access",
        pattern=re.compile(r"an illegal memory access was encountered|misaligned address"),
        cure="a kernel reads or writes where it must not: update the driver, build with another "
        "toolkit, or use the Vulkan artifact; CUDA_LAUNCH_BLOCKING=1 names the kernel",
    ),
    RunFailure(
        kind="launch-timed-out",
        pattern=re.compile(r"the launch timed out and was terminated"),
        cure="the card also drives a screen and a kernel took too long: use a smaller -ub",
    ),
    RunFailure(
        kind="launch-failed",
        pattern=re.compile(r"unspecified launch failure|an illegal instruction was encountered"),
        cure="a kernel crashed on the card: update the driver, build with another toolkit, or "
        "use the Vulkan artifact; CUDA_LAUNCH_BLOCKING=1 names the kernel, dmesg a Xid",
    ),
    RunFailure(
        kind="mixed-toolkits",
        pattern=re.compile(r"CUDA error: (invalid argument|invalid resource handle)"),
        cure="headers and libraries of two CUDA versions may be mixed: take other toolkits off "
        "PATH and LD_LIBRARY_PATH, put the companion archive beside the artifact, or build "
        "with --arch native",
    ),
)
