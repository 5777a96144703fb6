"""Proofs that ended before a run on the device: which of them can be run again at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from llamawright.model.platform import Backend
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import State, Verdict
from llamawright.store import Store
from llamawright.transfer.opened import open_artifact
from llamawright.verify import commands
from llamawright.verify.cuda_setup import make_cuda
from llamawright.verify.device import ProvideDriver
from llamawright.verify.install import Install
from llamawright.verify.investigate_case import Case, Kind, run_case
from llamawright.verify.investigate_probe import Subject, places_of
from llamawright.verify.judge import run_failure
from llamawright.verify.runs import probe_limits
from llamawright.verify.setup import Setting, make_setting
from llamawright.verify.survey import VISIBLE

# Why nothing is run, by class: no program was to blame.
NOT_WHOLE = "the archive is not whole, so none of its programs was started"
RUNS_NOTHING: Mapping[str, str] = {
    "module-missing": NOT_WHOLE,
    "hash-mismatch": NOT_WHOLE,
    "companion-mismatch": NOT_WHOLE,
    "other-platform": "its programs are made for another system",
}
# What cannot be verified is mostly the machine's state, and the hint says what to do about it.
DRIVERS_FAULT = frozenset({"driver-crashes", "driver-unusable"})
MACHINES = "the machine cannot run the proof, and no program failed: the hint says what helps"
LIST = "device list"


def runs_nothing(verdict: Verdict) -> str:
    """Return why a proof without runs is not looked into; empty when it can be."""
    if verdict.state is State.QUARANTINED:
        return "it froze the machine before: running it again could do so again"
    if verdict.state is State.CANNOT_VERIFY and verdict.failure not in DRIVERS_FAULT:
        return MACHINES
    return RUNS_NOTHING.get(verdict.failure, "")


def early_case(
    request: VerifyRequest,
    verdict: Verdict,
    room: Path,
    *,
    store: Store,
    driver: ProvideDriver | None,
) -> Subject:
    """Unpack the artifact once more and let it list its devices, as the proof did."""
    manifest = open_artifact(request.artifact, room / "artifact")
    install = Install(root=(room / "artifact").resolve(), platform=request.platform)
    setting = make_setting(
        request, manifest, install, room=room, store=store, sha256=verdict.artifact_sha256
    )
    if manifest.backend is Backend.CUDA:
        # Puts the companion's libraries in place; what it says of the cards is known already.
        make_cuda(request, manifest, install, setting.scene.env)
    case = _listing(setting, {}, verdict)
    root = ""
    if case.kind is Kind.CLAIMS and manifest.backend is Backend.VULKAN and driver is not None:
        given = request.driver or driver()
        if given is not None:
            root = str(given.root)
            case = _listing(setting, {**dict(given.env), VISIBLE: "0"}, verdict)
    return Subject(case=case, setting=setting, places=places_of(setting, root))


def _listing(setting: Setting, extra: Mapping[str, str], verdict: Verdict) -> Case:
    scene = setting.scene
    stage = replace(setting.stage, limits=probe_limits(setting.stage.limits))
    argv = commands.list_devices(scene.install.program("llama-completion"))
    run = stage.run(LIST, argv, {**scene.env, **extra}, on_device=True)
    failure = run_failure(run)
    if failure is not None:
        return run_case(run, *failure)
    return Case(
        kind=Kind.CLAIMS, name=LIST, failure=verdict.failure, why=verdict.why, argv=argv,
        env=run.task.env, on_device=True, log=run.task.log,
    )  # fmt: skip
