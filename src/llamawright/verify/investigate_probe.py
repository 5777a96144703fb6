"""The order of an investigation: again, under the instruments, smaller, by operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.errors import LlamawrightError
from llamawright.model.investigation import Halt, Instrument, Message, Reduction, Use
from llamawright.model.ports import Meter
from llamawright.model.soak import Tie
from llamawright.paths import remove_tree
from llamawright.transfer.opened import open_artifact
from llamawright.verify import investigate_ops as ops
from llamawright.verify.conclude import Attempt
from llamawright.verify.investigate_case import Case, Shape
from llamawright.verify.investigate_cause import segfaults
from llamawright.verify.investigate_lab import Clock, Lab
from llamawright.verify.investigate_look import Looked, instruments_for
from llamawright.verify.investigate_reduce import reductions
from llamawright.verify.investigate_symbols import SymbolTables, build_ids
from llamawright.verify.investigate_tools import Offers
from llamawright.verify.setup import Setting
from llamawright.verify.soak_events import read_events
from llamawright.verify.soak_kernel import KernelLog, open_kernel_log

REPEATS = 2
# Runs that are expected beside those of the reductions, for the meter alone.
PLANNED = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is looked into: a case, and the unpacked artifact that it ran from.

    ``pci`` and ``device`` are empty where no device was chosen yet; ``layers`` is how many
    can be offloaded.
    """

    case: Case
    setting: Setting
    device: str = ""
    pci: str = ""
    places: tuple[tuple[str, str], ...] = ()
    layers: int = 0

    @property
    def reduce(self) -> bool:
        """Whether the run has quantities that can be made smaller."""
        return "-m" in self.case.argv

    @classmethod
    def of(cls, attempt: Attempt, case: Case) -> Subject:
        """Return the subject of a proof that ran."""
        driver = attempt.chosen.driver
        return cls(
            case=case,
            setting=attempt.setting,
            device=attempt.chosen.device.id,
            pci=attempt.chosen.device.pci,
            layers=attempt.header.layers + 1,
            places=places_of(attempt.setting, str(driver.root) if driver else ""),
        )


def places_of(setting: Setting, driver: str = "") -> tuple[tuple[str, str], ...]:
    """Return the folders of a run, each with the name that a report gives it."""
    room = setting.room
    rows = [(setting.install.root, "ARTIFACT"), (room / "artifact", "ARTIFACT"),
            (room / "reference", "REFERENCE"), (room, "WORK")]  # fmt: skip
    named = [(str(p), n) for p, n in rows]
    named += [(str(p.resolve()), n) for p, n in rows]
    return (*named, *(((driver, "DRIVER"),) if driver else ()))


@dataclass(slots=True, kw_only=True)
class Findings:
    """What was seen, as it was seen: nothing is scrubbed yet."""

    subject: Subject
    lab: Lab
    reproduced: int = 0
    repeated: int = 0
    shape: Shape = field(default_factory=Shape)
    instruments: list[Instrument] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    halt: Halt | None = None
    reductions: list[Reduction] = field(default_factory=list)
    kernel: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    build_ids: tuple[tuple[str, str], ...] = ()
    files: list[tuple[str, str]] = field(default_factory=list)


def begin(subject: Subject, *, limit_s: float, meter: Meter) -> Findings:
    """Return empty findings, and start the clock."""
    work = subject.setting.room / "investigation"
    work.mkdir(parents=True, exist_ok=True)
    lab = Lab(
        stage=subject.setting.stage, case=subject.case, clock=Clock(limit_s=limit_s), meter=meter,
        work=work, planned=PLANNED,
    )  # fmt: skip
    return Findings(subject=subject, lab=lab)


def probe(found: Findings, *, offers: Offers, artifact: Path) -> None:
    """Look into a case until everything was tried or the time is over."""
    log = open_kernel_log()
    try:
        _repeat(found)
        _instruments(found, offers)
        if found.subject.reduce and found.reproduced:
            _reduce(found)
            _operations(found, artifact)
    finally:
        _read_kernel(found, log)
        log.close()
        _named(found)


def _read_kernel(found: Findings, log: KernelLog) -> None:
    """Keep what the kernel said meanwhile: events of the device, and crashes of programs."""
    found.kernel = log.new()
    events = read_events(found.kernel, pci=found.subject.pci, at=0.0)
    found.events = tuple(dict.fromkeys(e.text for e in events if e.tie is not Tie.OTHER))
    crashes = segfaults(found.kernel)
    if log.readable:
        told = f"{len(found.events)} events of a device, {len(crashes)} crashes"
        _add(found, "kernel's log", Use.USED, told, where=log.told)
    else:
        _add(found, "kernel's log", Use.UNABLE, f"cannot be read: {log.told}")


def _repeat(found: Findings) -> None:
    """Run the case as it was: how often it fails, and how long that takes."""
    lab = found.lab
    for number in range(1 if lab.case.hangs else REPEATS):
        answer = lab.fails(f"again {number + 1}", Shape())
        if answer is None:
            continue
        lab.usual_s = max(lab.usual_s, lab.trials[-1].seconds)
        found.repeated += 1
        found.reproduced += answer
    if not found.reproduced:
        lab.skip("nothing was made smaller: the case did not fail again as it was")


def _instruments(found: Findings, offers: Offers) -> None:
    for look in instruments_for(found.lab, found.subject.setting.manifest.backend, offers):
        looked = _safely(look)
        found.instruments.append(looked.instrument)
        found.messages += looked.messages
        found.halt = found.halt or looked.halt
        found.files += [(p.name, p.read_text(encoding="utf-8", errors="replace"))
                        for p in looked.files]  # fmt: skip


def _safely(look: Callable[[], Looked]) -> Looked:
    """Tell of an instrument that breaks; the next one still gets its turn."""
    try:
        return look()
    except (LlamawrightError, OSError, ValueError) as error:
        told = f"it failed itself: {error}"
        return Looked(instrument=Instrument(name="an instrument", use=Use.UNABLE, told=told))


def _reduce(found: Findings) -> None:
    setting = found.subject.setting
    quantiser = setting.install.program("llama-quantize")
    steps = reductions(
        found.lab,
        setting.manifest.backend,
        layers=found.subject.layers,
        quantiser=quantiser if quantiser.is_file() else None,
        model=setting.request.model.absolute(),
    )
    for shape, step in steps:
        found.shape = shape
        found.reductions.append(step)


def _operations(found: Findings, artifact: Path) -> None:
    """Test single operations, when the archive with the test program lies beside the artifact."""
    archive = ops.archive_of_tests(artifact)
    if not found.lab.case.on_device or not found.subject.device:
        return
    if archive is None:
        told = "the -tests archive is not beside the artifact: build with --with-tests for it"
        _add(found, ops.NAME, Use.MISSING, told)
        return
    if found.lab.clock.left < found.lab.cap_s:
        _add(found, ops.NAME, Use.SKIPPED, "the time was over")
        return
    root = found.lab.work / "tests"
    try:
        open_artifact(archive, root)
        _test_each(found, root)
    except LlamawrightError as error:
        _add(found, ops.NAME, Use.UNABLE, f"{archive.name}: {error.what}")
    finally:
        remove_tree(root)


def _test_each(found: Findings, root: Path) -> None:
    lab, platform = found.lab, found.subject.setting.request.platform
    program = root / "bin" / platform.program(ops.NAME)
    done, bad = list[str](), list[str]()
    for op in ops.OPS:
        run = lab.run(f"operation {op}", ops.argv(program, found.subject.device, op), lab.case.env)
        if run is None:
            break
        failed = ops.read_failures(run.stdout)
        if not failed and run.returncode != 0 and ops.read_count(run.stdout) is None:
            at = ops.last_begun(run.stdout) or op
            failed = (Message(source=ops.NAME, id=op, text=f"{at}: {lab.trials[-1].outcome}"),)
        found.messages += failed
        done.append(op)
        bad += [op] if failed else []
    told = f"{len(done)} of {len(ops.OPS)} operations tested; wrong: {', '.join(bad) or 'none'}"
    _add(found, ops.NAME, Use.USED if done else Use.SKIPPED, told)


def _named(found: Findings) -> None:
    """Give names to addresses, and build ids to the modules of the thread that stopped."""
    if found.halt is None:
        return
    tables = SymbolTables()
    found.halt = tables.named(found.halt)
    found.build_ids = tuple(build_ids(tables, found.halt).items())


def _add(found: Findings, name: str, use: Use, told: str, *, where: str = "") -> None:
    found.instruments.append(Instrument(name=name, use=use, told=told, where=where))
