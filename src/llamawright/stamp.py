"""The mark of a finished run: when nothing it read has changed, there is nothing to do.

It is looked at before anything heavy is imported, so that a repeated command costs a few
``stat`` calls. Every file the run read or wrote is kept with size, time and inode; a folder
(of recipes, of PATH, of Vulkan drivers) by its entries. Anything else means: run again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.paths import write_whole

WATCHED_VARIABLES = (
    "PATH", "CC", "CXX", "VULKAN_SDK", "VK_DRIVER_FILES", "VK_ICD_FILENAMES",
    "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE",
    "GGML_VK_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_PATH", "CUDA_HOME",
    "CUDAToolkit_ROOT", "LD_LIBRARY_PATH", "CONDA_PREFIX", "SOURCE_DATE_EPOCH",
)  # fmt: skip
DRIVER_PLACES = (
    "/usr/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/dev/dri",
    "/dev/nvidia0",
    "/proc/driver/nvidia/version",
)


@dataclass(frozen=True, slots=True)
class RunStamp:
    """What a finished run said, and the identity of all it read and wrote."""

    path: Path

    def load(self) -> dict[str, object] | None:
        """Return the finished run's result when nothing has changed, else ``None``."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(self.path.read_text(encoding="utf-8"))
            if all(identity(name) == known for name, known in record["seen"].items()):
                result: dict[str, object] = record["result"]
                return result
        return None

    def save(self, result: Mapping[str, object], files: Iterable[Path]) -> None:
        """Write the stamp, whole or not at all."""
        names = {str(f) for f in files}
        names |= {*DRIVER_PLACES, *os.environ.get("PATH", "").split(os.pathsep)} - {""}
        record = {"seen": {n: identity(n) for n in sorted(names)}, "result": dict(result)}
        write_whole(self.path, json.dumps(record))


def run_stamp(store: Path, arguments: Sequence[str], folder: Path) -> RunStamp:
    """Return the stamp that belongs to a command line in a folder and its environment."""
    said = {k: v for k, v in os.environ.items() if k.startswith("LLAMAWRIGHT_")}
    said |= {k: os.environ[k] for k in WATCHED_VARIABLES if k in os.environ}
    text = json.dumps([list(arguments), str(folder), sorted(said.items())])
    return RunStamp(store / "runs" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json")


def identity(name: str) -> list[object] | None:
    """Return what a file or folder is now, without reading it; ``None`` when absent.

    A folder is its entries' names: its own time also changes by what is none of ours.
    """
    try:
        status = Path(name).stat()
        if Path(name).is_dir():
            entries = "\0".join(sorted(e.name for e in os.scandir(name)))
            return ["folder", hashlib.sha256(entries.encode()).hexdigest()]
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]
