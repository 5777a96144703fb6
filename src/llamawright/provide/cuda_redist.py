"""NVIDIA's redistributable manifests: which file of a component is for which platform.

A release has one ``redistrib_<version>.json``: components by name, and in each of them one
entry per platform with ``relative_path``, ``sha256`` and ``size``. It is read when a set's file
names it in ``published`` instead of pinning a sha256.

For maintainers: ``python -m llamawright.provide.cuda_redist MANIFEST-ADDRESS MANIFEST-FILE
PLATFORM`` prints the pins of a toolkit for ``linux-x86_64`` or ``windows-x86_64`` (an address
names no file, so the manifest is fetched by other means first).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import DownloadError
from llamawright.model.toolchain import ProvidedFile

MANIFEST_SIZE = 1 << 20
"""A cap in bytes; that of 12.9.1 has 54,257."""

MANIFEST_NAME = re.compile(r"redistrib_[\w.]+\.json")
SHA256 = re.compile(r"[0-9a-f]{64}")
COMPONENTS = ("cuda_nvcc", "cuda_cudart", "cuda_cccl", "libcublas")
FROM_13 = ("cuda_crt", "libnvvm")
"""What ``cuda_nvcc`` held itself before CUDA 13."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One component's archive for one platform; ``size`` in bytes."""

    name: str
    version: str
    platform: str
    path: str
    size: int
    sha256: str


def is_manifest(address: str) -> bool:
    """Whether an address is that of a redistributable manifest, by its last part."""
    return bool(MANIFEST_NAME.fullmatch(address.rpartition("/")[2]))


def component(text: str, name: str, platform: str) -> Component:
    """Return one component as a manifest's text states it.

    Raises ``ValueError`` with the reason when the text is none, or does not have it in full.
    """
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not whole JSON") from error
    if not isinstance(manifest, dict) or manifest.get("release_product") != "cuda":
        raise ValueError("it is no manifest of a CUDA release")
    entry = _table(manifest, name)
    if not entry:
        raise ValueError(f"it has no component {name}")
    archive = _table(entry, platform)
    if not archive:
        known = ", ".join(sorted(k for k in entry if _table(entry, k)))
        raise ValueError(f"it has {name} for {known or 'nothing'}, not for {platform}")
    return _component(name, platform, str(entry.get("version", "")), archive)


def stated(text: str, file: ProvidedFile) -> Component:
    """Return what a manifest says of a set's file, or raise ``DownloadError``.

    The manifest must mean this very file: below its own folder, of this version, and of the
    pinned size where that is no mere cap.
    """
    base = file.published.rpartition("/")[0]
    try:
        found = component(text, file.package, _platform(file, base))
        _agree(found, file, base)
    except ValueError as error:
        raise DownloadError(
            f"NVIDIA's manifest does not vouch for {file.package} {file.version}",
            why=f"{file.published}: {error}",
            hint="check the address in a browser; another set may do: llamawright doctor",
            kind="no-published-sha256",
        ) from error
    return found


def pins(text: str, address: str, platform: str) -> str:
    """Return the TOML of the files that a toolkit for ``platform`` consists of.

    Raises ``ValueError`` when the manifest lacks a component.
    """
    found = [component(text, name, platform) for name in COMPONENTS]
    if int(found[0].version.partition(".")[0]) >= 13:  # noqa: PLR2004 - see FROM_13
        found += [component(text, name, platform) for name in FROM_13]
    return "\n".join(_toml(c, address) for c in found)


def main(arguments: Sequence[str]) -> int:
    """Print the pins of one release for one platform."""
    address, manifest, platform = arguments
    sys.stdout.write(pins(Path(manifest).read_text(encoding="utf-8"), address, platform))
    return 0


def _table(data: Mapping[str, object], key: str) -> dict[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _agree(found: Component, file: ProvidedFile, base: str) -> None:
    if f"{base}/{found.path}" != file.location:
        raise ValueError(f"it has {file.package} at {found.path[:200]}")
    if found.version != file.version:
        raise ValueError(f"it has {file.package} {found.version[:40]}, not {file.version}")
    if found.size > file.size or (found.size != file.size and not file.capped):
        raise ValueError(f"it says {found.size} bytes, and {file.size} are pinned")


def _component(name: str, platform: str, version: str, archive: Mapping[str, object]) -> Component:
    path, size = str(archive.get("relative_path", "")), str(archive.get("size", ""))
    sha256 = str(archive.get("sha256", "")).lower()
    if not SHA256.fullmatch(sha256):
        raise ValueError(f"it has no sha256 of {name} for {platform}")
    if not (size.isascii() and size.isdigit() and 0 < len(size) < 16 and int(size)):  # noqa: PLR2004
        raise ValueError(f"it has no size of {name} for {platform}")
    if not version or not path.startswith(f"{name}/{platform}/") or ".." in path:
        raise ValueError(f"its entry of {name} for {platform} leads elsewhere")
    return Component(
        name=name, version=version, platform=platform, path=path, size=int(size), sha256=sha256
    )


def _platform(file: ProvidedFile, base: str) -> str:
    """Return NVIDIA's name of the platform, the second folder of a file's address."""
    parts = file.location.removeprefix(f"{base}/").split("/")
    return parts[1] if len(parts) == 3 else "this platform"  # noqa: PLR2004 - name/platform/file


def _toml(found: Component, address: str) -> str:
    lines = [
        "[[set.files]]",
        'registry = "url"',
        f'package = "{found.name}"',
        f'version = "{found.version}"',
        f'location = "{address.rpartition("/")[0]}/{found.path}"',
        f"size = {found.size}",
        f'sha256 = "{found.sha256}"',
        f'published = "{address}"',
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
