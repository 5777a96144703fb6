"""An ``nvidia-smi`` that shows the machine of ``machine.json`` beside it; no imports of ours.

It answers the fields that it is asked for. The file ``busy`` of the machine holds the pid of
a program that computes: then memory is used, and the program is listed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

MACHINE = json.loads(Path(sys.argv[0]).resolve().with_name("machine.json").read_text())
ARGS = sys.argv[1:]
USED = 300


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def busy() -> str:
    """Return the pid of the computing program, empty when there is none."""
    try:
        return Path(os.fspath(MACHINE["busy"])).read_text()
    except OSError:
        return ""


def asked(option: str) -> list[str]:
    """Return the fields of a query."""
    return next((a.partition("=")[2].split(",") for a in ARGS if a.startswith(option)), [])


def show(fields: list[str]) -> None:
    for index, card in enumerate(MACHINE["card"]):
        own = {
            "index": index,
            "pci.bus_id": card["pci"],
            "uuid": card["uuid"],
            "name": card["name"],
            "memory.total": card["total"],
            "memory.used": USED if busy() and MACHINE.get("memory_rises", True) else 4,
            "driver_version": MACHINE["driver"],
            "compute_cap": card["capability"],
        }
        say(", ".join(str(own[f]) for f in fields))


def show_processes() -> None:
    pid = busy()
    if pid.isdigit() and MACHINE.get("lists_processes", False):
        place = MACHINE["card"][MACHINE.get("busy_card", 0)]["pci"]
        say(f"{place}, {pid}, {MACHINE.get('process_mib', USED)}")


def main() -> int:
    if MACHINE.get("hangs"):
        time.sleep(600)
    if "says" in MACHINE:
        say(MACHINE["says"])
        return int(MACHINE["status"])
    fields = asked("--query-gpu")
    if MACHINE.get("unknown_field") in fields:
        say(f'Field "{MACHINE["unknown_field"]}" is not a valid field to query.')
        return 2
    while True:
        show(fields)
        if asked("--query-compute-apps"):
            show_processes()
        if "-lms" not in ARGS:
            return 0
        time.sleep(0.02)


if __name__ == "__main__":
    raise SystemExit(main())
