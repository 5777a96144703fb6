"""What the audit looks at: everything already read, so that the rules are pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llamawright.model.built import CapabilityState
from llamawright.model.cuda import GpuCode
from llamawright.model.platform import Platform
from llamawright.package.expected import Expected
from llamawright.package.fatbin import DeviceCode
from llamawright.package.layout import BIN, Placed
from llamawright.package.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaSubject:
    """What is judged of a CUDA artifact.

    ``planned`` is what was to be compiled, ``code`` what the modules hold, by their paths.
    ``companion`` are the libraries that come in an archive of their own, ``None`` where
    the system must have them.
    """

    toolkit: str
    planned: tuple[GpuCode, ...]
    code: Mapping[str, DeviceCode]
    companion: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An artifact about to be packed.

    ``digests`` is sha256 by path, for files and, through their targets, for links.
    ``unreadable`` are files of ``bin/`` that are no binaries. ``allowed`` are the import
    patterns for every file, ``device_allowed`` those for the backend's own module.
    ``licences_missing`` are texts the recipe names and nobody has.
    """

    platform: Platform
    expected: Expected
    files: tuple[Placed, ...]
    digests: Mapping[str, str]
    readings: tuple[Reading, ...]
    unreadable: tuple[str, ...]
    allowed: tuple[str, ...]
    device_allowed: tuple[str, ...]
    licences_missing: tuple[str, ...]
    capabilities: tuple[CapabilityState, ...]
    required_capabilities: tuple[str, ...]
    native: bool
    cuda: CudaSubject | None = None

    def in_bin(self) -> tuple[Placed, ...]:
        """Return the files and links beside the programs."""
        return tuple(f for f in self.files if f.folder == BIN)
