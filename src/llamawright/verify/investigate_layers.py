"""Vulkan's validation layers: where they are, how a program gets them, what they say."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.model.investigation import Message

NAME = "Vulkan validation layers"
LAYER = "VK_LAYER_KHRONOS_validation"
FOLDERS = ("/usr/local/share", "/usr/share", "/etc", "/usr/local/etc")
DESCRIBED = "vulkan/explicit_layer.d"
# Settings of the layer's own vk_layer_settings.txt; each message is counted by us.
SETTINGS = """\
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = {log}
khronos_validation.enable_message_limit = true
khronos_validation.duplicate_message_limit = 10
"""
MOST_MESSAGES = 40
MOST_TEXT = 600
# "VUID-x(ERROR / SPEC): msgNum: 1 - Validation Error: [ VUID-x ] Object 0: …; | MessageID = 0x1
# | text" to 1.3.29x; later "Validation Error: [ VUID-x ] | MessageID = 0x1" and the text below.
HEAD = re.compile(
    r"Validation (?P<level>Error|Warning|Performance Warning|Information): \[ (?P<id>[^\]]+?) \]"
)
TEXT = re.compile(r"MessageID = 0x[0-9a-f]+(?: \| | *$)(?P<text>.*)$", re.IGNORECASE)
# A layer that is older than the program's headers does not know what they brought.
UNKNOWN = re.compile(r"unknown VkStructureType|includes a structure with unknown|Unhandled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """A layer that can be had: its folder is empty where the loader finds it by itself."""

    name: str
    folder: str
    version: str
    where: str

    def environment(self, before: Mapping[str, str], settings: Path) -> dict[str, str]:
        """Return the variables that put the layer between a program and its driver.

        Both names of the path are set: the older loaders know only the one that replaces.
        """
        asked = [n for n in before.get("VK_INSTANCE_LAYERS", "").split(":") if n]
        own = {
            "VK_INSTANCE_LAYERS": ":".join([*asked, self.name]),
            "VK_LAYER_SETTINGS_PATH": str(settings),
        }
        if not self.folder:
            return own
        return {**own, "VK_LAYER_PATH": self.folder, "VK_ADD_LAYER_PATH": self.folder}


def of_machine(env: Mapping[str, str]) -> Layers | None:
    """Return the layer that this machine has installed."""
    bases = [f"{env['VULKAN_SDK']}/share"] if env.get("VULKAN_SDK") else []
    bases += [b for b in env.get("XDG_DATA_DIRS", "").split(":") if b]
    for number, base in enumerate([*bases, *FOLDERS]):
        for path in sorted((Path(base) / DESCRIBED).glob("*validation*.json")):
            found = described(path, where="machine")
            if found is not None:
                # Only a folder of an SDK is unknown to the loader.
                sdk = number == 0 and bool(env.get("VULKAN_SDK"))
                return found if sdk else Layers(
                    name=found.name, folder="", version=found.version, where="machine"
                )  # fmt: skip
    return None


def described(path: Path, *, where: str) -> Layers | None:
    """Return the layer that a manifest file describes, ``None`` when it is another."""
    try:
        layer = json.loads(path.read_text(encoding="utf-8"))["layer"]
        name, version = str(layer["name"]), str(layer["api_version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if name != LAYER:
        return None
    return Layers(name=name, folder=str(path.parent), version=version, where=where)


def read_messages(text: str) -> tuple[Message, ...]:
    """Return what the layer reported, each message once, errors that are sure first."""
    counts: Counter[tuple[str, str, str]] = Counter(_rows(text))
    found = [
        Message(
            source=NAME,
            id=f"{identity} ({level.lower()})",
            text=said[:MOST_TEXT],
            count=count,
            doubt="the layer is older than the program's Vulkan headers and does not know this"
            if UNKNOWN.search(said)
            else "",
        )
        for (level, identity, said), count in counts.items()
    ]
    found.sort(key=lambda m: (bool(m.doubt), "(error)" not in m.id))
    return tuple(found[:MOST_MESSAGES])


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        head = HEAD.search(line)
        if head is None:
            continue
        said = TEXT.search(line)
        below = lines[number + 1].strip() if number + 1 < len(lines) else ""
        yield head["level"], head["id"].strip(), (said["text"].strip() if said else "") or below
