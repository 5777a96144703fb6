"""Platform truth: what a wheel's tag promises against what its files need.

The lowest glibc is measured from every program, library and module, also from those that
are only loaded at run time; auditwheel adds its policies: which libraries every system of
that age has, and which versions of libstdc++ and libgcc. The stricter one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import PackageError
from llamawright.model.artifact import BinaryFacts
from llamawright.model.floors import highest, numbers
from llamawright.model.platform import Platform, System
from llamawright.model.wheel import PlatformClaim, WheelContents
from llamawright.package.findings import Finding, refuse
from llamawright.package.reading import machine_name, read_binary
from llamawright.package.wheels.members import is_driver
from llamawright.package.wheels.runtime import known_packages
from llamawright.transfer import unpack_archive
from llamawright.transfer.opened import LIMITS

# Each machine's own: auditwheel must neither look for these nor graft them (cases P3). It
# compares whole file names, so that an unversioned pattern would match nothing.
DRIVERS = (
    "libcuda.so.*", "libnvidia-*.so.*", "libvulkan.so.*", "libGL.so.*", "libGLX*.so.*",
    "libEGL*.so.*", "libOpenCL.so.*",
)  # fmt: skip
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")
_MACOS = re.compile(r"macosx_(\d+)_(\d+)_(\w+)")
# PEP 600: the names from before it, by their glibc.
_OLD_NAMES = {"manylinux1": "2_5", "manylinux2010": "2_12", "manylinux2014": "2_17"}
_BIG_SUR = 11
_GRAFTED = re.compile(r"-[0-9a-f]{8}(?=\.)")
_CLAIM_CURE = (
    "build the wheel with `llamawright wheel`, which measures its tag; build the artifact on an "
    "older system for a lower one"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """auditwheel's word: the oldest policy kept, and the libraries that no policy knows."""

    name: str
    foreign: tuple[str, ...] = ()


def require_claim(path: Path, contents: WheelContents, scratch: Path) -> PlatformClaim:
    """Return a wheel's claim, or raise ``PackageError`` with all that speaks against it.

    ``scratch`` is an empty or absent folder to unpack in.
    """
    platform = contents.manifest.platform
    tags = _tags(path, contents)
    facts = binary_facts(scratch, unpack_archive(path, scratch, limits=LIMITS))
    policy = auditwheel_policy(path, contents.requires) if _on_linux(platform) else Policy(name="")
    findings = tuple(f for tag in tags for f in judge(tag, platform, facts, policy))
    refuse(path.name, findings)
    glibc = highest(f.glibc for f in facts if f.glibc)
    return PlatformClaim(claimed=".".join(tags), policy=policy.name, glibc=glibc)


def binary_facts(root: Path, files: Iterable[str]) -> tuple[BinaryFacts, ...]:
    """Read every program, library and module among the files, wherever it lies."""
    readings = (read_binary(root / name, name=name) for name in sorted(files))
    return tuple(reading.facts for reading in readings if reading)


def platform_tag(platform: Platform, facts: Sequence[BinaryFacts], policy: Policy) -> str:
    """Return the lowest tag that the files allow.

    ``policy`` is auditwheel's where it was asked. Where it knows no policy that the files
    keep, the measured glibc stands, and ``judge`` tells what is wrong.
    """
    machine = machine_name(platform.machine)
    match platform.system:
        case System.WINDOWS:
            return {"x86_64": "win_amd64", "aarch64": "win_arm64"}.get(machine, f"win_{machine}")
        case System.MACOS:
            arch = "arm64" if machine == "aarch64" else machine
            return "macosx_{}_{}_{}".format(*(*_macos(facts), 0)[:2], arch)
        case System.LINUX:
            told = _glibc_of(policy.name)
            found = (numbers(f.glibc)[:2] for f in facts if f.glibc)
            major, minor = max((*found, told), default=told)[:2]
            return f"manylinux_{major}_{minor}_{machine}"


def judge(
    tag: str, platform: Platform, facts: Sequence[BinaryFacts], policy: Policy
) -> Iterator[Finding]:
    """Yield what speaks against one tag; pure."""
    for fact in facts:
        name = _GRAFTED.sub("", fact.path.rpartition("/")[2])
        if is_driver(name):
            yield _finding(
                "driver-library", fact.path, "it is a driver's: each machine has its own"
            )
        if any(i.startswith(("libc.musl-", "ld-musl-")) for i in fact.imports):
            yield _finding("musl", fact.path, "it was linked for musl, the wheel is for glibc")
    match platform.system:
        case System.LINUX:
            yield from _judge_linux(tag, facts, policy)
        case System.MACOS:
            yield from _judge_macos(tag, facts)
        case System.WINDOWS:
            if tag != platform_tag(platform, facts, policy):
                yield _finding("platform-claim", tag, "it is not the tag of this machine")


def auditwheel_policy(path: Path, requires: Iterable[str]) -> Policy:
    """Ask auditwheel for the oldest policy that a Linux wheel keeps.

    Libraries that a required distribution brings are left out, and so are drivers.
    """
    # Takes 80 ms, and a run that makes no wheel must not pay.
    from auditwheel.error import AuditwheelError  # type: ignore[import-untyped] # noqa: PLC0415
    from auditwheel.libc import Libc  # type: ignore[import-untyped] # noqa: PLC0415
    from auditwheel.wheel_abi import analyze_wheel_abi  # type: ignore[import-untyped] # noqa: PLC0415

    try:
        info = analyze_wheel_abi(
            Libc.GLIBC,
            None,
            path,
            frozenset((*DRIVERS, *_brought(requires))),
            # Every CPU variant is chosen by what the processor can do, as it runs.
            disable_isa_ext_check=True,
            allow_graft=False,
        )
    except (AuditwheelError, RuntimeError) as error:
        raise PackageError(
            f"auditwheel cannot read {path.name}",
            why=str(error),
            hint="build the wheel again with `llamawright wheel`",
            kind="audit",
        ) from error
    name = info.overall_policy.name
    foreign = {lib for ref in info.external_refs.values() for lib in ref.libs}
    return Policy(name=name, foreign=tuple(sorted(foreign)) if not _glibc_of(name) else ())


def _brought(requires: Iterable[str]) -> Iterator[str]:
    projects = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requires}
    for package in known_packages():
        if package.project in projects:
            yield from (f"lib{stem}.so.*" for stem in package.libraries)


def _judge_linux(tag: str, facts: Sequence[BinaryFacts], policy: Policy) -> Iterator[Finding]:
    claimed = _glibc_of(tag)
    machine = _machine_of(tag)
    if not claimed:
        what = "it says nothing of the glibc that its files need, so installers take it anywhere"
        yield _finding("platform-claim", tag, what)
    for fact in facts:
        if claimed and fact.glibc and numbers(fact.glibc)[:2] > claimed:
            what = f"it needs glibc {fact.glibc}, and the tag {tag} promises an older one"
            yield _finding("platform-claim", fact.path, what)
        if machine_name(fact.machine) != machine:
            yield _finding("platform-claim", fact.path, f"it is made for {fact.machine}, not {tag}")
    measured = _glibc_of(policy.name)
    if policy.name and not measured:
        what = (
            f"no manylinux policy lets it import {', '.join(policy.foreign) or 'what it imports'}"
        )
        yield _finding("foreign-import", tag, what)
    elif claimed and measured > claimed:
        what = f"auditwheel finds {policy.name} kept at best: libstdc++ or libgcc is too new for it"
        yield _finding("platform-claim", tag, what)


def _judge_macos(tag: str, facts: Sequence[BinaryFacts]) -> Iterator[Finding]:
    found = _MACOS.fullmatch(tag)
    if found is None:
        yield _finding("platform-claim", tag, "it names no macOS version")
        return
    claimed = (int(found[1]), int(found[2]))
    for fact in facts:
        if fact.min_os and numbers(fact.min_os)[:2] > claimed:
            what = f"it needs macOS {fact.min_os}, and the tag {tag} promises an older one"
            yield _finding("platform-claim", fact.path, what)


def _finding(kind: str, path: str, what: str) -> Finding:
    return Finding(kind=kind, path=path, what=what, cure=_CLAIM_CURE)


def _tags(path: Path, contents: WheelContents) -> tuple[str, ...]:
    """Return the platform tags, which the file name and the metadata must agree about."""
    named = tuple(path.name.removesuffix(".whl").rpartition("-")[2].split("."))
    written = tuple(tag.rpartition("-")[2] for tag in contents.tags)
    if set(named) != set(written):
        raise PackageError(
            f"{path.name} claims another platform than its own metadata",
            why=f"the name says {', '.join(named)}, WHEEL says {', '.join(written)}",
            hint="give the file back the name it was made with, or build it again",
            kind="platform-claim",
        )
    return named


def _glibc_of(tag: str) -> tuple[int, ...]:
    """Return the glibc that a tag promises, nothing for one that promises none."""
    found = _MANYLINUX.fullmatch(_modern(tag))
    return (int(found[1]), int(found[2])) if found else ()


def _machine_of(tag: str) -> str:
    found = _MANYLINUX.fullmatch(_modern(tag))
    return found[3] if found else tag.removeprefix("linux_")


def _modern(tag: str) -> str:
    for old, new in _OLD_NAMES.items():
        tag = tag.replace(f"{old}_", f"manylinux_{new}_")
    return tag


def _macos(facts: Iterable[BinaryFacts]) -> tuple[int, ...]:
    """Return the lowest macOS; from 11 on tags have no minor versions, so 13.3 needs 14.0."""
    major, minor = (*numbers(highest(f.min_os for f in facts if f.min_os) or "11.0"), 0)[:2]
    if major < _BIG_SUR:
        return (major, minor)
    return (major + (minor > 0), 0)


def _on_linux(platform: Platform) -> bool:
    return platform.system is System.LINUX
