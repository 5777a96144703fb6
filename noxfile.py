"""llamawright: build llama.cpp for the device in front of you, and prove that it works there.

Arguments after "--" reach the command line: nox -s build-vulkan -- --jobs 4 --vulkan system
What a verb knows: nox -s build-vulkan -- --help
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import nox

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bootstrap  # noqa: E402 - found beside this file, wherever nox was started

nox.needs_version = ">=2025.2"
nox.options.sessions = []  # a bare `nox` lists what there is; nothing long starts by itself
nox.virtualenv.OPTIONAL_VENVS = {}  # no session has an environment of nox's: spare three runs of uv

LAST_LINE = "NOX_LLAMAWRIGHT_LAST_LINE"
PATIENCE_S = 10.0
TYPED = ("src", "tests", "docs", "bench", ".ci/check_verdict.py", "noxfile.py", "bootstrap.py")


@nox.session(name="build-vulkan", venv_backend="none")
def build_vulkan(session: nox.Session) -> None:
    """Do the main job: build, pack and prove a Vulkan artifact on this machine's device."""
    llamawright(session, "build", "vulkan")


@nox.session(name="build-cuda", venv_backend="none")
def build_cuda(session: nox.Session) -> None:
    """Do the same with CUDA, for the card in this machine or for others: -- --arch sm_61."""
    llamawright(session, "build", "cuda")


@nox.session(name="build-cpu", venv_backend="none")
def build_cpu(session: nox.Session) -> None:
    """Do the same for the CPU alone: every variant in one artifact, chosen at run time."""
    llamawright(session, "build", "cpu")


@nox.session(venv_backend="none")
def verify(session: nox.Session) -> None:
    """Prove a packed artifact again, here or on another machine: -- FILE [--device NAME]."""
    llamawright(session, "verify")


@nox.session(venv_backend="none")
def wheel(session: nox.Session) -> None:
    """Make the runtime wheel of a packed artifact, with a measured tag: -- FILE [--dist DIR]."""
    llamawright(session, "wheel")


@nox.session(venv_backend="none")
def compare(session: nox.Session) -> None:
    """Measure two builds against each other on one device, with plots: -- A B [--rounds N]."""
    llamawright(session, "compare")


@nox.session(venv_backend="none")
def calibrate(session: nox.Session) -> None:
    """Measure how far honest figures spread, beside the limits: -- FILE [--runs N]."""
    llamawright(session, "calibrate")


@nox.session(venv_backend="none")
def doctor(session: nox.Session) -> None:
    """Tell what was found on this machine, what was rejected and why, and what to do next."""
    llamawright(session, "doctor")


@nox.session(venv_backend="none")
def plan(session: nox.Session) -> None:
    """Print the whole plan of a build, or every conflict with its cures: -- vulkan | cuda | cpu."""
    words = [a for a in session.posargs[:1] if not a.startswith("-")]
    backend = () if words else ("vulkan",)
    llamawright(session, "plan", *backend)


@nox.session(venv_backend="none")
def explain(session: nox.Session) -> None:
    """Print how the keys of two artifacts or plans differ: -- A B."""
    llamawright(session, "explain")


@nox.session(venv_backend="none")
def patches(session: nox.Session) -> None:
    """Show the patch series: -- list (the default) | check | refresh | new NAME ..."""
    known = {"list", "check", "refresh", "new", "--help"}
    llamawright(session, "patch", after=() if known & set(session.posargs) else ("list",))


@nox.session(venv_backend="none")
def release(session: nox.Session) -> None:
    """Make every target of the recipe, proved, in one folder or not at all: -- --plan-only."""
    llamawright(session, "release")


@nox.session(venv_backend="none")
def keygen(session: nox.Session) -> None:
    """Make a pair of keys to sign with; never overwrites one: -- DIR."""
    llamawright(session, "keygen")


@nox.session(venv_backend="none")
def attest(session: nox.Session) -> None:
    """Write and sign SBOM, provenance and verdict of an artifact: -- FILE --key KEY."""
    llamawright(session, "attest")


@nox.session(venv_backend="none")
def check(session: nox.Session) -> None:
    """Check an artifact and all that is said about it, offline: -- FILE --trust KEY.pub."""
    llamawright(session, "check")


@nox.session(venv_backend="none")
def repro(session: nox.Session) -> None:
    """Build twice on two made-up machines and compare byte for byte: -- cpu | --files A B."""
    llamawright(session, "repro")


@nox.session(venv_backend="none")
def bump(session: nox.Session) -> None:
    """Tell how a new upstream release differs from the pinned one: -- VERSION [--build vulkan]."""
    llamawright(session, "bump")


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run all quick tests, on two cores; they need no compiler, GPU or network."""
    python(session, "-m", "pytest", "-n", "2", *session.posargs)


@nox.session(name="tests-slow", venv_backend="none")
def tests_slow(session: nox.Session) -> None:
    """Run the tests that really download and build: minutes, and a C++ compiler."""
    python(session, "-m", "pytest", "-m", "slow", *session.posargs)


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check the style with ruff (-- --fix repairs what it can)."""
    fix = "--fix" in session.posargs
    python(session, "-m", "ruff", "check", *session.posargs)
    python(session, "-m", "ruff", "format", *([] if fix else ["--check"]))


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Check the types with mypy, strictly: the package, the tests and all scripts."""
    python(session, "-m", "mypy", *(session.posargs or TYPED))


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Write the reference pages anew from the code and check every link (-- --check: only look)."""
    python(session, "docs/generate.py", *session.posargs)


@nox.session(venv_backend="none")
def zoo(session: nox.Session) -> None:
    """Let verify judge sabotaged artifacts and machines: -- --artifact FILE | --honest N."""
    python(session, "tests/zoo_run.py", *session.posargs, kind="tool")


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Measure the tool's own costs as ratios of one run (-- --json FILE)."""
    python(session, "bench/bench.py", *session.posargs, kind="tool")


@nox.session(venv_backend="none")
def lock(session: nox.Session) -> None:
    """Write requirements/*.lock anew from pyproject.toml (needs uv)."""
    common = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version=3.11"]
    common += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
    common += ["--quiet", *session.posargs]
    session.run(*common, "-o", "requirements/tool.lock", external=True)
    same = ["--group", "dev", "-c", "requirements/tool.lock"]
    session.run(*common, *same, "-o", "requirements/dev.lock", external=True)


def llamawright(session: nox.Session, *verb: str, after: Sequence[str] = ()) -> None:
    """Run one verb with the session's arguments, where the person who called nox stands.

    nox ends with 1 whatever happened, so the command line's own last line, which holds its
    exit code and class, is made the last line of nox too.
    """
    argv = [*verb, *session.posargs, *after]
    interpreter = environment(session, "tool", offline="--offline" in argv)
    command = [interpreter, "-P", "-m", "llamawright", *argv]
    with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
        note = Path(folder, "last-line")
        env = {**bootstrap.child_environment(), LAST_LINE: str(note)}
        code = call(command, cwd=session.invoked_from, env=env)
        said = note.read_text(encoding="utf-8").strip() if note.exists() else ""
    if code:
        session.error(said or f"llamawright: exit {code}")


def python(session: nox.Session, *arguments: str, kind: str = "dev") -> None:
    """Run Python from one of the environments, in the checkout."""
    interpreter = environment(session, kind, offline=False)
    code = call([interpreter, *arguments], cwd=str(HERE), env=bootstrap.child_environment())
    if code:
        session.error(f"{' '.join(arguments[:3])}: exit {code}")


def environment(session: nox.Session, kind: str, *, offline: bool) -> str:
    """Return the interpreter of the shared environment, or end the session with the reason."""
    try:
        return str(bootstrap.ensure_environment(kind, offline=offline))
    except bootstrap.BootstrapError as error:
        error.tell()
        session.error(error.last_line)


def call(command: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> int:
    """Run a program in the foreground and return its exit code.

    nox's own ``session.run`` kills half a second after Ctrl-C; ending a build in order takes
    longer. The terminal tells the program too, so it is only waited for. One that nobody told
    (a signal to this process alone) is told here, and killed if it will not end.
    """
    child = subprocess.Popen(list(command), cwd=cwd, env=dict(env))
    with _sigterm_passed_on(child):
        try:
            return child.wait()
        except KeyboardInterrupt:
            for act in (child.poll, child.terminate, child.kill):
                act()
                with suppress(subprocess.TimeoutExpired):
                    child.wait(PATIENCE_S)
                    break
            raise


@contextmanager
def _sigterm_passed_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        child.terminate()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
