"""List the Vulkan devices as JSON, independently of the artifact.

Run as a program of its own: a driver may crash it. Uses nothing but the standard library
and the loader. Sizes and numbers are those of the Vulkan 1.2 headers.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys

LOADERS = ("libvulkan.so.1", "vulkan-1.dll", "libvulkan.1.dylib")
API_1_2 = 1 << 22 | 2 << 12
APPLICATION_INFO, INSTANCE_INFO = 0, 1
PROPERTIES_2, FEATURES_2, STORAGE_16 = 1000059001, 1000059000, 1000083000
ID_PROPERTIES, DRIVER_PROPERTIES, PCI_PROPERTIES = 1000071004, 1000196000, 1000212000
MAX_DEVICES = 64
UNSET = 0xFFFFFFFF
DEVICE_LOCAL = 1
POINTER = ctypes.sizeof(ctypes.c_void_p)
WIDE = 8
HEAD = 2 * POINTER  # sType, padding, pNext
LIMITS = struct.Struct("=5I256s")
HEAP = struct.Struct("=QII")
HEAPS_AT = 4 + 32 * 8 + 4  # memoryTypeCount, 32 types, memoryHeapCount
MAX_HEAPS = 16


class ApplicationInfo(ctypes.Structure):
    """``VkApplicationInfo``."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_uint32),
        ("engine", ctypes.c_char_p),
        ("engine_version", ctypes.c_uint32),
        ("api", ctypes.c_uint32),
    )


class InstanceInfo(ctypes.Structure):
    """``VkInstanceCreateInfo``."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("layer_count", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("extension_count", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    )


class Block:
    """A structure of a ``pNext`` chain: its head, then ``size`` bytes of content."""

    def __init__(self, kind: int, size: int, following: Block | None = None) -> None:
        self.raw = ctypes.create_string_buffer(HEAD + size)
        self.following = following
        struct.pack_into("=I", self.raw, 0, kind)
        address = ctypes.addressof(following.raw) if following else 0
        struct.pack_into("=Q" if POINTER == WIDE else "=I", self.raw, POINTER, address)

    @property
    def content(self) -> bytes:
        """Return the bytes behind the head."""
        return self.raw.raw[HEAD:]


def list_devices(vulkan: ctypes.CDLL) -> list[dict[str, object]]:
    """Return what the loader says of every physical device, in its own order."""
    instance = ctypes.c_void_p()
    application = ApplicationInfo(type=APPLICATION_INFO, api=API_1_2)
    info = InstanceInfo(type=INSTANCE_INFO, application=ctypes.addressof(application))
    status = vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance))
    if status != 0:
        raise OSError(f"vkCreateInstance: {status}")
    count = ctypes.c_uint32(MAX_DEVICES)
    handles = (ctypes.c_void_p * MAX_DEVICES)()
    status = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
    if status < 0:
        raise OSError(f"vkEnumeratePhysicalDevices: {status}")
    return [describe(vulkan, ctypes.c_void_p(handles[i]), i) for i in range(count.value)]


def describe(vulkan: ctypes.CDLL, device: ctypes.c_void_p, index: int) -> dict[str, object]:
    """Return one device: name, type, driver, PCI place, memory, 16-bit storage."""
    pci = Block(PCI_PROPERTIES, 16)
    struct.pack_into("=4I", pci.raw, HEAD, *([UNSET] * 4))
    identity = Block(ID_PROPERTIES, 48, pci)
    driver = Block(DRIVER_PROPERTIES, 4 + 256 + 256 + 4, identity)
    properties = Block(PROPERTIES_2, 4096, driver)
    vulkan.vkGetPhysicalDeviceProperties2(device, properties.raw)
    storage = Block(STORAGE_16, 16)
    features = Block(FEATURES_2, 1024, storage)
    vulkan.vkGetPhysicalDeviceFeatures2(device, features.raw)
    memory = ctypes.create_string_buffer(1024)
    vulkan.vkGetPhysicalDeviceMemoryProperties(device, memory)
    api, _version, vendor, _device, kind, name = LIMITS.unpack_from(properties.content)
    return {
        "index": index,
        "name": text(name),
        "type": kind,
        "vendor": vendor,
        "api": f"{api >> 22 & 0x7F}.{api >> 12 & 0x3FF}.{api & 0xFFF}",
        "driver_id": struct.unpack_from("=I", driver.content)[0],
        "driver_name": text(driver.content[4:260]),
        "driver_info": text(driver.content[260:516]),
        "uuid": identity.content[:16].hex(),
        "pci": pci_place(pci.content),
        "memory": local_memory(memory.raw),
        "storage16": bool(struct.unpack_from("=I", storage.content)[0]),
    }


def text(raw: bytes) -> str:
    """Return a C string."""
    return raw.partition(b"\0")[0].decode(errors="replace")


def pci_place(raw: bytes) -> str:
    """Return ``domain:bus:device.function``, or nothing when the driver left it unset."""
    domain, bus, device, function = struct.unpack_from("=4I", raw)
    return "" if bus == UNSET else f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def local_memory(raw: bytes) -> int:
    """Return the bytes of all device-local heaps of ``VkPhysicalDeviceMemoryProperties``."""
    count = min(struct.unpack_from("=I", raw, HEAPS_AT - 4)[0], MAX_HEAPS)
    heaps = [HEAP.unpack_from(raw, HEAPS_AT + HEAP.size * i) for i in range(count)]
    return sum(size for size, flags, _padding in heaps if flags & DEVICE_LOCAL)


def main() -> int:
    """Print the devices; status 3 when there is no loader, 1 when it refuses."""
    problems = []
    for name in LOADERS:
        try:
            vulkan = ctypes.CDLL(name)
        except OSError as error:
            problems.append(str(error))
            continue
        try:
            sys.stdout.write(json.dumps(list_devices(vulkan)) + "\n")
        except (OSError, AttributeError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
        return 0
    sys.stderr.write(f"{problems[0]}\n")
    return 3


if __name__ == "__main__":
    raise SystemExit(main())
