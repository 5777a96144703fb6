"""How many compile jobs a machine can bear."""

from __future__ import annotations

from llamawright.model.cuda import CudaPlan
from llamawright.model.inventory import Inventory
from llamawright.model.request import Request

# Measured with gcc 12.2 at -O3: the largest unit, ggml-vulkan.cpp, peaks at 1,155 MiB. A
# shader step runs up to 16 glslc beside each other, about 40 to 90 MiB each, so it fits too.
JOB_BYTES = 3 << 29
# Of a total whose free part is unknown: the rest is the system's own.
SHARE = 0.8


def choose_jobs(request: Request, inventory: Inventory) -> int:
    """Return the number of jobs: what was asked for, else one per core that memory can feed."""
    if request.jobs is not None:
        return request.jobs
    return max(1, min(inventory.cores, _free(inventory) // JOB_BYTES))


def nvcc_threads(cuda: CudaPlan, jobs: int, inventory: Inventory) -> tuple[tuple[str, str], ...]:
    """Return nvcc's own variable for compiling several codes of one source at a time.

    It shortens the end of a build, when fewer sources than cores are left. Each thread is a
    compiler of its own, so memory and twice the cores are the limits. It is no part of a
    key: what comes out is the same.
    """
    room = min(_free(inventory) // JOB_BYTES, 2 * inventory.cores)
    threads = max(1, min(len(cuda.codes), room // jobs))
    return (("NVCC_APPEND_FLAGS", f"--threads {threads}"),) if threads > 1 else ()


def _free(inventory: Inventory) -> int:
    return inventory.memory_free or int(inventory.memory * SHARE)
