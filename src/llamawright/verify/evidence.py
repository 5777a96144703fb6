"""Evidence: what was claimed, what was seen, and whether both agree. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath

from llamawright.model.platform import Backend
from llamawright.model.verdict import Check, Device, Numbers, Outcome
from llamawright.verify.logs import MIB, LoadFacts
from llamawright.verify.patterns import DRIVER_LIBRARIES, SOFTWARE_LIBRARIES, SOFTWARE_THREADS
from llamawright.verify.patterns_cuda import DRIVER_MAPPED

CUDA = str(Backend.CUDA)
# Buffers and memory may be smaller than the file's tensors by rounding and packing.
ENOUGH = 0.9


class Kind(StrEnum):
    """What a piece of evidence speaks of; the classes of failure are made from these."""

    LISTED = "listed"
    IDENTITY = "identity"
    OFFLOADED = "offloaded"
    ASSIGNED = "assigned"
    WEIGHTS = "weights"
    MEMORY = "memory"
    MODULE = "module"
    DRIVER = "driver"
    CODE = "device code"
    RUNTIME = "runtime"
    REFERENCE = "reference"
    ANSWER = "answer"
    TOKENS = "tokens"
    DIVERGENCE = "divergence"
    AGREEMENT = "agreement"
    REPEAT = "repeat"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A check and its kind.

    ``optional``: that it could not be read here is no failure. ``share`` is the part of the
    model that a claim puts on the device, from 0 to 1.
    """

    kind: Kind
    check: Check
    optional: bool = False
    share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a device must show: its layers, and the bytes of weights in its buffers."""

    device: Device
    layers: int
    weights: int
    cpu: bool = False

    @property
    def buffers(self) -> str:
        """Return what the names of the device's own buffers begin with."""
        return self.device.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the system showed of the first run on the device.

    ``libraries`` are the mapped files, ``None`` where that cannot be read; ``settled`` when
    what is not among them was surely never mapped. ``memory`` is the rise in bytes of the device's
    memory, ``None`` with the reason in ``memory_source``. ``threads`` are the names of threads.
    """

    libraries: frozenset[str] | None = None
    settled: bool = False
    memory: int | None = None
    memory_source: str = ""
    modules: tuple[str, ...] = ()
    driver_root: str = ""
    threads: frozenset[str] = frozenset()


def placement(runs: Sequence[tuple[str, LoadFacts]], expected: Expected) -> tuple[Evidence, ...]:
    """Judge where every run, by name, says its layers and weights went."""
    judges = [_assigned, _weights] if expected.cpu else [_offloaded, _assigned, _weights]
    return tuple(_together([(name, judge(f, expected)) for name, f in runs]) for judge in judges)


def _together(found: Sequence[tuple[str, Evidence]]) -> Evidence:
    """Return the worst of one kind's evidence, which names its run, for all of it."""
    order = (Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL)
    name, worst = max(found, key=lambda item: order.index(item[1].check.outcome))
    every = worst.check.outcome is Outcome.PASS
    where = f"in each of {len(found)} runs" if every else f"in '{name}'"
    check = replace(worst.check, seen=f"{worst.check.seen} {where}")
    return replace(worst, check=check, share=max(e.share for _, e in found))


def _assigned(facts: LoadFacts, expected: Expected) -> Evidence:
    name, wanted = expected.device.id, expected.layers
    own = facts.assigned.get(name, 0)
    others = {k: v for k, v in facts.assigned.items() if k != name}
    seen = ", ".join(f"{v} on {k}" for k, v in ({name: own} | others).items() if v)
    return make_evidence(
        Kind.ASSIGNED,
        "layers assigned",
        grade(readable=bool(facts.assigned), passed=own == wanted and not others),
        expected=f"{wanted} on {name}, none elsewhere",
        seen=seen or "the log does not say",
        source="log",
        share=own / wanted,
    )


def _offloaded(facts: LoadFacts, expected: Expected) -> Evidence:
    done, wanted = facts.offloaded, expected.layers
    clean = done == (wanted, wanted) and not facts.no_gpu
    seen = f"{done[0]}/{done[1]}" if done else "the log does not say"
    if facts.no_gpu:
        seen += ", and 'no usable GPU found'"
    return make_evidence(
        Kind.OFFLOADED,
        "layers offloaded",
        grade(readable=done is not None or facts.no_gpu, passed=clean),
        expected=f"{wanted}/{wanted}",
        seen=seen,
        source="log",
        share=done[0] / max(done[1], 1) if done else 0.0,
    )


def _weights(facts: LoadFacts, expected: Expected) -> Evidence:
    own = sum(v for k, v in facts.weights.items() if _is_own(k, expected.buffers))
    seen = ", ".join(f"{k} {mib(v)}" for k, v in sorted(facts.weights.items()))
    return make_evidence(
        Kind.WEIGHTS,
        "weights in its buffers",
        grade(readable=bool(facts.weights), passed=own >= ENOUGH * expected.weights),
        expected=f"at least {mib(int(ENOUGH * expected.weights))} in {expected.buffers}",
        seen=seen or "the log names no buffer",
        source="log",
        share=own / max(expected.weights, 1),
    )


def _is_own(buffer: str, device: str) -> bool:
    """Whether a buffer is the device's: ``Vulkan0``, ``CPU_Mapped``, but not ``Vulkan10``."""
    return buffer == device or buffer.startswith(f"{device}_")


def physical(observed: Observed, expected: Expected) -> tuple[Evidence, ...]:
    """Judge what the system showed, whatever the artifact says of itself."""
    found = [_module(observed)]
    if not expected.cpu:
        found += [_driver(observed, expected.device), _memory(observed, expected)]
    return tuple(found)


def _module(observed: Observed) -> Evidence:
    names = ", ".join(sorted(PurePath(m).name for m in observed.modules))
    mapped = observed.libraries or frozenset()
    hits = [m for m in observed.modules if m in mapped]
    return make_evidence(
        Kind.MODULE,
        "module mapped",
        grade(readable=bool(hits) or observed.settled, passed=bool(hits)),
        expected=f"the artifact's own {names}",
        seen=", ".join(PurePath(h).name for h in hits) or _unmapped(observed),
        source="/proc/PID/maps",
        optional=observed.libraries is None,
    )


def _driver(observed: Observed, device: Device) -> Evidence:
    """Judge whether a driver is in the process: for hardware one that is no software."""
    mapped = observed.libraries or frozenset()
    drivers = sorted(m for m in mapped if DRIVER_LIBRARIES.match(PurePath(m).name))
    wanted = "a driver's library that is no software renderer"
    if device.software:
        wanted = "the software driver's library"
        good = [d for d in drivers if d.startswith(observed.driver_root or "/")]
    elif device.backend == CUDA:
        wanted = "CUDA's own driver, libcuda"
        good = [d for d in drivers if DRIVER_MAPPED.match(PurePath(d).name)]
    else:
        good = [d for d in drivers if not SOFTWARE_LIBRARIES.match(PurePath(d).name)]
    seen = ", ".join(PurePath(d).name for d in good or drivers) or _unmapped(observed)
    software = unmasked(observed.threads, device)
    if software:
        good, seen = [], f"{seen}, and {software}"
    return make_evidence(
        Kind.DRIVER,
        "driver mapped",
        grade(readable=bool(good or software) or observed.settled, passed=bool(good)),
        expected=wanted,
        seen=seen,
        source="/proc/PID/maps",
        optional=observed.libraries is None,
    )


def unmasked(threads: Iterable[str], device: Device) -> str:
    """Return what shows that a card is a CPU in disguise, empty when nothing does.

    A driver may call itself what it likes; the threads that compute have names too.
    """
    software = sorted(filter(SOFTWARE_THREADS.match, threads))
    if device.software or not software:
        return ""
    return f"the software renderer's threads {', '.join(software)}"


def _unmapped(observed: Observed) -> str:
    if observed.libraries is None:
        return "this system does not show what a process maps"
    return "not mapped" if observed.settled else "the process ended before it could be read"


def _memory(observed: Observed, expected: Expected) -> Evidence:
    need = int(ENOUGH * expected.weights)
    rise = observed.memory
    return make_evidence(
        Kind.MEMORY,
        "device memory rose",
        grade(readable=rise is not None, passed=rise is not None and rise >= need),
        expected=f"by at least {mib(need)}",
        seen=observed.memory_source if rise is None else f"by {mib(rise)}",
        source=observed.memory_source if rise is not None else "none",
        optional=rise is None,
    )


def identity(device: Device, pci_seen: str, seen_by_driver: str, told: str) -> Evidence:
    """Judge whether the artifact and the driver speak of one device.

    ``pci_seen`` is the place that the run's log names, ``seen_by_driver`` the name that the
    driver gives, empty with the reason in ``told``.
    """
    same_place = not (pci_seen and device.pci) or pci_seen.lower() == device.pci
    same_name = not seen_by_driver or seen_by_driver == device.name
    seen = seen_by_driver or told
    if not same_place:
        seen += f" at {device.pci}, but the run used {pci_seen}"
    return make_evidence(
        Kind.IDENTITY,
        "device as its driver shows it",
        grade(readable=bool(seen_by_driver), passed=same_name) if same_place else Outcome.FAIL,
        expected=device.name,
        seen=seen,
        source="asked without the artifact",
        optional=not seen_by_driver,
    )


def answer(label: str, text: str, expect: str) -> Evidence:
    """Judge whether the known word is in the answer."""
    shown = " ".join(text.split())[:80]
    return make_evidence(
        Kind.ANSWER,
        f"known answer ({label})",
        grade(readable=True, passed=expect in text),
        expected=f"contains '{expect}'",
        seen=f"'{shown}'" if shown else "nothing was printed",
        source="stdout",
    )


def tokens(label: str, wanted: str, seen: str, *, pinned: bool) -> Evidence:
    """Judge whether the greedy text is the reference's, letter for letter.

    A user's own model may have tokens so nearly equal that rounding decides between them:
    there a difference says nothing.
    """
    same = bool(wanted.strip()) and wanted == seen
    return make_evidence(
        Kind.TOKENS,
        f"greedy tokens ({label})",
        grade(readable=same or pinned, passed=same),
        expected=f"as on the CPU: '{' '.join(wanted.split())}'",
        seen="the same" if same else f"'{' '.join(seen.split())}'",
        source="stdout",
        optional=not pinned,
    )


def divergence(
    numbers: Numbers | None, label: str, chunks: int, *, most: float, least: float
) -> tuple[Evidence, ...]:
    """Judge the probabilities of one batch size: divergence ``most``, agreement ``least``."""
    if numbers is None or len(numbers.per_chunk) != chunks:
        seen = "no table" if numbers is None else f"{len(numbers.per_chunk)} of {chunks} chunks"
        return tuple(
            _of_numbers(kind, label, Outcome.UNKNOWN, "numbers", seen)
            for kind in (Kind.DIVERGENCE, Kind.AGREEMENT)
        )
    finite = all(math.isfinite(v) for v in (*numbers.per_chunk, numbers.mean_kld, numbers.top1))
    # A divergence is never below zero: far below, something else was computed.
    close = finite and abs(numbers.mean_kld) <= most
    kld = f"{numbers.mean_kld:.5f} nats over {numbers.positions} tokens"
    top1 = f"{numbers.top1:.1%} of {numbers.positions} tokens"
    return (
        _of_numbers(
            Kind.DIVERGENCE,
            label,
            grade(readable=True, passed=close),
            f"mean KL divergence at most {most:g} nats",
            kld if finite else "not a number",
        ),
        _of_numbers(
            Kind.AGREEMENT,
            label,
            grade(readable=True, passed=finite and numbers.top1 >= least),
            f"at least {least:.0%}",
            top1 if finite else "not a number",
        ),
    )


def _of_numbers(kind: Kind, label: str, outcome: Outcome, expected: str, seen: str) -> Evidence:
    what = "divergence" if kind is Kind.DIVERGENCE else "top-1 agreement"
    return make_evidence(
        kind,
        f"{what}, {label}",
        outcome,
        expected=expected,
        seen=seen,
        source="llama-perplexity",
    )


def reference(facts: Sequence[LoadFacts], forbidden: Iterable[str]) -> Evidence:
    """Judge whether the runs to compare with really had nothing but the CPU."""
    loaded = sorted({b.name for f in facts for b in f.backends} & set(forbidden))
    elsewhere = sorted({d for f in facts for d in f.assigned if d != "CPU"})
    seen = [*(f"loaded {b}" for b in loaded), *(f"layers on {d}" for d in elsewhere)]
    known = bool(facts) and all(f.assigned for f in facts)
    return make_evidence(
        Kind.REFERENCE,
        "reference ran on the CPU alone",
        grade(readable=known, passed=not seen),
        expected="no device backend loaded, every layer on the CPU",
        seen=", ".join(seen) or ("the CPU alone" if known else "the log does not say"),
        source="log",
    )


def listed(device: Device, there: Sequence[Device]) -> Evidence:
    """Judge whether the artifact itself lists the device."""
    names = ", ".join(f"{d.id}: {d.name}" for d in there) or "none"
    return make_evidence(
        Kind.LISTED,
        "device listed by the artifact",
        grade(readable=True, passed=any((d.id, d.name) == (device.id, device.name) for d in there)),
        expected=f"{device.id}: {device.name}",
        seen=names,
        source="--list-devices",
    )


def mib(size: int) -> str:
    """Return bytes as MiB."""
    return f"{size / MIB:.1f} MiB"


def grade(*, readable: bool, passed: bool) -> Outcome:
    """Return the outcome of a check: what cannot be read is unknown, whatever it would say."""
    if not readable:
        return Outcome.UNKNOWN
    return Outcome.PASS if passed else Outcome.FAIL


def make_evidence(
    kind: Kind,
    name: str,
    outcome: Outcome,
    *,
    expected: str,
    seen: str,
    source: str,
    optional: bool = False,
    share: float = 0.0,
) -> Evidence:
    """Return a piece of evidence with its check."""
    check = Check(name=name, outcome=outcome, expected=expected, seen=seen, source=source)
    return Evidence(kind=kind, check=check, optional=optional, share=share)
