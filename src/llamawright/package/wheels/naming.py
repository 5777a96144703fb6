"""What a wheel is called: version, local label, file name. Pure."""

from __future__ import annotations

from packaging.version import Version

from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.floors import numbers
from llamawright.model.platform import Backend
from llamawright.model.wheel import WHEEL_PACKAGE

PYTHON_TAG = "py3-none"


def local_label(manifest: Manifest) -> str:
    """Return the part after ``+``: ``cpu``, ``vulkan``, or ``cu124`` for CUDA 12.4.

    Two wheels of one upstream must not have one name: pip would call the second satisfied.
    """
    if manifest.backend is not Backend.CUDA:
        return manifest.backend.value
    toolkit = manifest.cuda.toolkit if manifest.cuda else ""
    parts = numbers(toolkit)[:2]
    if len(parts) < 2 or not parts[0]:  # noqa: PLR2004 - major and minor
        raise PackageError(
            f"{manifest.name} does not say which CUDA it was built with",
            why=f"its manifest names the toolkit {toolkit or 'not at all'}",
            hint="build the artifact again with this version of llamawright",
            kind="no-toolkit",
        )
    return f"cu{parts[0]}{parts[1]}"


def wheel_version(manifest: Manifest) -> str:
    """Return the version: upstream's build number, which only ever rises, and the label.

    Upstream has no releases but its builds (``b11312``), and its own ``0.5.0-dev`` stays
    the same over thousands of them.
    """
    return str(Version(f"0.0.{manifest.build_number}+{local_label(manifest)}"))


def wheel_stem(version: str, platform_tag: str) -> str:
    """Return the file name without ``.whl``."""
    return f"{WHEEL_PACKAGE}-{version}-{PYTHON_TAG}-{platform_tag}"
