"""One command from a fresh clone: make the tool's own environment, then run nox out of it.

    python3 bootstrap.py build-vulkan            the main job (Windows: py bootstrap.py ...)
    python3 bootstrap.py tests                   the tests
    python3 bootstrap.py                         the list of sessions
    python3 bootstrap.py build-vulkan --jobs 4   flags after a session go to llamawright
    python3 bootstrap.py llamawright doctor      the command line itself: its own exit code

It needs Python 3.11 and nothing else: no root, nothing outside the user's cache folder. The
environment is made once from the hash-pinned lock file and shared by every clone with the
same one. Python 3.6 must understand this file, or it could not say that it is too old.
"""
# ruff: noqa: E402 - an old Python must be told so before it meets what it does not know

import sys

MINIMUM = (3, 11)
if sys.version_info[:2] < MINIMUM:
    sys.stderr.write(
        "error: llamawright needs Python 3.11 or newer; {} is {}.{}\n"
        "hint: run it with a newer one, e.g. python3.12 bootstrap.py, or with uv: "
        "uvx --python 3.12 nox -s build-vulkan\n"
        "llamawright: exit 4 (tool-missing: python-too-old)\n".format(
            sys.executable, *sys.version_info[:2]
        )
    )
    raise SystemExit(4)

import errno
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent
LOCKS = {"tool": "tool.lock", "dev": "dev.lock"}
PROOFS = {
    "tool": "import lief, nox, psutil, pydantic, requests, zstandard",
    "dev": "import gguf, lief, mypy, nox, psutil, pydantic, pytest, requests, xdist, zstandard",
}
SPACE_MB = {"tool": 400, "dev": 800}  # unpacked size and what is needed on the way, rounded up
STAMP = "llamawright-environment.json"
DAY_S = 86_400.0
KEEP_DAYS, LOCK_WAIT_S, TELL_EVERY_S = 60, 900.0, 3.0
PIP_FOR_OTHERS = (22, 3)  # the first pip that installs into another environment (--python)
MISLEADING = (
    "PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_CONSTRAINT",
    "PIP_NO_BINARY", "PIP_PYTHON", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_NO_BINARY", "UV_PYTHON",
)  # fmt: skip


class BootstrapError(Exception):
    """A failure told to a stranger; ``code`` and ``kind`` are those of llamawright."""

    def __init__(self, code: int, kind: str, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint, self.code, self.kind = hint, code, kind

    @property
    def last_line(self) -> str:
        """Return what the run ends with, in the command line's own form."""
        names = {4: "tool-missing", 6: "download", 12: "locked", 13: "disk"}
        return f"llamawright: exit {self.code} ({names[self.code]}: {self.kind})"

    def tell(self) -> None:
        """Print what happened and what to do next."""
        sys.stderr.write(f"error: {self}\nhint: {self.hint}\n")


class Environment:
    """The place of one environment, whether or not it stands already."""

    def __init__(self, kind: str, root: Path, lock_file: Path) -> None:
        self.kind, self.root, self.lock_file = kind, root, lock_file

    @property
    def python(self) -> Path:
        """Return the environment's interpreter."""
        return self.root / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    @property
    def ready(self) -> bool:
        """Whether it was finished and its interpreter is still the one it was made with.

        A system upgrade moves the link behind ``bin/python`` from 3.11 to 3.13, and then
        nothing that was installed is found any more; only the name at its end tells.
        """
        with suppress(OSError, ValueError, KeyError, TypeError):
            stamp = json.loads((self.root / STAMP).read_text(encoding="utf-8"))
            end = Path(os.path.realpath(self.python))
            return bool(end.name == stamp["interpreter"]) and end.is_file()
        return False


def store_root(env: Mapping[str, str], system: str, home: Path) -> Path:
    """Return the store's folder, as ``llamawright.paths.store_root`` does with its library."""
    if env.get("LLAMAWRIGHT_STORE"):
        return Path(env["LLAMAWRIGHT_STORE"]).expanduser().absolute()
    if system == "win32":
        local = env.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
        return Path(local) / "llamawright" / "llamawright" / "Cache"
    named = env.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named) / "llamawright"
    caches = home / "Library" / "Caches" if system == "darwin" else home / ".cache"
    return caches / "llamawright"


def locate(kind: str) -> Environment:
    """Return where the environment of this lock file, system and C library belongs.

    The Python is no part of its name: nox, pipx and uvx bring different ones, and all of
    them shall share one environment, so that their builds have the same tools and keys.
    """
    lock_file = CHECKOUT / "requirements" / LOCKS[kind]
    key = hashlib.sha256(lock_file.read_bytes() + _machine().encode()).hexdigest()
    home = Path("/nonexistent")  # a user without a home must name a store
    with suppress(RuntimeError):
        home = Path.home()
    folder = store_root(os.environ, sys.platform, home) / "env"
    return Environment(kind, folder / f"{kind}-{key[:16]}", lock_file)


def ensure_environment(kind: str, *, offline: bool = False) -> Path:
    """Return the interpreter of the environment ``tool`` or ``dev``, made now if need be.

    Raises ``BootstrapError``; a failed or interrupted attempt leaves no environment.
    """
    environment = locate(kind)
    if not environment.ready:
        try:
            environment.root.parent.mkdir(parents=True, exist_ok=True)
            with _locked(environment.root.with_suffix(".lock")):
                if not environment.ready:
                    _make(environment, offline=offline)
        except OSError as error:
            what = f"the tool environment cannot be made in {environment.root.parent}: {error}"
            hint = "free some space there, or name another place: LLAMAWRIGHT_STORE=/path"
            raise BootstrapError(13, "disk", what, hint) from error
    _touch(environment.root / STAMP)
    return environment.python


def child_environment() -> dict[str, str]:
    """Return the process environment in which the checkout's own package is found."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONHOME"}
    return {**kept, "PYTHONPATH": str(CHECKOUT / "src")}


def nox_arguments(arguments: Sequence[str]) -> list[str]:
    """Return nox's arguments for a short command line.

    Leading plain words are sessions; from the first flag, path or ``--`` on everything
    belongs to the session. A line that starts with a flag is nox's own, unchanged.
    """
    words = list(arguments)
    if not words or words[0].startswith("-"):
        return words
    plain = [w[:1] != "-" and not set(w) & set("./\\:") for w in words]
    end = [*plain, False].index(False)
    rest = words[end + 1 :] if words[end : end + 1] == ["--"] else words[end:]
    return ["-s", *words[:end], *(["--", *rest] if rest else [])]


def _machine() -> str:
    """Return what decides which compiled packages fit here."""
    libc = ""
    with suppress(AttributeError, ValueError, OSError):  # only GNU's knows the question
        libc = getattr(os, "confstr")("CS_GNU_LIBC_VERSION")  # noqa: B009 - not on Windows
    return f"{sys.platform} {platform.machine()} {sys.maxsize} {libc}"


def _touch(stamp: Path) -> None:
    # Once a day is enough to tell a used environment from a forgotten one.
    with suppress(OSError):
        if time.time() - stamp.stat().st_mtime > DAY_S:
            os.utime(stamp)


def _make(environment: Environment, *, offline: bool) -> None:
    import shutil  # noqa: PLC0415 - only once per lock file

    root, start = environment.root, time.monotonic()
    lines = environment.lock_file.read_text(encoding="utf-8").splitlines()
    count = sum("==" in line.partition(" ")[0] for line in lines)
    _say(f"making llamawright's {environment.kind} environment, once: {count} pinned packages")
    _say(f"  in {root}")
    shutil.rmtree(root, ignore_errors=True)
    needed, free = SPACE_MB[environment.kind], shutil.disk_usage(root.parent).free >> 20
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed} MiB are needed and {free} MiB are free")
    try:
        _install(environment, offline=offline)
        _prove(environment)
        end = Path(os.path.realpath(environment.python))
        record = {"interpreter": end.name, "made_with": sys.version.split()[0]}
        beside = root / f"{STAMP}.part"
        beside.write_text(json.dumps(record), encoding="utf-8")
        beside.replace(root / STAMP)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    _say(f"  done in {time.monotonic() - start:.0f} s; the next run starts at once")
    for other in root.parent.glob("*-*"):
        stamp = other / STAMP
        if stamp.is_file() and time.time() - stamp.stat().st_mtime > KEEP_DAYS * DAY_S:
            shutil.rmtree(other, ignore_errors=True)


def _install(environment: Environment, *, offline: bool) -> None:
    import shutil  # noqa: PLC0415

    uv = shutil.which("uv")
    if uv:
        if _with_uv(uv, environment, offline=offline):
            return
        if not offline and _pip_way():
            _say("  uv could not do it; trying pip, which has its own configuration")
            shutil.rmtree(environment.root, ignore_errors=True)
    if offline:
        what = "the tool environment is not on this machine yet, and --offline forbids fetching it"
        hint = "run the same command once without --offline"
        raise BootstrapError(6, "environment-missing", what, hint)
    if not _with_pip(environment, only=not uv):
        what = "the packages of the tool environment could not be installed"
        hint = "see the lines above; behind a proxy or a mirror configure pip or uv and try again"
        raise BootstrapError(6, "environment", what, hint)


def _with_uv(uv: str, environment: Environment, *, offline: bool) -> bool:
    flags = ["--offline"] if offline else []
    made = _run([uv, "venv", "--no-project", "--python", sys.executable, str(environment.root)])
    return made and _run(
        [uv, "pip", "sync", *flags, "--python", str(environment.python), "--require-hashes",
         "--only-binary", ":all:", "--compile-bytecode", str(environment.lock_file)]
    )  # fmt: skip


def _with_pip(environment: Environment, *, only: bool) -> bool:
    way = _pip_way()
    if not way:
        if only:
            raise _no_venv()
        return False
    python, root = str(environment.python), str(environment.root)
    tool = [sys.executable, "-m", "pip", "--python", python]
    if way == "venv":
        tool = [python, "-I", "-m", "pip"]
    bare = ["--without-pip"] if way == "pip" else []
    return _run([sys.executable, "-I", "-m", "venv", *bare, root]) and _run(
        [*tool, "install", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-input",
         "--progress-bar", "off", "--disable-pip-version-check", "-r", str(environment.lock_file)]
    )  # fmt: skip


def _pip_way() -> str:
    """Return ``venv`` when it brings its own pip, ``pip`` when this Python's can help, else ""."""
    import importlib.metadata  # noqa: PLC0415
    import importlib.util  # noqa: PLC0415

    specs = {n: importlib.util.find_spec(n) for n in ("venv", "ensurepip", "pip")}
    have = {n for n, spec in specs.items() if spec and spec.origin}  # an empty folder has none
    if {"venv", "ensurepip"} <= have:
        return "venv"
    if {"venv", "pip"} <= have:
        parts = importlib.metadata.version("pip").split(".")[:2]
        if tuple(int(p) for p in parts if p.isdigit()) >= PIP_FOR_OTHERS:
            return "pip"
    return ""


def _no_venv() -> BootstrapError:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    hint = ""
    with suppress(OSError):
        hint = venv_hint(Path("/etc/os-release").read_text(encoding="utf-8"), version)
    hint = hint or f"install the venv and ensurepip modules of {sys.executable}, or uv"
    what = f"Python {version} at {sys.executable} lacks the venv module, and uv is not here"
    return BootstrapError(4, "venv-missing", what, hint)


def venv_hint(release: str, version: str) -> str:
    """Return the command that adds the venv module on Debian and its kin, else an empty text."""
    pairs = [line.partition("=") for line in release.splitlines()]
    kin = " ".join(v.strip("\"'") for k, _, v in pairs if k in ("ID", "ID_LIKE")).split()
    debian = "debian" in kin or "ubuntu" in kin
    return f"sudo apt install python{version}-venv   (the one package to add)" if debian else ""


def _prove(environment: Environment) -> None:
    if not _run([str(environment.python), "-I", "-c", PROOFS[environment.kind]]):
        what = "the new tool environment does not work on this machine"
        hint = f"please report the lines above with the output of: {sys.executable} -VV"
        raise BootstrapError(4, "environment-broken", what, hint)


def _run(command: Sequence[str]) -> bool:
    """Run a step and tell its progress; when it fails, its last lines and ``False``."""
    import subprocess  # noqa: PLC0415

    env = {k: v for k, v in os.environ.items() if k not in MISLEADING}
    env.update({"PIP_USER": "0", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"})
    lines: list[str] = []
    said = time.monotonic()
    with subprocess.Popen(
        list(command), cwd=CHECKOUT, env=env, stdin=subprocess.DEVNULL, encoding="utf-8",
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as child:  # fmt: skip
        for line in child.stdout or ():
            lines.append(line.rstrip())
            if line.strip() and time.monotonic() - said > TELL_EVERY_S:
                said = time.monotonic()
                _say(f"  {line.strip()[:100]}")
    if child.returncode:
        last = [*lines[-15:], f"{Path(command[0]).name} ended with {child.returncode}"]
        _say("\n".join(f"    {line}" for line in last))
    return child.returncode == 0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a kernel lock, which ends with its process however that ends."""
    with path.open("a+", encoding="utf-8") as file:
        start, told = time.monotonic(), 0.0
        while not _try_lock(file.fileno()):
            now = time.monotonic()
            if now - start > LOCK_WAIT_S:
                what = "another process has been making the same environment for 15 minutes"
                raise BootstrapError(12, "environment-locked", what, f"end it; it holds {path}")
            if not told or now - told > 10 * TELL_EVERY_S:
                told = now
                _say("waiting for another process that makes the same environment")
            time.sleep(0.2)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - this system only

            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - this system only

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _become(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Go on as another program; where a process cannot be replaced, wait for it."""
    if os.name == "nt":
        import subprocess  # noqa: PLC0415

        with subprocess.Popen(list(command), env=dict(env)) as child:
            while child.poll() is None:
                with suppress(KeyboardInterrupt):  # the child gets it too, and ends in order
                    child.wait()
        return child.returncode
    return os.execve(command[0], list(command), dict(env))  # noqa: S606 - no shell, by design


def main(arguments: Sequence[str]) -> int:
    """Make the environment if need be and hand the command line over."""
    if os.environ.get("LLAMAWRIGHT_STORE"):  # nox reads it after a change of folder
        os.environ["LLAMAWRIGHT_STORE"] = str(store_root(os.environ, "", Path()))
    try:
        python = str(ensure_environment("tool", offline="--offline" in arguments))
    except BootstrapError as error:
        error.tell()
        _say(error.last_line)
        return error.code
    except KeyboardInterrupt:
        _say("llamawright: exit 130 (interrupted: interrupted)")
        return 130
    if arguments[:1] == ["llamawright"]:
        return _become([python, "-P", "-m", "llamawright", *arguments[1:]], child_environment())
    front = [python, "-P", "-m", "nox", "-f", str(CHECKOUT / "noxfile.py")]
    return _become([*front, *nox_arguments(arguments)], os.environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
