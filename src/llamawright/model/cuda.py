"""CUDA's own terms: device code by compute capability, and the machine's NVIDIA cards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# sm_61, compute_61, 61, 61-real, 61-virtual, 6.1, 12.0, 120a, sm_90a, 103f
_WORD = re.compile(
    r"(?P<prefix>sm_|compute_)?(?:(?P<dotted>\d{1,2}\.\d)|(?P<plain>\d{2,3}))"
    r"(?P<suffix>[af]?)(?P<kind>-real|-virtual)?",
    re.ASCII,
)
# Python refuses to read numbers of thousands of digits; no version has such a part.
_PART = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, order=True)
class GpuCode:
    """One piece of device code: machine code of one compute capability, or PTX.

    ``number`` is the capability without its dot (61 for 6.1, 120 for 12.0). ``suffix`` is
    ``a`` for code that runs on exactly that capability, ``f`` for its family, else empty.
    """

    number: int
    suffix: str = ""
    ptx: bool = False

    @property
    def name(self) -> str:
        """Return NVIDIA's own name: ``sm_61`` for machine code, ``compute_61`` for PTX."""
        return f"{'compute' if self.ptx else 'sm'}_{self.number}{self.suffix}"

    @property
    def cmake(self) -> str:
        """Return the entry of ``CMAKE_CUDA_ARCHITECTURES``: ``61-real`` or ``61-virtual``."""
        return f"{self.number}{self.suffix}-{'virtual' if self.ptx else 'real'}"

    @property
    def capability(self) -> str:
        """Return the compute capability with its dot, ``6.1``."""
        return dotted(self.number)

    def runs_on(self, capability: int) -> bool:
        """Whether a card of this capability (61) can run it; PTX counts, by way of the JIT.

        Machine code runs on the same major version with an equal or higher minor one, PTX on
        any later capability, ``a`` on its own one only, ``f`` within its major version
        (NVIDIA, CUDA C++ Programming Guide, "Compute Capability", binary compatibility).
        """
        if self.suffix == "a":
            return capability == self.number
        same_major = capability // 10 == self.number // 10 and capability >= self.number
        return capability >= self.number if self.ptx and not self.suffix else same_major


def parse_code(word: str) -> GpuCode | None:
    """Return the device code that a word names, ``None`` for anything else.

    A plain ``61`` and ``6.1`` mean machine code: PTX is asked for as ``61-virtual`` or
    ``compute_61``. Capabilities below 5.0 and above 19.9 do not exist for CUDA 11 and later.
    """
    found = _WORD.fullmatch(word.strip().lower())
    if found is None:
        return None
    prefix, kind = found["prefix"] or "", found["kind"] or ""
    if prefix and (kind or found["dotted"]):
        return None
    number = int((found["dotted"] or found["plain"]).replace(".", ""))
    if not 50 <= number < 200:  # noqa: PLR2004 - the docstring's limits
        return None
    ptx = prefix == "compute_" or kind == "-virtual"
    return GpuCode(number=number, suffix=found["suffix"], ptx=ptx)


def dotted(number: int) -> str:
    """Return a capability with its dot: 61 is ``6.1``, 120 is ``12.0``."""
    return f"{number // 10}.{number % 10}"


def older(version: str, than: str) -> bool:
    """Whether a driver version is lower; one that is not told is lower than nothing."""
    left, right = _numbers(version), _numbers(than)
    return bool(left and right) and left < right


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(p) for p in version.split(".") if _PART.fullmatch(p))


def best_code(codes: tuple[GpuCode, ...], capability: int) -> GpuCode | None:
    """Return the code that the driver takes for a card: machine code first, then the newest."""
    fitting = [c for c in codes if c.runs_on(capability)]
    return max(fitting, key=lambda c: (not c.ptx, c.number, c.suffix), default=None)


class Presence(StrEnum):
    """What is known of the machine's NVIDIA cards.

    ``absent``: there is no card or no driver. ``unknown``: nothing could be asked.
    ``broken``: a driver is there and does not answer rightly.
    """

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVIDIA card. ``memory`` in bytes; ``None`` or 0 where the driver tells nothing."""

    index: int
    name: str
    pci: str
    capability: int
    memory: int
    uuid: str = ""
    persistence: bool | None = None
    mig: bool | None = None
    ecc: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """The machine's NVIDIA cards and their driver.

    ``driver`` is such as ``580.159.04``; ``cuda`` the newest CUDA that the driver knows,
    ``13.0``. ``source`` is ``NVML`` or ``nvidia-smi``; ``reason`` says why nothing is
    present, or what is wrong, and ``cure`` what to do about it.
    """

    presence: Presence = Presence.UNKNOWN
    cards: tuple[Gpu, ...] = ()
    driver: str = ""
    cuda: str = ""
    source: str = ""
    reason: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """The archive with CUDA's runtime libraries that an artifact goes with.

    ``file`` unpacks over the artifact; ``libraries`` are the file names in its ``bin``.
    An empty ``file`` means that the system must have the libraries itself.
    """

    file: str
    sha256: str
    size: int
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaFacts:
    """What a CUDA artifact says of itself in its manifest.

    ``toolkit`` such as ``12.4.131``. ``codes`` are the names of the device code read back
    from the module: ``sm_61``, ``compute_89``. ``driver`` is the least driver version for
    the machine code, ``driver_jit`` the least one for PTX to be compiled by the driver.
    """

    toolkit: str
    codes: tuple[str, ...]
    driver: str
    driver_jit: str
    compression: str = ""
    companion: Companion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaPlan:
    """What is planned for a CUDA module.

    ``codes`` are compiled, no more and no less. ``libraries`` are the toolkit's own cudart,
    cuBLAS and cuBLASLt as files on this machine (they may have to be provided first);
    ``bundled``: they go into a companion archive with the toolkit's ``license``.
    """

    toolkit: str
    codes: tuple[GpuCode, ...]
    driver: str
    driver_jit: str
    compression: str
    libraries: tuple[Path, ...]
    license: Path | None = None
    bundled: bool = True
