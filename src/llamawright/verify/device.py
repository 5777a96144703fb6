"""The device of one artifact: asked for, listed by the artifact itself, chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from llamawright.model.platform import Backend
from llamawright.model.request import SoftwareDriver
from llamawright.model.verdict import Device
from llamawright.verify.choose import Candidate
from llamawright.verify.cuda_setup import JIT_S
from llamawright.verify.draft import cpu_name
from llamawright.verify.judge import Ruling
from llamawright.verify.runs import compiling_limits, probe_limits
from llamawright.verify.setup import Setting
from llamawright.verify.supervise import Finished
from llamawright.verify.survey import Chosen, settle

ProvideDriver = Callable[[], SoftwareDriver | None]


def choose_device(setting: Setting, provide_driver: ProvideDriver) -> Chosen | Ruling:
    """Return the device that a setting's request means; the artifact lists it itself."""
    if setting.cpu:
        device = Device(id="CPU", name=cpu_name(), backend="cpu", memory=0, software=False)
        return Chosen(candidate=Candidate(device=device), view=None, env={})
    limits, cuda = setting.stage.limits, setting.scene.cuda
    if cuda is not None and cuda.may_jit:
        limits = compiling_limits(limits, JIT_S)
    probing = replace(setting.stage, limits=probe_limits(limits))

    def run_list(argv: tuple[str, ...], env: Mapping[str, str]) -> Finished:
        return probing.run("device list", argv, env, on_device=True)

    def driver() -> SoftwareDriver | None:
        """Only Vulkan has a driver in software that stands for the device's."""
        vulkan = setting.manifest.backend is Backend.VULKAN
        return setting.request.driver or (provide_driver() if vulkan else None)

    return settle(setting.scene, setting.request.device, run_list, driver)
