"""Arguments in, exit code out: the command line over the pipeline.

What is imported here at the top is all that a repeated, unchanged run pays for.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType

from llamawright.cli.arguments import make_parser
from llamawright.console import Console
from llamawright.errors import (
    DiskError,
    ExitCode,
    InterruptedRunError,
    LlamawrightError,
)
from llamawright.paths import store_root
from llamawright.stamp import RunStamp, run_stamp

# The module of each verb that no stamp is kept for; imported on demand, with its heavy rooms.
RUNNERS = {
    "compare": "compare",
    "calibrate": "calibrate",
    "wheel": "wheel",
    "doctor": "look",
    "plan": "look",
    "explain": "look",
    "patch": "patches",
    "fetch": "keep",
    "gc": "keep",
    "release": "release",
    "attest": "attest",
    "keygen": "attest",
    "check": "check",
    "repro": "repro",
    "bump": "bump",
}
NOTE_VARIABLE = "NOX_LLAMAWRIGHT_LAST_LINE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; the last line names code and class."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    flags = make_parser().parse_args(argv)
    console = Console.for_process(quiet=flags.quiet)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(flags, argv, console)
    except LlamawrightError as error:
        return _fail(error, flags, console)
    except KeyboardInterrupt:
        return _fail(InterruptedRunError("interrupted"), flags, console)
    except OSError as error:
        from llamawright.store import DISK_ERRORS  # noqa: PLC0415 - only when one happened

        if error.errno in DISK_ERRORS:
            return _fail(_disk_error(error), flags, console)
        return _bug(error, flags, console)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a bug is told as one
        return _bug(error, flags, console)


def _run(flags: Namespace, argv: list[str], console: Console) -> int:
    store = (flags.store or store_root()).expanduser().absolute()
    if flags.verb != "build" or flags.plan_only:
        return _dispatch(flags, store, console, None)
    stamp = run_stamp(store, [a for a in argv if a != "--force"], Path.cwd())
    known = None if flags.force else stamp.load()
    if known is not None:
        return _repeat(known, flags, console)
    return _dispatch(flags, store, console, stamp)


def _repeat(known: dict[str, object], flags: Namespace, console: Console) -> int:
    if flags.json:
        sys.stdout.write(json.dumps(known, indent=2, sort_keys=True) + "\n")
    summary = known.get("summary")
    console.lines(*(summary if isinstance(summary, list) else []))
    console.lines("nothing changed since this run: nothing to do (--force verifies again)")
    code = known.get("code")
    return code if isinstance(code, int) else 0


def _dispatch(flags: Namespace, store: Path, console: Console, stamp: RunStamp | None) -> int:
    match flags.verb:
        case "build":
            from llamawright.cli.make import build  # noqa: PLC0415 - heavy rooms on demand

            return build(flags, store, console, stamp)
        case "verify" if flags.on:
            from llamawright.cli.verify_on import verify_on  # noqa: PLC0415

            return verify_on(flags, store, console)
        case "verify":
            from llamawright.cli.make import verify  # noqa: PLC0415

            return verify(flags, store, console)
        case verb:
            run: Callable[[Namespace, Path, Console], int]
            run = import_module(f"llamawright.cli.{RUNNERS[verb]}").run
            return run(flags, store, console)


def _fail(error: LlamawrightError, flags: Namespace, console: Console) -> int:
    console.failure(error)
    if flags.json:
        sys.stdout.write(json.dumps({"error": error.as_record()}, indent=2) + "\n")
    say_last(console, error.code, error.kind)
    return int(error.code)


def say_last(console: Console, code: ExitCode, kind: str) -> None:
    """Print the last line of a failing run, and leave it to a caller that ends with its own.

    nox ends with 1 for any failure: the noxfile names a file for the line and repeats it.
    """
    text = last_line(code, kind)
    console.lines(text)
    note = os.environ.get(NOTE_VARIABLE)
    if note:
        # A full disk must not take the exit code with it: that is what is being told here.
        with contextlib.suppress(OSError):
            Path(note).write_text(f"{text}\n", encoding="utf-8")


def last_line(code: ExitCode, kind: str) -> str:
    """Return the last line of a failing run: exit code, its meaning, the class."""
    return f"llamawright: exit {int(code)} ({code.name.lower().replace('_', '-')}: {kind})"


def _disk_error(error: OSError) -> DiskError:
    return DiskError(
        f"cannot write {error.filename or 'a file'}",
        why=error.strerror or str(error),
        hint="free some space, or name another store: --store DIR (`llamawright gc` frees some)",
        kind="disk-full",
    )


def _bug(error: BaseException, flags: Namespace, console: Console) -> int:
    import traceback  # noqa: PLC0415 - only for a bug

    console.lines(*"".join(traceback.format_exception(error)).rstrip().splitlines())
    wrapped = LlamawrightError(
        f"this is a bug in llamawright: {type(error).__name__}: {error}",
        hint="please report it with the lines above and the command line",
        kind="bug",
    )
    return _fail(wrapped, flags, console)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
