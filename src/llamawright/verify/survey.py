"""Ask the artifact and the machine for devices, and settle on the one to prove."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.model.platform import Backend
from llamawright.model.request import SoftwareDriver
from llamawright.model.verdict import Device, State
from llamawright.process import ask
from llamawright.verify import commands
from llamawright.verify.choose import (
    Candidate,
    match_up,
    no_such_device,
    refuse_several,
    select,
    witnessed,
)
from llamawright.verify.cuda_gate import Access, meant
from llamawright.verify.cuda_setup import CudaScene, not_listed, nothing_seen
from llamawright.verify.install import Install
from llamawright.verify.judge import Ruling, hint_of, rule_failure, run_failure
from llamawright.verify.logs import read_devices, read_load
from llamawright.verify.patterns import PatternSet
from llamawright.verify.supervise import Finished
from llamawright.verify.witness import Sighting, Witness, look

VISIBLE = "GGML_VK_VISIBLE_DEVICES"
SOFTWARE_WORDS = ("software", "llvmpipe", "lavapipe")
INSTALL_DRIVER = "install the device's driver (llamawright doctor names it), then run verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where the question is asked: the install, its module, a clean environment.

    ``cuda`` is there for a CUDA artifact: its cards were asked for before.
    """

    install: Install
    backend: Backend
    prefix: str
    module: Path | None
    env: Mapping[str, str]
    patterns: PatternSet
    probe_s: float
    cuda: CudaScene | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What was answered: the artifact's list, the machine's, and the list's own run."""

    candidates: tuple[Candidate, ...]
    sighting: Sighting
    loaded: bool
    run: Finished

    @property
    def listed(self) -> tuple[Device, ...]:
        """Return the devices that the artifact lists."""
        return tuple(c.device for c in self.candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The device to prove and the variables that lead to it; a CPU artifact has no view."""

    candidate: Candidate
    view: View | None
    env: Mapping[str, str]
    driver: SoftwareDriver | None = None

    @property
    def device(self) -> Device:
        """Return the device itself."""
        return self.candidate.device

    @property
    def listed(self) -> tuple[Device, ...]:
        """Return all devices that the artifact lists."""
        return self.view.listed if self.view else ()


RunList = Callable[[tuple[str, ...], Mapping[str, str]], Finished]


def view(scene: Scene, extra: Mapping[str, str], run_list: RunList) -> View | Ruling:
    """Let the artifact list its devices, and the machine its own; a crash is a ruling."""
    env = {**scene.env, **extra}
    known = scene.cuda.sighting if scene.cuda else None
    sighting = known or look(scene.backend, env, seconds=scene.probe_s)
    run = run_list(commands.list_devices(scene.install.program("llama-completion")), env)
    failure = run_failure(run)
    if failure is not None:
        if sighting.problem in ("probe-crashed", "probe-hung"):
            return Ruling(
                state=State.CANNOT_VERIFY,
                failure="driver-crashes",
                why=f"{sighting.told}, and the artifact too",
                hint="update or remove that driver: without it other devices can be proved",
            )
        return rule_failure(*failure, of_reference=False)
    listed = read_devices(run.stdout, scene.patterns, backend=str(scene.backend))
    if listed is None:
        why = f"--list-devices printed no list: {run.stdout[:120]!r}"
        return Ruling(
            state=State.FAILED,
            failure="evidence-missing",
            why=why,
            hint=hint_of("evidence-missing"),
        )
    loaded = {b.name for b in read_load(run.lines, scene.patterns).backends}
    return View(
        candidates=match_up(listed, sighting),
        sighting=sighting,
        loaded=scene.prefix in loaded,
        run=run,
    )


def code_for(scene: Scene, chosen: Chosen) -> Access | Ruling | None:
    """Return the device code that the driver takes for the chosen card, ``None`` off CUDA."""
    return scene.cuda.access(chosen.candidate) if scene.cuda else None


def settle(
    scene: Scene,
    selector: str | None,
    run_list: RunList,
    driver: Callable[[], SoftwareDriver | None],
) -> Chosen | Ruling:
    """Return the device to prove; without one, the ruling that says why.

    Hardware comes first. A software device is only taken when a driver was given for it or
    the selector names it: ggml hides such devices, and shows them by ``VISIBLE`` alone.
    Raises ``NoDeviceError`` when a named device isn't there.
    """
    first = view(scene, {}, run_list)
    if isinstance(first, Ruling):
        return first
    candidates = scene.cuda.ordered(first.candidates) if scene.cuda else first.candidates
    found = select(candidates, selector)
    if found is not None:
        unusable = found.witness is not None and not found.witness.usable
        return (
            _unsupported(found.device) if unusable else Chosen(candidate=found, view=first, env={})
        )
    if selector is not None:
        return _settle_named(scene, selector, first, run_list, driver)
    if first.sighting.hardware:
        return _not_listed(scene, first)
    given = None if scene.cuda else driver()
    if given is None:
        return _unverified(scene, first)
    return _settle_driver(scene, given, run_list)


def _settle_named(
    scene: Scene,
    selector: str,
    first: View,
    run_list: RunList,
    driver: Callable[[], SoftwareDriver | None],
) -> Chosen | Ruling:
    if scene.cuda is not None:
        return _settle_card(scene, scene.cuda, selector, first)
    there = witnessed(first.sighting, selector)
    if there is not None and there.software:
        extra = {VISIBLE: str(there.index)}
        again = view(scene, extra, run_list)
        if isinstance(again, Ruling):
            return again
        if again.candidates:
            return Chosen(candidate=again.candidates[0], view=again, env=extra)
        return _not_listed(scene, again)
    if there is not None and there.usable:
        return _not_listed(scene, first)
    by_id = selector.casefold().startswith(scene.prefix.casefold())
    # A driver may have to be downloaded first: a mistyped name is no reason for that.
    wanted = by_id or selector.casefold() in SOFTWARE_WORDS
    if not wanted:
        refuse_several(first.sighting, selector)
    given = driver() if wanted else None
    if given is None:
        raise no_such_device(selector, first.candidates, first.sighting)
    chosen = _settle_driver(scene, given, run_list)
    if isinstance(chosen, Chosen) and by_id and select((chosen.candidate,), selector) is None:
        raise no_such_device(selector, (chosen.candidate,), first.sighting)
    return chosen


def _settle_card(scene: Scene, cuda: CudaScene, selector: str, first: View) -> Ruling:
    """Tell a card that the artifact leaves out from one that isn't there."""
    if meant(cuda.sighting, selector):
        return _not_listed(scene, first)
    nothing = nothing_seen(cuda.sighting, first.run.lines)
    if nothing.state is not State.UNVERIFIED:
        return nothing
    raise no_such_device(selector, first.candidates, cuda.sighting)


def _settle_driver(scene: Scene, driver: SoftwareDriver, run_list: RunList) -> Chosen | Ruling:
    extra = {**dict(driver.env), VISIBLE: "0"}
    again = view(scene, extra, run_list)
    if isinstance(again, Ruling):
        return again
    found = next(iter(again.candidates), None)
    if found is not None:
        return Chosen(candidate=found, view=again, env=extra, driver=driver)
    if again.sighting.devices:
        return _not_listed(scene, again)
    return Ruling(
        state=State.CANNOT_VERIFY,
        failure="driver-unusable",
        why=f"{driver.name} shows no device here: {again.sighting.told}",
        hint=INSTALL_DRIVER,
    )


def _not_listed(scene: Scene, seen: View) -> Ruling:
    names = ", ".join(w.name for w in seen.sighting.devices)
    if scene.cuda is not None:
        return _not_listed_by_cuda(scene, scene.cuda, seen)
    if seen.loaded or scene.module is None:
        kind = "device-not-listed"
        why = f"the driver shows {names}, the artifact lists none of it"
    else:
        kind = "module-not-loaded"
        why = f"the driver shows {names}, but {scene.module.name} was not loaded: "
        why += load_error(scene.module, {**scene.env, **seen.run.task.env}, scene.probe_s)
    return Ruling(state=State.FAILED, failure=kind, why=why, hint=hint_of(kind))


def _not_listed_by_cuda(scene: Scene, cuda: CudaScene, seen: View) -> Ruling:
    env = {**scene.env, **seen.run.task.env}
    unloaded = None if seen.loaded else scene.module
    return not_listed(
        cuda,
        seen.run.lines,
        module=unloaded.name if unloaded else "",
        loaded=unloaded is None,
        reason=load_error(unloaded, env, scene.probe_s) if unloaded else "",
    )


def _unverified(scene: Scene, seen: View) -> Ruling:
    sighting = seen.sighting
    if scene.cuda is not None:
        return nothing_seen(sighting, seen.run.lines)
    unusable = [w for w in sighting.devices if not w.usable]
    if unusable:
        return _unsupported(*unusable)
    software = ", ".join(w.name for w in sighting.devices)
    why = f"only software devices: {software}" if software else sighting.told
    hint = f"--device '{sighting.devices[0].name}' proves it in software" if software else ""
    return Ruling(
        state=State.UNVERIFIED,
        failure="no-device",
        why=why or f"the artifact lists no {scene.backend} device",
        hint=hint or INSTALL_DRIVER,
    )


def _unsupported(*devices: Witness | Device) -> Ruling:
    names = ", ".join(d.name for d in devices)
    why = f"{names} has no 16-bit storage, which ggml needs"
    return Ruling(state=State.CANNOT_VERIFY, failure="device-unsupported", why=why)


def load_error(module: Path, env: Mapping[str, str], seconds: float) -> str:
    """Return what the system says when the module is loaded, in a child: it may crash."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    result = ask((sys.executable, "-I", "-c", code, str(module)), seconds=seconds, env=env)
    if result.ok:
        return "the system can load it, so its own start refused"
    if result.returncode < 0:
        return f"loading it crashed (signal {-result.returncode})"
    last = result.tail[-1] if result.tail else "no reason was given"
    return last.removeprefix("OSError: ")
