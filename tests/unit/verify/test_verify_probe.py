"""The Vulkan probe against a loader of our own: sizes and places of the structures."""

from __future__ import annotations

import ctypes
import json
import struct
from typing import cast

import pytest

from llamawright.verify import vulkan_probe
from llamawright.verify.vulkan_probe import (
    DRIVER_PROPERTIES,
    FEATURES_2,
    HEAD,
    HEAPS_AT,
    ID_PROPERTIES,
    PCI_PROPERTIES,
    POINTER,
    PROPERTIES_2,
    STORAGE_16,
    Block,
    list_devices,
    local_memory,
    pci_place,
    text,
)


class Loader:
    """Answers as a Vulkan loader with one device does."""

    def __init__(self, *, create: int = 0, enumerate_: int = 0, pci: bool = True) -> None:
        self.create, self.enumerate, self.pci = create, enumerate_, pci
        self.vkCreateInstance = self._create
        self.vkEnumeratePhysicalDevices = self._enumerate
        self.vkGetPhysicalDeviceProperties2 = self._properties
        self.vkGetPhysicalDeviceFeatures2 = self._features
        self.vkGetPhysicalDeviceMemoryProperties = self._memory

    def _create(self, _info: object, _allocator: object, _out: object) -> int:
        return self.create

    def _enumerate(self, _instance: object, count: object, out: object) -> int:
        cast("ctypes._Pointer[ctypes.c_uint32]", count)._obj.value = 1  # type: ignore[attr-defined]
        cast("ctypes.Array[ctypes.c_void_p]", out)[0] = 0x1234
        return self.enumerate

    def _properties(self, device: ctypes.c_void_p, chain: object) -> None:
        assert device.value == 0x1234
        for kind, raw in blocks(cast("ctypes.Array[ctypes.c_char]", chain)):
            if kind == PROPERTIES_2:
                api = 1 << 22 | 3 << 12 | 230
                write(raw, struct.pack("=5I256s", api, 7, 0x10DE, 1, 2, b"A GPU"))
            elif kind == DRIVER_PROPERTIES:
                write(raw, struct.pack("=I256s256s", 4, b"NVIDIA", b"580.1"))
            elif kind == ID_PROPERTIES:
                write(raw, bytes(range(16)))
            elif kind == PCI_PROPERTIES and self.pci:
                write(raw, struct.pack("=4I", 0, 0x41, 2, 3))

    def _features(self, _device: object, chain: object) -> None:
        kinds = blocks(cast("ctypes.Array[ctypes.c_char]", chain))
        assert [k for k, _ in kinds] == [FEATURES_2, STORAGE_16]
        write(kinds[1][1], struct.pack("=I", 1))

    def _memory(self, _device: object, out: object) -> None:
        ctypes.memmove(cast("ctypes.Array[ctypes.c_char]", out), heaps((5 << 30, 1), (9, 0)), 512)


def heaps(*sizes: tuple[int, int]) -> bytes:
    packed = b"".join(struct.pack("=QII", size, flags, 0) for size, flags in sizes)
    return (b"\0" * (HEAPS_AT - 4) + struct.pack("=I", len(sizes)) + packed).ljust(1024, b"\0")


def blocks(chain: ctypes.Array[ctypes.c_char]) -> list[tuple[int, int]]:
    """Follow a pNext chain as a driver does: (type, address of the content)."""
    found, address = [], ctypes.addressof(chain)
    while address:
        found.append((ctypes.c_uint32.from_address(address).value, address + HEAD))
        address = ctypes.c_void_p.from_address(address + POINTER).value or 0
    return found


def write(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))


def test_everything_is_read_from_its_place() -> None:
    (device,) = list_devices(cast("ctypes.CDLL", Loader()))
    assert device == {
        "index": 0, "name": "A GPU", "type": 2, "vendor": 0x10DE, "api": "1.3.230",
        "driver_id": 4, "driver_name": "NVIDIA", "driver_info": "580.1",
        "uuid": "000102030405060708090a0b0c0d0e0f", "pci": "0000:41:02.3", "memory": 5 << 30,
        "storage16": True,
    }  # fmt: skip
    json.dumps(device)


def test_a_driver_without_pci_places_leaves_them_empty() -> None:
    (device,) = list_devices(cast("ctypes.CDLL", Loader(pci=False)))
    assert device["pci"] == ""


def test_a_loader_that_refuses_is_told_with_its_number() -> None:
    with pytest.raises(OSError, match="vkCreateInstance: -9"):
        list_devices(cast("ctypes.CDLL", Loader(create=-9)))
    with pytest.raises(OSError, match="vkEnumeratePhysicalDevices: -3"):
        list_devices(cast("ctypes.CDLL", Loader(enumerate_=-3)))


def test_chains_are_linked_by_address() -> None:
    last = Block(2, 8)
    first = Block(1, 8, last)
    assert [k for k, _ in blocks(first.raw)] == [1, 2]
    assert len(first.content) == 8


def test_only_device_local_heaps_count() -> None:
    assert local_memory(heaps((1, 1), (2, 0), (4, 3))) == 5
    assert local_memory(heaps()) == 0
    too_many = heaps((1, 1))
    broken = too_many[: HEAPS_AT - 4] + struct.pack("=I", 10**6) + too_many[HEAPS_AT:]
    assert local_memory(broken) == 1


def test_small_readers() -> None:
    assert text(b"abc\0def") == "abc"
    assert text(b"\xff\0") == "�"
    assert pci_place(struct.pack("=4I", 1, 0xAB, 0x1F, 7)) == "0001:ab:1f.7"
    assert pci_place(struct.pack("=4I", *[0xFFFFFFFF] * 4)) == ""


def test_without_a_loader_the_status_is_three(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vulkan_probe, "LOADERS", ("libnothing-of-that-name.so.9",))
    assert vulkan_probe.main() == 3
    assert "libnothing-of-that-name.so.9" in capsys.readouterr().err


def test_a_library_that_is_no_loader_is_a_failure_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vulkan_probe, "LOADERS", ("libc.so.6",))
    assert vulkan_probe.main() == 1
    assert "vkCreateInstance" in capsys.readouterr().err
