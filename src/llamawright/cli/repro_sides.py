"""The two sides of a double build: everything that may differ between two machines, differs."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llamawright.cli.repro_side import KEPT
from llamawright.process import ask, base_environment

# What a side takes over from the command line: (its attribute, the flag).
FORWARDED = (
    ("recipe", "--recipe"), ("source", "--source"), ("vulkan", "--vulkan"),
    ("cuda_toolkit", "--cuda-toolkit"), ("compiler", "--compiler"), ("cmake", "--cmake"),
    ("ninja", "--ninja"), ("floor", "--floor"),
)  # fmt: skip
SWITCHES = (("native", "--native"), ("with_tests", "--with-tests"), ("offline", "--offline"))
PATHS = ("LLAMAWRIGHT_DATA", "PYTHONPATH", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two builds. ``root`` holds its store, its home and its dist folder."""

    name: str
    root: Path
    user: str
    hostname: str
    umask: str
    locale: str
    zone: str
    cache: str
    jobs: int

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    @property
    def told(self) -> str:
        """Return what is particular to this side, for the report."""
        return (
            f"user {self.user}, host {self.hostname}, umask {self.umask}, locale {self.locale}, "
            f"zone {self.zone}, cache {self.cache}, {self.jobs} jobs, {self.root}"
        )


def two_sides(work: Path, *, jobs: int, cache: str, namespaces: bool) -> tuple[Side, Side]:
    """Return the two sides below ``work``; without ``namespaces`` both keep the host's name."""
    first = Side(
        name="first", root=work / "first", user="first", hostname=KEPT, umask="022",
        locale="C", zone="UTC", cache="off", jobs=jobs,
    )  # fmt: skip
    second = Side(
        # Deeper, so that a path that leaks has another length too.
        name="second", root=work / "second" / "elsewhere", user="another",
        hostname="another-host" if namespaces else KEPT, umask="077",
        locale="de_DE.UTF-8", zone="Pacific/Kiritimati", cache=cache, jobs=jobs + 1,
    )  # fmt: skip
    return first, second


def environment(side: Side, around: dict[str, str]) -> dict[str, str]:
    """Return a side's whole environment; ``around`` is that of this process."""
    kept = {name: around[name] for name in PATHS if name in around}
    return base_environment(
        {
            **kept,
            "HOME": str(side.home),
            "USER": side.user,
            "LOGNAME": side.user,
            "LANG": side.locale,
            "LC_ALL": side.locale,
            "TZ": side.zone,
        }
    )


def launcher(side: Side) -> tuple[str, ...]:
    """Return how a command line of llamawright is started as this side."""
    own = () if side.hostname == KEPT else _namespace()
    module = ("-P", "-m", "llamawright.cli.repro_side", side.umask, side.hostname)
    return (*own, sys.executable, *module)


def build_arguments(side: Side, flags: Namespace) -> tuple[str, ...]:
    """Return the verb ``build`` with the flags of the command line, in this side's folders."""
    argv = ["build", flags.backend, "--no-verify"]
    argv += ["--store", str(side.store), "--dist", str(side.dist)]
    argv += ["--jobs", str(side.jobs), "--cache", side.cache]
    return (*argv, *_forwarded(flags))


def may_rename_host() -> bool:
    """Whether this user may have a namespace with a host name of its own."""
    own = _namespace()
    return bool(own) and ask((*own, sys.executable, "-I", "-S", "-c", "")).ok


def _forwarded(flags: Namespace) -> Iterator[str]:
    for name, flag in FORWARDED:
        if value := getattr(flags, name, None):
            yield from (flag, str(value))
    for name, flag in SWITCHES:
        if getattr(flags, name, None):
            yield flag
    for arch in getattr(flags, "archs", None) or ():
        yield from ("--arch", arch)


def _namespace() -> tuple[str, ...]:
    program = shutil.which("unshare")
    return (program, "--user", "--map-root-user", "--uts") if program else ()
