"""One mutant from its words to its result: made, verified by the command line, looked at."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from llamawright.paths import data_root
from llamawright.process import Command, Ending, Limits, base_environment, run
from llamawright.verify.synthetic import write_synthetic
from zoo.base import Base
from zoo.changes import Cage, NotHereError, make
from zoo.compiling import CannotCompileError, Compiler
from zoo.model import REFUSED, Mutant, Named, Result

LAST_LINE = re.compile(r"^llamawright: exit (\d+) \(([^:]+): ([^)]+)\)$")
# Every run of verify must end by its own limits long before.
PATIENCE_S = 900.0
SOURCE_ROOT = Path(sys.modules["llamawright"].__file__ or "").resolve().parent.parent
# An artifact without the patch that flushes the log loses its end now and then. The tool says so
# by this name and advises to verify again, so that is done.
CUT_OFF, MOST_AGAIN = "output-cut-off", 2
# What a sleeper may take in the zoo, in seconds; the shipped recipe waits for minutes.
SHORT = {"probe_s": 20.0, "load_s": 20.0, "first_token_s": 40.0, "total_s": 60.0}
SMALL_OUTPUT = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """What all mutants share: the store, a folder of the zoo's own, the compiler."""

    store: Path
    folder: Path
    compiler: Compiler
    python: str = sys.executable

    def try_mutant(self, mutant: Mutant, base: Base, key: str) -> Result:
        """Make a mutant, let the tool judge it, and look what was left behind."""
        began = time.monotonic()
        # Two artifacts may be tried at once.
        room = self.folder / "cages" / f"{base.backend}-{mutant.name}"
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        seen, why, fault, skipped = Named(state="", failure="", exit=0), "", "", ""
        expect = mutant.expected(base.backend)
        try:
            cage = self._cage(base, room)
            make(cage, mutant.changes)
            seen, why = self._verify_again(mutant, cage, expect)
            fault = left_behind(cage.gone)
        except (CannotCompileError, NotHereError) as error:
            skipped = str(error)
        finally:
            shutil.rmtree(room, ignore_errors=True)
        return Result(
            name=mutant.name,
            backend=base.backend,
            expect=expect,
            seen=seen,
            seconds=round(time.monotonic() - began, 1),
            why=why,
            key=key,
            skipped=skipped,
            fault=fault,
        )

    def _verify_again(self, mutant: Mutant, cage: Cage, expect: Named) -> tuple[Named, str]:
        """Verify, and again where the tool advises that for this artifact's own known flaw."""
        seen, why = self._verify(mutant, cage)
        for _ in range(0 if cage.base.flushes else MOST_AGAIN):
            if CUT_OFF not in seen.failure or CUT_OFF in expect.failure:
                break
            seen, why = self._verify(mutant, cage)
        return seen, why

    def _cage(self, base: Base, room: Path) -> Cage:
        if base.companion is not None:
            (room / base.companion.name).symlink_to(base.companion)
        return Cage(
            base=base,
            compiler=self.compiler,
            store=self.store,
            folder=room,
            tree=room / "tree",
            archive=room / f"{base.name}.tar.zst",
        )

    def _verify(self, mutant: Mutant, cage: Cage) -> tuple[Named, str]:
        given = {"BASE": str(cage.base.archive)}
        flags = [given.get(flag, flag) for flag in (*mutant.flags, *cage.flags)]
        if "--store" not in flags:
            flags += ["--store", str(self.store)]
        if mutant.model:
            flags += ["--model", str(self.model(mutant.model, cage.folder))]
        if mutant.short:
            flags += ["--recipe", str(short_recipe(cage.folder))]
        argv = (
            *cage.prefix, self.python, "-P", "-m", "llamawright", "verify", str(cage.archive),
            "--json", *flags,
        )  # fmt: skip
        log = cage.folder / "verify.log"
        result = run(
            Command(argv=argv, cwd=cage.folder, env=child_environment(cage.environment)),
            limits=Limits(total_s=PATIENCE_S),
            log=log,
        )
        if result.ending is not Ending.EXITED:
            return Named(state="hung", failure=str(result.ending), exit=-1), "the tool itself"
        return read_result(result.returncode, result.stdout, log.read_text(errors="replace"))

    def model(self, kind: str, folder: Path) -> Path:
        """Return another model than the pinned one: a tiny one, or one that is no good."""
        place = folder / f"{kind}.gguf"
        match kind:
            case "synthetic":
                return write_synthetic(place)
            case "truncated":
                data = write_synthetic(place).read_bytes()
                place.write_bytes(data[: len(data) // 2])
            case "head-cut":
                data = write_synthetic(place).read_bytes()
                place.write_bytes(data[:1000])
            case "no-model":
                place.write_bytes(b"GGML" * 1000)
            case other:
                raise ValueError(f"there is no model '{other}'")
        return place


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return a clean environment in which this very package is found, and what it needs."""
    own = [str(SOURCE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return base_environment({"PYTHONPATH": os.pathsep.join(own), **extra})


def short_recipe(folder: Path) -> Path:
    """Write the shipped recipe with the zoo's limits: data changed as data."""
    text = (data_root() / "recipes" / "llama.cpp.toml").read_text(encoding="utf-8")
    for name, seconds in SHORT.items():
        text = re.sub(rf"^{name} = [\d.]+", f"{name} = {seconds}", text, flags=re.MULTILINE)
    text = re.sub(r"^output_cap = \d+", f"output_cap = {SMALL_OUTPUT}", text, flags=re.MULTILINE)
    place = folder / "zoo.toml"
    place.write_text(text, encoding="utf-8")
    return place


def read_result(code: int, stdout: str, log: str) -> tuple[Named, str]:
    """Return what the tool said: a verdict's state and class, or an error's class."""
    told = _verdict(stdout)
    if told is not None:
        verdict, kind = told
        failure = str(verdict.get("failure") or kind)
        return Named(state=str(verdict["state"]), failure=failure, exit=code), str(verdict["why"])
    lines = log.splitlines()
    last = next((m for m in map(LAST_LINE.match, reversed(lines)) if m), None)
    why = next((line.strip() for line in lines if line.startswith("error:")), "")
    return Named(state=REFUSED, failure=last[3] if last else "", exit=code), why


def _verdict(stdout: str) -> tuple[Mapping[str, object], str] | None:
    with contextlib.suppress(ValueError):
        data = json.loads(stdout)
        if isinstance(data, dict) and isinstance(data.get("verdict"), dict):
            return data["verdict"], str(data.get("class", ""))
    return None


def left_behind(mark: str, wait_s: float = 3.0) -> str:
    """Return a sentence about a process with this name that outlived the tool; end it."""
    if not mark:
        return ""
    deadline = time.monotonic() + wait_s
    while found := _named_processes(mark):
        if time.monotonic() > deadline:
            for process in found:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            return f"{len(found)} process of the artifact outlived the tool"
        time.sleep(0.1)
    return ""


def _named_processes(mark: str) -> Sequence[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[:1] == [mark]:
                found.append(process)
    return found
