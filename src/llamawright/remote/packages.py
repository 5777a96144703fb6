"""The tool's own packages, for a machine that reaches no package index: fetched here, sent there.

pip of the tool's environment resolves nothing: names, versions and sha256s are those of the
lock file, from the index that the user's pip is configured for. Only the platform is another.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import mac_platforms

from llamawright.errors import DownloadError, ToolMissingError
from llamawright.model.remote import FarMachine, FarRun, Host, Parcel
from llamawright.process import Command, Limits, base_environment, run
from llamawright.remote.plan import MACHINES
from llamawright.remote.tool import parcel_of

# How bootstrap.py ends when neither uv nor pip could install the lock file's packages.
NO_PACKAGES = "(download: environment)"
FOLDER = "packages"
FETCH_S = 900.0
# What pip's configuration may be made of besides its files: see pip's user guide.
KEPT = re.compile(
    r"PIP_\w+|\w+_proxy|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|XDG_CONFIG_\w+", re.IGNORECASE
)
MISLEADING = {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_NO_BINARY"}
# Names of old for a C library's version: PEP 513, 571 and 599.
LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
OLDEST_GLIBC, MUSL = 5, (2, 1, 0)


def lacks_packages(ended: FarRun) -> bool:
    """Whether the tool's environment could not be made there for want of packages."""
    return ended.code == int(DownloadError.code) and NO_PACKAGES in ended.last


def pinned_for(lock: str, far: FarMachine) -> tuple[str, ...]:
    """Return the lines of a lock file that count there, without their conditions.

    pip takes the conditions for this machine's, whatever platform it is told.
    """
    there = marker_values(far)
    return tuple(_lines(lock, there))


def _lines(lock: str, there: dict[str, str]) -> Iterator[str]:
    for line in lock.replace("\\\n", " ").splitlines():
        head, _, hashes = line.partition(" --hash")
        if not hashes or head.lstrip().startswith("#"):
            continue
        pinned = Requirement(head.strip())
        if pinned.marker is None or pinned.marker.evaluate(there):
            yield f"{pinned.name}{pinned.specifier} --hash{hashes.strip()}"


def marker_values(far: FarMachine) -> dict[str, str]:
    """Return what a condition of a lock file is compared with there (PEP 508)."""
    names = {"linux": ("linux", "Linux"), "macos": ("darwin", "Darwin")}
    short, long = names.get(far.system, ("win32", "Windows"))
    return {
        "python_version": ".".join(far.python.split(".")[:2]),
        "python_full_version": far.python,
        "sys_platform": short,
        "platform_system": long,
        "platform_machine": far.machine,
        "os_name": "nt" if short == "win32" else "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }


def platform_tags(far: FarMachine) -> tuple[str, ...]:
    """Return the platform tags of wheels that run there, the newest first."""
    machine = MACHINES.get(far.machine.casefold(), far.machine)
    numbers = [int(n) for n in re.findall(r"\d+", far.libc)[:2]]
    match far.system:
        case "macos":
            major, minor = numbers if len(numbers) > 1 else (11, 0)
            return tuple(mac_platforms((major, minor), machine))
        case "linux" if far.libc.startswith("glibc") and len(numbers) > 1:
            return tuple(_manylinux(numbers[1], machine))
        case "linux":
            return (*(f"musllinux_1_{n}_{machine}" for n in MUSL), f"linux_{machine}")
        case _:
            return ("win_amd64" if machine == "x86_64" else f"win_{machine}",)


def _manylinux(newest: int, machine: str) -> Iterator[str]:
    for minor in range(newest, OLDEST_GLIBC - 1, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if minor in LEGACY:
            yield f"{LEGACY[minor]}_{machine}"
    yield f"linux_{machine}"


def fetch_packages(lock: Path, far: FarMachine, host: Host, folder: Path) -> tuple[Parcel, ...]:
    """Fetch the packages into ``folder`` and return them as something to send.

    Raises ``DownloadError`` when the index here has not got them for that platform either,
    ``ToolMissingError`` when this Python has no pip.
    """
    wanted = folder / "wanted.txt"
    lines = pinned_for(lock.read_text(encoding="utf-8"), far)
    wanted.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = folder / FOLDER
    argv = (*_download(far.python, platform_tags(far)), "-d", str(found), "-r", str(wanted))
    kept = {k: v for k, v in os.environ.items() if KEPT.fullmatch(k) and k not in MISLEADING}
    command = Command(argv=argv, cwd=folder, env=base_environment(kept))
    result = run(command, limits=Limits(total_s=FETCH_S))
    if "No module named pip" in result.output:
        raise ToolMissingError(
            f"{host.name} reaches no package index, and this Python has no pip to fetch for it",
            why=f"{sys.executable} -m pip does not work",
            hint="start with python3 bootstrap.py, whose environment has it",
            kind="no-pip",
        )
    if not result.ok:
        error = DownloadError(
            f"the packages for {host.name} could not be fetched here either",
            why=result.tail[-1] if result.tail else f"status {result.returncode}",
            hint="check `pip config list` here, or let that machine reach a package index",
            kind="far-packages",
        )
        error.tail = result.tail[-8:]
        raise error
    return tuple(parcel_of(p, name=f"{FOLDER}/{p.name}") for p in sorted(found.iterdir()))


def _download(python: str, tags: Iterable[str]) -> tuple[str, ...]:
    return (
        sys.executable, "-I", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--require-hashes", "--no-input", "--progress-bar", "off", "--disable-pip-version-check",
        "--implementation", "cp", "--python-version", python,
        *(word for tag in tags for word in ("--platform", tag)),
    )  # fmt: skip


def index_of_folder(room: str) -> dict[str, str]:
    """Return the variables that make uv and pip take packages from ``room`` and nowhere else."""
    place = f"{room}/{FOLDER}"
    return {
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": place, "UV_OFFLINE": "1", "UV_FIND_LINKS": place,
    }  # fmt: skip
