"""GNU's debugger: what it is told to do, and what it says, as data. Pure.

The program runs under it from its start, so no core file and no right to attach to others is
needed (Linux's Yama lets a parent trace its own child). A hang is interrupted by a SIGINT to
the program, which the debugger takes for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llamawright.model.investigation import Frame, Halt, Thread

NAME = "gdb"
MOST_FRAMES = 40
MOST_THREADS = 32
MARK = "@@llamawright "
QUIET = (
    "set pagination off", "set confirm off", "set width 0", "set debuginfod enabled off",
    "set print thread-events off", "set print frame-arguments none", "set print elements 60",
    "set breakpoint pending on", "set auto-load no", "set auto-load libthread-db on",
    # A program that waits for a signal of its own is not stopped by it.
    "handle SIGPIPE SIGUSR1 SIGUSR2 SIGALRM SIGCHLD nostop noprint pass",
)  # fmt: skip
SECTIONS = (
    ("signal", "info program"),
    ("number", "print $_siginfo.si_signo"),
    ("address", "print $_siginfo._sifields._sigfault.si_addr"),
    ("where", f"backtrace {MOST_FRAMES}"),
    ("code", "x/i $pc"),
    ("mappings", "info proc mappings"),
    ("threads", f"thread apply all -s backtrace {MOST_FRAMES}"),
    ("end", ""),
)
# Where a program gives up by itself: at the exception that it tells of, or at its exit.
THROWN = ("tcatch throw", "catch syscall exit_group")

STOPPED = re.compile(r"(?:received|stopped with) signal (SIG[A-Z0-9+]+)")
DENIED = re.compile(r"ptrace: Operation not permitted|Could not trace the inferior|ptrace\(\) ")
EXITED = re.compile(r"\[Inferior 1 .* exited (?:normally|with code (\d+))\]")
CAUGHT = re.compile(r"Catchpoint \d+ \((exception thrown|.*exit_group[^)]*)\)")
FRAME = re.compile(r"^#(\d+)\s+(?:(0x[0-9a-f]+) in )?(.*)$")
PLACE = re.compile(r"^(?P<call>.*?)(?: from (?P<module>/.+)| at (?P<source>\S+:\d+))?$")
THREAD = re.compile(r'^Thread \d+ \([^"]*(?:"(?P<name>[^"]*)")?.*\):?$')
MAPPING = re.compile(r"^\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+.*?(/.+)$")
ADDRESS = re.compile(r"\(void \*\) (0x[0-9a-f]+)|= (0x[0-9a-f]+)")
CODE = re.compile(r"^=> 0x[0-9a-f]+(?: <[^>]*>)?:\s*(.+)$", re.MULTILINE)
# Signals whose address means something.
OF_MEMORY = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"})


@dataclass(frozen=True, slots=True)
class Mapped:
    """Where files lie in a process: ``ranges`` are (begin, end, file), ``bases`` their starts."""

    ranges: tuple[tuple[int, int, str], ...] = ()

    def find(self, address: int) -> tuple[str, int] | None:
        """Return the file at an address and how far it is from the file's start."""
        hit = next((r for r in self.ranges if r[0] <= address < r[1]), None)
        if hit is None:
            return None
        base = min(begin for begin, _, file in self.ranges if file == hit[2])
        return hit[2], address - base


def commands(env: Mapping[str, str], *, thrown: bool) -> str:
    """Return the debugger's command file; the program gets ``env`` and nothing else.

    ``thrown``: also stop where the program throws or leaves, for failures without a signal.
    """
    given = [f"set environment {k} {v}" for k, v in sorted(env.items()) if _plain(k + v)]
    lines = [*QUIET, "unset environment", *given, *(THROWN if thrown else ()), "run"]
    for name, command in SECTIONS:
        lines += [f"echo \\n{MARK}{name}\\n", *([command] if command else [])]
    return "\n".join([*lines, "kill", ""])


def argv(program: str, script: str, debugged: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line that runs ``debugged`` under the debugger."""
    return (program, "--batch", "--nx", "-q", "-x", script, "--args", *debugged)


def sections(output: str) -> dict[str, str]:
    """Return what was said before the first mark, under ``run``, and under each mark."""
    found: dict[str, list[str]] = {"run": []}
    name = "run"
    for line in output.splitlines():
        if line.startswith(MARK):
            name = line.removeprefix(MARK).strip()
            found[name] = []
        else:
            found.setdefault(name, []).append(line)
    return {k: "\n".join(v) for k, v in found.items()}


def read_halt(output: str, *, hung: bool) -> Halt | None:
    """Return where the program stopped; ``None`` when it did not stop under the debugger."""
    said = sections(output)
    mapped = read_mappings(said.get("mappings", ""))
    first = Thread(name="", frames=tuple(read_frames(said.get("where", ""), mapped)))
    if not first.frames:
        return None
    signal = _signal(said, hung=hung)
    others = tuple(read_threads(said.get("threads", ""), mapped))
    top = [t for t in others if t.frames[:2] == first.frames[:2]][:1]
    code = CODE.search(said.get("code", ""))
    address = ADDRESS.search(said.get("address", "")) if signal in OF_MEMORY else None
    rest = tuple(t for t in others if t not in top)[: MOST_THREADS - 1]
    return Halt(
        signal=signal,
        threads=(Thread(name=top[0].name if top else "", frames=first.frames), *rest),
        seen_by=NAME,
        address=next((a for a in address.groups() if a), "") if address else "",
        instruction=" ".join(code[1].split()) if code else "",
    )


def _signal(said: Mapping[str, str], *, hung: bool) -> str:
    if hung:
        return "hang"
    caught = CAUGHT.search(said["run"])
    if caught:
        return "exception" if "thrown" in caught[1] else "exit"
    stopped = STOPPED.search(said.get("signal", "")) or STOPPED.search(said["run"])
    return stopped[1] if stopped else "stopped"


def read_frames(text: str, mapped: Mapped) -> Iterator[Frame]:
    """Yield the calls of one stack."""
    for line in text.splitlines():
        match = FRAME.match(line)
        if not match:
            continue
        place = PLACE.match(match[3])
        call = place["call"] if place else match[3]
        at = mapped.find(int(match[2], 16)) if match[2] else None
        module = (at[0] if at else "") or (place["module"] if place else "") or ""
        yield Frame(
            number=int(match[1]),
            function=_function(call),
            module=module,
            offset=at[1] if at else None,
            source=(place["source"] if place else "") or "",
        )


def _function(call: str) -> str:
    """Return a call without its arguments, which stand in the last parentheses."""
    head, found, _ = call.rstrip().rpartition(" (")
    return head if found else call


def read_threads(text: str, mapped: Mapped) -> Iterator[Thread]:
    """Yield the threads, each with its calls."""
    name, lines = None, list[str]()
    for line in [*text.splitlines(), "Thread 0 (end):"]:
        match = THREAD.match(line)
        if match is None:
            lines.append(line)
            continue
        if name is not None:
            yield Thread(name=name, frames=tuple(read_frames("\n".join(lines), mapped)))
        name, lines = match["name"] or "", []


def read_mappings(text: str) -> Mapped:
    """Return where files lie, from ``info proc mappings``."""
    rows = (MAPPING.match(line) for line in text.splitlines())
    return Mapped(tuple((int(m[1], 16), int(m[2], 16), m[3].strip()) for m in rows if m))


def why_not(output: str) -> str:
    """Return why there is no stack: tracing is forbidden, or the program did not fail here."""
    if DENIED.search(output):
        return (
            "this system forbids tracing a program (in a container: start it with "
            "--cap-add SYS_PTRACE; kernel.yama.ptrace_scope must be below 3)"
        )
    ended = EXITED.search(output)
    if ended:
        return f"the program did not stop under gdb: it ended with status {ended[1] or 0}"
    return "gdb said nothing of a stack"


def _plain(text: str) -> bool:
    return not set(text) & {"\n", "\r", "\0"}
