"""Evidence to a verdict. Pure; in doubt the answer is never ``verified``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

from llamawright.model.verdict import Numbers, Outcome, State
from llamawright.process import Ending
from llamawright.verify.evidence import Evidence, Kind
from llamawright.verify.logs import failure_reason
from llamawright.verify.patterns import PatternSet
from llamawright.verify.patterns_cuda import CUDA_FAILURES, KERNEL_PRINTS
from llamawright.verify.supervise import Finished, Phase

ILLEGAL = {-4, 132, 0xC000001D}
WINDOWS_FAULTS = {0xC0000005: "access violation", 0xC0000409: "fast fail", 0xC0000374: "heap"}
CPU_VARIANT = re.compile(r"loaded CPU backend from .*?([^/\\]+)$")
# They end with a line of their own, in the same queue as all before.
SPEAKERS = frozenset({"llama-completion", "llama-perplexity"})
WINDOWS_LOADER = {0xC0000135, 0xC0000139}
CANNOT_START = 127
CLAIMS = (Kind.OFFLOADED, Kind.ASSIGNED, Kind.WEIGHTS)
PHYSICAL = (Kind.IDENTITY, Kind.MEMORY, Kind.MODULE, Kind.DRIVER)
NUMBERS = (Kind.DIVERGENCE, Kind.AGREEMENT)
NEEDED = frozenset(
    {Kind.ASSIGNED, Kind.WEIGHTS, Kind.REFERENCE, Kind.TOKENS, Kind.ANSWER, *NUMBERS}
)
OF_DEVICES = frozenset({Kind.LISTED, Kind.OFFLOADED})
# Another model may not know the answer, and its tokens may be so nearly equal that rounding
# decides: then the probabilities alone are compared.
OF_THE_PINNED_MODEL = frozenset({Kind.ANSWER, Kind.TOKENS})

HINTS = {
    **{f.kind: f.cure for f in CUDA_FAILURES},
    "console-script": "the wheel's command does not become its program: build the wheel again "
    "with llamawright wheel",
    "not-installable": "pip's own words say what this machine lacks; an older glibc than the tag "
    "names needs a wheel with a lower floor",
    "no-virtual-environment": "install Python's venv module (Debian: python3-venv)",
    "silent-cpu": "the module was not used: llamawright doctor shows whether its driver is there",
    "partly-offloaded": "free memory on the device, or name another with --device",
    "contradiction": "the log and the system disagree; keep the report and the logs: "
    "this is a bug of the artifact or of the driver",
    "wrong-answer": "the device computes wrong text: update its driver, or try another backend",
    "wrong-tokens": "the device computes other tokens than the CPU: update its driver, "
    "or try another backend",
    "wrong-numbers": "the device computes wrong probabilities: update its driver, "
    "or try another backend",
    "not-a-number": "a kernel makes NaN or infinity: update the driver, or try another backend",
    "flaky": "the same computation gave other numbers the second time: check the device's memory, "
    "heat and overclocking, then another driver; llamawright calibrate shows how often",
    "wrong-operation": "upstream's own test finds the operation wrong on this device: update its "
    "driver, or try another backend",
    "evidence-missing": "the programs did not print what they should; "
    "was the artifact made from another upstream version?",
    "reference-not-cpu": "the archive starts a device without its module: build it again",
    "device-not-listed": "the artifact does not take the device: update its driver "
    "(Vulkan 1.2 is needed)",
    "module-not-loaded": "build the artifact again, or install the library that is missing",
    "illegal-instruction": "built for another CPU than this one (build without --native), or by "
    "a compiler that gets its instructions wrong (AMX: GCC before 12.4 and 13.3); without that "
    "CPU variant's file the next best is taken",
    "crashed": "the report holds the command and the end of its log; a debugger shows where",
    "device-lost": "the driver reset the device: try a smaller -ub, another driver or backend",
    "library-missing": "the artifact needs a library that this system has not got",
    "endless-output": "the program never ends; report it with the log",
    "output-cut-off": "upstream writes its log in a thread that nobody waits for, and its end can "
    "be lost: build the artifact with the patch flush-log-at-exit, or verify again",
    "wrong-exit-status": "the text is right but the program says it failed: see the log",
    "ended-early": "the program gave up: see the log",
    "model-refused": "the program cannot load the model: see the log",
    "module-missing": "the archive was changed after it was built: build or fetch it again",
    "hash-mismatch": "the archive was changed after it was built: build or fetch it again",
    "companion-mismatch": "the archive with CUDA's libraries is not the one that the artifact was "
    "built with: fetch both again, from one place",
    "too-slow": "the comparison's page shows every sample: run it again on a quiet machine, "
    "then look for what changed between the two",
    "device-reset": "the kernel reset the device or lost it while it computed: check power, heat "
    "and overclocking, then another driver; the kernel's log has the lines around it",
    "soak-answer-changed": "the same prompt got another answer: the device computes wrong now and "
    "then. Check its memory, heat and overclocking, then another driver",
    "soak-slowed": "the page shows when it began: look at the device's clocks and temperature "
    "then, and at what else ran; start the soak again on a quiet machine",
    "soak-leak": "memory is not given back after each run: update the driver; if it goes on, "
    "restart the machine before long runs and report it with the page",
    "driver-broken": "repair the NVIDIA driver: nvidia-smi must answer first",
    "removed-after-unpack": "antivirus software may have quarantined it; llamawright never "
    "touches its settings: allow the file there, or report it as a false alarm",
}
MOST_REASONS = 4
CANNOT = frozenset(f.kind for f in CUDA_FAILURES if f.machine)
# After these nothing counts that a program prints, even if it ends with status 0.
LOST = frozenset({"device-lost", "gpu-lost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A verdict's heart. ``failure`` is empty when nothing failed."""

    state: State
    failure: str = ""
    why: str = ""
    hint: str = ""


def needed_kinds(*, cpu: bool, pinned: bool) -> frozenset[Kind]:
    """Return what a proof cannot do without."""
    kinds = NEEDED if cpu else NEEDED | OF_DEVICES
    return kinds if pinned else kinds - OF_THE_PINNED_MODEL


def run_failure(run: Finished) -> tuple[str, str] | None:
    """Return the class and the sentence of a run that did not end as it should."""
    where = f"{run.task.name} in phase {run.phase}"
    if run.overran is not None:
        limit = run.task.limits.of(run.overran)
        return f"hang-at-{run.overran}", f"{where}: nothing after {limit:.0f} s, stopped"
    match run.ending:
        case Ending.OUTPUT_CAP:
            return "endless-output", f"{where}: more than {run.task.limits.output_cap} bytes"
        case Ending.TIMED_OUT | Ending.STALLED | Ending.STOPPED:
            return f"hang-at-{run.phase}", f"{where}: {run.ending} after {run.seconds:.0f} s"
        case Ending.EXITED:
            return _status_failure(run, where)


def cut_off(run: Finished, patterns: PatternSet) -> tuple[str, str] | None:
    """Return the class and the sentence of a run that computed and lost its last words.

    What such a run printed is no evidence of anything: its text is shorter than its answer.
    """
    computed = run.clean and run.phase in (Phase.FIRST_TOKEN, Phase.DONE)
    speaks = Path(run.task.argv[0]).stem in SPEAKERS
    if not (computed and speaks) or any(map(patterns.closing.search, reversed(run.lines))):
        return None
    why = f"{run.task.name}: status 0, and the program's closing lines are missing"
    return "output-cut-off", why


def _status_failure(run: Finished, where: str) -> tuple[str, str] | None:
    code = run.returncode
    reason = failure_reason(_words(run))
    if code == 0:
        lost = reason is not None and reason[0] in LOST
        return (reason[0], f"{where}: {reason[1]}") if lost and reason else None
    if code in ILLEGAL:
        loaded = ", ".join(_cpu_variants(run.lines)) or "a program"
        return "illegal-instruction", f"{where}: this CPU refuses an instruction of {loaded}"
    if reason is not None:
        return reason[0], f"{where}: {reason[1]}"
    if code < 0 or code in WINDOWS_FAULTS:
        return "crashed", f"{where}: ended by {signal_name(code)}"
    if code == CANNOT_START or code in WINDOWS_LOADER:
        return "library-missing", f"{where}: the system could not start it (status {code})"
    kind = "wrong-exit-status" if run.phase is Phase.DONE else "ended-early"
    return kind, f"{where}: exit status {code}"


def _words(run: Finished) -> tuple[str, ...]:
    """Return the log, and what a CUDA kernel itself prints: that goes to stdout.

    The same words in a model's text cannot pass for it: only a run that failed is asked.
    """
    printed = () if run.returncode == 0 else run.stdout.splitlines()
    return (*run.lines, *(line for line in printed if KERNEL_PRINTS.search(line)))


def _cpu_variants(lines: Sequence[str]) -> list[str]:
    """Return the CPU modules that a log says were loaded."""
    return [m[1] for m in map(CPU_VARIANT.search, lines) if m]


def signal_name(code: int) -> str:
    """Return what ended a process: a signal's name, or Windows's word."""
    if code in WINDOWS_FAULTS:
        return WINDOWS_FAULTS[code]
    try:
        return Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def rule_failure(kind: str, why: str, *, of_reference: bool) -> Ruling:
    """Return the verdict of a run that failed; what is the machine's fault fails nobody."""
    hint = hint_of(kind)
    if kind in CANNOT and not of_reference:
        return Ruling(state=State.CANNOT_VERIFY, failure=kind, why=why, hint=hint)
    failure = f"reference-{kind}" if of_reference else kind
    return Ruling(state=State.FAILED, failure=failure, why=why, hint=hint)


def hint_of(kind: str) -> str:
    """Return what to do about a class of failure."""
    if kind.startswith("hang-at-"):
        return (
            "the driver or the device hangs: try another driver, a smaller -ub or another backend"
        )
    return HINTS.get(kind, "")


def rule(
    evidence: Sequence[Evidence],
    numbers: Sequence[Numbers],
    *,
    software: bool,
    needed: frozenset[Kind],
) -> Ruling:
    """Return the verdict of runs that all ended well.

    Nothing passes by absence: a kind that is ``needed`` and that nobody looked at is a
    failure like one that could not be read.
    """
    failure = _failure(evidence, numbers, needed)
    if failure is None:
        return Ruling(state=State.VERIFIED_SOFTWARE if software else State.VERIFIED)
    bad = [e.check for e in evidence if _against(e)][:MOST_REASONS]
    why = "; ".join(f"{c.name}: expected {c.expected}, seen {c.seen}" for c in bad)
    return Ruling(
        state=State.FAILED,
        failure=failure,
        why=why or "a part of the evidence was never looked at",
        hint=hint_of(failure),
    )


def _against(evidence: Evidence) -> bool:
    match evidence.check.outcome:
        case Outcome.PASS:
            return False
        case Outcome.FAIL:
            return True
        case Outcome.UNKNOWN:
            return not evidence.optional


def _failure(
    evidence: Sequence[Evidence], numbers: Sequence[Numbers], needed: frozenset[Kind]
) -> str | None:
    failed = {e.kind for e in evidence if e.check.outcome is Outcome.FAIL}
    passed = {e.kind for e in evidence if e.check.outcome is Outcome.PASS}
    partly = any(e.share > 0 for e in evidence if e.kind in CLAIMS)
    placed = _placement_failure(failed, passed, partly=partly)
    numbers_wrong = "wrong-numbers" if _finite(numbers) else "not-a-number"
    order = (
        (Kind.LISTED in failed, "device-not-listed"),
        (Kind.REFERENCE in failed, "reference-not-cpu"),
        (bool(placed), placed),
        (Kind.REPEAT in failed, "flaky"),
        (Kind.ANSWER in failed, "wrong-answer"),
        (Kind.TOKENS in failed, "wrong-tokens"),
        (bool(failed & set(NUMBERS)), numbers_wrong),
        (Kind.OPERATION in failed, "wrong-operation"),
        (bool(needed - passed) or any(map(_against, evidence)), "evidence-missing"),
    )
    return next((name for holds, name in order if holds), None)


def _placement_failure(failed: set[Kind], passed: set[Kind], *, partly: bool) -> str:
    """Tell a CPU run, a run on half the device and a lie from each other."""
    claims_failed = failed & set(CLAIMS)
    claims_passed = (passed & set(CLAIMS)) - failed
    if claims_failed and not claims_passed:
        return "partly-offloaded" if partly else "silent-cpu"
    return "contradiction" if claims_failed or failed & set(PHYSICAL) else ""


def _finite(numbers: Sequence[Numbers]) -> bool:
    values = [v for n in numbers for v in (n.mean_kld, n.top1, *n.per_chunk)]
    return all(math.isfinite(v) for v in values)
