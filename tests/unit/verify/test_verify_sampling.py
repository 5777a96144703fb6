"""What /proc, /sys and nvidia-smi say of a running child."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llamawright.model.verdict import Device
from llamawright.verify import memory, nvidia
from llamawright.verify.memory import MemoryWatch, maps_readable, watching
from llamawright.verify.nvidia import Monitor, list_cards, monitoring, normal_pci, read_cards
from llamawright.verify.sampling import (
    ProcSampler,
    drm_memory,
    mapped_files,
    private_bytes,
    thread_names,
    vram_used,
)
from llamawright.verify.supervise import Phase

MIB = 1 << 20
MAPS = """\
55d0c8a00000-55d0c8a01000 r--p 00000000 fe:00 79039                      /opt/bin/llama-completion
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f1100000000-7f1100100000 r-xp 00000000 fe:00 12  /opt/a folder/libggml-vulkan.so
7f1200000000-7f1200100000 r-xp 00000000 fe:00 13  /usr/lib/libGLX_nvidia.so.580 (deleted)
7fff00000000-7fff00100000 rw-p 00000000 00:00 0                          [stack]
7fff00200000-7fff00300000 rw-s 00000000 00:05 9                          anon_inode:[eventfd]
"""
STATUS = "Name:\tx\nVmRSS:\t  300 kB\nRssAnon:\t  100 kB\nRssFile:\t 190 kB\nRssShmem:\t   10 kB\n"
FDINFO = """\
pos:\t0
drm-driver:\tamdgpu
drm-client-id:\t{client}
drm-pdev:\t0000:03:00.0
drm-memory-vram:\t{vram} KiB
drm-memory-gtt: \t1024 KiB
"""


def test_mapped_files_are_paths_and_nothing_else() -> None:
    assert mapped_files(MAPS) == {
        "/opt/bin/llama-completion", "/opt/a folder/libggml-vulkan.so",
        "/usr/lib/libGLX_nvidia.so.580",
    }  # fmt: skip
    assert mapped_files("") == set()
    assert mapped_files("garbage\n\n") == set()


def test_memory_that_is_no_files_is_added_up() -> None:
    assert private_bytes(STATUS) == 110 * 1024
    assert private_bytes("Name:\tx\n") == 0


def fdinfo(folder: Path, *texts: str) -> Path:
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text)
    return folder


def test_one_client_under_two_descriptors_counts_once(tmp_path: Path) -> None:
    text = FDINFO.format(client=7, vram=4096)
    found = drm_memory(fdinfo(tmp_path / "fdinfo", text, text, "pos:\t0\n"))
    assert found == {"0000:03:00.0": 5 * MIB}


def test_two_clients_of_one_device_add_up(tmp_path: Path) -> None:
    one, two = FDINFO.format(client=7, vram=4096), FDINFO.format(client=8, vram=1024)
    assert drm_memory(fdinfo(tmp_path / "fdinfo", one, two)) == {"0000:03:00.0": 7 * MIB}


def test_resident_memory_is_preferred_where_the_driver_has_it(tmp_path: Path) -> None:
    text = (
        "drm-pdev:\t0000:00:02.0\ndrm-client-id:\t1\ndrm-total-system0:\t9 MiB\n"
        "drm-resident-system0:\t3 MiB\n"
    )
    assert drm_memory(fdinfo(tmp_path / "fdinfo", text)) == {"0000:00:02.0": 3 * MIB}


def test_broken_descriptors_are_left_out(tmp_path: Path) -> None:
    bad = "drm-pdev:\t0000:00:02.0\ndrm-memory-vram:\tlots\n"
    assert drm_memory(fdinfo(tmp_path / "fdinfo", bad)) == {}
    assert drm_memory(tmp_path / "absent") == {}


def test_the_drivers_own_sum_is_read_by_pci_place(tmp_path: Path) -> None:
    card = tmp_path / "card1" / "device"
    card.mkdir(parents=True)
    (card / "mem_info_vram_used").write_text("12345\n")
    (card / "uevent").write_text("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n")
    (tmp_path / "card2" / "device").mkdir(parents=True)
    assert vram_used(tmp_path) == {"0000:03:00.0": 12345}
    assert vram_used(tmp_path / "absent") == {}


def proc(root: Path, pid: int, maps: str = MAPS) -> Path:
    base = root / str(pid)
    base.mkdir(parents=True, exist_ok=True)
    (base / "maps").write_text(maps)
    (base / "status").write_text(STATUS)
    return root


def test_a_sampler_keeps_what_it_saw_at_any_time(tmp_path: Path) -> None:
    sampler = ProcSampler(proc=proc(tmp_path, 5), drm_class=tmp_path / "drm")
    sampler(5, Phase.START)
    proc(tmp_path, 5, "")
    sampler(5, Phase.LOAD)
    assert "/opt/bin/llama-completion" in sampler.libraries
    assert sampler.private == 110 * 1024


def test_what_is_not_mapped_is_only_sure_after_a_second_look(tmp_path: Path) -> None:
    sampler = ProcSampler(proc=proc(tmp_path, 5), drm_class=tmp_path / "drm")
    sampler(5, Phase.START)
    sampler(5, Phase.LOAD)
    assert not sampler.settled
    sampler(5, Phase.LOAD)
    assert not sampler.settled, "too soon after the first look"
    sampler.next_at = 0.0
    sampler(5, Phase.LOAD)
    assert sampler.settled


def test_looks_before_the_modules_are_loaded_settle_nothing(tmp_path: Path) -> None:
    sampler = ProcSampler(proc=proc(tmp_path, 5), drm_class=tmp_path / "drm")
    for _ in range(5):
        sampler.next_at = 0.0
        sampler(5, Phase.START)
    assert not sampler.settled


def test_a_process_that_is_gone_settles_nothing(tmp_path: Path) -> None:
    sampler = ProcSampler(proc=tmp_path, drm_class=tmp_path / "drm")
    for _ in range(3):
        sampler.next_at = 0.0
        sampler(5, Phase.DONE)
    assert not sampler.settled
    assert sampler.libraries == set()


@pytest.mark.skipif(not maps_readable(), reason="this system has no /proc/PID/maps")
def test_a_real_child_shows_its_libraries() -> None:
    code = "import time; print(1, flush=True); time.sleep(9)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        sampler = ProcSampler()
        sampler(child.pid, Phase.LOAD)
    finally:
        child.kill()
        child.wait()
    assert any(Path(p).name.startswith("libc") for p in sampler.libraries)
    assert sampler.private > MIB


CSV = "00000000:00:06.0, NVIDIA H200, 4, 143771, 580.159.04\n"


def test_cards_are_read_and_noise_is_left_out() -> None:
    text = f"No devices were found\n{CSV}[N/A], x, y, z, w\n00000001:41:00.0, A, [N/A], 5, 6\n"
    (card,) = read_cards(text)
    assert (card.pci, card.name, card.used) == ("0000:00:06.0", "NVIDIA H200", 4 * MIB)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("00000000:00:06.0", "0000:00:06.0"),
        ("0000:41:00.0", "0000:41:00.0"),
        ("41:00.0", "0000:41:00.0"),
        ("00010000:AB:1F.7", "10000:ab:1f.7"),
        (" 0000:01:00.0 ", "0000:01:00.0"),
        ("Vulkan0", ""),
        ("", ""),
        ("xx:yy:zz", ""),
    ],
)
def test_pci_places_have_one_form(text: str, place: str) -> None:
    assert normal_pci(text) == place


def smi(folder: Path, body: str) -> Path:
    program = folder / "nvidia-smi"
    program.write_text(f"#!{sys.executable} -IS\n{body}")
    program.chmod(0o755)
    return program


def test_a_monitor_sees_the_rise_and_stops_with_its_block(tmp_path: Path) -> None:
    body = (
        "import time\nused = 4\nwhile True:\n"
        "    print(f'00000000:00:06.0, NVIDIA H200, {used}, 143771, 580.1', flush=True)\n"
        "    used = min(266, used + 131)\n    time.sleep(0.02)\n"
    )
    with monitoring(smi(tmp_path, body)) as monitor:
        deadline = time.monotonic() + 5
        while monitor.peak.get("0000:00:06.0", 0) < 266 * MIB and time.monotonic() < deadline:
            time.sleep(0.02)
    assert monitor.before == {"0000:00:06.0": 4 * MIB}
    assert monitor.peak == {"0000:00:06.0": 266 * MIB}


@pytest.mark.parametrize("body", ["import sys; sys.exit(9)\n", "print('No devices were found')\n"])
def test_a_monitor_without_cards_lets_the_block_run(tmp_path: Path, body: str) -> None:
    with monitoring(smi(tmp_path, body)) as monitor:
        pass
    assert monitor.before == {}
    assert list_cards(tmp_path / "nvidia-smi") == ()
    with monitoring(None) as monitor:
        assert monitor.peak == {}
    assert list_cards(None) == ()


def test_a_program_that_cannot_start_is_no_card(tmp_path: Path) -> None:
    broken = tmp_path / "nvidia-smi"
    broken.write_text("not a program")
    assert list_cards(broken) == ()
    with monitoring(broken) as monitor:
        assert monitor.before == {}


GPU = Device(id="Vulkan0", name="NVIDIA H200", backend="vulkan", memory=1, software=False,
             pci="0000:00:06.0")  # fmt: skip


def test_the_rise_comes_from_whoever_can_tell() -> None:
    watch = MemoryWatch(device=GPU)
    assert watch.rise()[0] is None
    watch.vram_before = {GPU.pci: 10}
    watch.sampler.vram = {GPU.pci: 110}
    assert watch.rise() == (100, "sysfs mem_info_vram_used")
    watch.sampler.drm = {GPU.pci: 90}
    assert watch.rise() == (90, "/proc/PID/fdinfo")
    watch.monitor = Monitor(before={GPU.pci: 5}, peak={GPU.pci: 85})
    assert watch.rise() == (80, "nvidia-smi")


def test_a_device_without_a_place_is_the_only_card_or_none() -> None:
    from dataclasses import replace

    nowhere = replace(GPU, pci="")
    one = Monitor(before={"0000:01:00.0": 5}, peak={"0000:01:00.0": 9})
    assert MemoryWatch(device=nowhere, monitor=one).rise() == (4, "nvidia-smi")
    two = Monitor(before={"a": 1, "b": 1}, peak={"a": 2, "b": 2})
    assert MemoryWatch(device=nowhere, monitor=two).rise()[0] is None
    other = replace(nowhere, name="AMD Radeon")
    assert MemoryWatch(device=other, monitor=one).rise()[0] is None


def test_a_software_devices_memory_is_the_process_own() -> None:
    from dataclasses import replace

    watch = MemoryWatch(device=replace(GPU, software=True))
    assert watch.rise()[0] is None
    watch.sampler.private = 300
    assert watch.rise()[0] is None, "nothing to compare with"
    watch.reference.private = 120
    assert watch.rise() == (180, "/proc/PID/status, above the reference's")
    assert watch.rise(repacked=100)[0] == 280, "what the reference copied is no plain memory"


def test_no_card_is_asked_for_a_cpu_or_a_software_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    smi(tmp_path, f"print({CSV!r})\n")
    assert nvidia.find_smi() == tmp_path / "nvidia-smi"
    with watching(GPU, cpu=True) as watch:
        assert watch.monitor.before == {}
    with watching(replace(GPU, software=True), cpu=False) as watch:
        assert watch.monitor.before == {}
    with watching(GPU, cpu=False) as watch:
        assert watch.monitor.before == {"0000:00:06.0": 4 * MIB}
    assert memory.maps_readable() is Path("/proc/self/maps").is_file()


def test_threads_are_known_by_their_names(tmp_path: Path) -> None:
    for number, name in enumerate(["llama-bench\n", "llvmpipe-0\n", "\xff\n"]):
        task = tmp_path / "7" / "task" / str(number)
        task.mkdir(parents=True)
        (task / "comm").write_bytes(name.encode("latin-1"))
    (tmp_path / "7" / "task" / "gone").mkdir()
    sampler = ProcSampler(proc=tmp_path, drm_class=tmp_path)
    sampler(7, Phase.LOAD)
    assert sampler.threads == {"llama-bench", "llvmpipe-0", "\ufffd"}
    assert thread_names(tmp_path / "nobody") == set()
