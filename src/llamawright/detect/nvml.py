"""Reading the answers of NVIDIA's management library and of ``nvidia-smi``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from llamawright.model.cuda import Gpu

FIELDS = (
    "index", "name", "pci.bus_id", "compute_cap", "memory.total", "driver_version",
    "persistence_mode", "mig.mode.current", "ecc.mode.current", "uuid",
)  # fmt: skip
# What every nvidia-smi since long knows; compute_cap came with driver 510.
OLD_FIELDS = ("index", "name", "pci.bus_id", "memory.total", "driver_version", "uuid")
MIB = 1 << 20
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)")
_DRIVER = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,2}")
_MODES = {"enabled": True, "disabled": False}
_PCI_PARTS = 3
MOST_CARDS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one source told: cards and driver, or an error with NVML's number (-1: none).

    ``odd`` are the cards or lines that could not be read, each with what was said.
    """

    driver: str = ""
    cuda: str = ""
    cards: tuple[Gpu, ...] = ()
    odd: tuple[str, ...] = ()
    error: str = ""
    code: int = 0


def read_nvml(text: str) -> Answer | None:
    """Return the child's answer, ``None`` for anything that is not one."""
    try:
        record = json.loads(text)
        if "error" in record:
            error = record["error"]
            return Answer(error=str(error["text"])[:200], code=int(error["code"]))
        cards = tuple(_nvml_card(c) for c in record["cards"][:MOST_CARDS])
        lost = tuple(f"card {x['index']}: {str(x['text'])[:200]}" for x in record["lost"])
        driver = _DRIVER.search(str(record["driver"]))
        cuda = record["cuda"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    number = cuda if isinstance(cuda, int) and 1000 <= cuda < 100000 else 0  # noqa: PLR2004
    return Answer(
        driver=driver[0] if driver else "",
        cuda=f"{number // 1000}.{number % 1000 // 10}" if number else "",
        cards=cards,
        odd=lost,
    )


def read_smi(text: str, fields: tuple[str, ...]) -> Answer:
    """Return the cards of ``nvidia-smi``'s CSV; capability comes from its own column only."""
    cards: list[Gpu] = []
    odd: list[str] = []
    driver = ""
    for line in [x for x in text.splitlines() if x.strip()][:MOST_CARDS]:
        cells = [c.strip() for c in line.split(",")]
        row = dict(zip(fields, cells, strict=False)) if len(cells) == len(fields) else {}
        told = _DRIVER.fullmatch(row.get("driver_version", ""))
        driver = driver or (told[0] if told else "")
        card = _smi_card(row)
        if card is None:
            odd.append(line.strip()[:200])
        else:
            cards.append(card)
    return Answer(driver=driver, cards=tuple(cards), odd=tuple(odd))


def normal_pci(text: str) -> str:
    """Return a PCI place as ``dddd:bb:dd.f``; tools pad the domain to eight digits or none."""
    parts = text.strip().lower().split(":")
    parts = ["0", *parts] if len(parts) == _PCI_PARTS - 1 else parts
    try:
        domain, bus, place = parts
        device, _, function = place.partition(".")
        return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or 0}"
    except ValueError:
        return ""


def _nvml_card(card: Mapping[str, object]) -> Gpu:
    memory, capability, index = card.get("memory"), card["capability"], card["index"]
    if not isinstance(capability, int) or not isinstance(index, int):
        raise TypeError(card)
    return Gpu(
        index=index,
        name=str(card["name"])[:200],
        pci=normal_pci(str(card["pci"])),
        capability=capability,
        memory=memory if isinstance(memory, int) else 0,
        uuid=str(card.get("uuid") or ""),
        persistence=_flag(card.get("persistence")),
        mig=_flag(card.get("mig")),
        ecc=_flag(card.get("ecc")),
    )


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _smi_card(row: Mapping[str, str]) -> Gpu | None:
    capability = _CAPABILITY.fullmatch(row.get("compute_cap", ""))
    index, memory = row.get("index", ""), row.get("memory.total", "")
    if capability is None or not _number(index):
        return None
    return Gpu(
        index=int(index),
        name=row["name"],
        pci=normal_pci(row["pci.bus_id"]),
        capability=10 * int(capability[1]) + int(capability[2]),
        memory=int(memory) * MIB if _number(memory) else 0,
        uuid="" if row["uuid"].startswith("[") else row["uuid"],
        persistence=_MODES.get(row["persistence_mode"].lower()),
        mig=_MODES.get(row["mig.mode.current"].lower()),
        ecc=_MODES.get(row["ecc.mode.current"].lower()),
    )


def _number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", text) is not None
