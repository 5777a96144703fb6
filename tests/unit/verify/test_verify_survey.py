"""Settling on a device: what the artifact lists against what the machine shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from llamawright.errors import NoDeviceError
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.request import SoftwareDriver
from llamawright.model.verdict import State
from llamawright.process import Ending
from llamawright.verify import survey
from llamawright.verify.install import Install
from llamawright.verify.judge import Ruling
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.supervise import Finished, Phase, PhaseLimits, Task
from llamawright.verify.survey import VISIBLE, Chosen, Scene, settle
from llamawright.verify.witness import Sighting, Witness

GPU, LVP = "Imaginary GPU", "llvmpipe (LLVM 15.0.6, 256 bits)"
LIMITS = PhaseLimits(start_s=1, load_s=1, first_token_s=1, total_s=1, output_cap=1)
DRIVER = SoftwareDriver(name="mesa", env=(("VK_DRIVER_FILES", "/d.json"),), root=Path("/d"))


def witness(name: str, *, software: bool = False, index: int = 0, usable: bool = True) -> Witness:
    return Witness(
        index=index, name=name, software=software, driver="", pci="", memory=1, usable=usable
    )


class Machine:
    """A machine as the survey sees it, with and without the given driver."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.listed: tuple[str, ...] = ()
        self.hidden: tuple[str, ...] = (LVP,)
        self.own = Sighting(problem="no-driver", told="no driver (ICD)")
        self.with_driver = Sighting(devices=(witness(LVP, software=True),))
        self.loaded = True
        self.code = 0
        self.asked: list[Mapping[str, str]] = []
        self.provided = 0
        patch.setattr(survey, "look", self.look)
        patch.setattr(survey, "load_error", lambda *_args: "libvulkan.so.1: cannot open")

    def look(self, _backend: Backend, env: Mapping[str, str], *, seconds: float) -> Sighting:
        return self.with_driver if "VK_DRIVER_FILES" in env else self.own

    def run_list(self, argv: tuple[str, ...], env: Mapping[str, str]) -> Finished:
        self.asked.append(env)
        names = self.hidden if VISIBLE in env else self.listed
        rows = [f"  Vulkan{i}: {n} (9 MiB, 9 MiB free)\n" for i, n in enumerate(names)]
        text = "Available devices:\n" + ("".join(rows) or "  (none)\n")
        lines = ("load_backend: loaded Vulkan backend from /a.so",) if self.loaded else ()
        task = Task(name="device list", argv=argv, cwd=Path("/"), env=env, log=Path("/l"),
                    limits=LIMITS, on_device=True)  # fmt: skip
        return Finished(
            task=task, returncode=self.code, ending=Ending.EXITED, seconds=0.1, stdout=text,
            lines=lines, phase=Phase.START, overran=None, marks={}, tokens=(),
        )  # fmt: skip

    def driver(self) -> SoftwareDriver:
        self.provided += 1
        return DRIVER

    def settle(
        self, selector: str | None = None, driver: Callable[[], SoftwareDriver | None] | None = None
    ) -> Chosen | Ruling:
        install = Install(root=Path("/a"), platform=Platform(System.LINUX, "x86_64"))
        scene = Scene(
            install=install, backend=Backend.VULKAN, prefix="Vulkan", module=Path("/a/m.so"),
            env={"PATH": "/bin"}, patterns=BUILD_11312, probe_s=1.0,
        )  # fmt: skip
        return settle(scene, selector, self.run_list, driver or (lambda: None))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def chosen(found: Chosen | Ruling) -> Chosen:
    assert isinstance(found, Chosen), found
    return found


def ruled(found: Chosen | Ruling) -> Ruling:
    assert isinstance(found, Ruling), found
    return found


def test_hardware_comes_first_and_nothing_is_provided(machine: Machine) -> None:
    machine.listed = (GPU,)
    machine.own = Sighting(devices=(witness(GPU),))
    found = chosen(machine.settle(driver=machine.driver))
    assert (found.device.name, found.device.software) == (GPU, False)
    assert found.env == {}
    assert found.driver is None
    assert machine.provided == 0
    assert len(machine.asked) == 1


def test_without_hardware_the_given_driver_is_taken_and_shown_to_ggml(machine: Machine) -> None:
    found = chosen(machine.settle(driver=machine.driver))
    assert found.device.software
    assert found.driver is DRIVER
    assert found.env == {"VK_DRIVER_FILES": "/d.json", VISIBLE: "0"}
    assert VISIBLE not in machine.asked[0], "hidden devices are only shown on purpose"


def test_without_anything_it_is_unverified(machine: Machine) -> None:
    ruling = ruled(machine.settle())
    assert (ruling.state, ruling.failure) == (State.UNVERIFIED, "no-device")
    assert ruling.why == "no driver (ICD)"


def test_a_machine_that_nobody_can_ask_is_unverified_too(machine: Machine) -> None:
    machine.own = Sighting()
    assert "lists no vulkan device" in ruled(machine.settle()).why


def test_hardware_that_is_not_listed_fails_and_no_driver_covers_it_up(machine: Machine) -> None:
    machine.own = Sighting(devices=(witness(GPU),))
    ruling = ruled(machine.settle(driver=machine.driver))
    assert (ruling.state, ruling.failure) == (State.FAILED, "device-not-listed")
    assert machine.provided == 0


def test_a_module_that_did_not_load_is_told_with_the_reason(machine: Machine) -> None:
    machine.own = Sighting(devices=(witness(GPU),))
    machine.loaded = False
    ruling = ruled(machine.settle())
    assert ruling.failure == "module-not-loaded"
    assert "libvulkan.so.1: cannot open" in ruling.why


def test_a_device_without_16_bit_storage_cannot_be_verified(machine: Machine) -> None:
    machine.own = Sighting(devices=(witness("Old GPU", usable=False),))
    ruling = ruled(machine.settle())
    assert (ruling.state, ruling.failure) == (State.CANNOT_VERIFY, "device-unsupported")
    assert "16-bit storage" in ruling.why


@pytest.mark.parametrize("selector", [None, GPU, "Vulkan0"])
def test_it_cannot_be_verified_even_when_the_artifact_lists_it(
    machine: Machine, selector: str | None
) -> None:
    machine.listed = (GPU,)
    machine.own = Sighting(devices=(witness(GPU, usable=False),))
    ruling = machine.settle(selector)
    assert isinstance(ruling, Ruling)
    assert (ruling.state, ruling.failure) == (State.CANNOT_VERIFY, "device-unsupported")
    assert GPU in ruling.why


def test_a_card_that_ggml_can_use_comes_before_one_that_it_cannot(machine: Machine) -> None:
    machine.listed = ("Old card", GPU)
    machine.own = Sighting(devices=(witness("Old card", usable=False), witness(GPU, index=1)))
    chosen = machine.settle()
    assert isinstance(chosen, Chosen)
    assert chosen.device.name == GPU


def test_a_given_driver_that_shows_nothing_cannot_verify(machine: Machine) -> None:
    machine.with_driver = Sighting(problem="no-driver", told="libLLVM is missing")
    machine.hidden = ()
    ruling = ruled(machine.settle(driver=machine.driver))
    assert (ruling.state, ruling.failure) == (State.CANNOT_VERIFY, "driver-unusable")
    assert "libLLVM is missing" in ruling.why


def test_a_given_drivers_device_that_is_not_listed_fails(machine: Machine) -> None:
    machine.hidden = ()
    ruling = ruled(machine.settle(driver=machine.driver))
    assert (ruling.state, ruling.failure) == (State.FAILED, "device-not-listed")


@pytest.mark.parametrize("selector", ["software", "llvmpipe", "lavapipe", "Vulkan0", "vulkan0"])
def test_the_given_driver_can_be_asked_for(machine: Machine, selector: str) -> None:
    assert chosen(machine.settle(selector, machine.driver)).device.name == LVP


@pytest.mark.parametrize("selector", ["RTX 4090", "0000:01:00.0", "Vulkan3"])
def test_a_name_that_is_not_there_is_refused(machine: Machine, selector: str) -> None:
    with pytest.raises(NoDeviceError):
        machine.settle(selector, machine.driver)
    assert machine.provided == (selector == "Vulkan3"), "a mistyped name downloads nothing"


def test_the_systems_own_software_device_is_shown_by_its_index(machine: Machine) -> None:
    machine.own = Sighting(
        devices=(witness("iGPU", usable=False), witness(LVP, software=True, index=1))
    )
    found = chosen(machine.settle("llvmpipe"))
    assert found.env == {VISIBLE: "1"}
    assert found.driver is None


def test_named_hardware_that_ggml_leaves_out_fails(machine: Machine) -> None:
    machine.own = Sighting(devices=(witness(GPU),))
    ruling = ruled(machine.settle("imaginary"))
    assert ruling.failure == "device-not-listed"


def test_a_list_that_crashes_is_a_ruling(machine: Machine) -> None:
    machine.code = -11
    ruling = ruled(machine.settle())
    assert (ruling.state, ruling.failure) == (State.FAILED, "crashed")
    machine.own = Sighting(problem="probe-crashed", told="a Vulkan driver crashed the probe")
    ruling = ruled(machine.settle())
    assert (ruling.state, ruling.failure) == (State.CANNOT_VERIFY, "driver-crashes")
