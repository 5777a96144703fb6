"""The attachment: a page of Markdown for a bug report, the data, the logs; folder and archive."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from llamawright import __version__, codec
from llamawright.model.investigation import Frame, Halt, Investigation, Message, Thread, Use
from llamawright.paths import remove_tree
from llamawright.verify.report import artifact_stem

SUFFIX = ".investigation"
REPORT, DATA, LOGS = "report.md", "report.json", "logs"
MARKS = {Use.USED: "used", Use.MISSING: "not here", Use.UNABLE: "could not", Use.SKIPPED: "skipped"}
MOST_THREADS = 12
MOST_FRAMES = 24
MOST_MESSAGES = 12
# ZIP cannot hold an earlier year, and the same findings make the same bytes.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def investigation_lines(found: Investigation) -> Iterator[str]:
    """Return the result as lines for the summary."""
    yield f"cause: {found.cause.told}  [{found.cause.evidence}]"
    if found.repeated:
        yield f"again: {found.reproduced} of {found.repeated} runs failed in the same way"
    for step in found.reductions:
        passes = f", passes: {step.passes}" if step.passes else ""
        # The long list of what changed nothing stands in the report.
        told = f" ({step.told})" if step.told and "fails with" not in step.told else ""
        yield f"{step.name}: {step.before} -> {step.least}{passes}{told}"
    for tool in found.instruments:
        if tool.use is not Use.USED:
            yield f"{tool.name}: {MARKS[tool.use]}: {tool.told}"
    yield from (f"not done: {text}" for text in found.limits)


def write_investigation(
    found: Investigation, logs: Sequence[tuple[str, str]], dest: Path
) -> tuple[Path, Path]:
    """Write ``<name>.investigation`` and the same as ``.zip`` into ``dest``; return both.

    Each is written beside its place and renamed; an earlier one is replaced as a whole.
    """
    name = f"{artifact_stem(found.artifact)}{SUFFIX}"
    files = [(REPORT, markdown(found)), (DATA, codec.encode(found))]
    files += [(f"{LOGS}/{file}", text) for file, text in logs]
    dest.mkdir(parents=True, exist_ok=True)
    folder, archive = dest / name, dest / f"{name}.zip"
    beside = dest / f".{name}.{os.getpid()}"
    remove_tree(beside)
    for file, text in files:
        place = beside / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")
    _zip(files, name, archive, beside.with_suffix(".zip"))
    remove_tree(folder)
    beside.replace(folder)
    return folder / REPORT, archive


def _zip(files: Sequence[tuple[str, str]], name: str, archive: Path, beside: Path) -> None:
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as packed:
        for file, text in files:
            packed.writestr(zipfile.ZipInfo(f"{name}/{file}", ZIP_DATE), text,
                            zipfile.ZIP_DEFLATED)  # fmt: skip
    beside.replace(archive)


def markdown(found: Investigation) -> str:
    """Return the page. What programs printed stands in code, so that it stays text."""
    parts = (
        _head(found), _smallest(found), _stacks(found.halt), _messages(found.messages),
        _kernel(found.kernel), _environment(found), _instruments(found), _trials(found),
        _limits(found),
    )  # fmt: skip
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _head(found: Investigation) -> Iterator[str]:
    title = found.failure or found.state
    where = f" on {found.device}" if found.device else ""
    yield f"# {title}{where}"
    yield ""
    yield f"**First cause** ({found.cause.evidence}):"
    yield from _fenced([found.cause.told])
    if found.run:
        yield f"The run `{found.run}` of {_code(found.artifact)} failed:"
        yield from _fenced([found.why])
    if found.repeated:
        again = f"{found.reproduced} of {found.repeated} runs"
        yield f"Repeated as it was, it failed in the same way in {again}."
        yield ""


def _smallest(found: Investigation) -> Iterator[str]:
    if not found.commands:
        return
    yield "## Smallest failing case"
    yield ""
    yield from _fenced(found.commands, "sh")
    if found.reductions:
        yield from _table(
            ("quantity", "failed first with", "least that fails", "passes", ""),
            [(r.name, r.before, r.least, r.passes, r.told) for r in found.reductions],
        )


def _stacks(halt: Halt | None) -> Iterator[str]:
    if halt is None:
        return
    yield f"## Where it stopped: {halt.signal}"
    yield ""
    at = f", address {halt.address}" if halt.address else ""
    code = f", instruction `{halt.instruction}`" if halt.instruction else ""
    yield f"Seen by {halt.seen_by}{at}{code}. Offsets are from the start of each module's file."
    yield ""
    yield from _fenced(line for thread in halt.threads[:1] for line in stack(thread))
    others = halt.threads[1:MOST_THREADS]
    if others:
        yield "<details><summary>Other threads</summary>"
        yield ""
        yield from _fenced(line for thread in others for line in (*stack(thread), ""))
        yield "</details>"
        yield ""


def stack(thread: Thread) -> Iterator[str]:
    """Yield one thread as lines."""
    waits = f"  ({thread.waits})" if thread.waits else ""
    yield f"thread {thread.name or '?'}{waits}"
    yield from (f"  {call(frame)}" for frame in thread.frames[:MOST_FRAMES])


def call(frame: Frame) -> str:
    """Return one call as a line."""
    name = PurePath(frame.module).name
    offset = f"+0x{frame.offset:x}" if frame.offset is not None else ""
    source = f"  {frame.source}" if frame.source else ""
    guess = "  (guessed)" if frame.guessed else ""
    return f"#{frame.number:<2} {frame.function}  {name}{offset}{source}{guess}"


def _messages(messages: Sequence[Message]) -> Iterator[str]:
    if not messages:
        return
    yield "## What the instruments reported"
    yield ""
    for message in messages[:MOST_MESSAGES]:
        doubt = f" — doubtful: {message.doubt}" if message.doubt else ""
        yield f"{message.source}, {_code(message.id)}, {message.count} times{doubt}"
        yield from _fenced([message.text])
    if len(messages) > MOST_MESSAGES:
        yield f"and {len(messages) - MOST_MESSAGES} more in `{DATA}`"
        yield ""


def _kernel(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "## The kernel's log"
        yield ""
        yield from _fenced(lines)


def _environment(found: Investigation) -> Iterator[str]:
    yield "## Environment"
    yield ""
    rows = [("artifact", f"{found.artifact} (sha256 {found.artifact_sha256})")]
    rows += [("model", f"{found.model} (sha256 {found.model_sha256})"), *found.environment]
    yield from _table(("what", "which"), rows)


def _instruments(found: Investigation) -> Iterator[str]:
    if found.instruments:
        yield "## Instruments"
        yield ""
        yield from _table(
            ("instrument", "", "version", "from", "what it found or could not do"),
            [(t.name, MARKS[t.use], t.version, t.where, t.told) for t in found.instruments],
        )


def _trials(found: Investigation) -> Iterator[str]:
    if not found.trials:
        return
    yield "<details><summary>Every run</summary>"
    yield ""
    rows = [
        (
            n,
            t.name,
            t.outcome or ("done" if t.same is None else "passed"),
            f"{t.seconds:.1f} s",
            t.log,
        )
        for n, t in enumerate(found.trials, start=1)
    ]
    yield from _table(("", "run", "outcome", "time", "log"), rows)
    yield "</details>"
    yield ""


def _limits(found: Investigation) -> Iterator[str]:
    yield f"Made by llamawright {__version__} (`verify --investigate`) on {found.date}, in "
    yield f"{found.seconds:.0f} s of at most {found.limit_s:.0f} s. Paths, host and user names "
    yield f"are replaced by words. Data: `{DATA}`; full output: `{LOGS}/`."
    yield ""
    yield from (f"- {text}" for text in found.limits)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(_cell(str(c)) for c in row)} |"
    yield ""


def _cell(text: str) -> str:
    """Return a table's cell: one line, and nothing in it ends the cell or becomes HTML."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return " ".join(escaped.split())


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"


def _fenced(lines: Iterator[str] | Sequence[str], language: str = "") -> Iterator[str]:
    """Yield lines of code; a fence inside them is made longer ones' content."""
    body = [line.rstrip("\r\n") for text in lines for line in (text.splitlines() or [""])]
    longest = max((len(x) - len(x.lstrip("`")) for x in map(str.strip, body)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from body
    yield fence
    yield ""
