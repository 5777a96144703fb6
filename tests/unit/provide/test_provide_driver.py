"""The software driver: the environment that leads to it alone, and the probe in a child."""

from __future__ import annotations

import ctypes
import json
import struct
from pathlib import Path

import pytest
from provide_fakes import LIB, driver_set, write_blobs

from llamawright.errors import ToolMissingError
from llamawright.provide import driver as room
from llamawright.provide import vulkan_devices
from llamawright.provide.debian import unpack_driver
from llamawright.provide.driver import driver_environment, prove_driver


@pytest.fixture
def root(tmp_path: Path) -> Path:
    provided, packages = driver_set()
    unpack_driver(provided, write_blobs(tmp_path / "blobs", packages), tmp_path / "driver")
    return tmp_path / "driver"


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "probe.py"
    monkeypatch.setattr(room, "PROBE", path)
    return path


def test_environment(root: Path) -> None:
    env = driver_environment(root)
    icd = str(root / "usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
    assert env["VK_DRIVER_FILES"] == icd
    assert env["VK_ICD_FILENAMES"] == icd
    assert env["VK_LOADER_LAYERS_DISABLE"] == "~implicit~"
    assert env["LD_LIBRARY_PATH"].split(":") == [
        str(root / LIB),
        str(root / "lib/x86_64-linux-gnu"),
    ]


def test_environment_of_a_folder_that_is_no_driver(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError, match="holds 0 Vulkan drivers") as caught:
        driver_environment(tmp_path)
    assert caught.value.kind == "incomplete-set"


def test_environment_of_a_prefix_someone_added_a_driver_to(root: Path) -> None:
    (root / "usr/share/vulkan/icd.d/radeon_icd.json").write_text("{}")
    with pytest.raises(ToolMissingError, match="holds 2 Vulkan drivers"):
        driver_environment(root)


def test_proof(root: Path, probe: Path) -> None:
    probe.write_text(
        "import json, os\n"
        "assert os.environ['VK_DRIVER_FILES'].endswith('lvp_icd.x86_64.json')\n"
        "print(json.dumps([{'type': 2, 'name': 'GPU', 'api': '1.3.0'},"
        " {'type': 4, 'name': 'llvmpipe', 'api': '1.3.230'}]))\n"
    )
    device = prove_driver(root)
    assert (device.name, device.api) == ("llvmpipe", "1.3.230")


@pytest.mark.parametrize(
    "script",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "raise SystemExit(1)",
        "print('[]')",
        "print('no json')",
        "print('{}')",
        "print('[1]')",
        "import json; print(json.dumps([{'type': 2, 'name': 'GPU', 'api': '1'}]))",
    ],
    ids=["segfault", "status", "no device", "text", "object", "number", "hardware only"],
)
def test_drivers_that_do_not_work(root: Path, probe: Path, script: str) -> None:
    probe.write_text(script)
    with pytest.raises(ToolMissingError, match="does not work here") as caught:
        prove_driver(root)
    assert caught.value.kind == "driver-unusable"
    assert "glibc 2.36" in caught.value.hint


# --- the probe itself -----------------------------------------------------------------------

NAME = b"llvmpipe (LLVM 15.0.6, 256 bits)"
API = 1 << 22 | 3 << 12 | 230


class FakeVulkan:
    """The three functions the probe calls, with devices of our choice."""

    def __init__(self, kinds: tuple[int, ...], *, create: int = 0, enumerate_: int = 0) -> None:
        self.kinds, self.create, self.enumerate_ = kinds, create, enumerate_

    def vkCreateInstance(self, _info: object, _allocator: None, _out: object) -> int:  # noqa: N802
        return self.create

    def vkEnumeratePhysicalDevices(  # noqa: N802
        self, _instance: object, count: object, handles: ctypes.Array[ctypes.c_void_p]
    ) -> int:
        number: ctypes.c_uint32 = getattr(count, "_obj")  # noqa: B009 - of ctypes.byref
        number.value = len(self.kinds)
        for position in range(len(self.kinds)):
            handles[position] = position + 1
        return self.enumerate_

    def vkGetPhysicalDeviceProperties(  # noqa: N802
        self, handle: ctypes.c_void_p, out: ctypes.Array[ctypes.c_char]
    ) -> None:
        kind = self.kinds[(handle.value or 0) - 1]
        head = struct.pack("=5I256s", API, 7, 0x10005, 0, kind, NAME)
        ctypes.memmove(out, head, len(head))


def devices(vulkan: FakeVulkan) -> list[dict[str, object]]:
    return vulkan_devices.list_devices(vulkan)  # type: ignore[arg-type]


def test_probe_reads_the_properties() -> None:
    assert devices(FakeVulkan((4,))) == [
        {"type": 4, "name": NAME.decode(), "api": "1.3.230", "driver": 7, "vendor": 0x10005}
    ]


def test_probe_lists_every_device() -> None:
    assert [d["type"] for d in devices(FakeVulkan((2, 1, 4)))] == [2, 1, 4]
    assert devices(FakeVulkan(())) == []


def test_probe_without_an_instance() -> None:
    with pytest.raises(OSError, match="vkCreateInstance: -9"):
        devices(FakeVulkan((), create=-9))


def test_probe_that_cannot_enumerate() -> None:
    with pytest.raises(OSError, match="vkEnumeratePhysicalDevices: -3"):
        devices(FakeVulkan((), enumerate_=-3))


def test_probe_without_a_loader(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vulkan_devices, "LOADERS", ("libno-such-vulkan.so.1",))
    assert vulkan_devices.main() == 1
    assert "no Vulkan loader" in capsys.readouterr().err


def test_probe_prints_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: FakeVulkan((4,)))
    assert vulkan_devices.main() == 0
    assert json.loads(capsys.readouterr().out)[0]["type"] == 4


def test_probe_tells_a_failing_instance(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: FakeVulkan((), create=-9))
    assert vulkan_devices.main() == 1
    assert "vkCreateInstance: -9" in capsys.readouterr().err
