"""What was proved about an artifact on a device, with all the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The verdict. Only ``verified`` speaks of hardware."""

    VERIFIED = "verified"
    VERIFIED_SOFTWARE = "verified-software"
    UNVERIFIED = "unverified"
    CANNOT_VERIFY = "cannot-verify"
    FAILED = "failed"
    QUARANTINED = "quarantined"


class Outcome(StrEnum):
    """The result of one check. ``unknown``: could not be read here, with the reason."""

    PASS = "pass"  # noqa: S105 - a check passed
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as the artifact itself lists it.

    ``id`` is ggml's name (``Vulkan0``); ``memory`` in bytes; ``software`` when the device
    is a CPU in disguise (llvmpipe, SwiftShader, WARP); ``pci`` such as ``0000:01:00.0``.
    """

    id: str
    name: str
    backend: str
    memory: int
    software: bool
    driver: str = ""
    pci: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One piece of evidence: what was expected and what was seen."""

    name: str
    outcome: Outcome
    expected: str
    seen: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Rates in tokens per second, times in seconds; zero when not measured."""

    prompt_tps: float = 0.0
    generation_tps: float = 0.0
    load_s: float = 0.0
    first_token_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One supervised run: argv, exit status, seconds, last phase, log excerpt."""

    name: str
    command: tuple[str, ...]
    returncode: int | None
    seconds: float
    phase: str
    excerpt: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome for one artifact on one device."""

    state: State
    failure: str
    why: str
    hint: str
    artifact: str
    artifact_sha256: str
    model: str
    model_sha256: str
    device: Device | None
    devices: tuple[Device, ...]
    checks: tuple[Check, ...]
    runs: tuple[RunRecord, ...]
    speed: Speed
    kld_per_chunk: tuple[float, ...]
    date: str
    host: tuple[tuple[str, str], ...]
    seconds: float
