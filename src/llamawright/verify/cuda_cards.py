"""The machine's NVIDIA cards as the driver tells them, in the order that CUDA is made to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.process import Ending, Result, ask
from llamawright.verify.nvidia import FORMAT, MIB, find_smi, is_number, normal_pci
from llamawright.verify.witness import Sighting, Witness

FIELDS = ("index", "pci.bus_id", "uuid", "name", "memory.total", "driver_version", "compute_cap")
VISIBLE = "CUDA_VISIBLE_DEVICES"
KERNEL_DRIVER = Path("/proc/driver/nvidia/version")
NO_DEVICES = "No devices were found"
NO_FIELD = "is not a valid field"
RESTART = "restart the machine: the driver's parts are of two versions, as after an update"
REINSTALL = (
    "load the kernel module (modprobe nvidia); if that fails, as after a kernel update, install "
    "the NVIDIA driver again and restart"
)

# Words of nvidia-smi and what to do about them.
BROKEN = (
    ("version mismatch", RESTART),
    ("GPU is lost", "restart the machine; dmesg (look for Xid) names the reason"),
    ("communicate with the NVIDIA driver", REINSTALL),
    ("Insufficient Permissions", "run as a user with rights to /dev/nvidia*"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One card of ``nvidia-smi``'s list; 0 where it tells nothing. ``memory`` in bytes."""

    index: int
    pci: str
    uuid: str
    name: str
    memory: int
    driver: str
    capability: int

    @property
    def told(self) -> str:
        """Return the card for a sentence."""
        return f"{self.name} [{self.pci}]"


def look_cuda(env: Mapping[str, str], *, seconds: float) -> Sighting:
    """Ask for the cards; those that ``CUDA_VISIBLE_DEVICES`` of ``env`` hides are told apart."""
    smi = find_smi()
    if smi is None:
        return _unasked()
    try:
        result = _list(smi, FIELDS, seconds)
        if not result.ok and NO_FIELD in result.output:
            # Drivers before 470 don't know the capability.
            result = _list(smi, FIELDS[:-1], seconds)
    except ToolMissingError as error:
        return Sighting(problem="driver-broken", told=f"{error.what}: {error.why}", cure=REINSTALL)
    return read_cuda(result, env.get(VISIBLE))


def _list(smi: Path, fields: Sequence[str], seconds: float) -> Result:
    return ask((str(smi), f"--query-gpu={','.join(fields)}", FORMAT), seconds=seconds)


def _unasked() -> Sighting:
    """Tell a machine without NVIDIA from one that nobody can ask."""
    if KERNEL_DRIVER.is_file():
        told = "an NVIDIA driver is loaded, but nvidia-smi is not here to name its cards"
        return Sighting(problem="no-witness", told=told, cure="put nvidia-smi on the PATH")
    return Sighting(problem="no-driver", told="there is no nvidia-smi, so no NVIDIA driver")


def read_cuda(result: Result, visible: str | None) -> Sighting:
    """Return the cards that ``nvidia-smi`` printed, or why there are none."""
    if result.ending is not Ending.EXITED:
        told = (
            f"nvidia-smi {result.ending} after {result.seconds:.0f} s: a card or its driver hangs"
        )
        return Sighting(problem="driver-broken", told=told, cure="restart the machine")
    rows, odd = read_rows(result.stdout)
    if NO_DEVICES in result.output:
        return Sighting(problem="no-card", told="the NVIDIA driver is here and shows no card")
    if rows and result.ok:
        return _seen(rows, visible)
    last = odd or next((line for line in reversed(result.tail) if line.strip()), "no word")
    told = f"nvidia-smi does not answer (status {result.returncode}): {last.strip()}"
    cure = next((cure for words, cure in BROKEN if words in result.output), REINSTALL)
    return Sighting(problem="driver-broken", told=told, cure=cure)


def read_rows(text: str) -> tuple[tuple[Row, ...], str]:
    """Return the cards of the CSV by PCI place, and a line that names a broken one, if any."""
    rows, odd = [], ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) not in (len(FIELDS), len(FIELDS) - 1) or not is_number(cells[0]):
            continue
        index, pci, uuid, name, memory, driver = cells[: len(FIELDS) - 1]
        if not normal_pci(pci) or "ERR!" in line or "Unknown Error" in line:
            odd = line
            continue
        capability = cells[-1].replace(".", "") if len(cells) == len(FIELDS) else ""
        rows.append(
            Row(
                index=int(index),
                pci=normal_pci(pci),
                uuid=uuid,
                name=name,
                memory=int(memory) * MIB if is_number(memory) else 0,
                driver=driver,
                capability=int(capability) if is_number(capability) else 0,
            )
        )
    return tuple(sorted(rows, key=lambda r: r.pci)), odd


def _seen(rows: Sequence[Row], visible: str | None) -> Sighting:
    kept = visible_rows(rows, visible)
    if kept is None:
        told = f"{VISIBLE}={visible} names a part of a card (MIG), which nvidia-smi does not list"
        return Sighting(problem="no-witness", told=told, driver=rows[0].driver)
    hidden = tuple(f"{r.told} (hidden by {VISIBLE}='{visible}')" for r in rows if r not in kept)
    cure = f"unset {VISIBLE}, or let it name a card, then run verify"
    return Sighting(
        devices=tuple(_witness(i, row) for i, row in enumerate(kept)),
        problem="" if kept else "all-hidden",
        told="" if kept else f"{VISIBLE}='{visible}' hides {', '.join(r.told for r in rows)}",
        cure="" if kept else cure,
        driver=rows[0].driver,
        hidden=hidden,
    )


def visible_rows(rows: Sequence[Row], visible: str | None) -> tuple[Row, ...] | None:
    """Return the cards that CUDA shows, in its order; ``None`` when that cannot be told.

    CUDA takes indexes and beginnings of UUIDs, and stops at the first that names nothing
    (NVIDIA, CUDA C++ Programming Guide, "Environment Variables").
    """
    if visible is None:
        return tuple(rows)
    kept: list[Row] = []
    for word in (w.strip() for w in visible.split(",")):
        if word.startswith("MIG-"):
            return None
        if is_number(word):
            row = rows[int(word)] if int(word) < len(rows) else None
        else:
            named = [r for r in rows if word.startswith("GPU-") and r.uuid.startswith(word)]
            row = named[0] if len(named) == 1 else None
        if row is None:
            break
        kept.append(row)
    return tuple(kept)


def _witness(index: int, row: Row) -> Witness:
    return Witness(
        index=index,
        name=row.name,
        software=False,
        driver=f"NVIDIA {row.driver}",
        pci=row.pci,
        memory=row.memory,
        capability=row.capability,
        uuid=row.uuid,
    )
