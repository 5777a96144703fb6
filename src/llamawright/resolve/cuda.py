"""The triple driver - toolkit - device code, and the host compiler: what fits, or every reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from llamawright.model.cuda import GpuCode, Gpus, Presence, dotted, older
from llamawright.model.fit import known_bad
from llamawright.model.inventory import Found, Rejected, Role
from llamawright.model.plan import Conflict
from llamawright.model.recipe import BackendRule, CudaRule
from llamawright.model.request import Request
from llamawright.model.toolchain import Toolchains
from llamawright.resolve.choice import Field, conflict_of
from llamawright.resolve.cuda_codes import Wanted, planned_codes, wanted_codes
from llamawright.resolve.cuda_side import CudaSide, HostCompiler, cuda_plan, least_driver
from llamawright.resolve.cuda_toolkits import PROVIDED, Toolkit, toolkits

AUTO = "auto"
# Where detection says that it found what --cuda-toolkit names.
NAMED = "CUDAToolkit_ROOT"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What every toolkit is asked."""

    request: Request
    field: Field
    rule: BackendRule
    wanted: Wanted
    compiler: Found | None

    @property
    def gpus(self) -> Gpus:
        """Return the machine's cards."""
        return self.field.inventory.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A toolkit with what it would compile, and all that speaks against it."""

    toolkit: Toolkit
    codes: tuple[GpuCode, ...]
    host: HostCompiler | None
    notes: tuple[str, ...]
    against: tuple[Conflict, ...]


def choose_cuda(
    request: Request,
    field: Field,
    rule: BackendRule,
    compiler: Found | None,
    launcher: Found | None = None,
) -> tuple[CudaSide | None, tuple[Conflict, ...], tuple[str, ...]]:
    """Return toolkit, code and host compiler, or the conflicts; and what a reader should know.

    An installed toolkit goes before a provided one, one that this machine's driver knows
    before one that is newer than it, what the store holds before what must be downloaded,
    a set that was tried before one that nobody has fetched yet; then the newest counts.
    """
    wanted = wanted_codes(request.archs, field.inventory.gpus)
    if isinstance(wanted, Conflict):
        return None, (wanted,), ()
    asked = _Question(request=request, field=field, rule=rule, wanted=wanted, compiler=compiler)
    every = [_judge(t, asked) for t in toolkits(field)]
    allowed = [j for j in every if _allowed(j.toolkit, request.cuda_toolkit)]
    fitting = [j for j in allowed if not j.against]
    if not fitting:
        return None, (_unusable(asked, allowed, every),), ()
    best = max(fitting, key=lambda j: _rank(j.toolkit, asked.gpus))
    plan = cuda_plan(best.toolkit, best.codes, rule, request.platform.system, field.toolchains)
    own = best.host or HostCompiler()
    side = CudaSide(toolkit=best.toolkit, host=own, plan=plan, cache=launcher)
    return side, (), (*wanted.warnings, *best.notes, *_warnings(best, asked))


def _judge(toolkit: Toolkit, asked: _Question) -> _Judged:
    field = asked.field
    codes, notes = planned_codes(asked.wanted, asked.rule.cuda or CudaRule(), toolkit.known)
    host = host_compiler(toolkit, asked.request, field, asked.compiler)
    against = [
        *_unknown_codes(toolkit, codes),
        *_miscompiled(toolkit, codes, field.toolchains),
        *_old_driver(toolkit, asked),
    ]
    # Without any compiler at all the build has that conflict already.
    if host is None and asked.compiler is not None:
        against.append(_no_host(toolkit, field))
    return _Judged(toolkit=toolkit, codes=codes, host=host, notes=notes, against=tuple(against))


def host_compiler(
    toolkit: Toolkit, request: Request, field: Field, compiler: Found | None
) -> HostCompiler | None:
    """Return what nvcc calls for host code: the build's own compiler, else one it accepts.

    One that is installed goes before one that is provided. A compiler that was named is
    never replaced behind the user's back.
    """
    if compiler is None or toolkit.takes(compiler):
        return HostCompiler(found=compiler)
    if request.compiler != AUTO:
        return None
    others = [f for f in field.usable(Role.CXX) if f.name == "gcc" and toolkit.takes(f)]
    if others:
        return HostCompiler(found=max(others, key=lambda f: Version(f.version)))
    sets = [a for a in field.inventory.providing(Role.HOST_CXX) if toolkit.takes_gcc(a.version)]
    newest = max(sets, key=lambda a: Version(a.version), default=None)
    return HostCompiler(provided=newest) if newest else None


def _unknown_codes(toolkit: Toolkit, codes: tuple[GpuCode, ...]) -> Iterator[Conflict]:
    lost = [c for c in codes if not toolkit.compiles(c)]
    if lost or not codes:
        # PTX that only goes along with its machine code is not worth a second name.
        real = {c.number for c in lost if not c.ptx}
        named = [c.name for c in lost if not c.ptx or c.number not in real]
        names = ", ".join(named) or "nothing that was asked for"
        yield Conflict(
            what=f"{names} cannot be compiled by {toolkit.told}",
            why=f"its nvcc knows {' '.join(toolkit.known) or 'no capability'}",
            cures=(),
            kind="gpu-code-unknown",
        )


def _miscompiled(
    toolkit: Toolkit, codes: tuple[GpuCode, ...], toolchains: Toolchains
) -> Iterator[Conflict]:
    for bad in known_bad(Role.CUDA, toolkit.name, toolkit.version, toolchains):
        hit = [c.name for c in codes if c.number in bad.codes]
        if bad.codes and not hit:
            continue
        quants = f" ({', '.join(bad.quants)})" if bad.quants else ""
        yield Conflict(
            what=f"{toolkit.told} must not be used{f' for {hit[0]}' if hit else ''}",
            why=f"{bad.reason}{quants}: {bad.link}",
            cures=(),
            kind="cuda-known-bad",
        )


def _old_driver(toolkit: Toolkit, asked: _Question) -> Iterator[Conflict]:
    """Yield a conflict when the build is for this machine and its driver is too old for it."""
    least = _least(toolkit, asked)
    if asked.wanted.here and older(asked.gpus.driver, least):
        yield Conflict(
            what=f"the driver {asked.gpus.driver} is too old for {toolkit.told}",
            why=f"CUDA {toolkit.number.major}.x needs driver {least} or newer",
            cures=(f"update the NVIDIA driver to {least} or newer",),
            kind="driver-too-old",
        )


def _least(toolkit: Toolkit, asked: _Question) -> str:
    """Return the least driver that runs a toolkit's machine code."""
    system = asked.request.platform.system
    return least_driver(asked.field.toolchains, str(toolkit.number.major), system)


def _no_host(toolkit: Toolkit, field: Field) -> Conflict:
    seen = ", ".join(f"{f.name} {f.version}" for f in field.usable(Role.CXX)) or "none"
    most = toolkit.gcc_max
    return Conflict(
        what=f"no C++ compiler here is accepted by {toolkit.told}",
        why=f"its headers take gcc up to {most} and clang up to {toolkit.clang_max}; here: {seen}",
        cures=(
            f"install gcc {most} or older (Debian, Ubuntu: apt install g++-{most})",
            "name a compiler that fits: --compiler FILE",
            "leave --compiler out: one that fits is found, or gcc 12 provided where it can be",
        ),
        kind="cuda-host-compiler",
    )


def _allowed(toolkit: Toolkit, choice: str) -> bool:
    """Whether the user's choice leaves this toolkit in."""
    match choice:
        case "auto":
            return True
        case "provided":
            return toolkit.where == PROVIDED
        case "system":
            return toolkit.where != PROVIDED
        case _ if choice[:1].isdigit():
            return f"{toolkit.version}.".startswith(f"{choice}.")
        case _:
            return Path(toolkit.root) == Path(choice)


def _rank(toolkit: Toolkit, gpus: Gpus) -> tuple[bool, bool, bool, bool, Version]:
    newer = bool(gpus.cuda) and Version(toolkit.release) > Version(gpus.cuda)
    return (
        toolkit.where != PROVIDED,
        not newer,
        not toolkit.missing,
        not toolkit.untried,
        toolkit.number,
    )


def _unusable(asked: _Question, allowed: list[_Judged], every: list[_Judged]) -> Conflict:
    """Return the one conflict that names each toolkit with its reasons, and what would do."""
    field, choice = asked.field, asked.request.cuda_toolkit
    refused = _refused(field, choice)
    cures = [c for j in allowed for a in j.against for c in a.cures]
    cures += [_would_do(j.toolkit) for j in every if not j.against and j not in allowed]
    if not allowed:
        told = "" if choice == AUTO else f" ({choice})"
        cures = cures or [field.cure(Role.CUDA)]
        return conflict_of(f"no CUDA toolkit{told} can be used", refused, *cures, role=Role.CUDA)
    reasons = [a for j in allowed for a in j.against]
    kinds = {a.kind for a in reasons}
    one = len(reasons) == 1
    why = [reasons[0].why] if one else [f"{a.what}: {a.why}" for a in reasons]
    why += [f"{r.path or r.name} ({r.where}): {r.reason}" for r in refused]
    # What was refused may be a toolkit that would do: its own cure is worth a line.
    cures += [r.cure for r in refused if r.cure]
    return Conflict(
        what=reasons[0].what if one else "no CUDA toolkit fits what is asked for",
        why="\n".join(why),
        cures=tuple(dict.fromkeys(cures)) or ("drop what no toolkit knows from --arch",),
        kind=kinds.pop() if len(kinds) == 1 else "cuda-conflicts",
    )


def _refused(field: Field, choice: str) -> tuple[Rejected, ...]:
    """Return the refused toolkits that the choice leaves in, each with a cure that fits it.

    A folder that was named reaches the detection as a variable: nobody has to change that.
    """
    every = field.refused(Role.CUDA)
    if Path(choice).is_absolute():
        own = [r for r in every if r.where == NAMED]
        return tuple(replace(r, where="--cuda-toolkit", cure="") for r in own)
    if choice == AUTO or choice[:1].isdigit() or choice == "system":
        fits = [r for r in every if not choice[:1].isdigit() or f"CUDA {choice}" in r.reason]
        return tuple(fits)
    return ()


def _would_do(toolkit: Toolkit) -> str:
    if toolkit.where != PROVIDED:
        return f"--cuda-toolkit {toolkit.root} (CUDA {toolkit.version}, installed)"
    size = f"{toolkit.missing / 1e6:,.0f} MB to download" if toolkit.missing else "in the store"
    return f"--cuda-toolkit {toolkit.version} (provided: {size}, no root is needed)"


def _warnings(best: _Judged, asked: _Question) -> Iterator[str]:
    yield from _of_host(best, asked.compiler)
    yield from _of_toolkit(best.toolkit, asked)
    yield from _of_machine(best, asked)
    ptx = [c.name for c in best.codes if c.ptx]
    if len(ptx) == len(best.codes):
        yield f"only PTX ({', '.join(ptx)}): every card compiles it at its first start"


def _of_host(best: _Judged, compiler: Found | None) -> Iterator[str]:
    host = best.host
    if host is None or compiler is None or host.found == compiler:
        return
    yield (
        f"nvcc compiles host code with {host.told}: {best.toolkit.told} does not take "
        f"{compiler.name} {compiler.version}"
    )


def _of_toolkit(toolkit: Toolkit, asked: _Question) -> Iterator[str]:
    if toolkit.missing and asked.request.proof.offline:
        yield f"offline, and {toolkit.name} is not in the store yet"
    elif toolkit.missing:
        yield f"{toolkit.name}: {toolkit.missing / 1e6:,.0f} MB are downloaded first"
    if toolkit.untried and toolkit.missing:
        yield f"{toolkit.name}: {toolkit.untried}"
    if toolkit.license is None and (asked.rule.cuda or CudaRule()).bundled:
        yield (
            f"{toolkit.told} has no licence text, so cudart and cuBLAS are not packed: "
            f"the artifact runs where CUDA {toolkit.number.major} is installed"
        )


def _of_machine(best: _Judged, asked: _Question) -> Iterator[str]:
    gpus = asked.gpus
    if gpus.presence is Presence.BROKEN:
        yield f"this machine's NVIDIA driver does not answer: {gpus.reason}"
    for card in gpus.cards:
        if card.capability and not any(c.runs_on(card.capability) for c in best.codes):
            yield f"{card.name} ({dotted(card.capability)}) in this machine cannot run this build"
    if older(gpus.driver, _least(best.toolkit, asked)):
        version = best.toolkit.version
        yield f"the driver {gpus.driver} of this machine cannot run CUDA {version} code"
