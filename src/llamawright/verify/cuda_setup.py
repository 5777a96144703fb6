"""What a CUDA artifact needs before its first run: cards, device code, libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.model.artifact import Manifest
from llamawright.model.cuda import Companion, CudaFacts
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import State
from llamawright.verify.choose import Candidate
from llamawright.verify.cuda_cards import look_cuda
from llamawright.verify.cuda_gate import Access, access, gate, preferred
from llamawright.verify.cuda_runtime import (
    Runtime,
    check_companion,
    provide_runtime,
    runtime_ruling,
)
from llamawright.verify.install import Install
from llamawright.verify.judge import CANNOT, Ruling, hint_of, rule_failure
from llamawright.verify.logs import failure_reason
from llamawright.verify.patterns_cuda import (
    CUDA_FAILURES,
    CUDA_VARIABLES,
    DRIVER_LIBRARY,
    RUNTIME_LIBRARY,
)
from llamawright.verify.witness import Sighting

# A whole module of PTX: minutes on one core, as nvcc's own compilation of it.
JIT_S = 900.0
CACHE_BYTES = 2 << 30
NO_DRIVER = "install the NVIDIA driver (llamawright doctor names it), then run verify"
NOT_LISTED = (
    "the module loads and shows no card: the report's device list holds its log; try another "
    "driver, or the Vulkan artifact"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaScene:
    """What is known of the cards and of the artifact's code; ``folder`` is the artifact's own."""

    facts: CudaFacts | None
    sighting: Sighting
    env: Mapping[str, str]
    folder: Path
    runtime: Runtime | None = None

    @property
    def companion(self) -> Companion | None:
        """Return the archive with the libraries that the artifact names."""
        return self.facts.companion if self.facts else None

    def refusal(self, selector: str | None) -> Ruling | None:
        """Return why no card that is meant can run the artifact."""
        return gate(self.facts, self.sighting, selector, self.env) if self.facts else None

    def ordered(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Put the cards first whose own machine code the artifact has."""
        if self.facts is None:
            return candidates
        return preferred(self.facts, candidates, self.sighting.driver, self.env)

    def access(self, candidate: Candidate) -> Access | Ruling:
        """Return the code that the driver takes for the chosen card."""
        if self.facts is None or candidate.witness is None:
            return Access(card=candidate.device.name, capability=0)
        return access(self.facts, candidate.witness, self.sighting.driver, self.env)

    @property
    def may_jit(self) -> bool:
        """Whether the driver may have to compile before it even lists: PTX is all that fits."""
        if self.facts is None:
            return False
        driver = self.sighting.driver
        found = [access(self.facts, c, driver, self.env) for c in self.sighting.devices]
        return any(isinstance(a, Access) and a.jit for a in found)


def make_cuda(
    request: VerifyRequest, manifest: Manifest, install: Install, env: Mapping[str, str]
) -> CudaScene | Ruling:
    """Look at the cards, the code and the libraries, in this order; unpack the companion.

    Nothing of the artifact runs. A machine without a card is no ruling here: only the
    artifact's own list, which comes next, says that it finds none either.
    """
    seconds, folder = request.verification.probe_s, request.artifact.absolute().parent
    companion = manifest.cuda.companion if manifest.cuda else None
    foreign = check_companion(companion, folder)
    if foreign is not None:
        return foreign
    scene = CudaScene(
        facts=manifest.cuda,
        sighting=look_cuda(env, seconds=seconds),
        env=env,
        folder=folder,
    )
    refused = scene.refusal(request.device)
    # A driver that nobody can ask may still work: then the runs tell.
    if refused is not None or scene.sighting.problem not in ("", "no-witness"):
        return refused or scene
    runtime = provide_runtime(companion, install, manifest, folder=folder, env=env, seconds=seconds)
    return runtime if isinstance(runtime, Ruling) else replace(scene, runtime=runtime)


def run_variables(room: Path) -> dict[str, str]:
    """Return the variables of every run of a CUDA artifact.

    CUDA counts cards by speed, NVIDIA's tools by PCI place: the runs are made to count as
    the tools do. What the driver compiles goes into a cache of this proof alone.
    """
    kept = {k: os.environ[k] for k in CUDA_VARIABLES if k in os.environ}
    return {
        **kept,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_CACHE_PATH": str(room / "cuda-cache"),
        "CUDA_CACHE_MAXSIZE": str(CACHE_BYTES),
    }


def set_variables() -> tuple[str, ...]:
    """Return the user's own variables of CUDA, as ``NAME=value``."""
    return tuple(f"{k}={os.environ[k]}" for k in CUDA_VARIABLES if k in os.environ)


def not_listed(
    scene: CudaScene, lines: tuple[str, ...], *, module: str, loaded: bool, reason: str
) -> Ruling:
    """Return the verdict of an artifact that lists none of the cards that are there.

    ``lines`` is the log of its device list, ``reason`` what the loader says of the module.
    """
    told = failure_reason(lines)
    if told is not None and told[0] in {f.kind for f in CUDA_FAILURES}:
        return rule_failure(told[0], f"device list: {told[1]}", of_reference=False)
    names = ", ".join(w.name for w in scene.sighting.devices)
    if loaded:
        why = f"NVIDIA's driver shows {names}, the artifact lists none of it"
        return Ruling(state=State.FAILED, failure="device-not-listed", why=why, hint=NOT_LISTED)
    library = RUNTIME_LIBRARY.search(reason)
    if library is not None:
        return runtime_ruling(library["name"], reason, scene.companion, scene.folder)
    why = f"NVIDIA's driver shows {names}, but {module} was not loaded: {reason}"
    if DRIVER_LIBRARY.search(reason):
        return rule_failure("driver-library-missing", why, of_reference=False)
    kind = "module-not-loaded"
    return Ruling(state=State.FAILED, failure=kind, why=why, hint=hint_of(kind))


def nothing_seen(sighting: Sighting, lines: tuple[str, ...]) -> Ruling:
    """Return the verdict of a machine that shows no card: absent, hidden, unknown or broken.

    Where nobody could be asked, the log of the artifact's device list may tell what is wrong.
    """
    told = failure_reason(lines) if sighting.problem == "no-witness" else None
    if told is not None and told[0] in CANNOT:
        return rule_failure(told[0], f"device list: {told[1]}", of_reference=False)
    if sighting.problem == "driver-broken":
        return Ruling(
            state=State.CANNOT_VERIFY,
            failure="driver-broken",
            why=sighting.told,
            hint=sighting.cure or hint_of("driver-broken"),
        )
    return Ruling(
        state=State.UNVERIFIED,
        failure="no-device",
        why=sighting.told or "the artifact lists no cuda device",
        hint=sighting.cure or NO_DRIVER,
    )
