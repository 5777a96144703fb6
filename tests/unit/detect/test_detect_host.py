"""Platform, cores, memory and system ids, read from words and files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from llamawright.detect import host
from llamawright.errors import ToolchainConflictError
from llamawright.model.platform import Platform, System

LINUX = Platform(System.LINUX, "x86_64")
GIB = 1 << 30


@pytest.mark.parametrize(
    ("system", "machine", "tag"),
    [
        ("linux", "x86_64", "linux_x86_64"),
        ("linux", "aarch64", "linux_aarch64"),
        ("linux", "arm64", "linux_aarch64"),
        ("win32", "AMD64", "windows_x86_64"),
        ("win32", "ARM64", "windows_arm64"),
        ("darwin", "arm64", "macos_arm64"),
        ("darwin", "x86_64", "macos_x86_64"),
        ("linux", "riscv64", "linux_riscv64"),
    ],
)
def test_one_name_per_platform(system: str, machine: str, tag: str) -> None:
    assert host.platform_of(system=system, machine=machine, bits=64).tag == tag


def test_a_32_bit_python_is_refused() -> None:
    with pytest.raises(ToolchainConflictError) as caught:
        host.platform_of(system="win32", machine="AMD64", bits=32)
    assert caught.value.kind == "32-bit-python"
    assert "64-bit Python" in caught.value.hint


def test_a_translated_python_is_refused() -> None:
    with pytest.raises(ToolchainConflictError) as caught:
        host.platform_of(system="darwin", machine="x86_64", bits=64, translated=True)
    assert caught.value.kind == "translated-python"
    assert "arm64" in caught.value.hint


def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(ToolchainConflictError) as caught:
        host.platform_of(system="sunos5", machine="i86pc", bits=64)
    assert caught.value.kind == "unknown-system"


def test_this_machine_has_a_platform() -> None:
    assert host.detect_platform().tag


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("ID=debian\nVERSION_ID=12\n", ("debian",)),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', ("linuxmint", "ubuntu", "debian")),
        ('NAME="Odd"\nno pair here\nID="opensuse-leap"\nID_LIKE="suse opensuse"\n',
         ("opensuse-leap", "suse", "opensuse")),
        ("", ()),
    ],
)  # fmt: skip
def test_the_system_names_itself_and_its_family(
    tmp_path: Path, text: str, ids: tuple[str, ...]
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(text)
    assert host.system_ids(LINUX, root=tmp_path) == ids


def test_a_system_without_os_release_has_no_id(tmp_path: Path) -> None:
    assert host.system_ids(LINUX, root=tmp_path) == ()
    assert host.system_ids(Platform(System.MACOS, "arm64"), root=tmp_path) == ("macos",)


def group(root: Path, place: str, line: str, **limits: str) -> None:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(line)
    folder = root / "sys/fs/cgroup" / place
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in limits.items():
        (folder / name.replace("_in_", ".").replace("__", ".")).write_text(f"{value}\n")


def test_a_control_group_limits_cores_and_memory(tmp_path: Path) -> None:
    place = "user/box"
    group(tmp_path, place, "0::/user/box\n", cpu__max="100000 100000", memory__max=str(2 * GIB),
          memory__current=str(GIB))  # fmt: skip
    seen = host.measure(root=tmp_path)
    assert (seen.cores, seen.memory) == (1, 2 * GIB)
    assert seen.memory_free <= GIB


def test_a_parents_limit_counts_too(tmp_path: Path) -> None:
    group(tmp_path, "user/box", "0::/user/box\n", cpu__max="max 100000", memory__max="max")
    (tmp_path / "sys/fs/cgroup/user/memory.max").write_text(str(GIB))
    assert host.measure(root=tmp_path).memory == GIB


def test_less_than_one_core_is_still_one(tmp_path: Path) -> None:
    group(tmp_path, "", "0::/\n", cpu__max="20000 100000")
    assert host.measure(root=tmp_path).cores == 1


def test_the_older_control_groups_are_read(tmp_path: Path) -> None:
    lines = "4:memory:/box\n3:cpu,cpuacct:/box\n2:devices:/box\n"
    group(tmp_path, "cpu/box", lines)
    group(tmp_path, "memory/box", lines)
    (tmp_path / "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us").write_text("100000")
    (tmp_path / "sys/fs/cgroup/cpu/box/cpu.cfs_period_us").write_text("100000")
    (tmp_path / "sys/fs/cgroup/memory/box/memory.limit_in_bytes").write_text(str(3 * GIB))
    seen = host.measure(root=tmp_path)
    assert seen.cores == 1
    assert seen.memory <= 3 * GIB


@pytest.mark.parametrize("text", ["", "nonsense", "-1", "0 0", "100000 0"])
def test_damaged_limits_are_no_limits(tmp_path: Path, text: str) -> None:
    group(tmp_path, "", "0::/\n", cpu__max=text, memory__max=text)
    free = host.measure(root=tmp_path / "no-such-root")
    seen = host.measure(root=tmp_path)
    assert (seen.cores, seen.memory) == (free.cores, free.memory)


def test_no_control_group_leaves_the_machine_as_it_is(tmp_path: Path) -> None:
    seen = host.measure(root=tmp_path)
    assert seen.cores >= 1
    assert 0 < seen.memory_free <= seen.memory
    assert not math.isinf(seen.cores)


def test_the_processor_is_named_with_its_features(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    text = "processor : 0\nmodel name : Fast CPU\nflags : avx avx2\n\nprocessor : 1\n"
    (tmp_path / "proc/cpuinfo").write_text(text)
    first = host.processor(root=tmp_path)
    (tmp_path / "proc/cpuinfo").write_text(text.replace("avx2", "avx2 avx512f"))
    assert first.startswith("Fast CPU ")
    assert host.processor(root=tmp_path) != first
