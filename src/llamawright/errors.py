"""The only exception tree: every failure carries an exit code, what, why and hint.

The exit codes are the table of the reference page ``exit-codes``; a process that
fails ends with exactly one of them, so that CI can tell "no device" from "wrong numbers".
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process ends with. The numbers are an interface: never renumber."""

    OK = 0
    USAGE = 2
    NOTHING_TO_DO = 3
    TOOL_MISSING = 4
    TOOLS_CONFLICT = 5
    DOWNLOAD = 6
    PATCH = 7
    BUILD = 8
    PACKAGE = 9
    VERIFICATION = 10
    NO_DEVICE = 11
    LOCKED = 12
    DISK = 13
    BUG = 70
    INTERRUPTED = 130


class LlamawrightError(Exception):
    """A failure told to a stranger: what happened, why, and what to do next.

    ``kind`` is the stable class word that goes into the result JSON (``glslc-crashed``,
    ``wrong-sha256`` …). ``log`` names the file with the whole output, ``command`` the
    paste-able command line, ``tail`` its last lines, when there is one.
    """

    code: ExitCode = ExitCode.BUG

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        hint: str = "",
        kind: str = "",
        command: str = "",
        tail: tuple[str, ...] = (),
        log: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        self.kind = kind or _kebab(type(self).__name__)
        self.command = command
        self.tail = tail
        self.log = log

    def as_record(self) -> dict[str, object]:
        """Return the error as plain data for ``--json`` and the result file."""
        return {
            "code": int(self.code),
            "class": self.kind,
            "what": self.what,
            "why": self.why,
            "hint": self.hint,
            "command": self.command,
            "tail": list(self.tail),
            "log": self.log,
        }


class UsageError(LlamawrightError):
    """A flag, a recipe or a settings file that cannot be understood."""

    code = ExitCode.USAGE


class NothingToDoError(LlamawrightError):
    """The request selects nothing."""

    code = ExitCode.NOTHING_TO_DO


class ToolMissingError(LlamawrightError):
    """A needed tool has no usable candidate on this machine."""

    code = ExitCode.TOOL_MISSING


class ToolchainConflictError(LlamawrightError):
    """The tools that were found do not fit together."""

    code = ExitCode.TOOLS_CONFLICT


class DownloadError(LlamawrightError):
    """Bytes could not be had, or are not the pinned ones."""

    code = ExitCode.DOWNLOAD


class PublishError(DownloadError):
    """A server did not take the release, or holds something else under its name."""


class PatchError(LlamawrightError):
    """A patch series does not apply as a whole."""

    code = ExitCode.PATCH


class BuildError(LlamawrightError):
    """Configure or compile failed, or its result is not what the plan says."""

    code = ExitCode.BUILD


class PackageError(LlamawrightError):
    """The artifact cannot be packed, or its audit refuses it."""

    code = ExitCode.PACKAGE


class VerificationError(LlamawrightError):
    """The artifact ran and the proof failed."""

    code = ExitCode.VERIFICATION


class NoDeviceError(LlamawrightError):
    """No device matches the request."""

    code = ExitCode.NO_DEVICE


class LockedError(LlamawrightError):
    """A lock is held elsewhere, or a time limit ran out."""

    code = ExitCode.LOCKED


class DiskError(LlamawrightError):
    """The disk is full, read-only or too small for what was asked."""

    code = ExitCode.DISK


class InterruptedRunError(LlamawrightError):
    """The user stopped the run."""

    code = ExitCode.INTERRUPTED


def _kebab(name: str) -> str:
    stem = name.removesuffix("Error")
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in stem).lstrip("-")
