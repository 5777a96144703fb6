"""Which device is proved. Pure: lists and a selector in, a choice or a refusal out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llamawright.errors import NoDeviceError, UsageError
from llamawright.model.verdict import Device
from llamawright.verify.nvidia import normal_pci
from llamawright.verify.witness import Sighting, Witness

UUID_PREFIX = "gpu-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A device that the artifact lists, with what the machine says of it, if anything."""

    device: Device
    witness: Witness | None = None


def match_up(listed: Sequence[Device], sighting: Sighting) -> tuple[Candidate, ...]:
    """Join both lists by name, in their order: ggml keeps the loader's.

    Whatever either side says about software counts: a device that one of them calls a CPU
    is never hardware.
    """
    left = list(sighting.devices)
    found = []
    for device in listed:
        witness = next((w for w in left if w.name == device.name), None)
        if witness is None:
            found.append(Candidate(device=device))
            continue
        left.remove(witness)
        joined = replace(
            device,
            software=device.software or witness.software,
            driver=witness.driver,
            pci=witness.pci,
        )
        found.append(Candidate(device=joined, witness=witness))
    return tuple(found)


def select(candidates: Sequence[Candidate], selector: str | None) -> Candidate | None:
    """Return the device that is meant, ``None`` when there is none.

    Without a selector that is the first hardware device, one that ggml can use if there is any.
    Raises ``UsageError`` when a name
    fits several.
    """
    if selector is None:
        hardware = [c for c in candidates if not c.device.software]
        able = [c for c in hardware if c.witness is None or c.witness.usable]
        return next(iter(able or hardware), None)
    for fits in (_by_id, _by_pci, _by_uuid, _by_name, _by_part):
        hits = [c for c in candidates if fits(c, selector.strip())]
        if len(hits) > 1:
            raise UsageError(
                f"'{selector}' names {len(hits)} devices",
                why="\n".join(told(c.device) for c in hits),
                hint=f"name one by its id, such as --device {hits[0].device.id}",
                kind="ambiguous-device",
            )
        if hits:
            return hits[0]
    return None


def witnessed(sighting: Sighting, selector: str) -> Witness | None:
    """Return the one device of the machine that a selector names, or ``None``."""
    hits = _witnesses(sighting, selector)
    return hits[0] if len(hits) == 1 else None


def refuse_several(sighting: Sighting, selector: str) -> None:
    """Raise ``UsageError`` when several devices of the machine have the name."""
    hits = _witnesses(sighting, selector)
    if len(hits) > 1:
        raise UsageError(
            f"'{selector}' names {len(hits)} devices",
            why="\n".join(f"{w.name}{f' [{w.pci}]' if w.pci else ''} ({w.driver})" for w in hits),
            hint="name one by its PCI place, or show one driver alone: VK_DRIVER_FILES=FILE",
            kind="ambiguous-device",
        )


def _witnesses(sighting: Sighting, selector: str) -> list[Witness]:
    wanted = selector.strip().casefold()
    return [
        w
        for w in sighting.devices
        if wanted in w.name.casefold()
        or (w.pci and normal_pci(selector) == w.pci)
        or _begins_uuid(w, selector)
    ]


def no_such_device(
    selector: str, candidates: Iterable[Candidate], sighting: Sighting
) -> NoDeviceError:
    """Return the refusal for a device that isn't there, with all that are."""
    lines = [told(c.device) for c in candidates]
    names = {c.device.name for c in candidates}
    others = [w for w in sighting.devices if w.name not in names]
    lines += [f"{w.name} ({'software' if w.software else 'not used by ggml'})" for w in others]
    lines += sighting.hidden
    there = "\n".join(lines) or sighting.told or "the artifact lists no device"
    return NoDeviceError(
        f"there is no device '{selector}' here",
        why=f"what there is:\n{there}" if lines else there,
        hint="name one of them with --device, or leave it out for the first"
        if lines
        else "check that the device's driver is installed: llamawright doctor",
        kind="no-such-device",
    )


def told(device: Device) -> str:
    """Return a device as one line."""
    pci = f" [{device.pci}]" if device.pci else ""
    kind = " (software)" if device.software else ""
    return f"{device.id}: {device.name}{pci}{kind}"


def _by_id(candidate: Candidate, selector: str) -> bool:
    return candidate.device.id.casefold() == selector.casefold()


def _by_pci(candidate: Candidate, selector: str) -> bool:
    return bool(candidate.device.pci) and normal_pci(selector) == candidate.device.pci


def _by_uuid(candidate: Candidate, selector: str) -> bool:
    return candidate.witness is not None and _begins_uuid(candidate.witness, selector)


def _begins_uuid(witness: Witness, selector: str) -> bool:
    """Whether a selector is the beginning of a card's UUID, as CUDA itself takes it."""
    wanted = selector.strip().casefold()
    return wanted.startswith(UUID_PREFIX) and witness.uuid.casefold().startswith(wanted)


def _by_name(candidate: Candidate, selector: str) -> bool:
    return candidate.device.name.casefold() == selector.casefold()


def _by_part(candidate: Candidate, selector: str) -> bool:
    return bool(selector) and selector.casefold() in candidate.device.name.casefold()
