"""How many compile jobs a machine can bear."""

from __future__ import annotations

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
    free = inventory.memory_free or int(inventory.memory * SHARE)
    return max(1, min(inventory.cores, free // JOB_BYTES))
