"""Honest runs of good artifacts, with the false alarms counted."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict

from llamawright.paths import write_whole
from zoo.base import Base
from zoo.drive import Keeper
from zoo.model import Mutant, Named

# One in so many runs of a software Vulkan device: it takes eight times as long as the CPU.
SOFTWARE_EVERY = 10


def plan(bases: Mapping[str, Base], count: int, *, hardware: bool) -> tuple[str, ...]:
    """Return which artifact each run takes: all in turn, a software device seldom."""
    fast = [b for b in ("cpu", "cuda", "vulkan") if b in bases and (hardware or b != "vulkan")]
    slow = [] if hardware or "vulkan" not in bases else ["vulkan"]
    if not fast:
        return tuple(slow * count)
    turn = (fast[n % len(fast)] for n in range(count))
    return tuple(
        slow[0] if slow and n % SOFTWARE_EVERY == SOFTWARE_EVERY - 1 else backend
        for n, backend in enumerate(turn)
    )


def honest_runs(keeper: Keeper, bases: Mapping[str, Base], count: int, *, device: str) -> int:
    """Prove good artifacts again and again; 1 when one of them was called bad."""
    hardware = bool(device) and "llvmpipe" not in device
    began, alarms = time.monotonic(), 0
    rows = []
    order = plan(bases, count, hardware=hardware)
    for number, backend in enumerate(order, start=1):
        mutant = _good(backend, device=device, hardware=hardware)
        result = keeper.try_mutant(mutant, bases[backend], "")
        alarms += not result.right
        rows.append(asdict(result) | {"right": result.right})
        each = (time.monotonic() - began) / number
        told = "ok" if result.right else f"FALSE ALARM: {result.seen.told}: {result.why}"
        left = each * (len(order) - number)
        sys.stderr.write(f"  {number}/{len(order)} {backend}: {told}, {left:.0f} s left\n")
        sys.stderr.flush()
        record = {"runs": number, "alarms": alarms, "results": rows}
        write_whole(keeper.folder / "honest.json", json.dumps(record, indent=2) + "\n")
    sys.stdout.write(f"{alarms} false alarms in {len(order)} honest runs\n")
    return 1 if alarms else 0


def _good(backend: str, *, device: str, hardware: bool) -> Mutant:
    vulkan = backend == "vulkan"
    flags = ("--device", device or "llvmpipe") if vulkan else ()
    state = "verified-software" if vulkan and not hardware else "verified"
    return Mutant(
        name=f"honest-{backend}",
        group="honest",
        tells="a good artifact",
        on=backend,
        changes=(),
        expect=Named(state=state, failure="", exit=0),
        flags=flags,
    )
