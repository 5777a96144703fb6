"""The verbs that only look: doctor, plan and explain."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from llamawright.cli.floor import apply_floor
from llamawright.cli.render import plan_lines
from llamawright.console import Console, quantity
from llamawright.digest import plain
from llamawright.errors import LlamawrightError, UsageError
from llamawright.model.cuda import dotted
from llamawright.model.inventory import Available, Found, Inventory, Rejected, Role
from llamawright.model.plan import KeyPart
from llamawright.pipeline import Pipeline
from llamawright.resolve import explain


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Run one of the three verbs."""
    match flags.verb:
        case "doctor":
            return _doctor(flags, store, console)
        case "plan":
            return show_plan(flags, store, console)
        case _:
            return _explain(flags, console)


def show_plan(flags: Namespace, store: Path, console: Console) -> int:
    """Print the plan; conflicts are raised by the resolver with their cures."""
    apply_floor(flags, store, console)
    plan = Pipeline.open(flags, store, console).plan()
    if flags.json:
        sys.stdout.write(json.dumps(plain(plan), indent=2, sort_keys=True) + "\n")
    else:
        sys.stdout.write("\n".join(plan_lines(plan)) + "\n")
    return 0


def _doctor(flags: Namespace, store: Path, console: Console) -> int:
    flags.backend = "vulkan"
    pipeline = Pipeline.open(flags, store, console)
    inventory = pipeline.inventory(everything=True)
    verdict = _next_command(pipeline, inventory)
    notes = pipeline.health(inventory)
    if flags.json:
        record = {"inventory": plain(inventory), "notes": list(notes), "next": verdict}
        sys.stdout.write(json.dumps(record, indent=2, sort_keys=True) + "\n")
        return 0
    lines = [*_machine(inventory), *_tools(inventory), *(f"  ! {n}" for n in notes)]
    sys.stdout.write("\n".join([*lines, "", f"next: {verdict}"]) + "\n")
    return 0


def _next_command(pipeline: Pipeline, inventory: Inventory) -> str:
    try:
        pipeline.plan(inventory)
    except LlamawrightError as error:
        return error.hint.splitlines()[0] if error.hint else error.what
    return "nox -s build-vulkan"


def _machine(inventory: Inventory) -> Iterator[str]:
    memory = quantity(inventory.memory, "bytes")
    yield f"machine: {inventory.platform.tag}, {inventory.cores} cores, {memory} memory"
    gpus = inventory.gpus
    newest = f", up to CUDA {gpus.cuda}" if gpus.cuda else ""
    driver = f" (driver {gpus.driver}{newest})" if gpus.driver else ""
    for card in gpus.cards:
        size, kind = quantity(card.memory, "bytes"), dotted(card.capability)
        yield f"card {card.index}: {card.name}, {size}, compute capability {kind}{driver}"
    if not gpus.cards:
        yield f"NVIDIA cards: {gpus.presence}{f' ({gpus.reason})' if gpus.reason else ''}"


def _tools(inventory: Inventory) -> Iterator[str]:
    for role in Role:
        entries = [
            *(_found(f) for f in inventory.having(role)),
            *(_available(a) for a in inventory.available if a.role is role),
            *(line for r in inventory.without(role) for line in _rejected(r)),
        ]
        if entries:
            yield f"{role}:"
            yield from (f"  {entry}" for entry in entries)


def _found(tool: Found) -> str:
    return f"ok        {tool.name} {tool.version}  {tool.path}  [{tool.where}]"


def _available(item: Available) -> str:
    state = "in the store" if item.present else f"{quantity(item.size, 'bytes')} to download"
    return f"provided  {item.name} {item.version}  ({state}, {item.digest[:12]})"


def _rejected(tool: Rejected) -> Iterator[str]:
    yield f"rejected  {tool.name}  {tool.path or ''}  [{tool.where}]"
    yield f"          {tool.reason}"
    if tool.cure:
        yield f"          cure: {tool.cure}"


def _explain(flags: Namespace, console: Console) -> int:
    a, b = _parts(flags.a), _parts(flags.b)
    differences = explain(a, b)
    if flags.json:
        sys.stdout.write(json.dumps(plain(differences), indent=2) + "\n")
        return 0
    if not differences:
        console.lines("the two have the same key: every input is equal")
    for difference in differences:
        sys.stdout.write(f"{difference.name}\n  - {difference.a}\n  + {difference.b}\n")
    return 0


def _parts(text: str) -> tuple[KeyPart, ...]:
    """Read the key's inputs from an artifact, a manifest or a plan printed as JSON."""
    path = Path(text)
    if not path.is_file():
        raise UsageError(
            f"{text} is no file",
            hint="name an artifact in dist/, its manifest.json, or `llamawright plan … --json`",
        )
    if path.suffix == ".json":
        return _written_parts(path)
    from llamawright.package import read_artifact  # noqa: PLC0415 - archives only

    return read_artifact(path).manifest.inputs


def _written_parts(path: Path) -> tuple[KeyPart, ...]:
    neither = UsageError(
        f"{path} holds no key inputs", hint="it is neither manifest nor plan: name one of those"
    )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        rows = record["inputs"] if "inputs" in record else record["parts"]
        return tuple(KeyPart(name=r["name"], value=r["value"]) for r in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise neither from error
