"""Evidence that only CUDA can give: device code, capability, runtime libraries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from llamawright.model.cuda import CudaFacts, dotted
from llamawright.model.verdict import Device
from llamawright.verify.cuda_gate import PREFIX, Access
from llamawright.verify.cuda_runtime import Runtime
from llamawright.verify.evidence import Evidence, Kind, grade, make_evidence
from llamawright.verify.nvidia import is_number
from llamawright.verify.patterns_cuda import JIT_MAPPED, RUNTIME_MAPPED


def device_code(code: Access, facts: CudaFacts | None, libraries: Iterable[str]) -> Evidence:
    """Say which of the artifact's codes the driver takes for the card."""
    compiler = sorted(n for n in map(_name, libraries) if JIT_MAPPED.match(n))
    known = code.code is not None
    seen = "the card's capability or the artifact's codes are not known"
    if code.code is not None and code.jit:
        by = f" ({compiler[0]} was mapped)" if compiler else ""
        forced = f", forced by {code.variable}" if code.variable else ""
        seen = f"{code.code.name} PTX, compiled by the driver (JIT){by}{forced}"
    elif code.code is not None:
        seen = f"{code.code.name} machine code"
    there = ", ".join(facts.codes) if facts else "codes that no manifest tells"
    can = f" that {code.card} ({dotted(code.capability)}) takes" if code.capability else ""
    return make_evidence(
        Kind.CODE,
        "device code",
        grade(readable=known, passed=known),
        expected=f"one of {there}{can}",
        seen=seen,
        source="manifest and NVIDIA's driver",
        optional=not known,
    )


def capability(code: Access, device: Device, cards: Mapping[int, tuple[str, int]]) -> Evidence:
    """Judge whether CUDA's own lines, as the artifact prints them, speak of the same card."""
    number = device.id.removeprefix(PREFIX)
    own = cards.get(int(number)) if is_number(number) else None
    readable = own is not None and bool(code.capability)
    expected = f"{device.name}, {dotted(code.capability) if code.capability else 'any'}"
    return make_evidence(
        Kind.IDENTITY,
        "compute capability",
        grade(readable=readable, passed=own == (device.name, code.capability)),
        expected=expected,
        seen=f"{own[0]}, {dotted(own[1])}" if own else "the log does not say",
        source="log",
        optional=not readable,
    )


def runtime(found: Runtime | None, libraries: Iterable[str], *, settled: bool) -> Evidence:
    """Say whose runtime libraries the process had; none may be linked in whole."""
    mapped = sorted(p for p in libraries if RUNTIME_MAPPED.match(_name(p)))
    places = ", ".join(f"{_name(p)} of {_place(p, found)}" for p in mapped)
    told = found.told if found else "not looked for: no card was seen before the runs"
    return make_evidence(
        Kind.RUNTIME,
        "CUDA's runtime libraries",
        grade(readable=bool(mapped), passed=True),
        expected=told,
        seen=places or ("not mapped" if settled else "the process was not read in time"),
        source="/proc/PID/maps",
        optional=True,
    )


def _place(path: str, found: Runtime | None) -> str:
    """Name a mapped library's owner: its folder is a scratch folder when it is the artifact's."""
    own = found is not None and _name(path).partition(".so")[0] in {
        n.partition(".so")[0] for n in found.added
    }
    return "the companion" if own else str(PurePath(path).parent)


def _name(path: str) -> str:
    return PurePath(path).name
