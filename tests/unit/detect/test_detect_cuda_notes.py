"""CUDA hygiene for doctor: one sentence with its cure for each thing that may go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_kit import around, stand_up_cuda
from llamawright.detect import cuda
from llamawright.detect.cuda_notes import cuda_notes
from llamawright.model.cuda import Gpu, Gpus, Presence
from llamawright.model.inventory import Found, Inventory, Rejected
from llamawright.model.platform import Platform, System
from machine_kit import Machine

LINUX = Platform(System.LINUX, "x86_64")
WINDOWS = Platform(System.WINDOWS, "x86_64")
FINE = Gpus(presence=Presence.PRESENT, driver="580.159.04")


def card(name: str, *, persistence: bool | None = None, mig: bool | None = None) -> Gpu:
    return Gpu(
        index=0,
        name=name,
        pci="0000:01:00.0",
        capability=90,
        memory=1 << 30,
        persistence=persistence,
        mig=mig,
    )


def taken(machine: Machine, gpus: Gpus = FINE, **env: str) -> tuple[dict[str, str], Inventory]:
    seen = around(machine, env)
    sightings = cuda.survey(seen)
    inventory = Inventory(
        platform=seen.platform,
        cores=1,
        memory=1,
        found=tuple(s for s in sightings if isinstance(s, Found)),
        rejected=tuple(s for s in sightings if isinstance(s, Rejected)),
        available=(),
        gpus=gpus,
    )
    return dict(seen.env), inventory


def notes(root: Path, name: str, gpus: Gpus = FINE, **env: str) -> tuple[str, ...]:
    variables, seen = taken(stand_up_cuda(name, root), gpus, **env)
    return cuda_notes(variables, seen, root=root)


def told(gpus: Gpus, platform: Platform = LINUX, **env: str) -> tuple[str, ...]:
    """Return the notes of a machine that has nothing but cards."""
    seen = Inventory(
        platform=platform, cores=1, memory=1, found=(), rejected=(), available=(), gpus=gpus
    )
    return cuda_notes(env, seen, root=Path("/nowhere"))


def test_a_machine_in_order_gets_no_note(tmp_path: Path) -> None:
    assert notes(tmp_path, "cuda124") == ()
    assert notes(tmp_path / "b", "every-way") == ()
    assert told(Gpus(presence=Presence.ABSENT, reason="no NVIDIA card")) == ()


def test_an_older_nvcc_first_on_path_is_named_with_the_one_to_put_first(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, "several")
    local = tmp_path / "usr/local"
    assert note == (
        f"the first nvcc on PATH is 11.8 in {local}/cuda-11.8/bin, the newest toolkit is 13.0 "
        f"in {local}/cuda-13.0: put {local}/cuda-13.0/bin before it"
    )


def test_debians_wrapper_is_known_by_what_it_starts(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, "debian-and-vendor")
    assert note.startswith(f"the first nvcc on PATH is 11.8 in {tmp_path}/usr/bin, the newest")


def test_leftovers_behind_the_newest_are_named_and_who_wins(tmp_path: Path) -> None:
    local = tmp_path / "usr/local"
    path = f"{local}/cuda-13.0/bin:{local}/cuda-11.8/bin:{local}/cuda-10.2/bin:/usr/bin"
    (note,) = notes(tmp_path, "several", PATH=path)
    assert note == (
        f"PATH also holds CUDA 11.8 in {local}/cuda-11.8/bin, 10.2 in {local}/cuda-10.2/bin "
        "(13.0 wins): remove what you do not use"
    )


def test_windows_folders_tell_their_version_by_name(tmp_path: Path) -> None:
    base = tmp_path / "Program Files/NVIDIA GPU Computing Toolkit/CUDA"
    path = f"{base}/v13.0/bin:{base}/v10.2/bin"
    (note,) = notes(tmp_path, "windows", PATH=path)
    assert f"10.2 in {base}/v10.2/bin (13.0 wins)" in note


@pytest.mark.parametrize("name", ["CUDA_PATH", "CUDA_HOME", "CUDAToolkit_ROOT", "CUDA_PATH_V11_2"])
def test_a_variable_that_leads_nowhere_is_named(tmp_path: Path, name: str) -> None:
    (note,) = notes(tmp_path, "cuda124", FINE, **{name: "/gone/cuda"})
    assert note == (
        f"{name} leads nowhere: /gone/cuda is no folder; unset it, or let it name a toolkit"
    )


def test_libraries_of_another_version_win_over_a_programs_own(tmp_path: Path) -> None:
    old = tmp_path / "usr/local/cuda-11.8/lib64"
    seen = notes(tmp_path, "several", PATH="/usr/bin", LD_LIBRARY_PATH=f"{old}:/usr/lib")
    (note,) = seen
    assert f"LD_LIBRARY_PATH holds CUDA 11.8 in {old}, which wins" in note
    assert note.endswith("the newest toolkit is 13.0: remove it")


def test_libraries_of_the_newest_toolkit_are_in_order(tmp_path: Path) -> None:
    new = tmp_path / "usr/local/cuda-12.4/lib64"
    assert notes(tmp_path, "cuda124", LD_LIBRARY_PATH=str(new)) == ()


def test_libcudas_stub_on_the_loaders_path_is_named(tmp_path: Path) -> None:
    stubs = tmp_path / "usr/local/cuda-12.4/lib64/stubs"
    (note,) = notes(tmp_path, "cuda124", LD_LIBRARY_PATH=str(stubs))
    assert f"libcuda's stub in {stubs}" in note
    assert "remove it" in note


def test_another_drivers_libcuda_is_named_and_the_drivers_own_is_not(tmp_path: Path) -> None:
    for version in ("550.54.15", "580.159.04"):
        folder = tmp_path / version
        folder.mkdir()
        (folder / f"libcuda.so.{version}").touch()
        (folder / "libcuda.so.1").symlink_to(f"libcuda.so.{version}")
    (note,) = told(FINE, LD_LIBRARY_PATH=f"{tmp_path}/550.54.15:{tmp_path}/580.159.04")
    assert f"libcuda 550.54.15 in {tmp_path}/550.54.15, the driver is 580.159.04" in note


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("compute,utility", "graphics"),
        ("graphics,utility", "compute"),
        ("compute, graphics", "utility"),
        ("utility", "compute and graphics"),
        ("", "graphics"),
    ],
)
def test_a_container_without_a_capability_is_told(said: str, missing: str) -> None:
    env = {"NVIDIA_DRIVER_CAPABILITIES": said, "NVIDIA_VISIBLE_DEVICES": "all"}
    (note,) = told(FINE, LINUX, **env)
    assert note.startswith(f"this container lacks {missing} (NVIDIA_DRIVER_CAPABILITIES")
    assert note.endswith("start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics")


@pytest.mark.parametrize("said", ["all", "compute,graphics,utility", "all,video"])
def test_a_container_with_all_capabilities_is_in_order(said: str) -> None:
    assert told(FINE, NVIDIA_DRIVER_CAPABILITIES=said, NVIDIA_VISIBLE_DEVICES="all") == ()


def test_outside_of_a_container_no_capability_is_missed() -> None:
    assert told(FINE, HOME="/root") == ()


@pytest.mark.parametrize(
    ("gpus", "note"),
    [
        (
            Gpus(presence=Presence.BROKEN, driver="580.1", reason="mismatch", cure="reboot"),
            "NVIDIA driver 580.1: mismatch: reboot",
        ),
        (
            Gpus(presence=Presence.UNKNOWN, reason="nobody", cure="install it"),
            "NVIDIA driver of unknown version: nobody: install it",
        ),
        (
            Gpus(presence=Presence.ABSENT, reason="a card, no driver", cure="install it"),
            "NVIDIA: a card, no driver: install it",
        ),
        (
            Gpus(presence=Presence.PRESENT, reason="card 3 is lost", cure="reboot"),
            "NVIDIA cards: card 3 is lost: reboot",
        ),
    ],
)
def test_a_driver_in_a_bad_state_is_told_with_its_cure(gpus: Gpus, note: str) -> None:
    assert told(gpus) == (note,)


@pytest.mark.parametrize(
    ("name", "told_so"),
    [
        ("NVIDIA H200", True),
        ("Tesla V100-SXM2-16GB", True),
        ("NVIDIA L40S", True),
        ("NVIDIA GeForce RTX 4090", False),
        ("NVIDIA RTX A6000", False),
    ],
)
def test_persistence_mode_is_information_for_server_cards_only(name: str, told_so: bool) -> None:
    gpus = Gpus(presence=Presence.PRESENT, cards=(card(name, persistence=False),))
    seen = told(gpus)
    assert bool(seen) is told_so
    assert all(n.startswith("information: persistence mode is off") for n in seen)
    assert all(n.endswith("sudo nvidia-smi -pm 1") for n in seen)
    assert told(gpus, WINDOWS) == ()


def test_persistence_that_is_on_or_unknown_is_no_note() -> None:
    on = Gpus(presence=Presence.PRESENT, cards=(card("NVIDIA H200", persistence=True),))
    assert told(on) == ()
    assert told(Gpus(presence=Presence.PRESENT, cards=(card("NVIDIA H200"),))) == ()


def test_a_split_card_is_information() -> None:
    gpus = Gpus(presence=Presence.PRESENT, cards=(card("NVIDIA A100", mig=True),))
    (note,) = told(gpus)
    assert note.startswith("information: card 0 (NVIDIA A100) is split into MIG instances")


def test_every_note_is_one_line(tmp_path: Path) -> None:
    bad = Gpus(presence=Presence.BROKEN, driver="1", reason="mismatch", cure="reboot")
    env = {"CUDA_HOME": "/gone", "NVIDIA_DRIVER_CAPABILITIES": "utility"}
    seen = notes(tmp_path, "several", bad, **env)
    assert len(seen) == 4
    assert not any("\n" in n for n in seen)
