"""NVIDIA's cards: asked through NVML, then ``nvidia-smi``, each in a child with a limit.

A machine without a card, one whose driver is broken and one where nobody could be asked are
three different answers, each with its own cure. ``CUDA_VISIBLE_DEVICES`` does not count here:
it hides cards from programs, not from the machine.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.detect import nvidia_traces as traces
from llamawright.detect.nvidia_flaws import (
    DRIVER_NOT_LOADED,
    FLAWS,
    GPU_IS_LOST,
    NO_LIBRARY,
    flaw_in,
)
from llamawright.detect.nvml import FIELDS, OLD_FIELDS, Answer, read_nvml, read_smi
from llamawright.detect.probe import accident
from llamawright.detect.surroundings import nvml_command
from llamawright.errors import ToolMissingError
from llamawright.model.cuda import Gpus, Presence
from llamawright.process import ALLOWED, FIXED, Result, ask

LIMIT_S = 20.0
# Codes of our own beside NVML's: there was nobody to ask, or the answer made no sense.
UNASKED = -1
SENSELESS = -2
CONTAINER_CURE = (
    "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility (docker run --gpus all)"
)
OLD_SMI = "this nvidia-smi is too old to tell compute capabilities"
INSTALL_NVML = "python -m pip install nvidia-ml-py"
LINE = 200
NO_DEVICES = re.compile(r"No devices were found", re.IGNORECASE)
UNKNOWN_FIELD = re.compile(r"not a valid field", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where NVIDIA's traces are: the environment, the root of /dev and /proc, the limit."""

    env: Mapping[str, str]
    root: Path
    limit_s: float

    def ask(self, argv: tuple[str, ...]) -> Result | str:
        """Run a child; return why it gave no answer. LD_LIBRARY_PATH leads containers to NVML."""
        kept = {k: v for k, v in self.env.items() if k.upper() in (*ALLOWED, "LD_LIBRARY_PATH")}
        folder = Path(tempfile.gettempdir())
        try:
            result = ask(argv, seconds=self.limit_s, env={**kept, **FIXED}, cwd=folder)
        except ToolMissingError as error:
            return f"it cannot start: {error.why}"
        problem = accident(result, self.limit_s)
        return problem.reason if problem else result


def see_gpus(
    env: Mapping[str, str],
    *,
    nvml: tuple[str, ...] | None = None,
    root: Path = Path("/"),
    limit_s: float = LIMIT_S,
) -> Gpus:
    """Return the machine's NVIDIA cards, or why there are none; never raises for a bad driver.

    ``nvml`` is the child that asks NVML (empty: it is not asked), ``root`` the folder of
    ``/dev``, ``/proc`` and ``/sys``, ``limit_s`` the seconds that each child may take.
    """
    machine = Machine(env=env, root=root, limit_s=limit_s)
    first = _ask_nvml(machine, nvml_command() if nvml is None else nvml)
    seen = _judge(first, "NVML", machine)
    if seen is not None:
        return seen
    second = _ask_smi(machine)
    seen = _judge(second, "nvidia-smi", machine)
    if seen is None:
        return _traced(machine, first, second)
    trouble = f"NVML: {first.error}" if first.code == SENSELESS else ""
    return replace(seen, reason="; ".join(t for t in (seen.reason, trouble) if t))


def _ask_nvml(machine: Machine, argv: tuple[str, ...]) -> Answer:
    if not argv:
        return Answer(error="not asked", code=UNASKED)
    told = machine.ask(argv)
    if isinstance(told, str):
        return Answer(error=told, code=SENSELESS)
    answer = read_nvml(told.stdout)
    return answer or Answer(error="its answer cannot be read", code=SENSELESS)


def _ask_smi(machine: Machine) -> Answer:
    program = traces.find_smi(machine.env, machine.root)
    if program is None:
        return Answer(error="no nvidia-smi", code=UNASKED)
    answer = _query(machine, program, FIELDS)
    if not UNKNOWN_FIELD.search(answer.error):
        return answer
    old = _query(machine, program, OLD_FIELDS)
    return replace(old, cards=(), odd=(), error=OLD_SMI, code=SENSELESS)


def _query(machine: Machine, program: Path, fields: tuple[str, ...]) -> Answer:
    question = f"--query-gpu={','.join(fields)}"
    told = machine.ask((str(program), question, "--format=csv,noheader,nounits"))
    if isinstance(told, str):
        return Answer(error=told, code=SENSELESS)
    text = told.output.strip()
    answer = read_smi(told.stdout, fields)
    if answer.cards or NO_DEVICES.search(text):
        return answer if answer.cards else Answer()
    code = flaw_in(text)
    first = text.splitlines()[0][:LINE] if text else "no output"
    rows = [o for o in answer.odd if o.count(",") == len(fields) - 1]
    error = f"it tells no compute capability: {rows[0]}" if rows else first
    return replace(answer, error=error, code=SENSELESS if code is None else code)


def _judge(answer: Answer, source: str, machine: Machine) -> Gpus | None:
    """Return the final word of one source, ``None`` when the next one must be asked."""
    driver = answer.driver or traces.kernel_driver(machine.root)
    about = Gpus(driver=driver, cuda=answer.cuda, source=source)
    lost = FLAWS[GPU_IS_LOST][1]
    if answer.cards:
        reason = "; ".join(f"not readable: {o}" for o in answer.odd)
        cure = lost if answer.odd else ""
        return replace(
            about, presence=Presence.PRESENT, cards=answer.cards, reason=reason, cure=cure
        )
    if answer.odd and not answer.error:
        text = f"no card answers: {'; '.join(answer.odd)}"
        return replace(about, presence=Presence.BROKEN, reason=text, cure=lost)
    if not answer.error:
        reason, cure = _no_device(machine)
        return replace(about, presence=Presence.ABSENT, reason=reason, cure=cure)
    if answer.code == NO_LIBRARY or answer.code not in FLAWS:
        return None
    reason, cure = FLAWS[answer.code]
    missing = answer.code == DRIVER_NOT_LOADED and traces.no_card(machine.root)
    presence = Presence.ABSENT if missing else Presence.BROKEN
    return replace(about, presence=presence, reason=reason, cure=cure)


def _no_device(machine: Machine) -> tuple[str, str]:
    cards = traces.pci_cards(machine.root)
    if cards:
        reason = f"the driver is loaded and does not take the card at {', '.join(cards)}"
        return reason, "sudo dmesg | grep -i nvrm"
    reason = "the driver is loaded and finds no card (No devices were found)"
    return reason, "in a container: docker run --gpus all; else see whether lspci lists the card"


def _traced(machine: Machine, first: Answer, second: Answer) -> Gpus:
    """Tell a broken driver from an absent one when neither source gave a usable answer."""
    driver = second.driver or traces.kernel_driver(machine.root)
    if second.error == OLD_SMI:
        cure = f"{INSTALL_NVML}, or update the driver to 510 or later"
        return Gpus(driver=driver, source="nvidia-smi", reason=OLD_SMI, cure=cure)
    cards = traces.pci_cards(machine.root)
    there = bool(traces.device_files(machine.root) or driver)
    asked = (("NVML", first), ("nvidia-smi", second))
    said = [f"{n}: {a.error}" for n, a in asked if a.code not in (UNASKED, NO_LIBRARY)]
    if said:
        presence = Presence.BROKEN if there or cards else Presence.UNKNOWN
        cure = "run nvidia-smi by hand; when that fails too, reboot"
        return Gpus(presence=presence, driver=driver, reason="; ".join(said), cure=cure)
    if there:
        return _unheard(machine, driver)
    if cards:
        reason = f"there is an NVIDIA card at {', '.join(cards)}, and no driver of NVIDIA's"
        return Gpus(presence=Presence.ABSENT, reason=reason, cure=traces.DRIVER_CURE)
    return Gpus(presence=Presence.ABSENT, reason="no NVIDIA card and no driver of NVIDIA's")


def _unheard(machine: Machine, driver: str) -> Gpus:
    """Return why a loaded driver could not be asked: no library, or nothing that uses it."""
    if traces.has_library(machine.env, machine.root):
        reason = "the driver is loaded; neither nvidia-ml-py nor nvidia-smi is here to ask it"
        return Gpus(driver=driver, reason=reason, cure=INSTALL_NVML)
    reason = "the card's device files are here without libnvidia-ml, the driver's own library"
    cure = FLAWS[NO_LIBRARY][1]
    if traces.in_container(machine.env, machine.root):
        cure = CONTAINER_CURE
    return Gpus(presence=Presence.BROKEN, driver=driver, reason=reason, cure=cure)
