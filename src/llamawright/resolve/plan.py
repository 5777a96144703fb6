"""The resolver: a request and an inventory to a plan, or every conflict with its cure.

Nothing here reads a file, starts a process or asks the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from llamawright.model.inventory import Found, Inventory, Role
from llamawright.model.plan import Conflict, KeyPart, Plan, PlannedPatch
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, SourcePin
from llamawright.model.request import Request
from llamawright.model.toolchain import Toolchains
from llamawright.resolve import keys
from llamawright.resolve.choice import Choice, Field, failure
from llamawright.resolve.cuda import choose_cuda
from llamawright.resolve.cuda_side import CudaSide
from llamawright.resolve.jobs import choose_jobs, nvcc_threads
from llamawright.resolve.options import COMMIT_DIGITS, host_options, merged
from llamawright.resolve.sides import ModuleSide
from llamawright.resolve.tools import choose_cache, choose_compiler, choose_program, require_git
from llamawright.resolve.vulkan import choose_vulkan, facts_of, select_patches

LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """All questions answered."""

    compiler: Choice
    cmake: Choice
    ninja: Choice
    cache: Choice
    side: ModuleSide | None
    conflicts: tuple[Conflict, ...]
    warnings: tuple[str, ...]

    @property
    def makers(self) -> tuple[Found, ...]:
        """Return the tools every build needs."""
        return (*self.compiler.tools, *self.cmake.tools, *self.ninja.tools)


def resolve(
    request: Request,
    inventory: Inventory,
    toolchains: Toolchains,
    patches: tuple[PlannedPatch, ...],
) -> Plan:
    """Return the plan of a build with nothing left to choose.

    ``patches`` are all that apply to the source; those whose conditions hold are used.
    Raises ``ToolMissingError`` when all that stands in the way is missing tools, else
    ``ToolchainConflictError``; either carries every conflict and every cure.
    """
    answers = _ask(request, inventory, toolchains, patches)
    if answers.conflicts:
        raise failure(answers.conflicts)
    rule = _rule(request)
    selected = select_patches(patches, facts_of(request.backend, answers.side))
    return _plan(request, inventory, rule, answers, selected)


def pin_source(plan: Plan, digest: str) -> Plan:
    """Return the plan of a source that only fetching could digest (a folder, a free commit).

    A plan whose source is pinned already is returned as it is.
    """
    if plan.recipe.source.tree is not None:
        return plan

    def pinned(parts: tuple[KeyPart, ...]) -> tuple[KeyPart, ...]:
        return tuple(replace(p, value=digest) if p.name == keys.SOURCE else p for p in parts)

    source = replace(plan.recipe.source, tree=digest)
    host, every = pinned(plan.host_parts), pinned(plan.parts)
    return replace(
        plan,
        recipe=replace(plan.recipe, source=source),
        host_parts=host,
        parts=every,
        host_key=keys.key_of(host),
        key=keys.key_of(every),
    )


def source_pin(request: Request) -> SourcePin:
    """Return what is built: the recipe's pin, or the user's own commit or folder, unpinned."""
    pin, source = request.recipe.source, request.source
    if source.startswith("path:"):
        return replace(pin, commit=LOCAL, build_number=0, tree=None)
    commit = source.rpartition("@")[2] if source.startswith("git+") else pin.commit
    if commit == pin.commit:
        return pin
    return replace(pin, commit=commit, build_number=0, tree=None)


def _ask(
    request: Request,
    inventory: Inventory,
    toolchains: Toolchains,
    patches: tuple[PlannedPatch, ...],
) -> _Answers:
    field = Field(inventory=inventory, toolchains=toolchains)
    compiler = choose_compiler(request, field)
    cmake = choose_program(Role.CMAKE, request.cmake, field)
    ninja = choose_program(Role.NINJA, request.ninja, field)
    cache, git = choose_cache(request, field), require_git(request, field)
    side: ModuleSide | None = None
    conflicts = [c for choice in (compiler, cmake, ninja, cache, git) for c in choice.conflicts]
    conflicts += _unfit_request(request)
    warnings: tuple[str, ...] = ()
    if request.backend is Backend.VULKAN:
        side, against, warnings = choose_vulkan(request, field, _rule(request), patches)
        conflicts += against
    elif request.backend is Backend.CUDA and request.recipe.rule(request.backend):
        host, launcher = next(iter(compiler.tools), None), next(iter(cache.tools), None)
        side, against, warnings = choose_cuda(request, field, _rule(request), host, launcher)
        conflicts += against
    return _Answers(
        compiler=compiler,
        cmake=cmake,
        ninja=ninja,
        cache=cache,
        side=side,
        conflicts=tuple(conflicts),
        warnings=warnings,
    )


def _unfit_request(request: Request) -> Iterator[Conflict]:
    """Yield what cannot be built whatever the machine has."""
    if request.recipe.rule(request.backend) is None:
        names = ", ".join(str(r.backend) for r in request.recipe.backends)
        yield Conflict(
            what=f"the recipe {request.recipe.name} does not know the backend {request.backend}",
            why=f"it has: {names}",
            cures=(f"name one of: {names}",),
            kind="unknown-backend",
        )
    modules = any(o.name == "GGML_BACKEND_DL" and o.value == "ON" for o in request.recipe.options)
    if request.native and modules and request.platform.machine == "x86_64":
        yield Conflict(
            what="--native does not go with backend modules on x86_64",
            why="llama.cpp refuses GGML_NATIVE together with GGML_BACKEND_DL there",
            cures=("leave --native out: the variant for this processor is built and chosen",),
            kind="native-with-modules",
        )


def _rule(request: Request) -> BackendRule:
    return request.recipe.rule(request.backend) or BackendRule(backend=request.backend)


def _plan(
    request: Request,
    inventory: Inventory,
    rule: BackendRule,
    answers: _Answers,
    patches: tuple[PlannedPatch, ...],
) -> Plan:
    pin, side, compiler = source_pin(request), answers.side, answers.compiler.tools[0]
    cache = next(iter(answers.cache.tools), None)
    options = host_options(request, pin, compiler, answers.ninja.tools[0], cache)
    extra = merged(rule.options, side.options(request.platform) if side else ())
    environment = (("SOURCE_DATE_EPOCH", str(pin.timestamp)),)
    host = keys.host_parts(
        request, pin, tools=answers.makers, patches=patches, options=options,
        environment=environment, cpu=inventory.cpu,
    )  # fmt: skip
    every = (*host, *keys.module_parts(rule, extra, side))
    plan = Plan(
        name=_name(request, pin, side),
        recipe=replace(request.recipe, source=pin),
        backend=request.backend,
        platform=request.platform,
        source=request.source,
        tools=(*answers.makers, *answers.cache.tools, *(side.tools if side else ())),
        provisions=side.provisions if side else (),
        patches=patches,
        host_options=options,
        module_options=extra,
        environment=(*environment, *_compiler_environment(compiler)),
        with_tests=request.with_tests,
        jobs=choose_jobs(request, inventory),
        warnings=(*answers.warnings, *_source_warnings(pin)),
        host_parts=host,
        parts=every,
        host_key=keys.key_of(host),
        key=keys.key_of(every),
    )
    return _with_cuda(plan, side, inventory) if isinstance(side, CudaSide) else plan


def _with_cuda(plan: Plan, side: CudaSide, inventory: Inventory) -> Plan:
    threads = nvcc_threads(side.plan, plan.jobs, inventory)
    return replace(plan, cuda=side.plan, environment=(*plan.environment, *threads))


def _name(request: Request, pin: SourcePin, side: ModuleSide | None) -> str:
    """Return the artifact's name; two CUDA releases make two artifacts."""
    release = side.toolkit.release if isinstance(side, CudaSide) else ""
    commit = pin.commit[:COMMIT_DIGITS]
    return f"{request.recipe.name}-{commit}-{request.backend}{release}-{request.platform.tag}"


def _compiler_environment(compiler: Found) -> tuple[tuple[str, str], ...]:
    """Name the compiler for vulkan-shaders-gen, whose nested configure is not told otherwise."""
    return (("CC", compiler.fact("c_compiler")), ("CXX", compiler.path.as_posix()))


def _source_warnings(pin: SourcePin) -> Iterator[str]:
    if pin.tree is None:
        yield "the source is not pinned: its digest is known once it has been read"
