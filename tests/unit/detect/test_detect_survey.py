"""The whole machine at once."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from llamawright.detect import survey, take_inventory
from llamawright.detect.candidates import Sighting, absent
from llamawright.detect.surroundings import Surroundings
from llamawright.errors import DiskError
from llamawright.model.inventory import Fault, Inventory, Role
from llamawright.model.platform import Backend
from machine_kit import Machine, stand_up
from resolve_kit import request


def look(machine: Machine, root: Path, backend: Backend = Backend.VULKAN) -> Inventory:
    around = machine.surroundings()
    return survey.survey(request(backend=backend), around, store_tools=root / "tools")


def test_every_role_is_answered_on_an_empty_machine(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "bare", tmp_path), tmp_path)
    assert seen.found == ()
    refused = {r.role: r for r in seen.rejected}
    assert set(refused) == {Role.CXX, Role.CMAKE, Role.NINJA, Role.GIT, Role.VULKAN}
    assert all(r.fault is Fault.ABSENT for r in seen.rejected)
    assert refused[Role.CXX].reason == "none was found in the 1 folders of PATH"


def test_the_machine_is_measured_and_named(tmp_path: Path) -> None:
    seen = look(stand_up("compilers", "plain", tmp_path), tmp_path)
    assert seen.cores >= 1
    assert 0 < seen.memory_free <= seen.memory
    assert (seen.libc, seen.systems) == ("glibc 2.36", ("debian",))
    assert [f.role for f in seen.found] == [Role.CXX]


def test_a_cpu_build_does_not_look_for_vulkan(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "debian12", tmp_path), tmp_path, Backend.CPU)
    roles = {f.role for f in seen.found} | {r.role for r in seen.rejected}
    assert not roles & {Role.VULKAN, Role.GLSLC, Role.SPIRV}


def test_two_looks_give_the_same(tmp_path: Path) -> None:
    machine = stand_up("compilers", "several", tmp_path)
    first, second = look(machine, tmp_path), look(machine, tmp_path)
    assert first.found == second.found
    assert first.rejected == second.rejected


def test_probes_run_beside_each_other_and_keep_their_order() -> None:
    barrier = threading.Barrier(4, timeout=10)

    def probe(number: int) -> survey.Probe:
        def go() -> tuple[Sighting, ...]:
            barrier.wait()
            time.sleep(0.01 * (4 - number))
            return (absent(list(Role)[number], str(number), around),)

        return go

    around = _nowhere()
    seen = survey._run([probe(n) for n in range(4)])
    assert [s.name for s in seen] == ["0", "1", "2", "3"]


def _nowhere() -> Surroundings:
    return Machine(root=Path("/"), env={}, about={}).surroundings()


def test_a_full_temporary_folder_is_a_disk_error() -> None:
    def probe() -> tuple[Sighting, ...]:
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskError):
        survey._run([probe])


def test_a_stop_waits_for_no_probe() -> None:
    release = threading.Event()

    def slow() -> tuple[Sighting, ...]:
        release.wait(20)
        return ()

    def stop() -> tuple[Sighting, ...]:
        raise KeyboardInterrupt

    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            survey._run([stop, slow])
        assert time.monotonic() - start < 5
    finally:
        release.set()


def test_this_machine_is_looked_at_quickly(tmp_path: Path) -> None:
    start = time.monotonic()
    seen = take_inventory(
        request(), _nowhere().toolchains, store_tools=tmp_path / "tools", env=os.environ
    )
    assert time.monotonic() - start < 20  # the figure to reach is 3 s; a loaded machine has time
    roles = {f.role for f in seen.found} | {r.role for r in seen.rejected}
    assert {Role.CXX, Role.CMAKE, Role.NINJA, Role.GIT, Role.VULKAN} <= roles
    assert not list((tmp_path / "tools").glob("*"))
