"""The whole machine at once: every probe runs beside the others, the order stays the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from llamawright import process
from llamawright.detect import build_tools, compilers, cuda, host, msvc, vulkan
from llamawright.detect.candidates import Candidate, Sighting, absent, programs
from llamawright.detect.gpus import see_gpus
from llamawright.detect.provided import provided_sets
from llamawright.detect.surroundings import Surroundings, own_surroundings
from llamawright.model.cuda import Gpus
from llamawright.model.inventory import Available, Found, Inventory, Rejected, Role
from llamawright.model.platform import Backend
from llamawright.model.request import Request
from llamawright.model.toolchain import Toolchains
from llamawright.store import disk_guard

# Probes wait for other programs; more of them at once than cores costs nothing.
WORKERS = 8
Probe = Callable[[], tuple[Sighting, ...]]
NAMES = {Role.CXX: "compiler", Role.CMAKE: "cmake", Role.NINJA: "ninja", Role.GIT: "git"}


def take_inventory(
    request: Request,
    toolchains: Toolchains,
    *,
    store_tools: Path,
    env: Mapping[str, str],
    everything: bool = False,
) -> Inventory:
    """Return what this machine has for the request, every candidate found or rejected.

    ``store_tools`` is the store's shelf of provided sets; ``env`` is the caller's whole
    environment. ``everything`` looks for the tools of all backends, as doctor does. Nothing
    is written but short-lived files in the temporary folder.
    """
    around = own_surroundings(request.platform, toolchains, env)
    return survey(request, around, store_tools=store_tools, everything=everything)


def survey(
    request: Request, around: Surroundings, *, store_tools: Path, everything: bool = False
) -> Inventory:
    """Return the inventory of given surroundings."""
    sets = tuple(provided_sets(around, store_tools))
    backends = set(Backend) if everything else {request.backend}
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="cards") as aside:
        cards = aside.submit(_cards, around) if Backend.CUDA in backends else None
        sightings = _run(list(_probes(request, around, backends)))
        gpus = cards.result() if cards else Gpus()
    seen = {s.role for s in sightings}
    missing = [absent(r, n, around) for r, n in NAMES.items() if r not in seen]
    sized = host.measure()
    return Inventory(
        platform=around.platform,
        cores=sized.cores,
        memory=sized.memory,
        memory_free=sized.memory_free,
        found=tuple(s for s in sightings if isinstance(s, Found)),
        rejected=(
            *(s for s in sightings if isinstance(s, Rejected)),
            *missing,
            *(s for s in sets if isinstance(s, Rejected)),
        ),
        available=tuple(s for s in sets if isinstance(s, Available)),
        systems=around.systems,
        libc=around.libc,
        cpu=host.processor(),
        gpus=gpus,
    )


def _cards(around: Surroundings) -> Gpus:
    return see_gpus(around.env, nvml=around.nvml, root=around.root, limit_s=around.short_s)


def _probes(request: Request, around: Surroundings, backends: set[Backend]) -> Iterator[Probe]:
    """Yield one probe per candidate, the slow compilers first."""
    for item in compilers.candidates(request.compiler, around):
        yield partial(_compiler, item, around)
    rule = request.recipe.rule(Backend.VULKAN)
    if Backend.CUDA in backends:
        yield partial(cuda.survey, around)
    if Backend.VULKAN in backends and rule is not None:
        for root in vulkan.roots(around):
            yield partial(vulkan.survey, root, rule, around)
    wanted = (
        (Role.CMAKE, "cmake", request.cmake),
        (Role.NINJA, "ninja", request.ninja),
        (Role.CACHE, "ccache", "auto"),
        (Role.CACHE, "sccache", "auto"),
        (Role.GIT, "git", "auto"),
    )
    for role, name, named in wanted:
        for candidate in programs(role, name, named, around):
            yield partial(_tool, candidate, around)
    yield partial(msvc.survey, around)


def _compiler(item: Candidate | Rejected, around: Surroundings) -> tuple[Sighting, ...]:
    return (item if isinstance(item, Rejected) else compilers.prove(item, around),)


def _tool(candidate: Candidate, around: Surroundings) -> tuple[Sighting, ...]:
    return (build_tools.prove(candidate, around),)


def _run(probes: list[Probe]) -> tuple[Sighting, ...]:
    """Run all probes side by side; when one fails or the user stops, none stays behind."""
    pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="probe")
    try:
        with disk_guard(Path(tempfile.gettempdir())):
            results = [s for found in pool.map(lambda p: p(), probes) for s in found]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        process.kill_all()
        raise
    pool.shutdown()
    return tuple(results)
