"""The zoo's table: for the terminal, for the docs, and as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from zoo.model import Mutant, Result

HEAD = """# The mutant zoo

`nox -s zoo` sabotages a good artifact, or the machine, in every way below and lets
`llamawright verify` judge it. Each must be called by its own name: state, class of failure and
exit code. The first group is honest: it uses the same tricks and falsifies nothing, so it shows
that no mutant fails for a silly reason. A C compiler is needed, and the source tree of a build in
the store (for ggml's headers).

| Command | What it does |
|---|---|
| `nox -s zoo` | every mutant of the artifacts in `dist/`; what was right before is not run again |
| `nox -s zoo -- --only zero` | one mutant; repeatable |
| `nox -s zoo -- --backend cuda --artifact FILE` | the mutants of this artifact alone |
| `nox -s zoo -- --honest 200` | proves good artifacts 200 times and counts false alarms |
| `nox -s zoo -- --json FILE --docs` | also writes the results as JSON, and this page |

The session ends with 0 when every mutant that was tried was called by its name, with 1 when one
was not. The mutants are data: `tests/zoo/mutants.toml`. A kind of artifact that is not at hand is
left out of a run, and a mutant that was never tried has no result. An artifact without the patch
`flush-log-at-exit` loses the end of its log now and then on a busy machine; `verify` calls that
`output-cut-off` and advises to verify again, so the zoo does, twice at most.
"""


def line(result: Result) -> str:
    """Return one result for the terminal; no meaning by colour."""
    if result.skipped:
        return f"  -     {result.name} ({result.backend}): not tried, {result.skipped}"
    mark = "ok    " if result.right else "WRONG "
    told = f"{result.seen.told}  [{result.seconds:.0f} s]"
    fault = f"; {result.fault}" if result.fault else ""
    more = "" if result.right else f"\n         expected {result.expect.told}{fault}: {result.why}"
    return f"  {mark}{result.name} ({result.backend}): {told}{more}"


def totals(results: Sequence[Result]) -> str:
    """Return the sum in one sentence."""
    tried = [r for r in results if not r.skipped]
    right = sum(r.right for r in tried)
    skipped = len(results) - len(tried)
    more = f", {skipped} not tried" if skipped else ""
    return f"{right} of {len(tried)} called by their names{more}"


def page(mutants: Sequence[Mutant], results: Sequence[Result], date: str, machine: str) -> str:
    """Return the page of the docs, every mutant with what it got."""
    of = {(r.name, r.backend): r for r in results}
    lines = [HEAD, f"Last run: {date}, {machine}. {totals(results).capitalize()}.", ""]
    for group in dict.fromkeys(m.group for m in mutants):
        lines += [f"## {group.capitalize()}", ""]
        lines += ["| Mutant | What is wrong | Must be | Made from | Was |", "|---|---|---|---|---|"]
        for mutant in (m for m in mutants if m.group == group):
            mine = [r for (name, _), r in of.items() if name == mutant.name]
            lines += [_row(mutant, r) for r in mine] or [_row(mutant, None)]
        lines.append("")
    return "\n".join(lines)


def _row(mutant: Mutant, result: Result | None) -> str:
    expect = result.expect if result else mutant.expect
    backend = result.backend if result else mutant.on
    if result is None or result.skipped:
        was = "not tried"
    else:
        was = "as it must" if result.right else f"**{result.seen.told}**"
    cells = (f"`{mutant.name}`", mutant.tells, expect.told, backend, was)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def as_json(results: Sequence[Result]) -> str:
    """Return all results as JSON, with the sum."""
    rows = [{**asdict(r), "right": r.right} for r in results]
    return json.dumps({"told": totals(results), "results": rows}, indent=2) + "\n"
