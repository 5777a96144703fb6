"""C and C++ compilers: candidates in order, each proved by a program it compiles and runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from llamawright.detect import proof_sources
from llamawright.detect.binary import same_machine, standing
from llamawright.detect.candidates import (
    ON_PATH,
    Candidate,
    Sighting,
    distinct,
    on_folders,
)
from llamawright.detect.probe import Problem, run_tool, succeed
from llamawright.detect.surroundings import Surroundings
from llamawright.digest import sha256_file
from llamawright.model import fit
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.platform import System
from llamawright.process import Result

NAMED = ("auto", "gcc", "clang")
VERSIONED = re.compile(r"(?P<stem>.*?)(?:-(?P<version>\d+))?(?:\.exe)?")
C_NAMES = {"g++": "gcc", "clang++": "clang", "c++": "cc"}
CXX_NAMES = {"gcc": "g++", "clang": "clang++", "cc": "c++"}
WRAPPERS = ("ccache", "sccache", "distcc", "icecc", "buildcache")
# Where a Python from conda keeps a linker that knows nothing of the system (case P21).
FOREIGN = "compiler_compat"
POINTER = "8"


def candidates(wanted: str, around: Surroundings) -> tuple[Candidate | Rejected, ...]:
    """Return C++ compilers, preferred first: named, ``CXX``/``CC``, plain, newest versioned."""
    if wanted not in NAMED:
        return (_candidate(Path(wanted), "--compiler"),)
    named = tuple(_from_environment(around))
    first = [c for c in named if isinstance(c, Candidate)]
    found = sorted(on_folders(around, r"(?:g|clang)\+\+(?:-\d+)?"), key=_preference)
    plain = found or list(on_folders(around, r"c\+\+"))
    places = [*((c.path, c.where) for c in first), *((p, ON_PATH) for p in plain)]
    refused = [c for c in named if isinstance(c, Rejected)]
    return (*refused, *(_candidate(p, w) for p, w in distinct(places)))


def prove(candidate: Candidate, around: Surroundings) -> Sighting:
    """Return the compiler with what it told about itself, or why it cannot be used."""
    problem = _unfit(candidate, around)
    if problem is None:
        with tempfile.TemporaryDirectory(prefix="llamawright-", ignore_cleanup_errors=True) as name:
            facts = _compile(candidate, around, Path(name))
        if not isinstance(facts, Problem):
            return _judge(candidate, facts, around)
        problem = facts
    return candidate.rejected(problem.fault, problem.reason, _cure(problem, around))


def c_compiler(candidate: Candidate, around: Surroundings) -> Path:
    """Return the C compiler that belongs to a C++ one: ``CC`` with ``CXX``, else the one beside."""
    words = _words(around.env.get("CC", ""))
    if candidate.where in ("CXX", "CC") and len(words) == 1:
        return _on_path(words[0], around)
    return candidate.path.with_name(_renamed(candidate.path.name, C_NAMES))


def _candidate(path: Path, where: str) -> Candidate:
    name = "clang" if "clang" in path.name else "gcc"
    return Candidate(role=Role.CXX, name=name, path=path, where=where)


def _from_environment(around: Surroundings) -> Iterator[Candidate | Rejected]:
    for variable, names in (("CXX", {}), ("CC", CXX_NAMES)):
        text = around.env.get(variable, "").strip()
        words = _words(text)
        if len(words) == 1:
            path = _on_path(words[0], around)
            yield _candidate(path.with_name(_renamed(path.name, names)), variable)
        elif words:
            yield _command_line(variable, text)
        if words:
            return


def _command_line(variable: str, text: str) -> Rejected:
    fault = Fault.UNSUPPORTED
    reason = f"{variable} holds a command line, not the name of a compiler: {text}"
    cure = f"let {variable} name the compiler alone (--cache chooses a compiler cache)"
    if FOREIGN in text:
        fault, cure = Fault.LEAK, f"unset {variable}"
        reason = f"{variable} links through conda's {FOREIGN}, which hides the system's libraries"
    return Rejected(
        role=Role.CXX,
        name="compiler",
        path=None,
        where=variable,
        reason=reason,
        cure=cure,
        fault=fault,
    )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, posix=os.name != "nt")
    except ValueError:
        return [text, "(unbalanced quotes)"]


def _on_path(word: str, around: Surroundings) -> Path:
    """Return the file a word means, as a shell would; a word that means none stays as it is."""
    if Path(word).is_absolute():
        return Path(word)
    return next((f / word for f in around.folders if (f / word).exists()), Path.cwd() / word)


def _renamed(name: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        matched = re.fullmatch(rf"(.*-)?{re.escape(old)}((?:-\d+)?(?:\.exe)?)", name)
        if matched:
            return f"{matched[1] or ''}{new}{matched[2]}"
    return name


def _preference(path: Path) -> tuple[bool, int, bool]:
    """Sort plain names before versioned ones, g++ before clang++, newer before older."""
    matched = VERSIONED.fullmatch(path.name)
    version = int(matched["version"] or 0) if matched else 0
    return version > 0, -version, "clang" in path.name


def _unfit(candidate: Candidate, around: Surroundings) -> Problem | None:
    wrong = standing(candidate.path, runs=True)
    if wrong:
        return Problem(*wrong)
    wrapper = candidate.path.resolve().stem
    if wrapper in WRAPPERS:
        return Problem(
            Fault.UNSUPPORTED, f"it is a link to {wrapper}; a compiler cache is chosen by --cache"
        )
    beside = c_compiler(candidate, around)
    wrong = standing(beside, runs=True)
    if wrong:
        return Problem(Fault.INCOMPLETE, f"its C compiler {beside} cannot be used: {wrong[1]}")
    return None


def _compile(candidate: Candidate, around: Surroundings, folder: Path) -> dict[str, str] | Problem:
    """Compile, link and run a C and a C++17 program with threads; return what they printed."""
    cc = c_compiler(candidate, around)
    # Side by side: this is the longest wait of a plan.
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="proof") as pool:
        told = [
            pool.submit(_program, compiler, source, standard, around, folder)
            for compiler, source, standard in (
                (cc, ("proof.c", proof_sources.C_PROGRAM), "-std=c11"),
                (candidate.path, ("proof.cpp", proof_sources.CXX_PROGRAM), "-std=c++17"),
            )
        ]
        c, cxx = (each.result() for each in told)
    for proved in (c, cxx):
        if isinstance(proved, Problem):
            return proved
    known = {"c_compiler": str(cc), "c_sha256": sha256_file(cc)}
    return {**known, **_printed(c), **_printed(cxx)}


def _program(
    compiler: Path, source: tuple[str, str], standard: str, around: Surroundings, folder: Path
) -> Result | Problem:
    """Build one program and run it."""
    name, text = source
    path, program = folder / name, folder / f"{name}.exe"
    path.write_text(text, encoding="utf-8")
    links = () if around.platform.system is System.WINDOWS else ("-pthread", "-lm")
    argv = (str(compiler), standard, str(path), "-o", str(program), *links)
    made = succeed(argv, around, seconds=around.long_s, cwd=folder)
    if isinstance(made, Problem):
        return Problem(made.fault, f"it cannot build a {standard[5:]} program: {made.reason}")
    ran = succeed((str(program),), around, seconds=around.short_s, cwd=folder)
    return _unrunnable(ran, folder) if isinstance(ran, Problem) else ran


def _printed(ran: Result | Problem) -> dict[str, str]:
    """Return what a program said of itself, one name and value a line."""
    lines = [] if isinstance(ran, Problem) else ran.stdout.splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def _unrunnable(problem: Problem, folder: Path) -> Problem:
    if problem.fault is Fault.NOT_EXECUTABLE:
        # Linkers set the bit; a volume mounted noexec takes its meaning away.
        return Problem(
            problem.fault, f"programs cannot be run in {folder.parent} (mounted noexec?)"
        )
    return Problem(problem.fault, f"what it builds does not run: {problem.reason}")


def _judge(candidate: Candidate, facts: dict[str, str], around: Surroundings) -> Sighting:
    name, version = facts.get("name", ""), facts.get("version", "")
    platform = around.platform
    if facts.get("pointer") != POINTER or not same_machine(
        facts.get("machine", ""), platform.machine
    ):
        made_for = facts.get("machine") or f"{facts.get('pointer')}-byte pointers"
        reason = f"it makes programs for {made_for}, not for {platform.machine}"
        return candidate.rejected(Fault.WRONG_MACHINE, reason, around.cure(Role.CXX))
    wrong = fit.misfit(Role.CXX, name, version, around.toolchains)
    if wrong:
        return candidate.rejected(*wrong, around.cure(Role.CXX))
    about = _about(candidate.path, around)
    leak = _foreign_linker(about.get("linker_path", ""), candidate.path, around)
    if leak:
        return candidate.rejected(
            Fault.LEAK, leak, "conda deactivate, or take that folder off PATH"
        )
    kept = ("c_compiler", "c_sha256", "libc", "libstdcxx")
    return Found(
        role=Role.CXX,
        name=name,
        path=candidate.path,
        version=version,
        where=candidate.where,
        sha256=sha256_file(candidate.path),
        facts=(*((k, facts.get(k, "")) for k in kept), *sorted(about.items())),
    )


def _about(compiler: Path, around: Surroundings) -> dict[str, str]:
    """Return what decides the output besides the driver: revision, target, linker, assembler."""
    about = {
        "revision": _first_line((str(compiler), "--version"), around),
        "target": _first_line((str(compiler), "-dumpmachine"), around),
    }
    for part, name in (("linker", "ld"), ("assembler", "as")):
        told = _first_line((str(compiler), f"-print-prog-name={name}"), around)
        path = told if Path(told).is_absolute() else _which(told or name, around)
        if path and standing(Path(path), runs=True) is None:
            about[part] = _first_line((path, "--version"), around)
            about[f"{part}_path"] = path
    backend = Path(_first_line((str(compiler), "-print-prog-name=cc1plus"), around))
    if backend.is_absolute() and backend.is_file():
        about["backend_sha256"] = sha256_file(backend)
    return about


def _foreign_linker(linker: str, compiler: Path, around: Surroundings) -> str:
    conda = around.env.get("CONDA_PREFIX", "")
    inside = bool(conda) and Path(conda) in Path(linker).parents
    if FOREIGN in Path(linker).parts or (inside and Path(conda) not in compiler.parents):
        return f"it would link with conda's {linker}, which does not find the system's libraries"
    return ""


def _which(name: str, around: Surroundings) -> str:
    return shutil.which(name, path=os.pathsep.join(map(str, around.folders))) or ""


def _first_line(argv: tuple[str, ...], around: Surroundings) -> str:
    result = run_tool(argv, around, seconds=around.short_s)
    if isinstance(result, Problem) or not result.ok:
        return ""
    return (result.stdout.strip().splitlines() or [""])[0].strip()


def _cure(problem: Problem, around: Surroundings) -> str:
    if problem.fault is Fault.NOT_EXECUTABLE and "noexec" in problem.reason:
        return "set TMPDIR to a folder whose programs may be run"
    if problem.fault is Fault.UNSUPPORTED:
        return "name the compiler itself with --compiler"
    return around.cure(Role.CXX)
