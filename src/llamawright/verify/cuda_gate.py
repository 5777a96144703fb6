"""Whether a CUDA artifact's device code can run on a card, before anything runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llamawright.model.cuda import CudaFacts, GpuCode, best_code, dotted, older, parse_code
from llamawright.model.verdict import State
from llamawright.verify.choose import Candidate
from llamawright.verify.judge import Ruling
from llamawright.verify.nvidia import normal_pci
from llamawright.verify.patterns_cuda import TOOLKITS
from llamawright.verify.witness import Sighting, Witness

FORCE, FORBID = "CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"
PREFIX = "CUDA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The piece of device code that the driver takes for a card.

    ``code`` is ``None`` where the card's capability or the artifact's codes are not known.
    ``variable`` is the user's variable that decided it, if any.
    """

    card: str
    capability: int
    code: GpuCode | None = None
    variable: str = ""

    @property
    def jit(self) -> bool:
        """Whether the driver compiles the code first."""
        return self.code is not None and self.code.ptx

    @property
    def told(self) -> str:
        """Return what a verdict must say of PTX: it proves nothing for the card it names."""
        if self.code is None or not self.code.ptx:
            return ""
        forced = f" ({self.variable})" if self.variable else ""
        return (
            f"by JIT of {self.code.name} PTX on {self.card} ({dotted(self.capability)}){forced}: "
            f"no proof for sm_{self.code.number} hardware"
        )


def gate(
    facts: CudaFacts, sighting: Sighting, selector: str | None, env: Mapping[str, str]
) -> Ruling | None:
    """Return why no card that is meant can run the artifact; ``None`` when one may.

    ``env`` is that of the runs. Without a selector one card that fits is enough.
    """
    found = [access(facts, card, sighting.driver, env) for card in meant(sighting, selector)]
    refused = [f for f in found if isinstance(f, Ruling)]
    return refused[0] if refused and len(refused) == len(found) else None


def meant(sighting: Sighting, selector: str | None) -> tuple[Witness, ...]:
    """Return the cards that a selector may mean: CUDA's number, name, PCI place or UUID."""
    cards = sighting.devices
    if selector is None:
        return cards
    wanted = selector.strip().casefold()
    exact = (
        [c for c in cards if f"{PREFIX}{c.index}".casefold() == wanted],
        [c for c in cards if c.pci and c.pci == normal_pci(selector)],
        [c for c in cards if wanted.startswith("gpu-") and c.uuid.casefold().startswith(wanted)],
        [c for c in cards if c.name.casefold() == wanted],
        [c for c in cards if wanted and wanted in c.name.casefold()],
    )
    return tuple(next((hits for hits in exact if hits), []))


def access(facts: CudaFacts, card: Witness, driver: str, env: Mapping[str, str]) -> Access | Ruling:
    """Return the code that the driver takes for a card, or why it can take none."""
    if driver and older(driver, facts.driver):
        return _too_old(facts, driver)
    codes = tuple(c for c in map(parse_code, facts.codes) if c is not None)
    if not card.capability or not codes:
        return Access(card=card.name, capability=card.capability)
    usual = best_code(codes, card.capability)
    allowed, variable = _allowed(codes, env)
    best = best_code(allowed, card.capability)
    if best is None:
        return _no_image(facts, card, variable if usual else "")
    if best.ptx and driver and older(driver, facts.driver_jit):
        return _too_old_for_ptx(facts, card, best, driver)
    return Access(
        card=card.name,
        capability=card.capability,
        code=best,
        variable=variable if best != usual else "",
    )


def _allowed(codes: Sequence[GpuCode], env: Mapping[str, str]) -> tuple[tuple[GpuCode, ...], str]:
    """Return what the user's variables leave of the codes, and the variable that took some."""
    if env.get(FORCE) == "1":
        return tuple(c for c in codes if c.ptx), f"{FORCE}=1"
    if env.get(FORBID) == "1":
        return tuple(c for c in codes if not c.ptx), f"{FORBID}=1"
    return tuple(codes), ""


def preferred(
    facts: CudaFacts, candidates: Sequence[Candidate], driver: str, env: Mapping[str, str]
) -> tuple[Candidate, ...]:
    """Put cards with machine code of their own first, then those that need the JIT."""

    def rank(candidate: Candidate) -> int:
        if candidate.witness is None:
            return 2
        found = access(facts, candidate.witness, driver, env)
        if isinstance(found, Ruling):
            return 3
        return int(found.jit)

    return tuple(sorted(candidates, key=rank))


def build_command(capability: int) -> str:
    """Return the command that builds for a card."""
    return f"llamawright build cuda --arch sm_{capability} (on this machine: --arch native)"


def _no_image(facts: CudaFacts, card: Witness, variable: str) -> Ruling:
    why = (
        f"the artifact holds code for {', '.join(facts.codes)}; {card.name} has the compute "
        f"capability {dotted(card.capability)} and can run none of it"
    )
    hint = f"build for it: {build_command(card.capability)}"
    if variable:
        why += f" with {variable}"
        hint = f"unset {variable.partition('=')[0]}, or {hint}"
    return Ruling(state=State.CANNOT_VERIFY, failure="no-kernel-image", why=why, hint=hint)


def _too_old(facts: CudaFacts, driver: str) -> Ruling:
    served = next((t for least, t in TOOLKITS if not older(driver, str(least))), "")
    other = f", or build with a toolkit that it serves: --cuda-toolkit {served}" if served else ""
    return Ruling(
        state=State.CANNOT_VERIFY,
        failure="driver-too-old",
        why=f"the NVIDIA driver here is {driver}; code of CUDA {facts.toolkit} needs "
        f"{facts.driver} or newer",
        hint=f"install driver {facts.driver} or newer{other}",
    )


def _too_old_for_ptx(facts: CudaFacts, card: Witness, code: GpuCode, driver: str) -> Ruling:
    return Ruling(
        state=State.CANNOT_VERIFY,
        failure="driver-too-old-for-ptx",
        why=f"{card.name} ({dotted(card.capability)}) can only run the artifact's {code.name} "
        f"PTX; to compile PTX of CUDA {facts.toolkit} the driver must be {facts.driver_jit} or "
        f"newer, here it is {driver}",
        hint=f"install driver {facts.driver_jit} or newer, or build machine code for the card: "
        f"{build_command(card.capability)}",
    )
