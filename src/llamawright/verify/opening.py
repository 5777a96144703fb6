"""What is proved, laid out to be run: an archive unpacked, or a wheel installed.

A wheel is installed as a user would: by pip, without the network, into a fresh virtual
environment. So the proof runs the programs where an installer puts them, with the libraries
that the wheel's dependencies bring.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.platform import System
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import State
from llamawright.model.wheel import WHEEL_PACKAGE, WheelContents
from llamawright.process import Result, ask, base_environment
from llamawright.transfer.opened import open_artifact, recheck
from llamawright.transfer.wheel import is_wheel, read_wheel
from llamawright.verify.judge import Ruling, hint_of

# Installing half a gigabyte of cuBLAS from a slow disk takes minutes.
INSTALL_S = 600.0
# One that starts no device: what is compared is the way from the command to the program.
PREFERRED = "llama-completion"
TRIALS = (("--version",), ("--no-such-option",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An artifact ready to run: ``root`` holds ``bin``; ``refused`` says why it is not."""

    manifest: Manifest
    root: Path
    refused: Ruling | None = None


def open_install(request: VerifyRequest, dest: Path) -> Opened:
    """Unpack an archive into ``dest``, or install a wheel there.

    Raises ``PackageError`` for a file that is not whole, or not what it says.
    """
    path = request.artifact
    if not is_wheel(path):
        manifest = open_artifact(path, dest)
        refused = _other_platform(manifest, request)
        return Opened(manifest=manifest, root=dest.resolve(), refused=refused)
    contents = read_wheel(path)
    if refused := _other_platform(contents.manifest, request):
        return Opened(manifest=contents.manifest, root=dest, refused=refused)
    return _Installation(request=request, contents=contents, venv=dest).opened()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Installation:
    request: VerifyRequest
    contents: WheelContents
    venv: Path

    def opened(self) -> Opened:
        """Install, compare every file again, and try a command."""
        made = _tool("venv", "--without-pip", str(self.venv))
        if not made.ok:
            return self._refused("no-virtual-environment", made)
        result = self._pip()
        if not result.ok:
            return self._refused("not-installable", result)
        root = (self._site / WHEEL_PACKAGE).resolve()
        faults = recheck(root, self.contents.manifest)
        if faults:
            raise PackageError(
                f"{self.request.artifact.name} is not what it is once installed",
                why="\n".join(fault.told for fault in faults),
                hint="look for antivirus software or a full disk, then run verify again",
                kind="hash-mismatch",
            )
        return Opened(manifest=self.contents.manifest, root=root, refused=self._command_fault(root))

    @property
    def _site(self) -> Path:
        """Return where pip puts a platform's files: the environment is of this very Python."""
        base = str(self.venv.absolute())
        variables = {"base": base, "platbase": base}
        return Path(sysconfig.get_path("platlib", "venv", vars=variables))

    @property
    def _scripts(self) -> Path:
        windows = self.request.platform.system is System.WINDOWS
        return self.venv / ("Scripts" if windows else "bin")

    @property
    def _python(self) -> Path:
        return self._scripts / self.request.platform.program("python")

    def _pip(self) -> Result:
        """Install with what the wheel depends on, and alone where that is not at hand.

        What is missing then is told by the proof itself, with the library's name.
        """
        folders = (self.request.artifact.absolute().parent, *self.request.find_links)
        links = tuple(word for folder in folders for word in ("--find-links", str(folder)))
        wheel = str(self.request.artifact.absolute())
        if self.contents.requires:
            whole = self._run_pip(*links, wheel)
            if whole.ok:
                return whole
        return self._run_pip("--no-deps", wheel)

    def _run_pip(self, *words: str) -> Result:
        chosen = ("--python", str(self._python), "install", "--no-index", "--no-compile")
        quiet = ("--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet")
        return _tool("pip", *chosen, *quiet, *words)

    def _command_fault(self, root: Path) -> Ruling | None:
        """Compare a console script with the program that it stands for."""
        names = [name for name, _ in self.contents.scripts]
        name = PREFERRED if PREFERRED in names else next(iter(names), "")
        if not name:
            return None
        script = self._scripts / self.request.platform.program(name)
        program = root / "bin" / self.request.platform.program(name)
        for words in TRIALS:
            seen, meant = (ask((str(p), *words)) for p in (script, program))
            if (seen.returncode, seen.stdout) != (meant.returncode, meant.stdout):
                return Ruling(
                    state=State.FAILED,
                    failure="console-script",
                    why=f"the command {name} {' '.join(words)} ended with {seen.returncode}, the "
                    f"program itself with {meant.returncode}: {_last_line(seen)}",
                    hint=hint_of("console-script"),
                )
        return None

    def _refused(self, failure: str, result: Result) -> Opened:
        """Return why nothing was installed: no fault of the wheel's own that was seen."""
        ruling = Ruling(
            state=State.CANNOT_VERIFY,
            failure=failure,
            why=f"{self.request.artifact.name} could not be installed: {_last_line(result)}",
            hint=hint_of(failure),
        )
        return Opened(manifest=self.contents.manifest, root=self.venv, refused=ruling)


def _other_platform(manifest: Manifest, request: VerifyRequest) -> Ruling | None:
    if manifest.platform == request.platform:
        return None
    return Ruling(
        state=State.CANNOT_VERIFY,
        failure="other-platform",
        why=f"the artifact is for {manifest.platform.tag}, this machine is {request.platform.tag}",
        hint="run verify on such a machine",
    )


def _tool(module: str, *words: str) -> Result:
    """Run a module of the tool's own environment; the user's pip settings play no part."""
    argv = (sys.executable, "-I", "-m", module, *words)
    return ask(argv, seconds=INSTALL_S, env=_environment())


def _environment() -> Mapping[str, str]:
    return base_environment({"PIP_CONFIG_FILE": os.devnull})


def _last_line(result: Result) -> str:
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    return lines[-1] if lines else f"it ended with {result.returncode} and said nothing"
