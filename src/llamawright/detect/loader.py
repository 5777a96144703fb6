"""What is there to run Vulkan: the loader and the drivers' manifests (ICD), for doctor.

A loader without a driver lists no device and says nothing about it (case R2).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from llamawright.model.platform import Platform, System

LOADER = "libvulkan.so.1"
NAMED = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
ADDED = "VK_ADD_DRIVER_FILES"
LIBRARIES = ("usr/local/lib", "usr/lib64", "usr/lib")


def vulkan_notes(
    env: Mapping[str, str], platform: Platform, *, root: Path = Path("/")
) -> tuple[str, ...]:
    """Return what a reader of ``doctor`` should know about running Vulkan on this machine.

    Linux only: elsewhere the system's own tools name the drivers.
    """
    if platform.system is not System.LINUX:
        return ()
    notes = list(_variables(env))
    if not _library(LOADER, env, platform, root):
        notes.append(f"no Vulkan loader ({LOADER}): only a provided one can run an artifact here")
    drivers = [(p, _fault(p, env, platform, root)) for p in manifests(env, root=root)]
    notes += [f"Vulkan driver {p}: {fault}" for p, fault in drivers if fault]
    usable = [p.name for p, fault in drivers if not fault]
    if usable:
        notes.append(f"Vulkan drivers (ICD): {', '.join(usable)}")
    else:
        notes.append("no Vulkan driver (ICD): without one, only the software driver can verify")
    return tuple(notes)


def usable_vulkan_drivers(
    env: Mapping[str, str], platform: Platform, *, root: Path = Path("/")
) -> tuple[Path, ...]:
    """Return the driver manifests whose library exists; software drivers count too.

    Empty on other systems than Linux, where nothing is known without asking the loader.
    """
    if platform.system is not System.LINUX:
        return ()
    return tuple(p for p in manifests(env, root=root) if not _fault(p, env, platform, root))


def manifests(env: Mapping[str, str], *, root: Path = Path("/")) -> tuple[Path, ...]:
    """Return the driver manifests the loader would read, in its order."""
    named = next((env[n] for n in NAMED if env.get(n)), None)
    added = _split(env.get(ADDED, ""))
    places = _split(named) if named is not None else [*added, *_default_folders(env, root)]
    found: dict[Path, None] = {}
    for place in places:
        files = sorted(place.glob("*.json")) if place.is_dir() else [place]
        found |= dict.fromkeys(f for f in files if f.exists() or named is not None)
    return tuple(found)


def _variables(env: Mapping[str, str]) -> Iterator[str]:
    for name in (*NAMED, ADDED, "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"):
        if env.get(name):
            yield f"{name} is set: {env[name]}"


def _default_folders(env: Mapping[str, str], root: Path) -> list[Path]:
    """Return the loader's search path on Linux: configuration first, then data folders."""
    home = Path(env.get("HOME", "/nonexistent"))
    config = [Path(env.get("XDG_CONFIG_HOME") or home / ".config")]
    config += _split(env.get("XDG_CONFIG_DIRS", "")) or [root / "etc/xdg"]
    data = [Path(env.get("XDG_DATA_HOME") or home / ".local/share")]
    data += _split(env.get("XDG_DATA_DIRS", "")) or [root / "usr/local/share", root / "usr/share"]
    return [p / "vulkan" / "icd.d" for p in (*config, root / "etc", *data)]


def _fault(manifest: Path, env: Mapping[str, str], platform: Platform, root: Path) -> str:
    try:
        library = json.loads(manifest.read_text(encoding="utf-8"))["ICD"]["library_path"]
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it is no driver manifest"
    if not isinstance(library, str) or not library:
        return "it is no driver manifest"
    if "/" in library:
        path = manifest.parent / library
        return "" if path.exists() else f"it names {path}, which does not exist"
    found = _library(library, env, platform, root)
    return "" if found else f"it names {library}, which is in no library folder"


def _library(name: str, env: Mapping[str, str], platform: Platform, root: Path) -> bool:
    folders = [root / "usr/lib" / f"{platform.machine}-linux-gnu"]
    folders += [root / f for f in LIBRARIES]
    folders += _split(env.get("LD_LIBRARY_PATH", ""))
    return any((f / name).exists() for f in folders)


def _split(text: str) -> list[Path]:
    return [Path(w) for w in text.split(os.pathsep) if w]
