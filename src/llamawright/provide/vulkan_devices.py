"""List the Vulkan devices as JSON. Run as a program of its own: a driver may crash it.

Uses nothing but the standard library and the loader found by ``LD_LIBRARY_PATH``. The
structures are those of Vulkan 1.0: an instance without layers or extensions, and the head
of ``VkPhysicalDeviceProperties`` (five 32-bit numbers, then the name of 256 bytes).
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys

LOADERS = ("libvulkan.so.1", "vulkan-1.dll", "libvulkan.1.dylib")
INSTANCE_INFO = 1
MAX_DEVICES = 64
PROPERTIES_SIZE = 4096
HEAD = struct.Struct("=5I256s")


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


def list_devices(vulkan: ctypes.CDLL) -> list[dict[str, object]]:
    """Return type, name and API version of every physical device."""
    instance = ctypes.c_void_p()
    info = InstanceInfo(type=INSTANCE_INFO)
    status = vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance))
    if status != 0:
        raise OSError(f"vkCreateInstance: {status}")
    count = ctypes.c_uint32(MAX_DEVICES)
    handles = (ctypes.c_void_p * MAX_DEVICES)()
    status = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
    if status < 0:
        raise OSError(f"vkEnumeratePhysicalDevices: {status}")
    return [_describe(vulkan, handles[i]) for i in range(count.value)]


def _describe(vulkan: ctypes.CDLL, handle: int | None) -> dict[str, object]:
    properties = ctypes.create_string_buffer(PROPERTIES_SIZE)
    vulkan.vkGetPhysicalDeviceProperties(ctypes.c_void_p(handle), properties)
    api, driver, vendor, _device, kind, name = HEAD.unpack_from(properties.raw)
    return {
        "type": kind,
        "name": name.partition(b"\0")[0].decode(errors="replace"),
        "api": f"{api >> 22 & 0x7F}.{api >> 12 & 0x3FF}.{api & 0xFFF}",
        "driver": driver,
        "vendor": vendor,
    }


def main() -> int:
    """Print the devices; status 1 when there is no loader or no instance."""
    for name in LOADERS:
        try:
            vulkan = ctypes.CDLL(name)
        except OSError as error:
            problem = str(error)
            continue
        try:
            sys.stdout.write(json.dumps(list_devices(vulkan)) + "\n")
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        return 0
    sys.stderr.write(f"no Vulkan loader: {problem}\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
