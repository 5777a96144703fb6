"""Single operations on the device against the CPU, by upstream's own test program.

The program is in the ``-tests`` archive beside the artifact. It loads the archive's own copy of
the backend module, so that must be the artifact's, byte for byte, or it proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import LlamawrightError
from llamawright.model.ports import Meter
from llamawright.model.recipe import OperationSet
from llamawright.model.verdict import Outcome
from llamawright.paths import remove_tree
from llamawright.process import Ending
from llamawright.transfer.opened import open_artifact
from llamawright.verify.evidence import Evidence, Kind, make_evidence
from llamawright.verify.install import Install
from llamawright.verify.investigate_ops import (
    NAME,
    archive_of_tests,
    last_begun,
    read_count,
    read_failures,
)
from llamawright.verify.runs import Course, Side
from llamawright.verify.setup import Setting
from llamawright.verify.supervise import Finished

MOST_TOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRun:
    """One run of the test program, ``None`` with the reason when it was not run."""

    operations: OperationSet
    run: Finished | None
    untried: str = ""


def run_operations(
    setting: Setting, course: Course, side: Side, meter: Meter, before: int
) -> tuple[OperationRun, ...]:
    """Test what the recipe names on the side's device; nothing of it raises."""
    sets = course.verification.operations
    if not side.target.device or not sets:
        return ()
    archive = archive_of_tests(setting.request.artifact)
    if archive is None:
        why = "the -tests archive is not beside the artifact: build with --with-tests"
        return tuple(OperationRun(operations=s, run=None, untried=why) for s in sets)
    root = setting.room / "tests"
    try:
        open_artifact(archive, root)
        install = Install(root=root.resolve(), platform=setting.request.platform)
        other = _other_module(setting, install)
        if other:
            return tuple(OperationRun(operations=s, run=None, untried=other) for s in sets)
        bench = Bench(course=course, side=replace(side, install=install))
        return tuple(bench.each(sets, meter, before))
    except LlamawrightError as error:
        why = f"{archive.name}: {error.what}"
        return tuple(OperationRun(operations=s, run=None, untried=why) for s in sets)
    finally:
        remove_tree(root)


def _other_module(setting: Setting, tests: Install) -> str:
    """Return why the archive's modules are not the artifact's, empty when they are."""
    ours = {p.name: sha256_file(p) for p in setting.modules}
    theirs = {p.name: sha256_file(p) for p in tests.modules(setting.rule.modules)}
    return "" if ours == theirs else "the -tests archive holds another build of the module"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The unpacked test program on one device."""

    course: Course
    side: Side

    def each(self, sets: tuple[OperationSet, ...], meter: Meter, at: int) -> Iterator[OperationRun]:
        """Run each set; a software device compiles some for longer than it may take."""
        for number, operations in enumerate(sets, start=1):
            if self.course.software and not operations.software:
                why = "a software device compiles these kernels for minutes"
                yield OperationRun(operations=operations, run=None, untried=why)
                continue
            run = self._run(operations)
            meter.update(at + number, note=run.task.name)
            yield OperationRun(operations=operations, run=run)

    def _run(self, operations: OperationSet) -> Finished:
        argv = operation_command(
            self.side.install.program(NAME), self.side.target.device, operations
        )
        stage = self.course.stage
        # Its log has no phases, so one limit is left.
        limits = replace(stage.limits, start_s=operations.seconds, total_s=operations.seconds)
        return replace(stage, limits=limits).run(
            f"operations {operations.names[0]}", argv, self.side.env, on_device=True
        )


def operation_command(program: Path, device: str, operations: OperationSet) -> tuple[str, ...]:
    """Return the command line that tests a set of operations on one device."""
    params = ("-p", operations.params) if operations.params else ()
    return (str(program), "test", "-b", device, "-o", ",".join(operations.names), *params)


def judge_operations(runs: tuple[OperationRun, ...]) -> tuple[Evidence, ...]:
    """Return what each run says: wrong results count, what was not tried does not."""
    return tuple(_judge(each) for each in runs)


def _judge(each: OperationRun) -> Evidence:
    outcome, seen = _seen(each)
    return make_evidence(
        Kind.OPERATION,
        f"operations {', '.join(each.operations.names)}",
        outcome,
        expected="every case as on the CPU",
        seen=seen,
        source=NAME,
        optional=outcome is Outcome.UNKNOWN,
    )


def _seen(each: OperationRun) -> tuple[Outcome, str]:
    run = each.run
    if run is None:
        return Outcome.UNKNOWN, each.untried
    failed = read_failures(run.stdout)
    if failed:
        told = "; ".join(m.text for m in failed[:MOST_TOLD])
        return Outcome.FAIL, f"{len(failed)} cases or more are wrong: {told}"
    if run.overran is not None or run.ending is not Ending.EXITED:
        at = last_begun(run.stdout) or "its start"
        return Outcome.UNKNOWN, f"not done after {each.operations.seconds:g} s, at {at}"
    count = read_count(run.stdout)
    if run.returncode != 0:
        at = last_begun(run.stdout) or "its start"
        return Outcome.FAIL, f"ended with status {run.returncode} at {at}"
    if count is None or count[1] == 0:
        return Outcome.UNKNOWN, "no case was tried" if count else "it printed no count"
    done, total = count
    return (Outcome.PASS if done == total else Outcome.FAIL), f"{done} of {total} cases passed"
