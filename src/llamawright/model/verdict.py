"""What was proved about an artifact on a device, with all the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.artifact import Manifest

VERDICT_SCHEMA = "https://llamawright.dev/schema/verdict-1.json"


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
class Numbers:
    """How far the device's probabilities are from the reference's, at one batch size.

    ``type`` is the quantisation that was made for it, empty for the model as it is.
    ``mean_kld`` is the mean Kullback-Leibler divergence in nats over ``positions`` tokens,
    ``top1`` the share of them whose likeliest next token is the same.
    """

    batch: int
    mean_kld: float
    top1: float
    positions: int
    per_chunk: tuple[float, ...]
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that the proof was held to, with the reason for its value."""

    name: str
    value: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Rates in tokens per second, times in seconds; zero when not measured.

    ``prompt_tps`` is at the largest batch of the proof, so it is no benchmark. ``jit_s`` is
    what the driver took in the first run to compile PTX; the other figures are without it.
    """

    prompt_tps: float = 0.0
    generation_tps: float = 0.0
    load_s: float = 0.0
    first_token_s: float = 0.0
    jit_s: float = 0.0


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
    """The outcome for one artifact on one device.

    ``failure`` is the stable class word, empty when nothing failed. ``kld_per_chunk`` are
    the divergences of the first entry of ``numbers``; ``token_s`` the seconds each generated
    token took, by our clock; ``reference`` says what the numbers were compared with;
    ``patterns`` is the version of the log patterns that read the evidence.
    """

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
    numbers: tuple[Numbers, ...] = ()
    token_s: tuple[float, ...] = ()
    limits: tuple[Limit, ...] = ()
    reference: str = ""
    patterns: int = 0
    schema: str = VERDICT_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A verdict with the manifest of the artifact, ``None`` when the archive was not opened."""

    verdict: Verdict
    manifest: Manifest | None = None
