"""``nox -s zoo``: which mutants, in which order, what was done already, and the table."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path

from llamawright.paths import store_root, write_whole
from llamawright.process import kill_all
from zoo.base import Base, digest_of, files_digest, open_base
from zoo.catalogue import HERE, read_catalogue
from zoo.compiling import find_compiler
from zoo.drive import SOURCE_ROOT, Keeper
from zoo.honest import honest_runs
from zoo.model import Mutant, Named, Result
from zoo.report import as_json, line, page, totals

CHECKOUT = HERE.parent.parent
PAGE = CHECKOUT / "docs" / "reference" / "zoo.md"
ROOMS = ("verify", "transfer", "model", "cli")
MAKERS = ("c/*.c", "base.py", "changes.py", "compiling.py", "drive.py")
INTERRUPTED = 130


def main(words: Sequence[str]) -> int:
    """Run the zoo; 0 when every mutant was called by its name, 1 when one was not."""
    flags = _parser().parse_args(words)
    store = (flags.store or store_root()).absolute()
    folder = store / "zoo"
    folder.mkdir(parents=True, exist_ok=True)
    keeper = Keeper(store=store, folder=folder, compiler=find_compiler(flags.headers, store))
    bases = _bases(flags.artifact or _found(CHECKOUT / "dist"), folder)
    if not bases:
        sys.stderr.write("zoo: no artifact is here: name one with --artifact FILE\n")
        return 2
    if flags.honest:
        return honest_runs(keeper, bases, flags.honest, device=flags.device)
    mutants = read_catalogue()
    pairs = list(chosen(mutants, bases, backend=flags.backend, only=flags.only))
    results = _run_all(keeper, pairs, flags)
    _tell(mutants, results, flags)
    return 0 if results and all(r.right or r.skipped for r in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s zoo --", description=__doc__)
    add = parser.add_argument
    add("--backend", choices=("cpu", "vulkan", "cuda"), help="only mutants of this artifact")
    add("--only", action="append", metavar="NAME", help="only this mutant; repeatable")
    add("--artifact", action="append", type=Path, metavar="FILE", help="good artifact; repeatable")
    add("--device", default="", metavar="NAME", help="device of a Vulkan artifact")
    add("--headers", type=Path, metavar="DIR", help="ggml/src of the source tree")
    add("--store", type=Path, metavar="DIR", help="store with the model (default: the user's)")
    add("--jobs", type=int, default=2, metavar="N", help="mutants at a time (default: 2)")
    add("--again", action="store_true", help="forget results of earlier runs")
    add("--honest", type=int, default=0, metavar="N", help="N honest runs instead of mutants")
    add("--json", type=Path, metavar="FILE", help="write the results there too")
    add("--docs", action="store_true", help="write docs/reference/zoo.md")
    return parser


def _found(dist: Path) -> list[Path]:
    return sorted(dist.glob("llama.cpp-*.tar.zst"))


def _bases(archives: Sequence[Path], folder: Path) -> dict[str, Base]:
    opened = (open_base(a.absolute(), folder / "bases", python=sys.executable) for a in archives)
    return {base.backend: base for base in opened}


def chosen(
    mutants: Sequence[Mutant],
    bases: dict[str, Base],
    *,
    backend: str | None,
    only: Sequence[str] | None,
) -> Iterator[tuple[Mutant, Base]]:
    """Pair every mutant with the artifact it is made from; names nobody knows are an error."""
    strange = sorted(set(only or ()) - {m.name for m in mutants})
    if strange:
        raise SystemExit(f"zoo: there is no mutant '{strange[0]}'")
    general = backend or next((b for b in ("cpu", "vulkan", "cuda") if b in bases), "")
    for mutant in mutants:
        wanted = general if mutant.on == "device" else mutant.on
        if (only and mutant.name not in only) or (backend and wanted != backend):
            continue
        if wanted in bases:
            yield mutant, bases[wanted]


def _run_all(
    keeper: Keeper, pairs: Sequence[tuple[Mutant, Base]], flags: argparse.Namespace
) -> list[Result]:
    """Try what was not tried before, ``--jobs`` at a time; Ctrl-C keeps what is done."""
    source = _source()
    done: dict[str, Result] = {}
    waiting: dict[Future[Result], str] = {}
    began, pool = time.monotonic(), ThreadPoolExecutor(max_workers=max(1, flags.jobs))
    try:
        for mutant, base in pairs:
            key = digest_of(source.encode(), repr(mutant).encode(), base.sha256.encode())
            kept = None if flags.again else _kept(keeper.folder, mutant.name, base.backend, key)
            if kept is not None:
                done[mutant.name] = kept
                continue
            ready = prepared(mutant, base, device=flags.device)
            waiting[pool.submit(keeper.try_mutant, ready, base, key)] = mutant.name
        sys.stderr.write(f"zoo: {len(waiting)} mutants to try, {len(done)} known\n")
        for number, future in enumerate(as_completed(waiting), start=1):
            result = future.result()
            done[result.name] = result
            _keep(keeper.folder, result)
            left = (time.monotonic() - began) / number * (len(waiting) - number)
            sys.stderr.write(f"{line(result)}\n  … {number}/{len(waiting)}, {left:.0f} s left\n")
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        kill_all()
        sys.stderr.write("zoo: interrupted; what is done is kept, the same command goes on\n")
        raise SystemExit(INTERRUPTED) from None
    pool.shutdown()
    return [done[m.name] for m, _ in pairs if m.name in done]


def _source() -> str:
    """Return the digest of what a result depends on: the tool's rooms and what makes mutants."""
    rooms = [p for r in ROOMS for p in (SOURCE_ROOT / "llamawright" / r).rglob("*.py")]
    makers = [p for pattern in MAKERS for p in HERE.glob(pattern)]
    return files_digest([*rooms, *makers])


def prepared(mutant: Mutant, base: Base, *, device: str) -> Mutant:
    """Let a general mutant of a Vulkan artifact run on a device, llvmpipe if none is named."""
    if mutant.on != "device" or base.backend != "vulkan":
        return mutant
    name = device or "llvmpipe"
    software = "llvmpipe" in name
    expect = mutant.expected(base.backend)
    if software and expect.state == "verified":
        expect = replace(expect, state="verified-software")
    return replace(mutant, flags=(*mutant.flags, "--device", name), expect=expect, own={})


def _place(folder: Path, name: str, backend: str) -> Path:
    return folder / "results" / f"{backend}-{name}.json"


def _keep(folder: Path, result: Result) -> None:
    if not result.skipped:
        write_whole(_place(folder, result.name, result.backend), json.dumps(asdict(result)))


def _kept(folder: Path, name: str, backend: str, key: str) -> Result | None:
    """Return what an earlier run got from the same mutant, tool and artifact."""
    place = _place(folder, name, backend)
    try:
        row = json.loads(place.read_text(encoding="utf-8"))
        expect, seen = Named(**row.pop("expect")), Named(**row.pop("seen"))
        result = Result(**row, expect=expect, seen=seen)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return result if result.key == key and result.right else None


def _tell(mutants: Sequence[Mutant], results: Sequence[Result], flags: argparse.Namespace) -> None:
    sys.stdout.write("\n".join([*map(line, results), "", totals(results), ""]))
    if flags.json:
        write_whole(flags.json, as_json(results))
    if flags.docs:
        date = dt.datetime.now(dt.UTC).date().isoformat()
        machine = f"{platform.system()} {platform.machine()}"
        write_whole(PAGE, page(mutants, results, date, machine))
